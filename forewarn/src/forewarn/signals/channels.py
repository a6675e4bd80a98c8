"""What is read of each topic: the messages that its signals mean, and the values in them.

Several messages of one tick come to the last of them, or all of them together (`within`). Without a
message in a tick, `max`, `min` and `any` give what the last one says alone, and `count` is 0. An
unknown value among several makes the result unknown, unless it is decided all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.errors import DecodeError, FieldError, located
from forewarn.expressions.syntax import Expression, normal_form, shown
from forewarn.messages.blocks import BlockExtractor, block_extractor
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.inference import infer
from forewarn.messages.schema import NUMBER, Kind, describe
from forewarn.signals.clock import Payload
from forewarn.signals.sources import SourceSignal, extractor_of, stamp_reader, stored_value

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec

NEVER = -(1 << 62)
MOST_PENDING = 10_000
"""Messages that wait where all of a tick count; with more, the oldest are unknown."""
Decode = Callable[[Payload], "list[Any]"]


class Member(NamedTuple):
    """A signal of a topic, and its place among all that arrive."""

    slot: int
    source: SourceSignal


@dataclass
class Channel:
    """What is pending and what is current of one topic, or of those of its messages that are meant.

    `many`: makes what decodes many messages at once, for recordings.
    `pending`: the newest payload for each tick that is still to come, or all of them; or why it is
    not believed.
    """

    topic: str
    slots: tuple[int, ...]
    decode: Decode
    many: Callable[[], BlockExtractor | None]
    condition: int | None = None  # which condition of the topic tells those messages; None for all
    every: bool = False  # all messages of a tick count, and not only the newest
    pending: deque[tuple[int, int, Payload | DecodeError]] = field(default_factory=deque)
    newest_ns: int = NEVER

    def put(self, visible: int, moment: int, payload: Payload | DecodeError) -> None:
        """Have a payload wait for the tick that sees it."""
        pending = self.pending
        while pending and pending[-1][0] >= visible and not self.every:
            pending.pop()
        pending.append((visible, moment, payload))
        if self.every and len(pending) > MOST_PENDING:
            pending.popleft()
            lost = DecodeError(f"more than {MOST_PENDING:,} messages came for a tick")
            pending[0] = *pending[0][:2], lost

    def take(self, tick: int) -> Sequence[Taken]:
        """Take what belongs to a tick or to earlier ones, and return what of it counts."""
        pending, found = self.pending, list[Taken]()
        while pending and pending[0][0] <= tick:
            if found and not self.every:
                found.pop()
            found.append(Taken(self, *pending.popleft()))
        return found

    @cached_property
    def at_once(self) -> BlockExtractor | None:
        """Return what decodes many messages at once; None if that cannot be."""
        return self.many()


class Taken(NamedTuple):
    """What a tick takes of a channel: a payload, its own tick, and what it counts from."""

    channel: Channel
    visible: int
    moment_ns: int
    payload: Payload | DecodeError

    @property
    def size(self) -> int:
        """Bytes, or values by name."""
        return 0 if isinstance(self.payload, DecodeError) else len(self.payload)


def decoded(takes: Sequence[Taken]) -> list[Sequence[Any] | DecodeError]:
    """Return the values of each payload, or why it cannot be read: many at once if possible.

    A tuple has values as signals hold them, and none is unknown.
    """
    found: list[Sequence[Any] | DecodeError | None] = [None] * len(takes)
    by_channel: dict[int, list[int]] = {}
    for at, take in enumerate(takes):
        if not isinstance(take.payload, DecodeError):
            by_channel.setdefault(id(take.channel), []).append(at)
    for places in by_channel.values():
        at_once = takes[places[0]].channel.at_once
        if at_once is not None:
            rows = at_once([takes[at].payload for at in places])
            for at, row in zip(places, rows, strict=True):
                found[at] = row
    return [one_decoded(t) if row is None else row for t, row in zip(takes, found, strict=True)]


def one_decoded(take: Taken) -> Sequence[Any] | DecodeError:
    """Return the values of a payload, or why it cannot be read."""
    if isinstance(take.payload, DecodeError):
        return take.payload
    try:
        return take.channel.decode(take.payload)
    except DecodeError as error:
        return error


@dataclass
class Topic:
    """One topic."""

    channels: tuple[Channel, ...]
    stamp: Callable[[Payload], int] | None  # reads the time that counts; None for the arrival
    conditions: Decode | None  # gives the value of each condition by which signals choose messages
    stamps_differ: bool = False  # it has been noted that stamps are far from arrivals

    def meant(self, payload: Payload) -> Sequence[Channel]:
        """Return the channels that a message belongs to."""
        if self.conditions is None:
            return self.channels
        try:
            found = self.conditions(payload)
        except DecodeError:
            # It is not known which channel it is for; it stays in line so that decoding reports it.
            return self.channels
        return [c for c in self.channels if c.condition is None or _holds(found[c.condition])]


def _holds(value: Any) -> bool:
    return bool(stored_value(value))


def build_topics(
    sources: Sequence[SourceSignal],
    message_types: Mapping[str, MessageType],
    notes: list[str],
    *,
    stamped: bool,
) -> dict[str, Topic]:
    """Prepare what is read of each topic that has a definition.

    `notes`: remarks about it are added there.
    `stamped`: messages count from their header stamp.
    Raises FieldError if an expression reads a field that its message does not have.
    """
    by_topic: dict[str, list[Member]] = {}
    for slot, source in enumerate(sources):
        if source.topic in message_types and source.frame is None:
            by_topic.setdefault(source.topic, []).append(Member(slot, source))
    return {
        name: _topic(name, message_types[name], members, notes, stamped=stamped)
        for name, members in by_topic.items()
    }


def _topic(
    name: str, mtype: MessageType, members: list[Member], notes: list[str], *, stamped: bool
) -> Topic:
    groups: dict[tuple[str, bool], list[Member]] = {}
    for member in members:
        where, every = member.source.where, member.source.within != "last"
        key = "" if where is None else normal_form(where), every
        groups.setdefault(key, []).append(member)
    conditions: dict[str, Expression] = {}
    channels = []
    for (text, every), group in groups.items():
        place, where = None, group[0].source.where
        for member in group:
            check_choice(mtype, member.source)
        if where is not None:
            conditions.setdefault(text, where)
            place = [*conditions].index(text)
        extractor = extractor_of(mtype, [source for _, source in group])
        notes += [f"{name}: {note}" for note in extractor.notes]
        slots = tuple(member.slot for member in group)
        wanted = [member.source.expression for member in group]
        many = partial(block_extractor, mtype, [one for one in wanted if one is not None])
        channels.append(Channel(name, slots, extractor, many, place, every))  # type: ignore[arg-type]
    choose = compile_extractor(mtype, [*conditions.values()]) if conditions else None
    notes += [f"{name}: {note}" for note in (choose.notes if choose is not None else ())]
    stamp = stamp_reader(mtype) if stamped else None
    if stamped and stamp is None:
        notes.append(f"{name}: {mtype.name} has no stamp; its arrival counts")
    return Topic(tuple(channels), stamp, choose)  # type: ignore[arg-type]


def check_choice(mtype: MessageType, source: SourceSignal) -> None:
    """Check what chooses among messages of a type, or takes several together: FieldError."""
    if source.where is not None:
        kind = _kind(mtype, source.where, f"signals.{source.name}.where")
        if kind != NUMBER:
            raise FieldError(
                f"{describe(kind)} is neither true nor false, in {shown(source.where.source)}",
                key=f"signals.{source.name}.where",
                accepted="a condition: child_frame_id == 'base_link', or any(...) of several",
            )
    if source.within != "last" and source.expression is not None:
        kind = _kind(mtype, source.expression, f"signals.{source.name}.value")
        if kind != NUMBER:
            raise FieldError(
                f"within: {source.within} of {describe(kind)}, "
                f"in {shown(source.expression.source)}",
                key=f"signals.{source.name}.value",
                accepted="a number or a condition, or within: last",
            )


def _kind(mtype: MessageType, expression: Expression, key: str) -> Kind:
    with located(FieldError, key=key):
        return infer(expression, mtype.struct).kind


FASTER = 1.2
"""Messages for each tick from which on a topic is named: clocks are not quite alike."""


def _any(one: Any, other: Any) -> Any:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False


def _known(both: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return what is unknown where one of two values is."""
    return lambda one, other: None if one is None or other is None else both(one, other)


TOGETHER: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "max": _known(lambda one, other: other if other > one else one),
        "min": _known(lambda one, other: other if other < one else one),
        "any": _any,
        "count": _known(lambda one, other: one + other),
    }
)


def _one(value: Any) -> int:
    return int(bool(value))


ALONE: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"any": bool, "count": _one})
"""What one message says alone, where that is not its value."""


class Within:
    """The messages of a tick, for one signal.

    `within`: a key of `TOGETHER`.
    """

    def __init__(self, within: str) -> None:
        self._within = within
        self._tick: int | None = None
        self._last: Any = None
        self._result: Any = None

    def alone(self, value: Any) -> Any:
        """Return what one message says alone; None is unknown."""
        alone = ALONE.get(self._within)
        return value if value is None or alone is None else alone(value)

    def add(self, tick: int, value: Any) -> None:
        """Take in what a message says alone that belongs to a tick; ticks do not fall."""
        begun, self._tick, self._last = self._tick == tick, tick, value
        self._result = TOGETHER[self._within](self._result, value) if begun else value

    def at(self, tick: int) -> Any:
        """Return the value at a tick; messages of earlier ones are no part of it."""
        if self._tick == tick:
            return self._result
        return 0 if self._within == "count" else self._last


def note_of_faster_topics(spec: MonitorSpec, rates: Mapping[str, float]) -> str:
    """Name the topics whose signals leave messages out because the file gives no `within`.

    `rates`: messages of each topic in a second.
    """
    if spec.rate == "steps":
        return ""
    read = {signal.topic for signal in spec.signals.values() if signal.reads_last}
    fast = [
        f"{topic} ({rate:.3g} Hz)"
        for topic, rate in sorted(rates.items())
        if topic in read and rate > FASTER * spec.rate
    ]
    if not fast:
        return ""
    return (
        f"faster than the ticks ({spec.rate:g} Hz): {', '.join(fast)}. Only the newest message of "
        "a tick is read, so a short event may be missed (accepted: within: max, min, any or "
        "count; or last)"
    )
