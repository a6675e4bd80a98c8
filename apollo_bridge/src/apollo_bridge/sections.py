"""One .record file of Cyber RT: its sections, whatever state it is in.

A file is walked from its beginning, section by section, and gives what it holds, also where its
recorder was killed or it is damaged or cut: where no section follows, the walk goes on with the
next that is found.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from apollo_bridge.layouts import own_class
from apollo_bridge.messages import DAMAGE, text
from forewarn.errors import RecordingError, plural
from forewarn.recordings.interface import TIME_LIMIT_NS, Row
from forewarn.recordings.ordering import Disorder, Segment, in_time_order, sort_rows

SECTION = struct.Struct("<i4xq")
HEADER, CHUNK_HEADER, CHUNK_BODY, INDEX, CHANNEL = range(5)
HEADER_SPACE = 2048
_PACKAGE = "apollo.cyber.proto"
# Of the kinds that a file has after its header, and of less than a terabyte.
_LIKE_A_SECTION = re.compile(rb"[\1-\4]\0\0\0(?=[\s\S]{9}\0\0\0)")


class ChannelInfo(NamedTuple):
    """A channel as a file declares it; `descriptors` is a serialized ProtoDesc."""

    name: str
    message: str
    descriptors: bytes


def begins_record(head: bytes) -> bool:
    """Tell whether `head` is the beginning of a record: a header section that says version 1."""
    if len(head) < SECTION.size + 2:
        return False
    kind, size = SECTION.unpack_from(head)
    return kind == HEADER and 0 < size <= HEADER_SPACE and head[SECTION.size] == 0x08


def next_section(file: Any, start: int, end: int) -> int:
    """Return where the next section after damage begins; `end`, of the file, if there is none.

    A section is believed if it looks like one, and what follows it does so, too.
    """
    if start + SECTION.size > end:
        return end
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:

        def follows(position: int) -> bool:
            if position == end:
                return True
            if position + SECTION.size > end:
                return False
            kind, size = SECTION.unpack_from(data, position)
            return bool(HEADER <= kind <= CHANNEL and size > 0)

        for match in _LIKE_A_SECTION.finditer(data, start):
            kind, size = SECTION.unpack_from(data, match.start())
            begin = match.start() + SECTION.size
            first = 0x08 if kind == CHUNK_HEADER else 0x0A
            if 0 < size <= end - begin and data[begin] == first and follows(begin + size):
                return match.start()
    return end


class RecordFile:
    """One file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.channels: dict[str, ChannelInfo] = {}
        self.counts: Counter[str] = Counter()
        self.warnings: list[str] = []
        self._segments: list[Segment] = []
        self._indexed: Counter[str] | None = None
        with path.open("rb") as file:
            self._complete = self._read_header(file)
            self._walk(file)
        self._finish()

    @property
    def count(self) -> int:
        """Number of messages."""
        return sum(self.counts.values())

    def _read_header(self, file: Any) -> bool:
        head = file.read(SECTION.size + HEADER_SPACE)
        if not begins_record(head):
            raise RecordingError("is no record of Cyber RT", file=self.path)
        _, size = SECTION.unpack_from(head)
        try:
            header = own_class(f"{_PACKAGE}.Header").FromString(
                head[SECTION.size : SECTION.size + size]
            )
        except DAMAGE:
            self.warnings.append("its header is damaged")
            return False
        if header.compress:
            raise RecordingError(
                f"is compressed (method {header.compress})",
                file=self.path,
                accepted="records as Cyber RT writes them, which are not",
            )
        return bool(header.is_complete)

    def _take_channels(self, channels: Iterable[Any]) -> None:
        """Take the channels of an index; they also make up for damaged declarations."""
        self._indexed = Counter()
        for channel in channels:
            self._indexed[text(channel.name)] += channel.message_number
            if channel.message_type:
                self._add_channel(channel)

    def _walk(self, file: Any) -> None:
        position = SECTION.size + HEADER_SPACE
        times = (0, 0)
        while position + SECTION.size <= self.size:
            file.seek(position)
            kind, size = SECTION.unpack(file.read(SECTION.size))
            begin = position + SECTION.size
            if not HEADER <= kind <= CHANNEL or size < 0 or (kind == HEADER and size == 0):
                position = self._resume(file, position, f"no section begins at byte {position}")
                continue
            end = begin + (HEADER_SPACE if kind == HEADER else size)
            if end > self.size:
                over = f"it ends {end - self.size} bytes into a section"
                end = self._resume(file, begin, over)
                if kind == CHUNK_BODY:
                    self._segments.append(Segment(*times, begin, end - begin, frozenset(), True))
            elif kind == CHUNK_BODY:
                self._segments.append(Segment(*times, begin, size, frozenset()))
            elif kind == HEADER:
                self.warnings.append(f"another record begins at byte {position}: both are read")
            else:
                times = self._small_section(kind, file.read(size), times)
            position = end
        if position < self.size:
            self._resume(file, position, f"it ends {self.size - position} bytes into a section")

    def _resume(self, file: Any, position: int, what: str) -> int:
        """Say what is wrong; return where the next section begins, or the end of the file."""
        found = next_section(file, position, self.size)
        rest = "" if found == self.size else f", and what comes from byte {found} on"
        self.warnings.append(f"the file is damaged or cut: {what}; the part before is read{rest}")
        return found

    def _small_section(self, kind: int, body: bytes, times: tuple[int, int]) -> tuple[int, int]:
        name = {CHUNK_HEADER: "ChunkHeader", INDEX: "Index", CHANNEL: "Channel"}.get(kind)
        if name is None:
            return times
        try:
            section = own_class(f"{_PACKAGE}.{name}").FromString(body)
        except DAMAGE:
            self.warnings.append(f"a section ({name}) is damaged and left out")
            return times
        if kind == CHANNEL:
            self._add_channel(section)
        elif kind == CHUNK_HEADER:
            return section.begin_time, section.end_time
        else:
            self._take_channels([e.channel_cache for e in section.indexes if e.channel_cache.name])
        return times

    def _add_channel(self, declared: Any) -> None:
        info = ChannelInfo(text(declared.name), text(declared.message_type), declared.proto_desc)
        known = self.channels.setdefault(info.name, info)
        if not known.descriptors and info.descriptors:
            self.channels[info.name] = info
        elif info.message != known.message:
            self.warnings.append(
                f"{info.name} is declared as {known.message} and as {info.message}; "
                "the first is taken"
            )

    def _finish(self) -> None:
        """Find the time range and the counts, from the index of a whole file or the messages."""
        if not self._complete:
            self.warnings.append("the file was not closed (its recorder was killed?)")
        elif self._indexed is None and not self.warnings:
            self.warnings.append("the file is cut: it was closed, but its index is missing")
        trusted = self._complete and self._indexed is not None and not self.warnings
        spans = [(s.start_ns, s.end_ns) for s in self._segments]
        if not trusted or any(not 0 < start <= end < TIME_LIMIT_NS for start, end in spans):
            spans = self._measure()
        elif self._indexed is not None:
            self.counts = self._indexed
        self.start_ns = min((start for start, _ in spans), default=0)
        self.end_ns = max((end for _, end in spans), default=0)

    def _measure(self) -> list[tuple[int, int]]:
        measured = []
        self.counts = Counter()
        with self.path.open("rb") as file:
            for segment in self._segments:
                rows = self._load(file, segment)
                if rows:
                    self.counts.update(text(topic) for _, topic, _ in rows)
                    times = [time_ns for time_ns, _, _ in rows]
                    measured.append(segment._replace(start_ns=min(times), end_ns=max(times)))
        self._segments = measured
        return [(chunk.start_ns, chunk.end_ns) for chunk in measured]

    def read(self, topics: Collection[str]) -> Iterator[Row]:
        """Yield the messages on `topics` in log-time order, simultaneous ones in file order.

        What is found wrong on the way is added to `warnings`.
        """
        disorder = Disorder()
        lost = 0

        def late(rows: int) -> None:
            nonlocal lost
            lost += rows

        wanted = frozenset(topics)
        with self.path.open("rb") as file:

            def load(segment: Segment) -> list[Row]:
                rows = [row for row in self._load(file, segment) if row[1] in wanted]
                return sort_rows(rows, disorder)

            for batch in in_time_order(self._segments, load, late):
                yield from batch
        for warning in (
            disorder.warning(),
            f"{plural(lost, 'message')} older than their chunk says are left out" if lost else None,
        ):
            if warning is not None:
                self._warn(warning)

    def _load(self, file: Any, segment: Segment) -> list[Row]:
        file.seek(segment.offset)
        body = file.read(segment.length)
        try:
            messages = own_class(f"{_PACKAGE}.ChunkBody").FromString(body).messages
        except DAMAGE:
            messages = list(_salvage(body, self.channels))
            if not segment.cut:
                what = "its undamaged part is read"
                self._warn(f"the chunk at byte {segment.offset} is damaged; {what}")
        rows = [(m.time, m.channel_name, m.content) for m in messages if m.time < TIME_LIMIT_NS]
        if odd := len(messages) - len(rows):
            self._warn(
                f"the chunk at byte {segment.offset} is damaged: {plural(odd, 'message')} "
                "with a time beyond the year 2262, left out"
            )
        return rows

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def _salvage(body: bytes, channels: Iterable[str]) -> Iterator[Any]:
    """Yield the messages of a chunk that are whole.

    After damage it goes on where the next message on one of the channels begins.
    """
    parse = own_class(f"{_PACKAGE}.SingleMessage").FromString
    names = [name.encode() for name in channels]
    known = b"|".join(re.escape(bytes([len(name)]) + name) for name in names if len(name) < 128)
    # Field 1, length-delimited; its length; and in it field 1 as well: the channel's name.
    message = re.compile(rb"\n[\x80-\xff]{0,4}[\0-\x7f](?=\n(?:%b))" % known) if known else None
    at = 0
    while at < len(body):
        if body[at] == 0x0A:
            size, begin = _varint(body, at + 1)
            if begin and begin + size <= len(body):
                with suppress(*DAMAGE):
                    found = parse(body[begin : begin + size])
                    at = begin + size
                    yield found
                    continue
        match = message and message.search(body, at + 1)
        if not match:
            return
        at = match.start()


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; 0, 0 if it does not end."""
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    return 0, 0
