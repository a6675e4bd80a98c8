"""The sections of a monitor file: what each key means, and what is accepted."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from forewarn.config.actions import ACTIONS, COMFORTABLE_STOP, Asked
from forewarn.config.fields import LARGEST, Duration, Finite, Positive, Seconds, Section, endless
from forewarn.config.fields import no_bool as _no_bool
from forewarn.config.templates import with_formula

VALUE = float | bool | str | list[float]


def _expression(value: object) -> object:
    # YAML reads `value: 1` as a number and `p: true` as a Boolean; both are expressions.
    return str(value) if isinstance(value, int | float) else value


Limit = Annotated[float, endless("never"), Field(gt=0)]
Probability = Annotated[Finite, Field(ge=0, le=1)]
Ticks = Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=int(LARGEST))]
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
    where : str or None
        Condition over the message's fields: only messages for which it holds count.
    timeout : float
        Seconds after which a sample counts as unknown; infinite for ``never``. Not for derived
        signals.
    default : float or bool or str or list of float or None
        Value before the first message, for topics that speak only when something happens.
    stale : str
        What a value that is too old means. ``worst``: anything is possible, and the worst of it
        counts. ``hold``: the last value stays, and is reported as old. ``ignore``: while nothing
        else is missing, properties are not judged and nothing alerts anew; it is reported.
    rules : str or None
        File of rules about plans; relative paths start at the monitor file. `value` is a plan then,
        and the signal says in words what the rules have against it: an empty text if nothing.
    unit, description : str
        For people.
    """

    topic: str | None = None
    type: str | None = None
    channel: str | None = None
    message: str | None = None
    value: Expr | None = None
    where: Expr | None = None
    timeout: Limit | None = None
    default: VALUE | None = None
    stale: Literal["worst", "hold", "ignore"] = "worst"
    rules: Annotated[str, Field(min_length=1)] | None = None
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
        if self.source is None and self.where is not None:
            raise ValueError("where chooses among messages: it belongs to a signal with a topic")
        if self.is_derived and self.model_fields_set & {"timeout", "default", "stale"}:
            raise ValueError("timeout, default and stale belong to signals that arrive")
        if self.rules is not None and (self.is_derived or self.channel is not None):
            raise ValueError("rules belong to signals that arrive, from a topic or by name")
        if self.type is not None and not re.match(
            r"[a-z]\w*/((msg|action)/)?[A-Z]\w*\Z", self.type
        ):
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
        package, *folder, name = (self.type or "/").split("/")
        return f"{package}/{folder[0] if folder else 'msg'}/{name}"


class StatesSpec(Section):
    """What a state is.

    Attributes
    ----------
    kind : str
        ``predicates``, or another kind of `states.kinds.KINDS`. All other keys are its own: it
        checks them by `MonitorSpec.states_section`.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    kind: Annotated[str, Field(min_length=1)] = "predicates"


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
        if sum(source is not None for source in (self.file, self.polygon, self.line)) != 1:
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
        Level below which an intervention may end; below `act`. Where it is not given: 0.2, or half
        of `act` if that is less. `warn` is 0.3, or `act` if that is less.
    warn_release : float or None
        Level below which a warning may end; the lesser of `release` and `warn` where not given.
    """

    warn: Probability = 0.3
    act: Probability = 0.5
    release: Probability = 0.2
    warn_release: Probability | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Thresholds:
        given = self.model_fields_set
        # Nobody should have to mend a value that they did not write.
        if "release" not in given:
            object.__setattr__(self, "release", min(self.release, self.act / 2))
        if "warn" not in given:
            object.__setattr__(self, "warn", min(self.warn, self.act))
        if not self.release < self.act:
            raise ValueError(
                f"release {self.release:g} must be below act {self.act:g}, or alerts flicker"
            )
        if self.warn > self.act:
            raise ValueError(f"warn {self.warn:g} must not be above act {self.act:g}")
        return self


def _check_limit(action: str, speed_limit: float | None) -> None:
    if ACTIONS[action].limits and speed_limit is None:
        raise ValueError(f"{action} needs speed_limit: in m/s")


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

    after: Duration
    action: Asked
    speed_limit: Seconds | None = None

    @model_validator(mode="after")
    def _speed_limit(self) -> EscalationStep:
        _check_limit(self.action, self.speed_limit)
        return self


Estimator = Literal["chain", "counted", "shrunk", "pooled", "lagged", "stack", "auto"]


class PropertySpec(Section):
    """One safety rule and what to do about its risk.

    Attributes
    ----------
    formula : str
        Temporal formula over predicates and terminal labels. `template` with its parts may stand in
        its place (`templates`).
    horizon : float
        Seconds to look ahead; infinite for ``unbounded``.
    thresholds : Thresholds
        Risk levels.
    figure : str
        What is compared with the thresholds: ``risk`` (the estimate), ``upper`` (its upper bound),
        ``pmin`` (the least risk over all ways to choose among recorded actions) or ``expected``
        (the mean risk over what the state may be, by all readings so far).
    estimator : str
        What the risk is estimated from: ``chain``, ``counted`` outcomes, ``shrunk`` (counted, with
        the chain as prior), ``pooled`` over predicates, ``lagged`` (a chain of longer steps),
        ``stack`` (these together), or ``auto``, whichever predicts best.
    scores : tuple of str
        Signals in (0, 1) that say by themselves how likely a violation is; a stack adds them.
    risk_of : str
        Whose risk it is: ``state`` (of the state, whatever is done in it) or ``action`` (of what is
        being done in the state; the recorded mix of actions follows).
    enter, exit : int
        Consecutive ticks that begin, and end, an alert.
    hold : float
        Seconds an alert lasts at the least.
    unseen : str
        Level taken in a state the model does not know, for `unseen_limit` seconds.
    unseen_speed : float
        m/s, the limit from then on where `unseen` is ``act`` and an actuator can limit the speed.
    intervention : str
        Action asked for at `act`.
    speed_limit : float or None
        m/s, for LIMIT_SPEED.
    escalation : tuple of EscalationStep
        Stronger interventions the longer an alert lasts.
    cooldown : float
        Seconds after the end of an alert during which there are warnings only.
    clear : float
        Seconds without a breach after which it has cleared: what comes later counts as another.
    paper_counting : bool
        ProbGuard's Definition 5.2: the bound counts one step more.
    """

    formula: Annotated[str, Field(min_length=1)]
    horizon: Annotated[float, endless("unbounded"), Field(gt=0)] = 3.0
    thresholds: Thresholds = Thresholds()
    figure: Literal["risk", "upper", "pmin", "expected"] = "risk"
    estimator: Estimator = "chain"
    scores: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    risk_of: Literal["state", "action"] = "state"
    enter: Ticks = 2
    exit: Ticks = 5
    hold: Duration = 1.0
    unseen: Literal["act", "warn", "ignore"] = "act"
    unseen_limit: Duration = 3.0
    unseen_speed: Positive = 0.5
    intervention: Asked = COMFORTABLE_STOP
    speed_limit: Seconds | None = None
    escalation: tuple[EscalationStep, ...] = ()
    cooldown: Duration = 0.0
    clear: Duration = 1.0
    paper_counting: bool = False
    description: str = ""
    source: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_template(cls, data: Any) -> Any:
        return with_formula(data) if isinstance(data, dict) and "template" in data else data

    @model_validator(mode="after")
    def _estimated(self) -> PropertySpec:
        if self.risk_of == "action" and self.estimator != "chain":
            raise ValueError(
                f"estimator {self.estimator}: the risk of an action is the decision process's; "
                "risk_of: state, or estimator: chain"
            )
        if self.scores and self.estimator not in {"stack", "auto"}:
            raise ValueError(
                f"estimator {self.estimator} adds no scores; estimator: stack or auto does"
            )
        if len(set(self.scores)) < len(self.scores):
            raise ValueError("scores: each signal once")
        return self

    @model_validator(mode="after")
    def _speed_limit(self) -> PropertySpec:
        _check_limit(self.intervention, self.speed_limit)
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
    regrow : float or None
        Seconds, or steps, after which the node grows the tree of its states anew from what it has
        seen, in another process, and writes it beside the monitor file.
    remember : int
        Moments that it keeps for that.
    calibration : str
        How `learn` calibrates risks on recordings that were kept back: ``isotonic``, ``platt`` or
        ``none``.
    """

    alpha: Annotated[Finite, Field(ge=0)] | Literal["sparse", "none"] = "sparse"
    online: bool = False
    refresh: Positive = 10.0
    regrow: Positive | None = None
    remember: Annotated[int, Field(ge=100, le=10_000_000)] = 100_000
    candidates: Literal["observed", "admissible"] = "observed"
    end: Literal["drop", "absorb"] = "drop"
    calibration: Literal["none", "isotonic", "platt"] = "none"


class ShieldSpec(Section):
    """Which action is recommended beside an intervention.

    Attributes
    ----------
    failure, success : str
        State formulas: names of predicates and terminal labels with ``!``, ``&`` and ``|``.
    at_least : float
        Probability of success that the recommended action has to leave.
    horizon : float
        Seconds within which failure counts; infinite for ``unbounded``. Success may take its time.
    """

    failure: Annotated[str, Field(min_length=1)]
    success: Annotated[str, Field(min_length=1)]
    at_least: Probability = 0.9
    horizon: Annotated[float, endless("unbounded"), Field(gt=0)] = math.inf


class AnomalySpec(Section):
    """How live runs are told from normal ones.

    Attributes
    ----------
    file : str
        What ``forewarn anomalies --save`` wrote for the model; relative paths start at the monitor
        file.
    alpha : float or None
        Share of false alarms among normal runs; that of the file where not given.
    rule : str or None
        ``conformal``, ``prefix``, ``cusum`` or ``checkpoints``; that of the file where not given.
    run : float
        Seconds after which another run begins, where no terminal label has ended it before;
        infinite for ``never``.
    """

    file: Annotated[str, Field(min_length=1)]
    alpha: Annotated[Finite, Field(gt=0, le=0.5)] | None = None
    rule: Literal["conformal", "prefix", "cusum", "checkpoints"] | None = None
    run: Limit = math.inf


class BoundsSpec(Section):
    """What the bounds of a risk are.

    Attributes
    ----------
    kind : str
        ``credible``: between them lies the risk of most chains that the counts leave possible.
        ``sound``: they hold for the true chain at the confidence, also for what was never seen;
        wide at long horizons. ``clustered``: between them lies the share of moments that a
        violation follows in recordings like those learned from, which may differ among each
        other, whatever the chain leaves out. ``none``: no bounds. Risks that are not the chain's
        have clustered bounds instead of credible ones.
    confidence : float
        Posterior probability, or confidence level, in (0, 1).
    samples : int
        Chains drawn for credible bounds; four for each set of recordings drawn for clustered ones.
    """

    kind: Literal["none", "credible", "sound", "clustered"] = "credible"
    confidence: Annotated[Finite, Field(gt=0, lt=1)] = 0.95
    samples: Annotated[int, BeforeValidator(_no_bool), Field(ge=20, le=100_000)] = 200
