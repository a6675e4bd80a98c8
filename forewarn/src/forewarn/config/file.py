"""The monitor file: one YAML that drives learning, replay, tuning and the node.

`load_spec` reads and checks the file as a whole. Every error names the file, the line, the key
path and the value, and all errors of a file are reported together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from forewarn.config.actuators import ActuatorsSpec, EscapeSpec
from forewarn.config.fields import (
    CheckedRate,
    Duration,
    Finite,
    Misfit,
    Section,
    default,
    of_wing,
    with_others,
)
from forewarn.config.includes import with_fragments
from forewarn.config.problems import config_error, validation_problems
from forewarn.config.sections import (
    BoundsSpec,
    ConstraintSpec,
    LearningSpec,
    PropertySpec,
    ShapeSpec,
    StatesSpec,
)
from forewarn.config.signals import TRANSFORMS, Expr, Limit, SignalSpec, topic_in
from forewarn.config.stepwise import misfits
from forewarn.config.trajectories import TrajectoriesSpec
from forewarn.config.yaml_text import Document, load_document
from forewarn.errors import ConfigError, ConfigErrors, InputError
from forewarn.registry import SECTIONS, wing_keys

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
Own = TypeVar("Own", bound=Section)


class MonitorSpec(Section):
    """A checked monitor file.

    Attributes
    ----------
    version : int
        Version of this format.
    clock : str
        ``ticks``: a grid of ``rate``. ``steps``: each line of a trace, or message of the topic
        ``step``. Seconds are then whole steps, except ``mute_limit`` and times of actuators, and
        rates an hour are in 3,600 steps.
    rate : float or 'steps'
        Ticks a second. One tick is one step of the model and the unit of every bound. Not under
        ``clock: steps``.
    step : str or None
        Under ``clock: steps``: the topic or channel whose messages are steps. Where not given: a
        line of a trace, or a message on ``~/input/signals``.
    episode : str
        Under ``clock: steps``: key of a trace's line that names its run. If a signal has that name,
        the key means nothing.
    timestamp_source : str
        ``arrival``: a message counts from when it arrived (in a bag: its log time). ``header``:
        from its header stamp.
    settle : float
        With ``timestamp_source: header``: seconds that a tick waits for its messages before it is
        evaluated.
    startup_grace : float
        Seconds after activation within which signals that have not come raise no alert.
    mute_limit : float
        Seconds that a mute lasts at the most, whatever was asked for; ``never``: as long as was
        asked for.
    history : int
        2: a state also remembers the predicates of the tick before, for states that are not Markov
        otherwise.
    states : StatesSpec
        What a state is: the vector of `predicates`, or the leaf of a tree together with them.
    trajectories : TrajectoriesSpec or None
        How recordings are read that hold the poses of all objects.
    signals : dict of str to SignalSpec
        Named values.
    shapes : dict of str to ShapeSpec
        Lines and polygons that derived signals may ask about.
    predicates : dict of str to str
        By name, an expression over signals and other predicates that is true or false. There may be
        1000, those of `bins` included.
    bins : dict of str to tuple of float
        By signal, rising thresholds: ``ttc: [1, 2]`` gives the predicates ``ttc<1`` and ``ttc<2``.
        ``auto``: ``learn`` cuts a learned score.
    learned_score : dict of str to section of the wing scores
        By name, a signal that is learned: how likely a violation is.
    terminal : dict of str to str
        By name, an expression. While it is true, this label is the state, whatever the predicates
        say, and the episode ends.
    observation_error : dict of str to float, or None
        By predicate (or signal of ``bins``), the probability that it is read wrongly. Asks for the
        *expected* risk of every property; ``observation_error: {}`` does so where nothing is read
        wrongly.
    constraints : tuple of ConstraintSpec
        Facts about which states and transitions are possible.
    active_when : str or None
        While it is false, nothing is watched and nothing learned. Where not given: always active.
    intervened_when : str or None
        While it is true, an intervention shapes what happens, and the chain does not learn. Where
        not given: never.
    action : str or None
        Name of what is done, a text: ``"'brake' if braking else 'go'"``. The model counts it for
        the decision process. Where not given: the key ``action`` of a trace's line.
    properties : dict of str to PropertySpec
        What must not happen.
    learning : LearningSpec
        How counts become probabilities.
    bounds : BoundsSpec
        The bounds of a risk.
    shield : section of the wing decisions, or None
        Which action is recommended beside an intervention.
    anomaly : section of the wing anomalies, or None
        Whether live runs are like normal ones.
    model : str or None
        Model file; a relative path starts at this file.
    mode : str
        ``act``: a node whose parameter ``mode`` says ``act`` as well intervenes. Without both it
        only observes.
    guards : dict of str to section of the wing agents
        Actions whose goals are checked before they are passed on.
    black_box : section of the wing black_box, or None
        What a node keeps in memory and writes when something happens.
    actuators : ActuatorsSpec
        The interfaces through which it intervenes.
    others : mapping of str to Section
        Sections that other packages add, as entry points of ``forewarn.sections``. Their keys stand
        beside `rate` in the file.
    """

    version: Literal[1] = 1
    clock: Literal["ticks", "steps"] = "ticks"
    rate: CheckedRate
    step: Annotated[str, Field(min_length=1)] | None = None
    episode: Annotated[str, Field(min_length=1)] = "run"
    timestamp_source: Literal["arrival", "header"] = "arrival"
    settle: Duration = 0.0
    startup_grace: Duration = 5.0
    mute_limit: Limit = 3600.0
    history: Literal[1, 2] = 1
    states: StatesSpec = default(StatesSpec)
    trajectories: TrajectoriesSpec | None = None
    signals: Annotated[dict[str, SignalSpec], Field(min_length=1)]
    shapes: dict[str, ShapeSpec] = {}  # noqa: RUF012 (pydantic copies defaults)
    predicates: dict[str, Expr] = {}  # noqa: RUF012
    bins: dict[str, Annotated[tuple[Finite, ...], Field(min_length=1)] | Literal["auto"]] = {}  # noqa: RUF012
    learned_score: dict[str, Annotated[Any, of_wing("learned_score")]] = {}  # noqa: RUF012
    terminal: dict[str, Expr] = {}  # noqa: RUF012
    constraints: tuple[ConstraintSpec, ...] = ()
    observation_error: dict[str, Annotated[Finite, Field(ge=0, le=0.5)]] | None = None
    active_when: Expr | None = None
    intervened_when: Expr | None = None
    action: Expr | None = None
    properties: Annotated[dict[str, PropertySpec], Field(min_length=1)]
    learning: LearningSpec = default(LearningSpec)
    bounds: BoundsSpec = default(BoundsSpec)
    anomaly: Annotated[Any, of_wing("anomaly", optional=True)] = None
    shield: Annotated[Any, of_wing("shield", optional=True)] = None
    model: str | None = None
    mode: Literal["observe", "act"] = "observe"
    guards: dict[str, Annotated[Any, of_wing("guards")]] = {}  # noqa: RUF012
    actuators: ActuatorsSpec = default(ActuatorsSpec)
    black_box: Annotated[Any, of_wing("black_box", optional=True)] = None
    others: dict[str, Any] = Field(default_factory=dict)
    file: Path | None = Field(default=None, exclude=True)
    _origin: MonitorSpec | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("clock") == "steps" and "rate" not in data:
            data = {**data, "rate": "steps"}
        return with_others(cls, data, SECTIONS)

    @model_validator(mode="after")
    def _observers_warn(self) -> MonitorSpec:
        """Let a file without a gate, which what is unknown must not pass, only warn of it."""
        if self.mode == "observe" and not self.actuators.model_fields_set and not self.guards:
            self.__dict__["properties"] = {
                name: section
                if "out_of_model" in section.model_fields_set
                else section.model_copy(update={"out_of_model": "warn"})
                for name, section in self.properties.items()
            }
        return self

    @property
    def episode_key(self) -> str | None:
        """Return the key that names the run of a trace's line, None where none does."""
        return None if self.clock == "ticks" or self.episode in self.signals else self.episode

    @property
    def origin(self) -> MonitorSpec:
        """Return the monitor file that this one was derived from, for a node behind a bridge."""
        return self if self._origin is None else self._origin

    def derived(self, signals: Mapping[str, SignalSpec]) -> MonitorSpec:
        """Return a copy with other signals, for which models of this file remain valid."""
        copy = self.model_copy(update={"signals": dict(signals)})
        copy._origin = self.origin
        return copy

    def in_namespace(self, namespace: str) -> MonitorSpec:
        """Return a copy whose relative topics lie in a ROS namespace; models remain valid.

        Parameters
        ----------
        namespace : str
            ``/`` or ``/robot1``.
        """
        signals = {name: one.in_namespace(namespace) for name, one in self.signals.items()}
        if signals == self.signals:
            return self
        changes: dict[str, object] = {"signals": signals}
        if self.step and any(self.step == one.topic for one in self.signals.values()):
            changes["step"] = topic_in(namespace, self.step)
        copy = self.model_copy(update=changes)
        copy._origin = None if namespace == "/" else self.in_namespace("/").origin
        return copy

    @property
    def model_path(self) -> Path | None:
        """Return where the model file lies; relative paths start at the monitor file."""
        if self.model is None:
            return None
        return self.beside(self.model)

    def beside(self, name: str) -> Path:
        """Return where a file that the monitor file names lies: relative paths start there."""
        return (self.file.parent if self.file else Path()) / Path(name).expanduser()

    @property
    def wing_sections(self) -> list[type[Section]]:
        """Return the classes of the sections of wings and other packages that the file has."""
        given = filter(None, (getattr(self, key) for key in wing_keys()))
        found = [next(iter(x.values())) if isinstance(x, dict) else x for x in given]
        return [type(section) for section in (*found, *self.others.values())]

    def scores_of(self, name: str) -> tuple[str, ...]:
        """Return the scores that the risk of a property may use: its own, then learned scores."""
        section = self.properties[name]
        if section.estimator != "ensemble":
            return ()
        learned = (key for key, score in self.learned_score.items() if score.property == name)
        return tuple(dict.fromkeys((*section.scores, *learned)))

    @property
    def topics(self) -> dict[str, str]:
        """Return the message type of every topic and channel that the signals read."""
        found = {s.source: s.message_type for s in self.signals.values() if s.source is not None}
        return found | dict.fromkeys(sorted(self.optional_topics), TRANSFORMS)

    @property
    def optional_topics(self) -> frozenset[str]:
        """Return the topics without which there may be values: not all robots have /tf_static."""
        frames = (signal.frame for signal in self.signals.values())
        return frozenset(frame.static for frame in frames if frame is not None)

    @property
    def escape(self) -> EscapeSpec | None:
        """Return what the gate needs to know of a way out; None without a gate or a way out."""
        return None if self.actuators.twist is None else self.actuators.twist.escape

    def states_section(self, section: type[Own]) -> Own:
        """Return what ``states:`` says beside the kind, checked; raises ConfigError."""
        try:
            return section.model_validate(self.states.model_extra)
        except ValidationError as error:
            accepted = ", ".join(("kind", *section.model_fields))
            found = validation_problems(error, section, prefix=("states",), accepted_keys=accepted)
            raise ConfigErrors([one.located(file=self.file) for one in found]) from None

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
            found = validation_problems(error, PropertySpec, prefix=("properties", name))
            raise ConfigErrors(list(found)) from None
        copy = self.model_copy(update={"properties": {**self.properties, name: changed}})
        if errors := list(_misfit_errors(copy, None)):
            raise ConfigErrors(errors)
        return copy


def load_spec(path: Path | str, namespace: str = "/") -> MonitorSpec:
    """Read and check a monitor file; its relative topics are taken to lie in `namespace`.

    Raises
    ------
    ConfigError
        Naming file, line, key path, value and what is accepted; all findings at once.
    """
    path = Path(path)
    return parse_spec(with_fragments(load_document(path)), namespace)


def parse_spec(document: Document, namespace: str = "/") -> MonitorSpec:
    """Check a YAML document against the shape of a monitor file; raises ConfigError.

    Relative topics are taken to lie in `namespace`.
    """
    if not isinstance(document.data, dict):
        raise ConfigError(
            f"the document is {type(document.data).__name__}, not a mapping",
            file=document.file,
            accepted="keys such as rate:, signals:, predicates:, properties:",
        )
    if {"digest", "transitions"} <= document.data.keys():
        raise ConfigError(
            "is a model file", file=document.file, accepted="a monitor file; -m takes a model"
        )
    if "file" in document.data:
        raise ConfigError("unknown key", file=document.file, key="file")
    try:
        spec = MonitorSpec.model_validate({**document.data, "file": document.file})
    except ValidationError as error:
        raise ConfigErrors(list(validation_problems(error, MonitorSpec, document))) from None
    spec = spec.in_namespace(namespace)
    errors = [*_name_errors(spec, document), *_misfit_errors(spec, document)]
    if errors:
        raise ConfigErrors(errors)
    return spec


def _misfit_errors(spec: MonitorSpec, document: Document | None) -> Iterator[InputError]:
    for path, problem, accepted in (
        *misfits(spec),
        *(misfit for section in spec.wing_sections for misfit in section.misfits(spec)),
        *_bin_misfits(spec),
        *_type_misfits(spec),
    ):
        yield config_error(problem, document, path, accepted)


def _bin_misfits(spec: MonitorSpec) -> Iterator[Misfit]:
    for signal, cuts in spec.bins.items():
        if cuts == "auto" and signal not in spec.learned_score:
            listed = ", ".join(spec.learned_score) or "none here"
            yield Misfit(
                ("bins", signal),
                "'auto': nothing chooses where to cut it",
                f"rising thresholds; auto is for learned scores: {listed}",
            )


def _type_misfits(spec: MonitorSpec) -> Iterator[Misfit]:
    """Yield the signals that give a topic another type than a signal before them."""
    seen: dict[str, tuple[str, str]] = {}
    for name, signal in spec.signals.items():
        key = "frame" if signal.frame else "type" if signal.channel is None else "message"
        for topic in filter(signal.reads, spec.topics):
            mine = signal.message_type
            other, theirs = seen.setdefault(topic, (name, mine))
            if mine != theirs:
                problem = f"{topic} is {mine} here, and {theirs} in signals.{other}"
                yield Misfit(("signals", name, key), problem, "one type for a topic")


def _name_errors(spec: MonitorSpec, document: Document) -> Iterator[InputError]:
    for section in (
        "signals",
        "shapes",
        "learned_score",
        "predicates",
        "terminal",
        "properties",
        "guards",
    ):
        for name in getattr(spec, section):
            if not NAME.match(name):
                accepted = "a letter, then letters, digits and underscores"
                yield config_error(f"{name!r} is no name", document, (section, name), accepted)
