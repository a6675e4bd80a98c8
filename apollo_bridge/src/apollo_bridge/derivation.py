"""From messages on channels, in order, to the numbers that the monitor node wants by name.

Cyber's readers keep one message and call back from many threads: in a burst a third is lost and
the rest comes in disorder. The header of each message tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2

from apollo_bridge.layouts import own_pool
from apollo_bridge.messages import Pool, SchemaError
from apollo_bridge.records import pool_of
from apollo_bridge.transport import Arrival, Offer
from forewarn.config.file import MonitorSpec
from forewarn.errors import InputError
from forewarn.messages.foreign import ForeignType
from forewarn.monitoring.bridging import divide, timeout_of
from forewarn.signals.feed import Feed
from forewarn.states.inputs import open_feed
from forewarn.states.predicates.compile import build_abstraction

HEADER = "apollo.common.Header"
NO_NUMBER = -1


class Stamp(NamedTuple):
    """When a publisher sent a message (seconds on its clock, 0 if untold), and its number."""

    seconds: float
    number: int


UNSTAMPED = Stamp(0.0, NO_NUMBER)


def stamp_reader(pool: Pool, message: str) -> Callable[[bytes], Stamp]:
    """Return a function that reads the header of serialized messages and nothing else."""
    header = pool.descriptor(message).fields_by_name.get("header")
    if header is None or header.message_type is None:
        return lambda data: UNSTAMPED
    numbers = {field.name: field.number for field in header.message_type.fields}
    if (numbers.get("timestamp_sec"), numbers.get("sequence_num")) != (1, 3):
        return lambda data: UNSTAMPED
    file = descriptor_pb2.FileDescriptorProto(name="headed.proto", package="forewarn.headed")
    file.dependency.append(own_pool().descriptor(HEADER).file.name)
    headed = file.message_type.add(name="Headed")
    headed.field.add(name="header", number=header.number, type=11, label=1, type_name=f".{HEADER}")
    parse = Pool([*own_pool().files.values(), file]).message_class("forewarn.headed.Headed")

    def read(data: bytes) -> Stamp:
        found: Any = parse.FromString(data).header
        has_number = found.HasField("sequence_num")
        return Stamp(found.timestamp_sec, found.sequence_num if has_number else NO_NUMBER)

    return read


@dataclass
class Traffic:
    """What came on one channel so far."""

    # received, late, lost, restarts: messages; those that came after a younger one (not used);
    # those that never came, by the numbers in their headers; times that numbering began again
    received: int = 0
    late: int = 0
    lost: int = 0
    restarts: int = 0
    newest: Stamp = UNSTAMPED
    newest_ns: int = 0
    missing: set[int] = field(default_factory=set)


MOST_MISSING = 10_000
JITTER = 1.0
"""Seconds: an earlier number with a stamp that is older by more is from a restarted clock."""


class Sorter:
    """Drops what is older than what was there already, and counts."""

    def __init__(self, read: Callable[[bytes], Stamp]) -> None:
        self._read = read
        self.traffic = Traffic()

    def take(self, arrivals: Iterable[Arrival]) -> list[Arrival]:
        """Return those of a batch that are new, in the order in which they were sent."""
        stamped = [(self._stamp(arrival), arrival) for arrival in arrivals]
        if all(stamp.number != NO_NUMBER or stamp.seconds for stamp, _ in stamped):
            stamped.sort(key=lambda pair: (pair[0].seconds, pair[0].number))
        return [message for stamp, message in stamped if self._is_new(stamp, message)]

    def _stamp(self, arrival: Arrival) -> Stamp:
        try:
            return self._read(arrival.data)
        except Exception:  # a damaged message is reported where its signals are read
            return UNSTAMPED

    def _is_new(self, stamp: Stamp, arrival: Arrival) -> bool:
        traffic = self.traffic
        traffic.received += 1
        traffic.newest_ns = max(traffic.newest_ns, arrival.time_ns)
        before = traffic.newest
        if stamp.number == NO_NUMBER:
            return True
        if before.number == NO_NUMBER:
            traffic.newest = stamp
            return True
        if stamp.number > before.number:
            gap = range(before.number + 1, stamp.number)
            traffic.lost += len(gap)
            traffic.missing |= set(gap[-MOST_MISSING:])
            traffic.newest = stamp
            return True
        if stamp.seconds > before.seconds or before.seconds - stamp.seconds > JITTER:
            # The publisher counts from the beginning again.
            traffic.restarts += 1
            traffic.missing.clear()
            traffic.newest = stamp
            return True
        traffic.late += 1
        if stamp.number in traffic.missing:
            traffic.missing.discard(stamp.number)
            traffic.lost -= 1
        return False


FINE_RATE = 1000.0
NANOSECONDS = 1_000_000_000


class SentSignal(NamedTuple):
    """A signal for the node; `stamp_ns` is such that it expires when its first input does."""

    name: str
    value: float
    stamp_ns: int


class Derivation:
    """Computes what a bridge sends for one monitor file.

    Values are computed by the same code as when learning from records, on a grid of 1 ms.
    """

    def __init__(self, spec: MonitorSpec) -> None:
        self.bridging = divide(spec)
        # Where the clock is steps nothing is sent, as `divide` sees to.
        self.rate = FINE_RATE if spec.rate == "steps" else spec.rate
        self.spec = spec.model_copy(update={"rate": FINE_RATE, "time": "arrival", "settle": 0.0})
        self._abstraction = build_abstraction(self.spec)
        self.channels = {
            signal.channel: signal.message_type
            for signal in spec.signals.values()
            if signal.channel is not None
        }
        self.problems: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._unread: dict[str, int] = {}
        self._types: dict[str, ForeignType] = {}
        self._offered: dict[str, bytes] = {}
        self.sorters: dict[str, Sorter] = {}
        for channel, message in self.channels.items():
            self.sorters[channel] = Sorter(lambda data: UNSTAMPED)
            self._use_own_layout(channel, message)
        self._arrived: dict[str, int] = {}
        self._feed = self._open()

    def _use_own_layout(self, channel: str, message: str) -> None:
        try:
            self._set_type(channel, message, own_pool())
        except SchemaError:
            self.problems[channel] = f"the layout of {message} is not known before it is published"

    def _set_type(self, channel: str, message: str, pool: Pool) -> None:
        self._types[channel] = pool.message_type(message)
        sorter = Sorter(stamp_reader(pool, message))
        sorter.traffic = self.sorters[channel].traffic
        self.sorters[channel] = sorter

    def _open(self) -> Feed:
        """Open a feed for the channels whose layout fits their expressions."""
        fitting: dict[str, ForeignType] = {}
        for channel, mtype in self._types.items():
            try:
                open_feed(self.spec, self._abstraction, {channel: mtype})
            except InputError as error:
                self.problems[channel] = str(error)
            else:
                fitting[channel] = mtype
        return open_feed(self.spec, self._abstraction, fitting)

    def offer(self, offer: Offer) -> None:
        """Use the layout of the publisher that was found on a channel."""
        wanted = self.channels.get(offer.channel)
        if wanted is None or self._offered.get(offer.channel) == offer.descriptors:
            return
        if offer.message != wanted:
            self.problems[offer.channel] = (
                f"it carries {offer.message}, the monitor file says {wanted}"
            )
            return
        self._offered[offer.channel] = offer.descriptors
        self.problems.pop(offer.channel, None)
        try:
            self._set_type(offer.channel, wanted, pool_of(offer.descriptors))
        except SchemaError as error:
            self.problems[offer.channel] = str(error)
            self._use_own_layout(offer.channel, wanted)
        self._feed = self._open()

    def accept(self, arrivals: Iterable[Arrival]) -> bool:
        """Take messages; tell whether any was new."""
        by_channel: dict[str, list[Arrival]] = {}
        for arrival in arrivals:
            by_channel.setdefault(arrival.channel, []).append(arrival)
        fresh = False
        for channel, batch in by_channel.items():
            if channel not in self.sorters:
                continue
            for message in self.sorters[channel].take(batch):
                self._feed.accept(channel, message.time_ns, message.data)
                self._arrived[channel] = max(self._arrived.get(channel, 0), message.time_ns)
                fresh = True
        return fresh

    def evaluate(self, now_ns: int) -> list[SentSignal]:
        """Return the signals for the node as they are at `now_ns`.

        A signal with an input that never came is left out, so that the node sees its default; one
        that has no value otherwise is NaN.
        """
        tick = self._feed.clock.tick_at_or_after(now_ns)
        snapshot = self._feed.snapshot(tick)
        values, failed, _ = self._abstraction.complete(snapshot.values)
        for failure in snapshot.failures:
            self.failures[failure.where] = failure.reason
            self._unread[failure.where] = self._arrived.get(failure.where, 0)
        self.failures.update(failed)
        named = dict(zip(self._abstraction.signals, values, strict=True))
        sent = []
        for name, sources in self.bridging.sources.items():
            stamp = self._expiry(sources, now_ns)
            if stamp is not None:
                expires_in = self.bridging.sent[name]
                own = now_ns if math.isinf(expires_in) else stamp - round(expires_in * NANOSECONDS)
                sent.append(SentSignal(name, self._number(name, named[name]), min(own, now_ns)))
        return sent

    def _expiry(self, sources: Iterable[str], now_ns: int) -> int | None:
        """Return when the first of some sources is stale; None if a needed one never came."""
        soonest = (1 << 62) + now_ns
        for name in sources:
            signal = self.spec.signals[name]
            arrived = self._arrived.get(signal.channel or "")
            if arrived is None:
                if signal.default is None or len(list(sources)) == 1:
                    return None
                continue
            timeout = timeout_of(signal)
            if not math.isinf(timeout):
                soonest = min(soonest, arrived + round(timeout * NANOSECONDS))
        return soonest

    def _number(self, name: str, value: Any) -> float:
        if value is None:
            return math.nan
        if isinstance(value, (bool, int, float)):
            return float(value)
        self.failures[name] = "it is no number, and nothing else can be sent to the node"
        return math.nan

    def unread(self, channel: str) -> str:
        """Return why the newest message on a channel could not be decoded; empty if it could."""
        arrived = self._arrived.get(channel)
        return self.failures[channel] if arrived and self._unread.get(channel) == arrived else ""

    @property
    def traffic(self) -> Mapping[str, Any]:
        """What came on each channel."""
        return {channel: sorter.traffic for channel, sorter in self.sorters.items()}
