"""The monitor file: one YAML that drives learning, replay, tuning and the node.

`load_spec` reads and checks the file as a whole. Every error names the file, the line, the key
path and the value, and all errors of a file are reported together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from forewarn.actuation import ActuatorsSpec, AutowareSpec, Braking, Nav2Spec, TwistSpec
from forewarn.errors import ConfigError, ConfigErrors, InputError
from forewarn.fields import Action, Finite, Positive, Seconds, Section
from forewarn.fields import no_bool as _no_bool
from forewarn.inclusion import with_fragments
from forewarn.yamlfile import Document, load_document

SCALAR = float | bool | str
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


def _horizon(value: object) -> object:
    return math.inf if value == "unbounded" else _no_bool(value)


def _timeout(value: object) -> object:
    return math.inf if value == "never" else _no_bool(value)


def _expression(value: object) -> object:
    # YAML reads `value: 1` as a number and `p: true` as a Boolean; both are expressions.
    return str(value) if isinstance(value, int | float) else value


Probability = Annotated[Finite, Field(ge=0, le=1)]
Ticks = Annotated[int, BeforeValidator(_no_bool), Field(ge=1)]
Expr = Annotated[str, BeforeValidator(_expression), Field(min_length=1)]


class SignalSpec(Section):
    """A named number: from a message field, from another process, or derived from other signals.

    Attributes
    ----------
    topic, type : str or None
        ROS topic and its message type; neither for a derived or external signal.
    channel, message : str or None
        Channel of Apollo's Cyber RT and its message type, in place of `topic` and `type`.
    value : str or None
        Expression over the message's fields, or over other signals. Without topic and value the
        signal is external: another process, or a trace, supplies it by name.
    timeout : float
        Seconds after which a sample counts as unknown; infinite for ``never``. Not for derived
        signals.
    default : float or bool or str or None
        Value before the first message, for topics that speak only when something happens.
    stale : str
        What a value that is too old means. ``worst``: anything is possible, and the worst of it
        counts. ``hold``: the last value stays, and is reported as old. ``ignore``: while nothing
        else is missing, properties are not judged and nothing alerts anew; it is reported.
    unit, description : str
        For people.
    """

    topic: str | None = None
    type: str | None = None
    channel: str | None = None
    message: str | None = None
    value: Expr | None = None
    timeout: Annotated[float, BeforeValidator(_timeout), Field(gt=0)] | None = None
    default: SCALAR | None = None
    stale: Literal["worst", "hold", "ignore"] = "worst"
    unit: str = ""
    description: str = ""

    @model_validator(mode="after")
    def _source_or_derived(self) -> SignalSpec:
        if (self.topic is None) != (self.type is None):
            raise ValueError("topic and type go together; a derived signal has neither")
        if (self.channel is None) != (self.message is None):
            raise ValueError("channel and message go together: apollo.canbus.Chassis, say")
        if self.topic is not None and self.channel is not None:
            raise ValueError("a signal comes from a topic or from a channel, not from both")
        if self.source is not None and self.value is None:
            raise ValueError("value is missing: an expression over the message's fields")
        if self.is_derived and self.model_fields_set & {"timeout", "default", "stale"}:
            raise ValueError("timeout, default and stale belong to signals that arrive")
        if self.type is not None and not re.match(r"[a-z]\w*/(msg/)?[A-Z]\w*\Z", self.type):
            raise ValueError(f"{self.type!r} is no message type (accepted: nav_msgs/msg/Odometry)")
        if self.message is not None and not re.match(r"[A-Za-z_]\w*(\.\w+)+\Z", self.message):
            raise ValueError(f"{self.message!r} is no message (accepted: apollo.canbus.Chassis)")
        return self

    @property
    def source(self) -> str | None:
        """Return the topic or channel that the signal is read from."""
        return self.channel if self.topic is None else self.topic

    @property
    def is_derived(self) -> bool:
        """Tell whether other signals determine this one."""
        return self.source is None and self.value is not None

    @property
    def message_type(self) -> str:
        """Return the type as ``package/msg/Name``, or the full name of a channel's message."""
        if self.message is not None:
            return self.message
        parts = (self.type or "").split("/")
        return f"{parts[0]}/msg/{parts[-1]}"


class ShapeSpec(Section):
    """Lines and polygons that derived signals may ask about.

    Attributes
    ----------
    file, layer : str or None
        A map file and one of its layers; variables of the environment (``$APOLLO_MAP``) are
        filled in, relative paths start at the monitor file.
    polygon, line : list of [x, y] or None
        A single shape, in metres.
    """

    file: str | None = None
    layer: str | None = None
    polygon: Annotated[tuple[tuple[Finite, Finite], ...], Field(min_length=3)] | None = None
    line: Annotated[tuple[tuple[Finite, Finite], ...], Field(min_length=2)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ShapeSpec:
        if (self.file is None) != (self.layer is None):
            raise ValueError("file and layer go together")
        if sum(each is not None for each in (self.file, self.polygon, self.line)) != 1:
            raise ValueError("one of: file and layer, polygon, line")
        return self


class ForbidSpec(Section):
    """Transitions that cannot happen: from states where `from` holds to those where `to` does."""

    source: Expr = Field(alias="from")
    target: Expr = Field(alias="to")


class ConstraintSpec(Section):
    """One declared fact about which states and transitions are possible."""

    exclusive: tuple[str, ...] | None = None
    implies: tuple[str, str] | None = None
    irreversible: str | None = None
    forbid: ForbidSpec | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> ConstraintSpec:
        if len(self.model_fields_set) != 1:
            raise ValueError("each entry holds one of: exclusive, implies, irreversible, forbid")
        return self


class Thresholds(Section):
    """Risk levels of the policy.

    Attributes
    ----------
    warn, act : float
        Levels in [0, 1] at which WARN begins and at which the intervention is asked for.
    release : float
        Level below which an intervention may end; below `act`.
    warn_release : float or None
        Level below which a warning may end; the lesser of `release` and `warn` where not given.
    """

    warn: Probability = 0.3
    act: Probability = 0.5
    release: Probability = 0.2
    warn_release: Probability | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Thresholds:
        if not self.release < self.act:
            raise ValueError(
                f"release {self.release:g} must be below act {self.act:g}, or alerts flicker"
            )
        if self.warn > self.act:
            raise ValueError(f"warn {self.warn:g} must not be above act {self.act:g}")
        return self


class EscalationStep(Section):
    """What is asked for once an alert has lasted some time.

    Attributes
    ----------
    after : float
        Seconds since the alert began.
    action : str
        Intervention.
    speed_limit : float or None
        m/s, for LIMIT_SPEED.
    """

    after: Seconds
    action: Action
    speed_limit: Seconds | None = None

    @model_validator(mode="after")
    def _speed_limit(self) -> EscalationStep:
        if self.action == "LIMIT_SPEED" and self.speed_limit is None:
            raise ValueError("LIMIT_SPEED needs speed_limit: in m/s")
        return self


class PropertySpec(Section):
    """One safety rule and what to do about its risk.

    Attributes
    ----------
    formula : str
        Temporal formula over predicates and terminal labels.
    horizon : float
        Seconds to look ahead; infinite for ``unbounded``.
    thresholds : Thresholds
        Risk levels.
    figure : str
        ``risk`` (the estimate) or ``upper`` (its upper bound) is compared with the thresholds.
    enter, exit : int
        Consecutive ticks that begin, and end, an alert.
    hold : float
        Seconds an alert lasts at the least.
    unseen : str
        Level taken in a state the model does not know, for `unseen_limit` seconds.
    intervention : str
        Action asked for at `act`.
    speed_limit : float or None
        m/s, for LIMIT_SPEED.
    escalation : tuple of EscalationStep
        Stronger interventions the longer an alert lasts.
    cooldown : float
        Seconds after the end of an alert during which there are warnings only.
    paper_counting : bool
        ProbGuard's Definition 5.2: the bound counts one step more.
    """

    formula: Annotated[str, Field(min_length=1)]
    horizon: Annotated[float, BeforeValidator(_horizon), Field(gt=0)] = 3.0
    thresholds: Thresholds = Thresholds()
    figure: Literal["risk", "upper"] = "risk"
    enter: Ticks = 2
    exit: Ticks = 5
    hold: Seconds = 1.0
    unseen: Literal["act", "warn", "ignore"] = "act"
    unseen_limit: Seconds = 3.0
    intervention: Action = "COMFORTABLE_STOP"
    speed_limit: Seconds | None = None
    escalation: tuple[EscalationStep, ...] = ()
    cooldown: Seconds = 0.0
    paper_counting: bool = False
    description: str = ""
    source: str = ""

    @model_validator(mode="after")
    def _speed_limit(self) -> PropertySpec:
        if self.intervention == "LIMIT_SPEED" and self.speed_limit is None:
            raise ValueError("LIMIT_SPEED needs speed_limit: in m/s")
        times = [step.after for step in self.escalation]
        if times != sorted(set(times)) or any(time <= 0 for time in times):
            raise ValueError(f"escalation after {times} s: the times must rise, from above 0")
        return self


class LearningSpec(Section):
    """How counts become a chain.

    Attributes
    ----------
    alpha : float or str
        Weight added to each possible successor; ``sparse`` spreads a total of 1 over the row,
        ``none`` is maximum likelihood, 1 is the published choice (ProbGuard eq. 1).
    candidates : str
        Possible states: those ``observed``, or all ``admissible`` ones.
    end : str
        ``drop`` ends observation with the recording, ``absorb`` adds an explicit end state.
    online : bool
        The node goes on learning from what it sees.
    refresh : float
        Seconds after which it takes new counts into its risk tables.
    """

    alpha: Annotated[Finite, Field(ge=0)] | Literal["sparse", "none"] = "sparse"
    online: bool = False
    refresh: Positive = 10.0
    candidates: Literal["observed", "admissible"] = "observed"
    end: Literal["drop", "absorb"] = "drop"


class BoundsSpec(Section):
    """What the bounds of a risk are.

    Attributes
    ----------
    kind : str
        ``credible``: between them lies the risk of most chains that the counts leave possible.
        ``sound``: they hold for the true chain at the confidence, also for what was never seen;
        wide at long horizons. ``none``: no bounds.
    confidence : float
        Posterior probability, or confidence level, in (0, 1).
    samples : int
        Chains drawn for credible bounds.
    """

    kind: Literal["none", "credible", "sound"] = "credible"
    confidence: Annotated[Finite, Field(gt=0, lt=1)] = 0.95
    samples: Annotated[int, BeforeValidator(_no_bool), Field(ge=20, le=100_000)] = 200


class MonitorSpec(Section):
    """A checked monitor file.

    Attributes
    ----------
    rate : float
        Ticks per second of the monitor's grid.
    time : str
        ``arrival``: samples count from when they were received. ``stamp``: from their header
        stamp, ticks being evaluated `settle` seconds late.
    active_when : str or None
        Expression that tells when monitoring and learning apply at all; always if not given.
    intervened_when : str or None
        Expression that tells when an intervention shapes the behaviour: such ticks are not
        learned from.
    startup : float
        Seconds after activation within which missing signals raise no alert.
    history : int
        2: a state also remembers the predicates of the tick before.
    actuators : ActuatorsSpec
        Interfaces through which a node in ``mode: act`` intervenes.
    """

    version: Literal[1] = 1
    rate: Annotated[Positive, Field(le=1000)]
    time: Literal["arrival", "stamp"] = "arrival"
    settle: Seconds = 0.0
    startup: Seconds = 5.0
    history: Literal[1, 2] = 1
    signals: Annotated[dict[str, SignalSpec], Field(min_length=1)]
    shapes: dict[str, ShapeSpec] = {}  # noqa: RUF012 (pydantic copies defaults)
    predicates: dict[str, Expr] = {}  # noqa: RUF012
    bins: dict[str, Annotated[tuple[Finite, ...], Field(min_length=1)]] = {}  # noqa: RUF012
    terminal: dict[str, Expr] = {}  # noqa: RUF012
    constraints: tuple[ConstraintSpec, ...] = ()
    active_when: Expr | None = None
    intervened_when: Expr | None = None
    properties: Annotated[dict[str, PropertySpec], Field(min_length=1)]
    learning: LearningSpec = LearningSpec()
    bounds: BoundsSpec = BoundsSpec()
    model: str | None = None
    mode: Literal["observe", "act"] = "observe"
    actuators: ActuatorsSpec = ActuatorsSpec()
    file: Path | None = Field(default=None, exclude=True)
    _origin: MonitorSpec | None = PrivateAttr(default=None)

    @property
    def origin(self) -> MonitorSpec:
        """Return the monitor file that this one was derived from, for a node behind a bridge."""
        return self if self._origin is None else self._origin

    def derived(self, signals: Mapping[str, SignalSpec]) -> MonitorSpec:
        """Return a copy with other signals, for which models of this file remain valid."""
        copy = self.model_copy(update={"signals": dict(signals)})
        copy._origin = self.origin
        return copy

    @property
    def model_path(self) -> Path | None:
        """Return where the model file lies; relative paths start at the monitor file."""
        if self.model is None:
            return None
        return (self.file.parent if self.file else Path()) / Path(self.model).expanduser()

    @property
    def topics(self) -> dict[str, str]:
        """Return the message type of every topic and channel that the signals read."""
        return {s.source: s.message_type for s in self.signals.values() if s.source is not None}

    def with_thresholds(self, name: str, values: Mapping[str, object]) -> MonitorSpec:
        """Return a copy in which property `name` has other thresholds or policy values.

        Raises
        ------
        ConfigError
            If a value is out of range, or the property or key does not exist.
        """
        if name not in self.properties:
            raise ConfigError(
                "no such property", key=f"properties.{name}", accepted=", ".join(self.properties)
            )
        raw = self.properties[name].model_dump()
        for key, value in values.items():
            section = raw["thresholds"] if key in raw["thresholds"] else raw
            if key not in section:
                raise ConfigError("no such key", key=f"properties.{name}.{key}")
            section[key] = value
        try:
            changed = PropertySpec.model_validate(raw)
        except ValidationError as error:
            problems = list(_problems(error, None, prefix=("properties", name)))
            raise ConfigErrors(problems) from None
        return self.model_copy(update={"properties": {**self.properties, name: changed}})


def load_spec(path: Path | str) -> MonitorSpec:
    """Read and check a monitor file.

    Raises
    ------
    ConfigError
        Naming file, line, key path, value and what is accepted; all findings at once.
    """
    path = Path(path)
    return parse_spec(with_fragments(load_document(path)))


def parse_spec(document: Document) -> MonitorSpec:
    """Check a YAML document against the shape of a monitor file; raises ConfigError."""
    if not isinstance(document.data, dict):
        raise ConfigError(
            f"the document is {type(document.data).__name__}, not a mapping",
            file=document.file,
            accepted="keys such as rate:, signals:, predicates:, properties:",
        )
    if "file" in document.data:
        raise ConfigError("unknown key", file=document.file, key="file")
    try:
        spec = MonitorSpec.model_validate({**document.data, "file": document.file})
    except ValidationError as error:
        raise ConfigErrors(list(_problems(error, document))) from None
    errors = list(_name_errors(spec, document))
    if errors:
        raise ConfigErrors(errors)
    return spec


def key_path(parts: tuple[object, ...]) -> str:
    """Return ``properties.stop.thresholds[0]`` for the parts of a path."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _problems(
    error: ValidationError, document: Document | None, prefix: tuple[object, ...] = ()
) -> Iterator[InputError]:
    seen: set[str] = set()
    for item in error.errors():
        # pydantic appends the tried branch of a union to the path; keys of the file only.
        known = tuple(p for p in item["loc"] if not _is_branch(p))
        origin = document.origin(prefix + known) if document else None
        location = origin.locate(prefix + known) if origin else ""
        path = key_path(prefix + known)
        value, kind = item["input"], item["type"]
        if kind == "missing":
            problem, accepted = "is missing", ""
        elif kind == "extra_forbidden":
            problem, accepted = "unknown key", _accepted_keys(known)
        else:
            text = item["msg"].removeprefix("Value error, ")
            shown = value if isinstance(value, str | int | float) else type(value).__name__
            problem, accepted = f"{shown!r}: {text[0].lower()}{text[1:]}", ""
        if f"{path}{problem}" not in seen:
            seen.add(f"{path}{problem}")
            yield ConfigError(
                problem,
                file=origin.file if origin else None,
                key=location + path,
                accepted=accepted,
            )


def _is_branch(part: object) -> bool:
    return isinstance(part, str) and bool(
        re.match(
            r"(literal|constrained-\w+|function-\w+|tuple|nullable)\[|(float|str|bool|int)\Z", part
        )
    )


_NESTED: dict[object, type[Section]] = {
    "thresholds": Thresholds,
    "escalation": EscalationStep,
    "autoware": AutowareSpec,
    "nav2": Nav2Spec,
    "twist": TwistSpec,
    "comfortable": Braking,
    "emergency": Braking,
}


def _accepted_keys(location: tuple[Any, ...]) -> str:
    sections: dict[object, type[Section]] = {
        "signals": SignalSpec,
        "shapes": ShapeSpec,
        "properties": PropertySpec,
        "learning": LearningSpec,
        "bounds": BoundsSpec,
        "constraints": ConstraintSpec,
        "actuators": ActuatorsSpec,
    }
    section = sections.get(location[0])
    for key, nested in _NESTED.items():
        section = nested if key in location[:-1] else section
    if len(location) == 1 or section is None:
        section = MonitorSpec
    names = [field.alias or name for name, field in section.model_fields.items()]
    return ", ".join(name for name in names if name != "file")


def _name_errors(spec: MonitorSpec, document: Document) -> Iterator[InputError]:
    for section in ("signals", "shapes", "predicates", "terminal", "properties"):
        for name in getattr(spec, section):
            if not NAME.match(name):
                where = (section, name)
                yield ConfigError(
                    f"{name!r} is no name",
                    file=document.file,
                    key=document.locate(where) + key_path(where),
                    accepted="a letter, then letters, digits and underscores",
                )
