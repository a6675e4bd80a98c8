"""ROS 1 bags (.bag): whole ones by their index, others by the chunks they hold.

The layout is that of https://wiki.ros.org/Bags/Format/2.0.
"""

from __future__ import annotations

import bz2
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

import lz4.frame  # type: ignore[import-untyped]

from forewarn.errors import RecordingError, plural
from forewarn.files.inputs import open_plain
from forewarn.messages.definitions import normal_type_name
from forewarn.recordings.interface import Channel, Row, Sample, Storage, make_sample
from forewarn.recordings.ordering import (
    Disorder,
    Segment,
    in_time_order,
    segment_disorder,
    sort_rows,
)
from forewarn.recordings.zstd import UNPACKED_LIMIT

ACCEPTED = "a ROS 1 bag of version 2.0 with chunks in bz2, lz4 or no compression"
MAGIC = b"#ROSBAG V"

_MESSAGE, _BAG, _INDEX, _CHUNK, _CHUNK_INFO, _CONNECTION = 2, 3, 4, 5, 6, 7
_UNPACKERS = {"bz2": bz2.BZ2Decompressor, "lz4": lz4.frame.LZ4FrameDecompressor}
_LENGTH = struct.Struct("<I").unpack_from
_PAIR = struct.Struct("<II")
FIRST = len(MAGIC) + len("2.0\n")
"""Where the first record is."""


def _check_version(path: Path) -> None:
    try:
        with open_plain(path) as file:
            line = file.readline(32)
    except OSError as error:
        raise RecordingError(f"cannot be opened ({error.strerror})", file=path) from error
    version = re.fullmatch(rb"#ROSBAG V(\d+\.\d+)\n", line)
    if version is None:
        raise RecordingError(
            f"is no ROS 1 bag, it begins with {line!r}", accepted=ACCEPTED, file=path
        )
    if version[1] != b"2.0":
        raise RecordingError(
            f"is a ROS 1 bag of version {version[1].decode()}", accepted=ACCEPTED, file=path
        )


class Record(NamedTuple):
    """One record of a bag: its header fields, and where its data lies."""

    fields: dict[bytes, bytes]
    begin: int
    end: int

    @property
    def kind(self) -> int:
        """The record's op code, 0 if it has none."""
        return (self.fields.get(b"op") or b"\0")[0]

    def number(self, name: bytes, width: int = 4) -> int | None:
        """Return a field as a number; None if the record is damaged."""
        value = self.fields.get(name, b"")
        return int.from_bytes(value, "little") if len(value) == width else None

    def time_ns(self, name: bytes) -> int | None:
        """Return a field as a time; None if the record is damaged."""
        seconds_and_rest = self.number(name, 8)
        if seconds_and_rest is None:
            return None
        return (seconds_and_rest & 0xFFFFFFFF) * 1_000_000_000 + (seconds_and_rest >> 32)


class Span(NamedTuple):
    """The messages of one connection in one chunk: how many, and their range of log times."""

    count: int  # type: ignore[assignment]  # hides tuple.count
    start_ns: int
    end_ns: int


def records(buffer: bytes | memoryview) -> Iterator[Record]:
    """Yield the records in `buffer`; the last one may lack part of its data.

    A record whose header is not made of whole fields has none.
    """
    position, size = 0, len(buffer)
    while position + 4 <= size:
        length = int(_LENGTH(buffer, position)[0])
        begin = position + 4 + length
        if begin + 4 > size:
            return
        fields: dict[bytes, bytes] = {}
        at = position + 4
        while at + 4 <= begin:
            width = int(_LENGTH(buffer, at)[0])
            name, mark, value = bytes(buffer[at + 4 : at + 4 + width]).partition(b"=")
            at += 4 + width
            if mark:
                fields[name] = value
        if at != begin:
            fields.clear()
        end = begin + 4 + int(_LENGTH(buffer, begin)[0])
        yield Record(fields, begin + 4, end)
        position = end


def _whole_records(buffer: bytes) -> Iterator[Record]:
    """Yield the records whose data are all there."""
    return takewhile(lambda record: record.end <= len(buffer), records(buffer))


class Rosbag1File(Storage):
    """A ROS 1 bag: what its index says, or, without a sound one, what its chunks hold.

    Raises RecordingError if nothing in it can be read.
    """

    def __init__(self, path: Path) -> None:
        _check_version(path)
        self.path = path
        self.warnings: list[str] = []
        self._file = open_plain(path)
        self._size = self._file.seek(0, 2)
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        self._forget()
        why = ""
        try:
            self._read_index()
        except ValueError as error:
            why = f"its index cannot be used ({error})"
            self.warnings.append(
                f"{why}; the file was read from its beginning, and what it holds is used"
            )
            self._forget()
            self._scan()
        self._summarise()
        if why and not self._segments:
            raise RecordingError(
                f"holds no message that can be read: {why}", accepted=ACCEPTED, file=self.path
            )
        self.channels = list(self._connections.values())
        self.count = sum(channel.count for channel in self.channels)
        self.start_ns = min((segment.start_ns for segment in self._segments), default=0)
        self.end_ns = max((segment.end_ns for segment in self._segments), default=0)
        if (text := segment_disorder(self._segments).warning()) is not None:
            self.warnings.append(text)

    def _forget(self) -> None:
        self._connections: dict[int, Channel] = {}
        self._chunks: list[tuple[Segment, dict[int, Span]]] = []
        self._segments: list[Segment] = []
        self._damaged = 0

    def _record(self, position: int) -> tuple[Record | None, bytes]:
        """Return the record at a place and the bytes from there on, maybe not all of its data."""
        self._file.seek(position)
        head = self._file.read(min(1 << 16, self._size - position))
        return next(records(head), None), head

    def _read_index(self) -> None:
        """Take note of what the end of the file says of its chunks; raises ValueError."""
        header, _ = self._record(FIRST)
        at = None if header is None or header.kind != _BAG else header.number(b"index_pos", 8)
        if header is None or not at or at > self._size:
            raise ValueError("its recorder did not close it" if at == 0 else "it is not there")
        self._file.seek(at)
        buffer, end = self._file.read(), 0
        for record in _whole_records(buffer):
            end = record.end
            if record.kind == _CONNECTION:
                self._declare(record, buffer)
            elif record.kind == _CHUNK_INFO:
                self._add_chunk(record, buffer, at)
        found = (len(self._connections), len(self._chunks))
        promised = (header.number(b"conn_count"), header.number(b"chunk_count"))
        if self._damaged or end != len(buffer) or found != promised:
            raise ValueError("it is damaged")

    def _add_chunk(self, info: Record, buffer: bytes, index_at: int) -> None:
        times = info.time_ns(b"start_time"), info.time_ns(b"end_time")
        offset, first, last = info.number(b"chunk_pos", 8), *times
        pairs = [*_PAIR.iter_unpack(buffer[info.begin : info.end - (info.end - info.begin) % 8])]
        chunk = None
        if offset is not None and FIRST < offset < index_at:
            chunk, _ = self._record(offset)
        if (
            first is None
            or last is None
            or offset is None
            or chunk is None
            or chunk.kind != _CHUNK
            or not first <= last
            or info.number(b"count") != len(pairs)
        ):
            raise ValueError("it is damaged")
        segment = Segment(first, last, offset, chunk.end, frozenset(n for n, _ in pairs))
        self._chunks.append((segment, {n: Span(count, first, last) for n, count in pairs}))

    def _scan(self) -> None:
        """Look into one record of the file after the other."""
        position = FIRST
        while position + 8 <= self._size:
            record, head = self._record(position)
            if record is None or not _BAG <= record.kind <= _CONNECTION:
                self.warnings.append(f"nothing from byte {position} of {self._size} on can be read")
                return
            end = position + record.end
            if record.kind == _CHUNK:
                self._scan_chunk(position, record.end, end > self._size)
            elif record.kind == _CONNECTION and end <= position + len(head):
                self._declare(record, head)
            position = end

    def _summarise(self) -> None:
        """Count what belongs to a connection that is declared anywhere in the file."""
        counts: Counter[int] = Counter()
        strays = 0
        for segment, spans in self._chunks:
            known = [span for number, span in spans.items() if number in self._connections]
            strays += sum(span.count for span in spans.values()) - sum(span.count for span in known)
            counts.update({number: span.count for number, span in spans.items()})
            if known:
                start_ns, end_ns = min(s.start_ns for s in known), max(s.end_ns for s in known)
                self._segments.append(segment._replace(start_ns=start_ns, end_ns=end_ns))
        self._connections = {
            number: connection._replace(count=counts[number])
            for number, connection in self._connections.items()
        }
        if self._damaged:
            self.warnings.append(
                f"{plural(self._damaged, 'record')} of messages or connections cannot be used: "
                "fields are missing or have the wrong size"
            )
        if strays:
            self.warnings.append(f"{plural(strays, 'message')} of no known connection left out")

    def _declare(self, record: Record, buffer: bytes) -> None:
        """Take note of a connection; its data are fields like those of a header."""
        block = buffer[record.begin - 4 : record.end] + bytes(4)
        data, number = next(records(block), None), record.number(b"conn")
        if data is None or number is None or b"topic" not in record.fields:
            self._damaged += 1
            return
        fields = {name: value.decode(errors="replace") for name, value in data.fields.items()}
        self._connections[number] = Channel(
            topic=record.fields[b"topic"].decode(errors="replace"),
            msgtype=normal_type_name(fields.get(b"type", "")),
            serialization="ros1",
            definition=fields.get(b"message_definition", ""),
            encoding="ros1msg",
            count=0,
        )

    def _scan_chunk(self, offset: int, length: int, cut: bool) -> None:
        """Take note of the connections and messages in a chunk, and of what is damaged in it."""
        segment = Segment(0, 0, offset, length, frozenset(), cut)
        try:
            buffer = self._unpack(segment)
        except ValueError as error:
            self.warnings.append(f"the chunk at byte {offset} is damaged: {error}")
            return
        spans: dict[int, Span] = {}
        position = 0
        for record in _whole_records(buffer):
            position = record.end
            if record.kind == _CONNECTION:
                self._declare(record, buffer)
                continue
            number, time_ns = record.number(b"conn"), record.time_ns(b"time")
            if record.kind != _MESSAGE or number is None or time_ns is None:
                self._damaged += 1
                continue
            count, first, last = spans.get(number, (0, time_ns, time_ns))
            spans[number] = Span(count + 1, min(first, time_ns), max(last, time_ns))
        found = plural(sum(span.count for span in spans.values()), "message")
        if cut:
            self.warnings.append(f"the last chunk is cut short: {found} of it could be read")
        elif position < len(buffer):
            self.warnings.append(
                f"the chunk at byte {offset} is damaged: nothing from byte {position} of "
                f"{len(buffer)} on can be read; {found} before it could"
            )
        self._chunks.append((segment, spans))

    def _unpack(self, segment: Segment) -> bytes:
        """Return the records in a chunk; raises ValueError if they cannot be read."""
        self._file.seek(segment.offset)
        whole = self._file.read(segment.length)
        record = next(records(whole), None)
        if record is None or record.kind != _CHUNK:
            raise ValueError("it is not what the index says")
        stored = whole[record.begin : record.end]
        compression = record.fields.get(b"compression", b"").decode(errors="replace")
        try:
            if compression in _UNPACKERS:
                unpacker = _UNPACKERS[compression]()
                found = bytes(unpacker.decompress(stored, max_length=UNPACKED_LIMIT + 1))
                if len(found) > UNPACKED_LIMIT:
                    raise ValueError(f"it unpacks to more than {UNPACKED_LIMIT} bytes")
                return found
        except (OSError, RuntimeError, EOFError, MemoryError) as error:
            raise ValueError(f"it cannot be unpacked ({error})") from error
        if compression != "none":
            raise ValueError(f"it is compressed with {compression!r}; {ACCEPTED}")
        return stored

    def read(self, topics: Collection[str]) -> Iterator[Sample]:
        """Yield the messages of `topics` in log-time order, serialized as ROS 1 does it."""
        return chain.from_iterable(map(make_sample, rows) for rows in self._batches({*topics}))

    def _batches(self, topics: set[str]) -> Iterator[list[Row]]:
        wanted = {n: one.topic for n, one in self._connections.items() if one.topic in topics}
        segments = [s for s in self._segments if not s.channels or s.channels & wanted.keys()]
        missing = sum(self._connections[number].count for number in wanted)
        for rows in in_time_order(segments, lambda segment: self._load(segment, wanted), _drop):
            missing -= len(rows)
            yield rows
        if missing > 0:
            self._warn(f"{plural(missing, 'message')} that the index promises could not be read")

    def _load(self, segment: Segment, wanted: Mapping[int, str]) -> list[Row]:
        try:
            buffer = self._unpack(segment)
        except ValueError as error:
            self._warn(f"the chunk at byte {segment.offset} is damaged: {error}; it is left out")
            return []
        rows: list[Row] = []
        for record in _whole_records(buffer):
            if record.kind != _MESSAGE:
                continue
            number, time_ns = record.number(b"conn"), record.time_ns(b"time")
            if number is not None and time_ns is not None and number in wanted:
                rows.append((time_ns, wanted[number], buffer[record.begin : record.end]))
        return sort_rows(rows, Disorder())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _drop(number: int) -> None:
    """Leave out what is older than its chunk says: it is counted as missing."""
