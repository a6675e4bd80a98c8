"""Events: what changes a session beside messages and ticks. Each kind has its own type.

An event travels as a JSON text, on the node's topic of events and in its records. A reader of
events matches by type and ends with `unhandled`; mypy then names every place that a new kind of
event is missing from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NoReturn, get_args

from pydantic import TypeAdapter, ValidationError

from forewarn.config.fields import Rate
from forewarn.errors import RecordingError

KIND = "event"


@dataclass(frozen=True)
class Activate:
    """The node was activated.

    A player reads from it when ticks are due.
    """

    kind: ClassVar[str] = "activate"
    rate: Rate  # Ticks per second; ``steps`` if there are none, and a tick comes with each step
    settle_ns: int  # How much later than its tick an evaluation happens
    inputs: Mapping[str, str]  # Name on the graph of each topic that is listened to


@dataclass(frozen=True)
class ClockHeard:
    """The simulated time was heard before the first tick was due."""

    kind: ClassVar[str] = "clock"
    time_ns: int


@dataclass(frozen=True)
class Start:
    """Ticks begin, after activation or after the clock has jumped."""

    kind: ClassVar[str] = "start"
    reason: str
    tick: int
    time_ns: int


@dataclass(frozen=True, kw_only=True)
class Beginning(Start):
    """A start as a record holds it, with all that a replay has to begin with."""

    model: str | None  # model, tables: attachments that hold the model and what was solved for it
    bounded: bool = True  # Whether risks have bounds from the first tick on
    tables: str | None = None
    shift_ns: int  # By how much log times of the record are later from here on


@dataclass(frozen=True)
class Recall:
    """The session goes on where a former life of the node ended; see `checkpoint.recall`."""

    kind: ClassVar[str] = "recall"
    first: int
    memory: Mapping[str, Any]


@dataclass(frozen=True)
class Reset:
    """An operator set automata, alerts and counts of properties back."""

    kind: ClassVar[str] = "reset"
    properties: tuple[str, ...]


@dataclass(frozen=True)
class Release:
    """An operator ended the alerts of properties."""

    kind: ClassVar[str] = "release"
    properties: tuple[str, ...]
    requester: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Mute:
    """An operator silenced properties, or a mute lasts beyond a new start; `duration` in s."""

    kind: ClassVar[str] = "mute"
    properties: tuple[str, ...]
    duration: float
    requester: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Acknowledge:
    """An operator took note of alerts, by their numbers, or of what a damaged journal has lost."""

    kind: ClassVar[str] = "acknowledge"
    lost: str
    requester: str | None = None
    reason: str | None = None
    alerts: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PolicyChange:
    """Thresholds of a property are others from the next tick on."""

    kind: ClassVar[str] = "policy"
    property: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class ModelChange:
    """Another model, or other tables for the same one, are in force from the next tick on."""

    kind: ClassVar[str] = "model"
    model: str | None  # model, tables: attachments of the record; None if there is no record
    digest: str
    tables: str | None = None


@dataclass(frozen=True)
class GoalDecided:
    """A guard has decided about a goal; a replay compares what it decides itself.

    The session changes by the message of the goal, not by this event.
    """

    kind: ClassVar[str] = "goal"
    guard: str
    topic: str
    tick: int
    goal: str  # The serialized goal in base 64; empty if it was too large
    passes: bool
    action: str  # action, active, property, certain, risk, reason: those of the `Judgement`
    active: bool
    property: str
    certain: bool
    risk: float
    reason: str
    failure: str | None = None  # Why it could not be judged


@dataclass(frozen=True)
class UnknownEvent:
    """An event of a kind, or with fields, that this version does not know: kept as it came."""

    fields_given: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The kind that it names."""
        return str(self.fields_given[KIND])


Known = (
    Activate
    | ClockHeard
    | Start
    | Beginning
    | Recall
    | Reset
    | Release
    | Mute
    | Acknowledge
    | PolicyChange
    | ModelChange
    | GoalDecided
)
Event = Known | UnknownEvent

_KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in get_args(Known) if kind is not Beginning
}


def unhandled(event: NoReturn) -> NoReturn:
    """End a match of events: mypy complains about this call where a kind has no case."""
    raise AssertionError(f"no case for {event!r}")


def details(event: Event) -> dict[str, Any]:
    """Return what an event tells beside its kind, as plain data; what is optional may lack."""
    if isinstance(event, UnknownEvent):
        return {key: value for key, value in event.fields_given.items() if key != KIND}
    found = ((field, getattr(event, field.name)) for field in fields(event))
    return {
        field.name: list(value) if isinstance(value, tuple) else value
        for field, value in found
        if value is not None or field.default is MISSING
    }


def encode(event: Event) -> str:
    """Return an event as JSON; an infinite number becomes a text that `float` reads."""
    plain = {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in {KIND: event.kind, **details(event)}.items()
    }
    return json.dumps(plain, allow_nan=False, separators=(",", ":"))


def decode(text: str) -> Event:
    """Read an event.

    Raises RecordingError if the text is no event, or one with missing or wrong fields.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get(KIND), str):
        raise RecordingError(
            f"{text[:100]!r} is no event", accepted=f'JSON like {{"{KIND}":"reset", ...}}'
        )
    given = {key: value for key, value in document.items() if key != KIND}
    kind = _KINDS.get(document[KIND])
    if kind is Start and "shift_ns" in given:
        kind = Beginning
    if kind is None or not given.keys() <= {field.name for field in fields(kind)}:
        return UnknownEvent(document)
    try:
        event: Known = TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (document[KIND], *first["loc"])))
        raise RecordingError(f"event {where}: {first['msg']}") from error
    return event
