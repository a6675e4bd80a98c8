"""From messages as they arrive to the snapshot of a tick.

A message is decoded only if it is the newest of its tick, of those that a signal means: the others
are never looked at, or only to tell whether they are meant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from forewarn.errors import DecodeError
from forewarn.expressions import Unknown
from forewarn.messages import MessageType
from forewarn.signals.channels import NEVER, Channel, build_topics
from forewarn.signals.clock import Clock, Payload, Samples
from forewarn.signals.frames import Frames, build_frames
from forewarn.signals.sources import SourceSignal, stored_value
from forewarn.signals.stamps import APART_NS, clock_gap

Reader = Callable[[Any], Any]
NO_READERS: Mapping[str, Reader] = MappingProxyType({})


class Aged(NamedTuple):
    """A value that another process supplied, and how old it was then, in nanoseconds."""

    value: Any
    age_ns: int


class StaleSignal(NamedTuple):
    """A source signal without a value: `age` is in nanoseconds, None if nothing ever arrived."""

    name: str
    age: int | None


class Failure(NamedTuple):
    """A value that could not be had although its message arrived."""

    where: str
    reason: str


ABSENT = object()
"""Stands for what was not computed ahead; None is a value that is unknown."""


class Ahead(NamedTuple):
    """Derived signals that were computed for many moments at once.

    Attributes
    ----------
    values : sequence
        One for each derived signal, `ABSENT` where it is still to be computed.
    failed : dict
        Why some have no value, by their place among the derived signals.
    """

    values: Sequence[Any]
    failed: Mapping[int, str]


class Snapshot(NamedTuple):
    """All source signals at one moment.

    Attributes
    ----------
    tick : int
        Number of the tick on the grid.
    values : tuple
        One value per source signal in slot order; None where unknown.
    stale : tuple of StaleSignal
        Those that are too old, or never came: unknown, unless their last value is held.
    failures : tuple of Failure
        What was received for this tick and could not be read.
    suspended : bool
        Values are missing, and only of signals whose staleness is to be ignored.
    time_ns : int or None
        When that was; None if the clock's axis tells.
    action : str or None
        What was done, as far as a trace names it and not the monitor file.
    ahead : Ahead or None
        Derived signals of the moment, if they were computed already.
    """

    tick: int
    values: tuple[Any, ...]
    stale: tuple[StaleSignal, ...] = ()
    failures: tuple[Failure, ...] = ()
    suspended: bool = False
    time_ns: int | None = None
    action: str | None = None
    ahead: Ahead | None = None


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

    Parameters
    ----------
    sources : sequence of SourceSignal
        The signals that are wanted.
    message_types : mapping of str to MessageType
        Definition of each topic that is available; other topics stay unknown.
    clock : Clock
        What a moment is.
    stamped : bool
        Samples count from their header stamp instead of their arrival.
    settle_ns : int
        With `stamped`: how much later than its tick an evaluation happens, in nanoseconds.
    readers : mapping of str to callable
        What to make of the values of some signals, once for each that arrives.

    Raises
    ------
    FieldError
        If an expression reads a field that its message does not have.
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
        self._external: deque[tuple[int, dict[str, tuple[int, Any]]]] = deque()
        self.reset()

    def reset(self) -> None:
        """Forget everything that arrived."""
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
        if isinstance(payload, Mapping):
            self._enqueue_external(time_ns, payload)
            return
        known, frames = self._topics.get(topic), [f for f in self._frames if topic in f.topics]
        for one in frames:
            readable = one.accept(topic, time_ns, payload)
            self.counters.decoded += readable
            self.counters.undecodable += not readable
        if known is None:
            self.counters.unexpected += not frames
            return
        moment = time_ns
        if known.stamp is not None:
            try:
                moment = known.stamp(payload)
            except DecodeError:
                # Its stamp is unreadable; it stays in line so that decoding reports it.
                moment = time_ns
            if not known.apart and abs(moment - time_ns) > APART_NS:
                known.apart = True
                self.notes.append(f"{topic}: {clock_gap(moment, time_ns)}")
        for channel in known.meant(payload):
            self._enqueue(channel, time_ns, moment, payload)

    def _enqueue(self, channel: Channel, arrival: int, moment: int, payload: Payload) -> None:
        if moment < channel.newest_ns:
            self.counters.out_of_order += 1
            return
        channel.newest_ns = moment
        visible = self._visible(arrival, moment)
        pending = channel.pending
        while pending and pending[-1][0] >= visible:
            pending.pop()
        pending.append((visible, moment, payload))

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
        failures: list[Failure] = []
        for channel in self._channels:
            if channel.pending and channel.pending[0][0] <= tick:
                self._take(channel, tick, failures)
        for frames in self._frames:
            self._take_poses(frames, tick, failures)
        while self._external and self._external[0][0] <= tick:
            self._take_external(self._external.popleft()[1])
        values: list[Any] = []
        stale: list[StaleSignal] = []
        ignored: list[bool] = []
        now = self.clock.time_ns(tick)
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
        time_ns = now if self._by_time else self.moments.stamp_ns(tick)
        return Snapshot(tick, tuple(values), tuple(stale), tuple(failures), suspended, time_ns)

    def proposing(
        self, snapshot: Snapshot, topic: str, payload: Payload
    ) -> tuple[Snapshot, list[Any]]:
        """Return a snapshot as it were if a payload had arrived for it; nothing is remembered.

        Returns
        -------
        snapshot : Snapshot
            The same with the values of the payload.
        values : list
            These alone, in slot order; None for all other signals.

        Raises
        ------
        DecodeError
            If the payload cannot be read.
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

    def _take(self, channel: Channel, tick: int, failures: list[Failure]) -> None:
        pending = channel.pending
        _, moment, payload = pending.popleft()
        while pending and pending[0][0] <= tick:
            _, moment, payload = pending.popleft()
        try:
            values = channel.decode(payload)
            self.counters.decoded += 1
        except DecodeError as error:
            self.counters.undecodable += 1
            failures.append(Failure(channel.topic, str(error)))
            values = [None] * len(channel.slots)
        self._store(channel.slots, values, moment, failures)

    def _store(
        self, slots: Sequence[int], values: Sequence[Any], moment: int, failures: list[Failure]
    ) -> None:
        for slot, value in zip(slots, values, strict=True):
            if isinstance(value, Unknown):
                failures.append(Failure(self._sources[slot].name, value.reason))
            self._values[slot] = self._stored(slot, value)
            self._moments[slot] = moment

    def _take_poses(self, frames: Frames, tick: int, failures: list[Failure]) -> None:
        failures += [Failure(topic, reason) for topic, reason in frames.take(tick)]
        for found in frames.poses():
            if found.reason:
                failures.append(Failure(found.where, found.reason))
                for slot in found.slots:
                    self._values[slot] = None
                continue
            now = self.clock.time_ns(tick)
            moment = now if found.moment_ns is None else found.moment_ns
            self._store(found.slots, found.values, moment, failures)

    def _stored(self, slot: int, value: Any) -> Any:
        found = stored_value(value)
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
        """Take recorded samples and yield each moment when it is due; see `Moments.play`."""
        return self.moments.play(samples, start_ns, end_ns, self.accept)


def snapshot_of(
    sources: Sequence[SourceSignal],
    values: Mapping[str, Any],
    tick: int,
    time_ns: int,
    action: str | None = None,
) -> Snapshot:
    """Return the snapshot of a moment at which these values arrived, and nothing else ever did."""
    found = tuple([stored_value(values.get(s.name, s.default)) for s in sources])
    missing = [s.name for s in sources if s.name not in values and s.default is None]
    stale = tuple([StaleSignal(name, None) for name in missing])
    return Snapshot(tick, found, stale, (), False, time_ns, action)
