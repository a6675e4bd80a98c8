"""Poses of frames: the transforms of one robot, taken in until a tick and looked up there."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.messages.extraction import Extractor, compile_extractor
from forewarn.messages.foreign import ForeignExtractor
from forewarn.signals.clock import NANOSECONDS, Payload
from forewarn.signals.frame_tree import FrameTree, NoTransformError, Transform
from forewarn.signals.sources import SourceSignal, extractor_of, not_yet

TRANSFORM = "geometry_msgs/msg/Transform"
MOST_PENDING = 10_000
"""Transforms that wait for their tick; beyond that the oldest are taken before."""
HEADER = b"\x00\x01\x00\x00"
FIELDS = (
    "header.stamp.sec",
    "header.stamp.nanosec",
    "header.frame_id",
    "child_frame_id",
    *(f"transform.translation.{axis}" for axis in "xyz"),
    *(f"transform.rotation.{axis}" for axis in "xyzw"),
)

Visible = Callable[[int, int], int]


class Waiting(NamedTuple):
    """A transform that waits for its tick; in the order in which they are taken."""

    visible: int
    arrival_ns: int
    later: bool  # it is dynamic: of those that arrive together static ones are first
    number: int  # how many of its topic came before
    stamp_ns: int
    child: str
    transform: Transform


class Found(NamedTuple):
    """What a lookup gave."""

    where: str
    slots: tuple[int, ...]
    values: list[Any]  # one for each of `slots`; empty if there is no pose
    moment_ns: int | None  # what its age counts from; None if all transforms on the way are static
    reason: str  # why there is no pose


class Query(NamedTuple):
    """A pose that signals read."""

    of: str
    inside: str
    slots: tuple[int, ...]
    extract: Extractor | ForeignExtractor


class Frames:
    """The transforms of a topic and of its static companion, and the poses wanted of them.

    `topics`: definition of each topic, and whether its transforms are static.
    `queries`: the poses.
    `visible`: from arrival and time that counts to the tick that sees a sample.
    `stamped`: a pose counts from its stamp instead of from arrivals.
    """

    def __init__(
        self,
        topics: Mapping[str, tuple[MessageType, bool]],
        queries: Sequence[Query],
        visible: Visible,
        *,
        stamped: bool,
    ) -> None:
        self.topics = frozenset(topics)
        self._read = {topic: _reader(mtype) for topic, (mtype, _) in topics.items()}
        self._static = {topic: static for topic, (_, static) in topics.items()}
        self._queries = queries
        self._visible = visible
        self._stamped = stamped
        self.reset()

    def reset(self) -> None:
        """Forget everything that arrived."""
        self._tree = FrameTree()
        self._pending: list[Waiting] = []
        self._numbers = dict.fromkeys(self.topics, 0)
        self._refused: list[tuple[int, str, str]] = []
        self._found: list[Found] = []
        self._version = self._tree.version

    def accept(self, topic: str, arrival_ns: int, payload: Payload) -> bool:
        """Take a message and return whether it could be read.

        If not, `take` says so at the tick that would have seen it.
        """
        static = self._static[topic]
        try:
            rows = self._read[topic](payload)
        except DecodeError as error:
            self._refused.append((self._visible(arrival_ns, arrival_ns), topic, str(error)))
            return False
        for seconds, nanoseconds, parent, child, x, y, z, *turned in rows:
            stamp_ns = seconds * NANOSECONDS + nanoseconds
            counts = stamp_ns if self._stamped and not static else arrival_ns
            if (refused := not_yet(counts, arrival_ns)) is not None:
                if len(self._refused) < MOST_PENDING:
                    seen = self._visible(arrival_ns, arrival_ns)
                    self._refused.append((seen, topic, f"{child!r} in {parent!r}: {refused}"))
                continue
            visible = self._visible(arrival_ns, counts)
            transform = Transform(parent, (x, y, z), tuple(turned), arrival_ns)
            number = self._numbers[topic] = self._numbers[topic] + 1
            waiting = Waiting(visible, arrival_ns, not static, number, stamp_ns, child, transform)
            heapq.heappush(self._pending, waiting)
            if len(self._pending) > MOST_PENDING:
                self._insert(heapq.heappop(self._pending))
        return True

    def take(self, tick: int) -> Iterator[tuple[str, str]]:
        """Take what belongs to a tick or to earlier ones; yield what is refused, and why."""
        while self._pending and self._pending[0].visible <= tick:
            self._insert(heapq.heappop(self._pending))
        due = [one for one in self._refused if one[0] <= tick]
        self._refused = [one for one in self._refused if one[0] > tick]
        yield from dict.fromkeys(one[1:] for one in due)

    @property
    def waits(self) -> bool:
        """Tell whether a later tick takes what arrived already."""
        return bool(self._pending or self._refused)

    def _insert(self, waiting: Waiting) -> None:
        static = not waiting.later
        refused = self._tree.insert(
            waiting.stamp_ns, waiting.transform, waiting.child, static=static
        )
        if refused and len(self._refused) < MOST_PENDING:
            topic = next(name for name, one in self._static.items() if one == static)
            self._refused.append((waiting.visible, topic, refused))

    def poses(self) -> Sequence[Found]:
        """Return what each lookup gives by now; nothing before the first transform."""
        if self._version != self._tree.version:
            self._version = self._tree.version
            self._found = [self._lookup(query) for query in self._queries]
        return self._found

    def _lookup(self, query: Query) -> Found:
        where = f"{query.of} in {query.inside}"
        try:
            pose = self._tree.lookup(query.of, query.inside)
        except NoTransformError as error:
            return Found(where, query.slots, [], None, str(error))
        data = HEADER + struct.pack("<7d", *pose.translation, *pose.rotation)
        moment = pose.arrival_ns
        if self._stamped and moment is not None:
            moment = pose.stamp_ns
        return Found(where, query.slots, query.extract(data), moment, "")


def _reader(mtype: MessageType) -> Callable[[Payload], list[tuple[Any, ...]]]:
    """Return a function from payload to the transforms in it, a row of `FIELDS` for each."""
    wanted = [parse_expression(f"[t.{field} for t in transforms]") for field in FIELDS]
    extract = compile_extractor(mtype, wanted)

    def read(payload: Payload) -> list[tuple[Any, ...]]:
        assert not isinstance(payload, Mapping)
        columns: list[Any] = extract(payload)
        plain = [column if isinstance(column, list) else column.tolist() for column in columns]
        return list(zip(*plain, strict=True))

    return read


def value_type(source: SourceSignal, types: Mapping[str, MessageType]) -> MessageType | None:
    """Return the type whose fields the value of a signal reads; None if it is not known."""
    known = types.get(source.topic)
    return known if source.frame is None else installed_message_type(TRANSFORM)


def build_frames(
    sources: Sequence[SourceSignal],
    message_types: Mapping[str, MessageType],
    visible: Visible,
    *,
    stamped: bool,
) -> list[Frames]:
    """Prepare the poses that signals read from topics that have a definition.

    Raises FieldError if a value reads what a transform does not have.
    """
    wanted: dict[tuple[str, str], dict[tuple[str, str], list[int]]] = {}
    for slot, source in enumerate(sources):
        frame = source.frame
        if frame is not None and {frame.topic, frame.static} & message_types.keys():
            queries = wanted.setdefault((frame.topic, frame.static), {})
            queries.setdefault((frame.of, frame.inside), []).append(slot)
    found = []
    for (topic, static), queries in wanted.items():
        transform = installed_message_type(TRANSFORM)
        topics = {
            name: (message_types[name], name == static)
            for name in (topic, static)
            if name in message_types
        }
        made = [
            Query(*names, tuple(slots), extractor_of(transform, [sources[slot] for slot in slots]))
            for names, slots in queries.items()
        ]
        found.append(Frames(topics, made, visible, stamped=stamped))
    return found
