"""From messages as they arrive to the snapshot of a tick.

A message is decoded only if it is the newest of its tick, of those that a signal means: the others
are never looked at, or only to tell whether they are meant. With `within`, all are decoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.errors import DecodeError, ForewarnError
from forewarn.expressions.values import Unknown
from forewarn.signals.channels import (
    NEVER,
    Channel,
    Taken,
    Within,
    build_topics,
    decoded,
    one_decoded,
)
from forewarn.signals.clock import Clock, Payload, Samples
from forewarn.signals.clock_kinds import telling_gaps
from forewarn.signals.frames import Found, build_frames
from forewarn.signals.snapshots import Aged, Failure, Snapshot, StaleSignal
from forewarn.signals.sources import APART_NS, SourceSignal, clock_gap, not_yet, stored_value

if TYPE_CHECKING:
    from forewarn.messages.definitions import MessageType

Reader = Callable[[Any], Any]
NO_READERS: Mapping[str, Reader] = MappingProxyType({})
BLOCK = 256
"""Moments: more gain little, and their arrays leave the processor's cache."""
BLOCK_BYTES = 1 << 24
"""Of messages that wait to be decoded."""


class Due(NamedTuple):
    """What a tick takes of what arrived.

    `poses`: what was refused of each tree of transforms, and the poses in it.
    """

    tick: int
    now_ns: int  # where the tick lies on the axis of the clock
    time_ns: int  # when it was
    takes: list[Taken]  # of each topic: the newest message, or all of them in their order
    poses: list[tuple[tuple[tuple[str, str], ...], Sequence[Found]]]
    given: list[Mapping[str, tuple[int, Any]]]  # values by name


@dataclass
class Counters:
    """What came in and what became of it, for diagnostics."""

    received: int = 0
    decoded: int = 0
    undecodable: int = 0
    out_of_order: int = 0
    unexpected: int = 0


class Feed:
    """Collects payloads and forms snapshots; its only state is what arrived so far.

    `sources`: the signals that are wanted.
    `message_types`: definition of each topic that is available; other topics stay unknown.
    `clock`: what a moment is.
    `stamped`: samples count from their header stamp instead of their arrival.
    `settle_ns`: with `stamped`: how much later than its tick an evaluation happens, in nanoseconds.
    `readers`: what to make of the values of some signals, once for each that arrives.
    Raises FieldError if an expression reads a field that its message does not have.
    """

    def __init__(
        self,
        sources: Sequence[SourceSignal],
        message_types: Mapping[str, MessageType],
        clock: Clock,
        *,
        stamped: bool = False,
        settle_ns: int = 0,
        readers: Mapping[str, Reader] = NO_READERS,
    ) -> None:
        self._sources = tuple(sources)
        self._readers = readers
        self.clock = clock
        self.moments = clock.moments(settle_ns)
        self._by_time = self.moments.by_time
        self._stamped = stamped
        self.settle_ns = settle_ns
        self.counters = Counters()
        self.notes: list[str] = []
        self._slots = {s.name: i for i, s in enumerate(self._sources)}
        self._topics = build_topics(self._sources, message_types, self.notes, stamped=stamped)
        self._channels = [c for topic in self._topics.values() for c in topic.channels]
        self._frames = build_frames(self._sources, message_types, self._visible, stamped=stamped)
        self._frames_of = {
            topic: [other for other in self._frames if topic in other.topics]
            for one in self._frames
            for topic in one.topics
        }
        self._external: deque[tuple[int, dict[str, tuple[int, Any]]]] = deque()
        self.reset()

    def reset(self) -> None:
        """Forget everything that arrived."""
        self._within = {
            slot: Within(source.within)
            for slot, source in enumerate(self._sources)
            if source.within != "last"
        }
        self._values: list[Any] = [None] * len(self._sources)
        self._moments = [NEVER] * len(self._sources)
        self._external.clear()
        for channel in self._channels:
            channel.pending.clear()
            channel.newest_ns = NEVER
        for frames in self._frames:
            frames.reset()

    @property
    def by_name(self) -> bool:
        """Tell whether any signal is supplied by name."""
        return any(not source.topic for source in self._sources)

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics that are decoded."""
        return frozenset(self._topics).union(*(frames.topics for frames in self._frames))

    def accept(self, topic: str, time_ns: int, payload: Payload) -> None:
        """Take one payload that arrived at `time_ns` of the clock.

        A mapping supplies signals by name, whatever topic it came from; values that were not new
        when they were sent are `Aged`.
        """
        self.counters.received += 1
        if not self._by_time:
            time_ns = self.moments.arrival(topic, time_ns, payload)
        if not isinstance(payload, (bytes, memoryview)):
            self._enqueue_external(time_ns, payload)
            return
        known, frames = self._topics.get(topic), self._frames_of.get(topic, ())
        for one in frames:
            readable = one.accept(topic, time_ns, payload)
            self.counters.decoded += readable
            self.counters.undecodable += not readable
        if known is None:
            self.counters.unexpected += not frames
            return
        moment, refused = time_ns, None
        if known.stamp is not None:
            try:
                moment = known.stamp(payload)
            except DecodeError:
                # Its stamp is unreadable; it stays in line so that decoding reports it.
                moment = time_ns
            if not known.stamps_differ and abs(moment - time_ns) > APART_NS:
                known.stamps_differ = True
                self.notes.append(f"{topic}: {clock_gap(moment, time_ns)}")
            refused = not_yet(moment, time_ns)
        for channel in known.meant(payload):
            if refused is None:
                self._enqueue(channel, time_ns, moment, payload)
            else:  # it comes after the last one, but its own time is unknown
                last = time_ns if channel.newest_ns == NEVER else channel.newest_ns
                self._enqueue(channel, time_ns, last, refused)

    def _enqueue(
        self, channel: Channel, arrival: int, moment: int, payload: Payload | DecodeError
    ) -> None:
        if moment < channel.newest_ns:
            self.counters.out_of_order += 1
            return
        channel.newest_ns = moment
        visible = self._visible(arrival, moment)
        channel.put(visible, moment, payload)

    def _visible(self, arrival: int, moment: int) -> int:
        """Return the tick that sees what arrived then and counts from some moment."""
        visible = self.clock.tick_at_or_after(moment)
        if self._stamped:
            visible = max(visible, self.clock.tick_at_or_after(arrival - self.settle_ns))
        return visible

    def _enqueue_external(self, time_ns: int, payload: Mapping[str, Any]) -> None:
        tick = self.clock.tick_at_or_after(time_ns)
        values = {
            name: (time_ns - value.age_ns, value.value)
            if isinstance(value, Aged)
            else (time_ns, value)
            for name, value in payload.items()
        }
        pending = self._external
        if pending and pending[-1][0] == tick:
            values = {**pending.pop()[1], **values}
        pending.append((tick, values))

    def snapshot(self, tick: int) -> Snapshot:
        """Return all source signals at `tick`, taking what belongs to it or to earlier ticks."""
        due = self._due(tick)
        return self._formed(due, map(one_decoded, due.takes))

    def blocks(self, stretches: Iterable[range]) -> Iterator[list[Snapshot]]:
        """Yield the snapshots of recorded moments, up to `BLOCK` of them decoded at once.

        All ticks of a block are drawn before its first snapshot is there. An error comes after all
        that were before it. The last snapshot of a block stands for all that follow in its stretch
        if they are the same (`Snapshot.repeats`).
        """
        block: list[Due] = []
        size = 0
        try:
            for stretch in stretches:
                for tick in stretch:
                    due = self._due(tick)
                    block.append(due)
                    size += sum(take.size for take in due.takes)
                    if len(block) < BLOCK and size <= BLOCK_BYTES:
                        continue
                    found, block, size = self._formed_at_once(block), [], 0
                    repeats = stretch[-1] - tick if self._goes_on(due) else 0
                    found[-1] = found[-1]._replace(repeats=repeats)
                    yield found
                    if repeats:
                        break
        except ForewarnError:
            yield self._formed_at_once(block)
            raise
        yield self._formed_at_once(block)

    def _goes_on(self, last: Due) -> bool:
        """Tell whether ticks after the last one show the same, as long as nothing arrives."""
        pending = self._external or any(one.pending for one in self._channels)
        if pending or last.takes or last.given or any(one.waits for one in self._frames):
            return False
        if any(refused for refused, _ in last.poses):
            return False
        # Poses of static transforms alone count from the tick itself, at each.
        return all(
            moment in (NEVER, last.now_ns)
            or source.timeout_ns < 0
            or last.now_ns - moment > source.timeout_ns
            for source, moment in zip(self._sources, self._moments, strict=True)
        )

    def _due(self, tick: int) -> Due:
        """Take what belongs to a tick or to earlier ones."""
        takes = [taken for one in self._channels for taken in one.take(tick)]
        poses = [(tuple(one.take(tick)), one.poses()) for one in self._frames]
        given: list[Mapping[str, tuple[int, Any]]] = []
        while self._external and self._external[0][0] <= tick:
            given.append(self._external.popleft()[1])
        now = self.clock.time_ns(tick)
        time_ns = now if self._by_time else self.moments.stamp_ns(tick)
        return Due(tick, now, time_ns, takes, poses, given)

    def _formed_at_once(self, block: Sequence[Due]) -> list[Snapshot]:
        values = iter(decoded([take for due in block for take in due.takes]))
        return [self._formed(due, values) for due in block]

    def _formed(self, due: Due, decoded: Iterator[Sequence[Any] | DecodeError]) -> Snapshot:
        """Return the snapshot of a tick; `decoded` gives the values of what it takes."""
        failures: list[Failure] = []
        for take in due.takes:
            self._put(take, next(decoded), failures)
        for refused, found in due.poses:
            self._put_poses(refused, found, due.now_ns, failures)
        for given in due.given:
            self._take_external(given)
        for slot, within in self._within.items():
            self._values[slot] = within.at(due.tick)
        values: list[Any] = []
        stale: list[StaleSignal] = []
        ignored: list[bool] = []
        now = due.now_ns
        for slot, source in enumerate(self._sources):
            value, last = self._values[slot], self._moments[slot]
            if last == NEVER and source.default is not None:
                value = source.default
            elif last == NEVER or now - last > source.timeout_ns >= 0:
                stale.append(StaleSignal(source.name, None if last == NEVER else now - last))
                value = value if source.stale == "hold" else None
            if value is None:
                old = bool(stale) and stale[-1].name == source.name
                ignored.append(old and source.stale == "ignore")
            values.append(value)
        suspended = bool(ignored) and all(ignored)
        return Snapshot(
            due.tick, tuple(values), tuple(stale), tuple(failures), suspended, due.time_ns
        )

    def proposing(
        self, snapshot: Snapshot, topic: str, payload: Payload
    ) -> tuple[Snapshot, list[Any]]:
        """Return a snapshot as it were if a payload had arrived for it; nothing is remembered.

        With it come the values of the payload alone, in slot order; None for all other signals.
        Raises DecodeError if the payload cannot be read.
        """
        known = self._topics.get(topic)
        given: list[Any] = [None] * len(self._sources)
        if known is None:
            return snapshot, given
        values, fresh = list(snapshot.values), set()
        for channel in known.meant(payload):
            for slot, value in zip(channel.slots, channel.decode(payload), strict=True):
                values[slot] = given[slot] = self._stored(slot, value)
                fresh.add(self._sources[slot].name)
        stale = tuple(one for one in snapshot.stale if one.name not in fresh)
        return snapshot._replace(values=tuple(values), stale=stale), given

    def ages(self, tick: int) -> list[int | None]:
        """Return the age of every source signal at `tick`, in ns; None if nothing arrived."""
        now = self.clock.time_ns(tick)
        return [None if last == NEVER else now - last for last in self._moments]

    def _put(
        self, take: Taken, values: Sequence[Any] | DecodeError, failures: list[Failure]
    ) -> None:
        channel = take.channel
        if isinstance(values, DecodeError):
            self.counters.undecodable += 1
            failures.append(Failure(channel.topic, str(values)))
            values = [None] * len(channel.slots)
        else:
            self.counters.decoded += 1
            if isinstance(values, tuple) and not self._readers and not channel.every:
                for slot, value in zip(channel.slots, values, strict=True):
                    self._values[slot] = value
                    self._moments[slot] = take.moment_ns
                return
        self._store(channel.slots, values, take.moment_ns, failures)
        if channel.every:
            for slot in channel.slots:
                self._within[slot].add(take.visible, self._values[slot])

    def _store(
        self, slots: Sequence[int], values: Sequence[Any], moment: int, failures: list[Failure]
    ) -> None:
        for slot, value in zip(slots, values, strict=True):
            if isinstance(value, Unknown):
                failures.append(Failure(self._sources[slot].name, value.reason))
            self._values[slot] = self._stored(slot, value)
            self._moments[slot] = moment

    def _put_poses(
        self,
        refused: Iterable[tuple[str, str]],
        poses: Iterable[Found],
        now_ns: int,
        failures: list[Failure],
    ) -> None:
        failures += [Failure(topic, reason) for topic, reason in refused]
        for found in poses:
            if found.reason:
                failures.append(Failure(found.where, found.reason))
                for slot in found.slots:
                    self._values[slot] = None
                continue
            moment = now_ns if found.moment_ns is None else found.moment_ns
            self._store(found.slots, found.values, moment, failures)

    def _stored(self, slot: int, value: Any) -> Any:
        found = stored_value(value)
        if slot in self._within:
            return self._within[slot].alone(found)
        reader = self._readers.get(self._sources[slot].name) if self._readers else None
        return found if reader is None or found is None else reader(found)

    def _take_external(self, values: Mapping[str, tuple[int, Any]]) -> None:
        for name, (moment, value) in values.items():
            slot = self._slots.get(name)
            if slot is None:
                self.counters.unexpected += 1
                continue
            self._values[slot] = self._stored(slot, value)
            self._moments[slot] = moment

    def play(self, samples: Samples, start_ns: int, end_ns: int) -> Iterator[int]:
        """Take recorded samples and yield each moment when it is due."""
        return chain.from_iterable(self.stretches(samples, start_ns, end_ns))

    def stretches(self, samples: Samples, start_ns: int, end_ns: int) -> Iterator[range]:
        """Take recorded samples and yield moments when they are due; see `Moments.play`."""
        samples_noted = telling_gaps(samples, self.notes) if self.clock.timed else samples
        return self.moments.play(samples_noted, start_ns, end_ns, self.accept)
