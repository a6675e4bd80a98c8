"""Messages as they arrive: brought into order, and what was lost on the way counted.

Cyber's readers keep one message and call back from many threads: in a burst a third is lost and
the rest comes in disorder. The header of each message tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2

from apollo_bridge.layouts import own_pool
from apollo_bridge.messages import Pool
from apollo_bridge.transport import Arrival

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
