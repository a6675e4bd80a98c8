"""The verdicts of a live monitor in a recording: its own record, or a bag that has its topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import RecordingError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import compile_extractor
from forewarn.monitoring.record import RISK_TYPE
from forewarn.monitoring.session_events import (
    Acknowledge,
    Activate,
    ClockHeard,
    Event,
    GoalDecided,
    ModelChange,
    Mute,
    PolicyChange,
    Recall,
    Release,
    Reset,
    Start,
    UnknownEvent,
    decode,
    details,
    unhandled,
)
from forewarn.recordings.interface import Recording
from forewarn.signals.clock import NANOSECONDS

RISK_ENDING, EVENTS_ENDING = "/output/risk", "/debug/events"
FIELDS = ("property", "tick", "probability")


class LiveEvent(NamedTuple):
    """Something that changed a live session: a command, a model, a jump of the clock.

    `seconds`: since the first tick of the replay.
    `kind`, `details`: what, and all that is known of it.
    """

    seconds: float
    kind: str
    details: str


class Published(NamedTuple):
    """What one live monitor published.

    `risks` (shape (n,)): probability of each property at every tick of the replay, NaN where
        nothing was published.
    `ticks`: ticks of the replay for which something was published.
    `elsewhere`: messages about other ticks: of another clock, or from before the recording began.
    `events`: in order of time.
    """

    topic: str
    risks: Mapping[str, NDArray[np.float64]]
    ticks: int
    elsewhere: int
    events: tuple[LiveEvent, ...]


def find_published(recording: Recording, start_ns: int, first: int, count: int) -> Published | None:
    """Return what a live monitor published in a recording; None if there was none.

    `recording`: opened; it is read a second time, for these topics alone.
    `start_ns`: time of the first tick of the replay.
    `first`, `count`: number of that tick, and how many there are.
    """
    topics = recording.topics
    found = [
        (name, info.message_type)
        for name, info in topics.items()
        if info.msgtype == RISK_TYPE and info.message_type is not None and info.count
    ]
    if not found:
        return None
    topic, mtype = found[0]
    risks: dict[str, NDArray[np.float64]] = {}
    published = np.zeros(count, dtype=bool)
    elsewhere = 0
    for name, tick, probability in _risks(recording, topic, mtype):
        if 0 <= tick - first < count:
            column = risks.setdefault(name, np.full(count, np.nan))
            column[tick - first] = probability
            published[tick - first] = True
        else:
            elsewhere += 1
    events = topic.removesuffix(RISK_ENDING) + EVENTS_ENDING
    happened = tuple(_events(recording, events, start_ns)) if events in topics else ()
    return Published(topic, risks, int(published.sum()), elsewhere, happened)


def _risks(
    recording: Recording, topic: str, mtype: MessageType
) -> Iterator[tuple[str, int, float]]:
    """Yield property, tick and probability of all risks that were published."""
    extract = compile_extractor(
        mtype, [parse_expression(f"[each.{field} for each in risks]") for field in FIELDS]
    )
    for sample in recording.read([topic]):
        values: list[Any] = extract(sample.data)  # type: ignore[arg-type]
        yield from zip(*(list(value) for value in values), strict=True)


def _events(recording: Recording, topic: str, start_ns: int) -> Iterator[LiveEvent]:
    mtype = recording.topics[topic].message_type
    if mtype is None:
        return
    extract = compile_extractor(mtype, [parse_expression("data")])
    for sample in recording.read([topic]):
        seconds = (sample.time_ns - start_ns) / NANOSECONDS
        text = str(extract(sample.data)[0])  # type: ignore[arg-type]
        try:
            event = decode(text)
        except RecordingError as error:
            yield LiveEvent(seconds, "unreadable", _shortened(str(error)))
            continue
        if _is_news(event) or seconds > 1:
            yield LiveEvent(seconds, event.kind, _details(event))


def _is_news(event: Event) -> bool:
    """Return whether an event says more than that a session begins, as every session does."""
    match event:
        case Start() | Activate():
            return False
        case (
            ClockHeard()
            | Recall()
            | Reset()
            | Release()
            | Mute()
            | Acknowledge()
            | PolicyChange()
            | ModelChange()
            | GoalDecided()
            | UnknownEvent()
        ):
            return True
        case _:
            unhandled(event)


def _details(event: Event) -> str:
    kept = {
        key: value for key, value in details(event).items() if key not in ("memory", "shift_ns")
    }
    return _shortened(", ".join(f"{key}: {value}" for key, value in kept.items()))


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:299]}\N{HORIZONTAL ELLIPSIS}"
