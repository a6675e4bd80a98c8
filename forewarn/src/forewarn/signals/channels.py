"""What is read of each topic: the messages that its signals mean, and the values in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from forewarn.errors import DecodeError, FieldError, located
from forewarn.expressions.syntax import Expression, normal_form, shown
from forewarn.messages.blocks import BlockExtractor, block_extractor
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.inference import infer
from forewarn.messages.kinds import NUMBER, Kind, describe
from forewarn.signals.clock import Payload
from forewarn.signals.sources import SourceSignal, extractor_of, stored_value
from forewarn.signals.stamps import stamp_reader

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
