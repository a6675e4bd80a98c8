"""What a recording shows at every tick: the same signals and predicates as the live monitor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from forewarn.config.file import MonitorSpec
from forewarn.errors import RecordingError, located
from forewarn.learning.actions import ActionReader
from forewarn.messages.definitions import MessageType
from forewarn.models.counts import Provenance
from forewarn.recordings.by_name import samples_of
from forewarn.recordings.interface import Recording
from forewarn.recordings.parts import NAMESPACE
from forewarn.signals.clock import Clock
from forewarn.signals.snapshots import Snapshot, singly
from forewarn.states.abstraction import Abstraction, Past, Seen
from forewarn.states.inputs import open_feed, plan_readers


class ObservedTick(NamedTuple):
    """One tick of a recording.

    `snapshot`: the source signals.
    `seen`: what they show.
    `action`: what was done then; None if it is not known.
    `problem`: why the action is unknown; empty if it is known.
    """

    snapshot: Snapshot
    seen: Seen
    action: str | None
    problem: str


def wanted_types(
    spec: MonitorSpec, recording: Recording, *, allow_missing: bool = False
) -> dict[str, MessageType]:
    """Return the definitions of the monitor's topics in a recording.

    `allow_missing`: leave out topics that the recording lacks.

    Raises RecordingError if a topic is missing and must not be, has another type, or cannot be
    decoded.
    """
    found: dict[str, MessageType] = {}
    for topic, wanted in spec.topics.items():
        info = recording.topics.get(topic)
        if info is None and (allow_missing or topic in spec.optional_topics):
            continue
        if info is None:
            listed = ", ".join(sorted(recording.topics)) or "none"
            robots = [t.removesuffix(topic) for t in recording.topics if t.endswith(topic)]
            of_robots = (f"{recording.path}{NAMESPACE}{robot[1:]}" for robot in robots if robot)
            raise RecordingError(
                f"the topic {topic} is not in the recording",
                file=recording.path,
                accepted="; or ".join((f"one of its topics: {listed}", *of_robots)),
            )
        if info.msgtype != wanted:
            raise RecordingError(
                f"the topic {topic} has type {info.msgtype}",
                file=recording.path,
                accepted=f"{wanted}, as the monitor file says",
            )
        if info.message_type is None:
            raise RecordingError(
                f"the topic {topic} cannot be decoded: {info.error}",
                file=recording.path,
                accepted="a recording with a readable definition of the type",
            )
        found[topic] = info.message_type
    return found


def check_playable(recording: Recording, clock: Clock) -> None:
    """Check that a recording can be played by a clock; raises RecordingError."""
    if recording.count == 0:
        raise RecordingError(
            "the recording is empty", file=recording.path, accepted="at least one message"
        )
    if clock.timed and not recording.timed:
        raise RecordingError(
            "the lines have no time (key t)",
            file=recording.path,
            accepted='a line like {"t": 12.3, "speed": 1.2}, or clock: steps in the monitor file',
        )


def digests_alike(
    recording: Recording, sources: Iterable[Provenance], *, timed: bool
) -> frozenset[str]:
    """Return the digests that `recording` may have: of those of its length, where it has one.

    Steps are counted and not timed: there the length says nothing.
    """
    return frozenset(
        source.digest
        for source in sources
        if source.digest and (not timed or abs(source.duration - recording.duration) < 1e-3)
    )


def observe(
    recording: Recording,
    spec: MonitorSpec,
    abstraction: Abstraction,
    progress: Callable[[float], None] | None = None,
    *,
    allow_missing: bool = False,
) -> Iterator[ObservedTick]:
    """Yield every tick of a recording.

    Raises RecordingError if the recording lacks a topic, or is damaged.
    """
    clock = abstraction.clock
    for one in observe_at_once(recording, spec, abstraction, progress, allow_missing=allow_missing):
        for snapshot, _ in singly(one.snapshot, clock):
            yield one._replace(snapshot=snapshot)


def observe_at_once(
    recording: Recording,
    spec: MonitorSpec,
    abstraction: Abstraction,
    progress: Callable[[float], None] | None = None,
    *,
    allow_missing: bool = False,
) -> Iterator[ObservedTick]:
    """Yield the ticks of a recording, one for all that repeat it (`Snapshot.repeats`).

    Raises RecordingError if the recording lacks a topic, or is damaged.
    """
    named = not recording.topics
    types = {} if named else wanted_types(spec, recording, allow_missing=allow_missing)
    feed = open_feed(spec, abstraction, types, plan_readers(spec))
    past: Past | None = None
    check_playable(recording, abstraction.clock)
    actions = ActionReader(spec, abstraction)
    samples = samples_of(
        recording,
        spec.topics.keys(),
        by_name=feed.by_name,
        on_reset=feed.moments.part,
        properties=spec.properties,
    )
    span = feed.moments.expected(recording.start_ns, recording.end_ns, recording.count)
    first = feed.moments.following(recording.start_ns)
    with located(RecordingError, file=recording.path):
        listened = actions.listen(samples, feed.moments)
        ticks = feed.stretches(listened, recording.start_ns, recording.end_ns)
        for found in abstraction.outlook.over(feed.blocks(ticks)):
            for snapshot, seen in _through(abstraction, found, past):
                past, tick = seen.past, snapshot.tick
                yield ObservedTick(snapshot, seen, *actions.at(tick, seen.values))
                if progress is not None and tick % 64 == 0:
                    progress((tick - first) / span)
        recording.warnings += [note for note in feed.notes if note not in recording.warnings]


def _through(
    abstraction: Abstraction, found: Snapshot, past: Past | None
) -> Iterator[tuple[Snapshot, Seen]]:
    """Yield what is seen at a tick and at those that repeat it, until it stays the same."""
    for snapshot, left in singly(found, abstraction.clock):
        before, seen = past, abstraction.observe(snapshot, past)
        past = seen.past
        if left and past.same_but_for_time(before):
            yield snapshot._replace(repeats=left), seen._replace(past=past.after(left))
            return
        yield snapshot, seen
