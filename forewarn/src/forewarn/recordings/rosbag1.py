"""ROS 1 bags (.bag): whole ones through `rosbags`, others by the chunks they hold.

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
from rosbags.rosbag1 import Reader

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
_NUMBER = struct.Struct("<I")
_TIME = struct.Struct("<II")


def open_rosbag1(path: Path) -> Storage:
    """Open a ROS 1 bag; raises RecordingError if nothing in it can be read."""
    _check_version(path)
    try:
        return Rosbag1File(path)
    except RecordingError as error:
        return DamagedRosbag1File(path, error.problem)


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


class Rosbag1File(Storage):
    """A whole ROS 1 bag, read by `rosbags`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._reader = Reader(path)
        try:
            self._reader.open()
        except Exception as error:  # rosbags lets errors of all kinds through
            raise RecordingError(_text(error), accepted=ACCEPTED, file=path) from error
        connections = self._reader.connections
        self.channels = [
            Channel(
                connection.topic,
                connection.msgtype,
                "ros1",
                connection.msgdef.data,
                "ros1msg",
                connection.msgcount,
            )
            for connection in connections
        ]
        self.count = sum(connection.msgcount for connection in connections)
        self.start_ns = int(self._reader.start_time) if self.count else 0
        self.end_ns = int(self._reader.end_time) - 1 if self.count else 0
        segments = [
            Segment(chunk_info.start_time, chunk_info.end_time, chunk_info.pos, 0, frozenset())
            for chunk_info in self._reader.chunk_infos
        ]
        if (text := segment_disorder(segments).warning()) is not None:
            self.warnings.append(text)

    def read(self, topics: Collection[str]) -> Iterator[Sample]:
        """Yield the messages of `topics` in log-time order, serialized as ROS 1 does it."""
        chosen = [
            connection for connection in self._reader.connections if connection.topic in topics
        ]
        if not chosen:
            return
        try:
            for connection, time_ns, data in self._reader.messages(chosen):
                yield make_sample((time_ns, connection.topic, data))
        except Exception as error:  # rosbags lets errors of all kinds through
            raise RecordingError(
                f"is damaged ({_text(error)})", accepted=ACCEPTED, file=self.path
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._reader.bio is not None:
            self._reader.close()


class Record(NamedTuple):
    """One record of a bag: its header fields, and where its data lies."""

    fields: dict[bytes, bytes]
    begin: int
    end: int

    @property
    def kind(self) -> int:
        """The record's op code, 0 if it has none."""
        return (self.fields.get(b"op") or b"\0")[0]

    @property
    def connection(self) -> int | None:
        """The number of the connection that it belongs to; None if the record is damaged."""
        value = self.fields.get(b"conn", b"")
        return int(_NUMBER.unpack(value)[0]) if len(value) == _NUMBER.size else None

    @property
    def time_ns(self) -> int | None:
        """The log time of a message; None if the record is damaged."""
        value = self.fields.get(b"time", b"")
        if len(value) != _TIME.size:
            return None
        seconds, nanoseconds = _TIME.unpack(value)
        return int(seconds) * 1_000_000_000 + int(nanoseconds)


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


class DamagedRosbag1File(Storage):
    """A ROS 1 bag without a sound index: what its chunks hold, up to the damage."""

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        self.warnings = [f"{why}; the file was read from its beginning, and what it holds is used"]
        self._connections: dict[int, Channel] = {}
        self._chunks: list[tuple[Segment, dict[int, Span]]] = []
        self._segments: list[Segment] = []
        self._compressions: dict[int, str] = {}
        self._damaged = 0
        self._file = open_plain(path)
        try:
            self._scan()
            self._summarise()
        finally:
            if not self._segments:
                self._file.close()
        if not self._segments:
            raise RecordingError(
                f"holds no message that can be read: {why}", accepted=ACCEPTED, file=path
            )
        self.channels = list(self._connections.values())
        self.count = sum(channel.count for channel in self.channels)
        self.start_ns = min(segment.start_ns for segment in self._segments)
        self.end_ns = max(segment.end_ns for segment in self._segments)

    def _scan(self) -> None:
        """Look into one record of the file after the other."""
        size = self._file.seek(0, 2)
        position = len(MAGIC) + len("2.0\n")
        while position + 8 <= size:
            self._file.seek(position)
            head = self._file.read(min(1 << 16, size - position))
            record = next(records(head), None)
            if record is None or not _BAG <= record.kind <= _CONNECTION:
                self.warnings.append(f"nothing from byte {position} of {size} on can be read")
                return
            begin, end = position + record.begin, position + record.end
            if record.kind == _CHUNK:
                compression = record.fields.get(b"compression", b"").decode(errors="replace")
                self._compressions[begin] = compression
                self._chunk(begin, min(end, size) - begin, end > size)
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
        data = next(records(block), None)
        if data is None or record.connection is None or b"topic" not in record.fields:
            self._damaged += 1
            return
        fields = {name: value.decode(errors="replace") for name, value in data.fields.items()}
        self._connections[record.connection] = Channel(
            topic=record.fields[b"topic"].decode(errors="replace"),
            msgtype=normal_type_name(fields.get(b"type", "")),
            serialization="ros1",
            definition=fields.get(b"message_definition", ""),
            encoding="ros1msg",
            count=0,
        )

    def _chunk(self, offset: int, length: int, cut: bool) -> None:
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
            number, time_ns = record.connection, record.time_ns
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
        stored = self._file.read(segment.length)
        compression = self._compressions[segment.offset]
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
        wanted = {
            n: connection.topic
            for n, connection in self._connections.items()
            if connection.topic in topics
        }
        disorder = Disorder()
        batches = in_time_order(
            self._segments, lambda segment: self._load(segment, wanted, disorder), lambda _: None
        )
        return chain.from_iterable(map(make_sample, rows) for rows in batches)

    def _load(self, segment: Segment, wanted: Mapping[int, str], disorder: Disorder) -> list[Row]:
        buffer = self._unpack(segment)
        rows: list[Row] = []
        for record in _whole_records(buffer):
            if record.kind != _MESSAGE:
                continue
            number, time_ns = record.connection, record.time_ns
            if number is not None and time_ns is not None and number in wanted:
                rows.append((time_ns, wanted[number], buffer[record.begin : record.end]))
        return sort_rows(rows, disorder)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _text(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
