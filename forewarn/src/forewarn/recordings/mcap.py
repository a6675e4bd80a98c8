"""MCAP files: whole ones by their index, others by what they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from pathlib import Path

import mcap.records
from mcap.opcode import Opcode

from forewarn.errors import RecordingError, plural
from forewarn.files.inputs import open_plain
from forewarn.files.remote import RemoteFile
from forewarn.recordings.interface import TIME_LIMIT_NS, Channel, Row, Sample, Storage, make_sample
from forewarn.recordings.mcap_index import read_index
from forewarn.recordings.mcap_records import (
    MAGIC,
    DamageError,
    parse,
    unpack_chunk,
    unpack_cut_chunk,
    walk,
)
from forewarn.recordings.ordering import (
    Disorder,
    Segment,
    in_time_order,
    segment_disorder,
    sort_rows,
)

ACCEPTED = "an MCAP file with ROS messages, as `ros2 bag record -s mcap` writes it"

_HEAD = 9


class McapFile(Storage):
    """One MCAP file.

    `source`: the file to read, if it is an unpacked copy.
    Raises RecordingError if nothing in it can be read.
    """

    def __init__(self, path: Path, source: Path | None = None) -> None:
        self.path = path
        try:
            self._file = open_plain(source or path)
        except OSError as error:
            raise RecordingError(f"cannot be opened ({error.strerror})", file=path) from error
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        self._size = self._file.seek(0, 2)
        self._file.seek(0)
        if (magic := self._file.read(len(MAGIC))) != MAGIC:
            raise RecordingError(
                f"is no MCAP file, it begins with {magic!r}", accepted=ACCEPTED, file=self.path
            )
        self._index = index = read_index(self._file, self._size)
        self.warnings = index.warnings
        self.channels = [
            _describe(channel, index.schemas.get(channel.schema_id), index.counts[number])
            for number, channel in index.channels.items()
        ]
        if index.damage and not index.segments:
            raise RecordingError(
                f"holds no message that can be read: {index.damage}",
                accepted=ACCEPTED,
                file=self.path,
            )
        unknown = sum(n for number, n in index.counts.items() if number not in index.channels)
        if unknown:
            self._warn(f"{plural(unknown, 'message')} of no known channel cannot be read")
        disorder = segment_disorder(index.segments)
        if disorder.times:
            self._warn(
                f"{plural(disorder.times, 'chunk')} in the file begin before an earlier one ends, "
                f"by up to {disorder.worst_ns / 1e9:.9g} s; messages are read in log-time order"
            )
        self.count = index.counts.total() - unknown
        self.start_ns = min((segment.start_ns for segment in index.segments), default=0)
        self.end_ns = max((segment.end_ns for segment in index.segments), default=0)

    def read(self, topics: Collection[str]) -> Iterator[Sample]:
        """Yield the messages of `topics` in log-time order; unpacks one chunk at a time."""
        return chain.from_iterable(
            map(make_sample, rows) for rows in self._batches(frozenset(topics))
        )

    def _batches(self, topics: frozenset[str]) -> Iterator[list[Row]]:
        index = self._index
        wanted = {
            n: channel.topic for n, channel in index.channels.items() if channel.topic in topics
        }
        ids = wanted.keys()
        segments = [
            segment for segment in index.segments if not segment.channels or segment.channels & ids
        ]
        if isinstance(self._file, RemoteFile):
            in_order = sorted(segments, key=attrgetter("start_ns"))
            self._file.plan([(segment.offset, segment.length) for segment in in_order])
        disorder = Disorder()
        delivered = 0
        for rows in in_time_order(
            segments, lambda segment: self._load(segment, wanted, disorder), self._late
        ):
            delivered += len(rows)
            yield rows
        if (text := disorder.warning()) is not None:
            self._warn(text)
        missing = sum(index.counts[number] for number in ids) - delivered
        if missing > 0:
            self._warn(f"{plural(missing, 'message')} that the index promises could not be read")

    def _late(self, number: int) -> None:
        self._warn(f"{plural(number, 'message')} lie outside the time range of their chunk")

    def _load(self, segment: Segment, wanted: Mapping[int, str], disorder: Disorder) -> list[Row]:
        try:
            self._file.seek(segment.offset)
            stored = self._file.read(segment.length)
            if stored[0] != Opcode.CHUNK and self._index.indexed:
                raise DamageError("it is not what the index says")
            if stored[0] != Opcode.CHUNK:
                records = stored
            elif segment.cut:
                records = unpack_cut_chunk(stored[_HEAD:])
            else:
                records = unpack_chunk(stored[_HEAD:])
        except DamageError as error:
            self._warn(f"the chunk at byte {segment.offset} is damaged: {error}; it is left out")
            return []
        except (OSError, ValueError, IndexError) as error:
            raise RecordingError(
                f"cannot be read at byte {segment.offset} ({error})", file=self.path
            ) from error
        rows, ordered, _ = walk(records, wanted)
        if not ordered:
            rows = sort_rows(rows, disorder)
        while rows and rows[-1][0] >= TIME_LIMIT_NS:
            rows.pop()
        return rows

    def metadata(self) -> dict[str, dict[str, str]]:
        """Return the metadata records by name; of equal names, all entries together."""
        tables: dict[str, dict[str, str]] = {}
        for offset, length in self._index.tables:
            record = self._record(offset, length)
            if isinstance(record, mcap.records.Metadata):
                tables.setdefault(record.name, {}).update(record.metadata)
        return tables

    def attachments(self) -> dict[str, bytes]:
        """Return the attachments by name; of equal names, the last one."""
        files: dict[str, bytes] = {}
        for offset, length in self._index.files:
            record = self._record(offset, length)
            if isinstance(record, mcap.records.Attachment):
                files[record.name] = record.data
        return files

    def _record(self, offset: int, length: int) -> mcap.records.McapRecord | None:
        try:
            if not _HEAD <= length <= self._size - offset:
                raise DamageError("the file ends before it does")
            self._file.seek(offset)
            stored = self._file.read(length)
            return parse(stored[0], stored[_HEAD:])
        except DamageError as error:
            self._warn(f"the record at byte {offset} is damaged: {error}; it is left out")
            return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _text(schema: mcap.records.Schema) -> str:
    """Return a definition; that of protobuf is no text, and has a character for each byte."""
    binary = schema.encoding == "protobuf"
    return schema.data.decode("latin-1") if binary else schema.data.decode(errors="replace")


def _describe(
    channel: mcap.records.Channel, schema: mcap.records.Schema | None, count: int
) -> Channel:
    return Channel(
        topic=channel.topic,
        msgtype=schema.name if schema is not None else "",
        serialization=channel.message_encoding,
        definition=_text(schema) if schema is not None else "",
        encoding=schema.encoding if schema is not None else "",
        count=count,
    )
