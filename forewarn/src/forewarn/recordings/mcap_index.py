"""Find out what an MCAP file holds: from its index, or, where there is none, by reading it."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO

from mcap.opcode import Opcode
from mcap.records import (
    AttachmentIndex,
    Channel,
    ChunkIndex,
    Footer,
    MetadataIndex,
    Schema,
    Statistics,
)

from forewarn.errors import plural
from forewarn.files.remote import RemoteFile
from forewarn.recordings.interface import TIME_LIMIT_NS
from forewarn.recordings.mcap_records import (
    COMPRESSIONS,
    FOOTER_LENGTH,
    MAGIC,
    DamageError,
    chunk_head,
    iterate,
    parse,
    read_head,
    unpack_chunk,
    unpack_cut_chunk,
)
from forewarn.recordings.ordering import Segment

RUN_LENGTH = 1 << 20
"""Messages outside chunks are read in runs of about this many bytes."""

_HEAD = 9
_RECORDS = frozenset(Opcode)


@dataclass
class Index:
    """What an MCAP file holds and where.

    `tables`, `files`: offset and length of metadata and attachment records.
    """

    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    segments: list[Segment] = field(default_factory=list)
    tables: list[tuple[int, int]] = field(default_factory=list)
    files: list[tuple[int, int]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what was found wrong on the way
    damage: str = ""  # why the last thing that was skipped was skipped
    indexed: bool = False  # it comes from the index of the file

    def skip_chunk(self, offset: int, why: str) -> None:
        """Note that the messages of the chunk at `offset` are lost."""
        self.damage = f"the chunk at byte {offset} is damaged: {why}"
        self.warnings.append(f"{self.damage}; its messages are lost")


def read_index(file: BinaryIO, size: int) -> Index:
    """Return what the file of `size` bytes holds, warning of all that had to be worked around."""
    try:
        index = _read_summary(file, size)
    except DamageError as error:
        index = scan(file, size)
        index.warnings.insert(
            0, f"{error}; the file was read from its beginning, and what it holds is used"
        )
        return index
    return index if index is not None else scan(file, size)


def _read_summary(file: BinaryIO, size: int) -> Index | None:
    """Return the index at the end of the file, or None if a sound file has no complete one."""
    if size < 2 * len(MAGIC) + FOOTER_LENGTH:
        raise DamageError("the recording is cut short")
    footer_at = size - len(MAGIC) - FOOTER_LENGTH
    file.seek(footer_at)
    tail = file.read(FOOTER_LENGTH + len(MAGIC))
    if tail[FOOTER_LENGTH:] != MAGIC or tail[0] != Opcode.FOOTER:
        raise DamageError("the recording is cut short (it has no closing mark)")
    footer = parse(Opcode.FOOTER, tail[_HEAD:FOOTER_LENGTH])
    assert isinstance(footer, Footer)
    if footer.summary_start == 0:
        return None
    if not len(MAGIC) <= footer.summary_start <= footer_at:
        raise DamageError("the index of the recording is damaged")
    file.seek(footer.summary_start)
    summary = file.read(footer_at - footer.summary_start)
    if footer.summary_crc and zlib.crc32(summary + tail[: _HEAD + 16]) != footer.summary_crc:
        raise DamageError("the index of the recording is damaged (its checksum is wrong)")
    return _parse_summary(file, size, summary)


def _parse_summary(file: BinaryIO, size: int, summary: bytes) -> Index | None:
    index = Index(indexed=True)
    chunks: list[ChunkIndex] = []
    statistics: Statistics | None = None
    end = 0
    for opcode, begin, end in iterate(summary):
        record = parse(opcode, summary[begin:end])
        if isinstance(record, Schema):
            index.schemas[record.id] = record
        elif isinstance(record, Channel):
            index.channels[record.id] = record
        elif isinstance(record, ChunkIndex):
            chunks.append(record)
        elif isinstance(record, Statistics):
            statistics = record
        elif isinstance(record, MetadataIndex):
            index.tables.append((record.offset, record.length))
        elif isinstance(record, AttachmentIndex):
            index.files.append((record.offset, record.length))
    if end != len(summary):
        raise DamageError("the index of the recording is damaged")
    if not _complete(index, chunks, statistics):
        return None
    assert statistics is not None
    index.counts.update(statistics.channel_message_counts)
    for chunk in chunks:
        _add_chunk(index, file, size, chunk)
    if chunks and not index.segments:
        raise DamageError(index.damage)
    return index


def _complete(index: Index, chunks: list[ChunkIndex], statistics: Statistics | None) -> bool:
    """Tell whether the summary says all that is needed; the specification makes it optional."""
    return (
        statistics is not None
        and statistics.chunk_count == len(chunks)
        and statistics.channel_count == len(index.channels)
        and statistics.schema_count == len(index.schemas)
        and statistics.message_count == sum(statistics.channel_message_counts.values())
        and (bool(chunks) or not statistics.message_count)
    )


def _add_chunk(index: Index, file: BinaryIO, size: int, chunk: ChunkIndex) -> None:
    """Add one chunk after a look at the place where it should be."""
    offset, length = chunk.chunk_start_offset, chunk.chunk_length
    if chunk.compression not in COMPRESSIONS:
        index.skip_chunk(offset, f"it is compressed with {chunk.compression!r}")
        return
    start_ns, end_ns = chunk.message_start_time, chunk.message_end_time
    found: object = None
    if isinstance(file, RemoteFile):  # a look at each would cost more than to read some of them
        found = (Opcode.CHUNK, length, start_ns, end_ns) if offset + length <= size else None
    elif offset + length <= size:
        file.seek(offset)
        head = file.read(_HEAD + 16)
        found = (
            head[0],
            int.from_bytes(head[1:9], "little") + _HEAD,
            int.from_bytes(head[9:17], "little"),
            int.from_bytes(head[17:25], "little"),
        )
    if found != (Opcode.CHUNK, length, start_ns, end_ns) or end_ns >= TIME_LIMIT_NS:
        index.skip_chunk(offset, "it is not what the index says")
        return
    channels = frozenset(chunk.message_index_offsets)
    index.segments.append(Segment(start_ns, end_ns, offset, length, channels))


def scan(file: BinaryIO, size: int) -> Index:
    """Read the file from its beginning to where it ends or stops to make sense."""
    return _Scan(file, size).run()


class _Scan:
    """One pass over all records of a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._index = Index()
        self._run: Segment | None = None

    def run(self) -> Index:
        """Read all records."""
        offset = len(MAGIC)
        while offset < self._size:
            self._file.seek(offset)
            head = read_head(self._file)
            if head is None or head[0] == 0:
                self._stop(offset)
                break
            opcode, length = head
            if opcode in (Opcode.DATA_END, Opcode.FOOTER):
                break
            whole = offset + _HEAD + length <= self._size
            if not whole and opcode != Opcode.CHUNK:
                self._stop(offset)
                break
            try:
                self._record(opcode, offset, min(length, self._size - offset - _HEAD), whole)
            except DamageError as error:
                if opcode != Opcode.CHUNK:
                    self._stop(offset, str(error))
                    break
                self._index.skip_chunk(offset, str(error))
            offset += _HEAD + length
        self._end_run()
        return self._index

    def _stop(self, offset: int, why: str = "") -> None:
        self._index.damage = f"nothing from byte {offset} on can be read"
        self._index.warnings.append(
            f"{self._index.damage}, {plural(self._size - offset, 'byte')} of {self._size}"
            + (f": {why}" if why else "")
        )

    def _record(self, opcode: int, offset: int, length: int, whole: bool) -> None:
        """Take note of the record whose body is next in the file."""
        if opcode == Opcode.CHUNK:
            self._end_run()
            self._chunk(offset, self._file.read(length), whole)
        elif opcode == Opcode.MESSAGE:
            head = self._file.read(22)
            if length < 22:
                raise DamageError("a message record is too short")
            self._extend_run(offset, length + _HEAD, head)
        elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
            self._declare(opcode, self._file.read(length))
        elif opcode == Opcode.METADATA:
            self._index.tables.append((offset, length + _HEAD))
        elif opcode == Opcode.ATTACHMENT:
            self._index.files.append((offset, length + _HEAD))
        elif opcode not in _RECORDS and opcode < 0x80:
            raise DamageError(f"there is no record of kind {opcode}")

    def _declare(self, opcode: int, body: bytes) -> None:
        record = parse(opcode, body)
        if isinstance(record, Schema):
            self._index.schemas[record.id] = record
        elif isinstance(record, Channel):
            self._index.channels[record.id] = record

    def _chunk(self, offset: int, body: bytes, whole: bool) -> None:
        head = chunk_head(body)
        records = unpack_chunk(body) if whole else unpack_cut_chunk(body)
        counts: Counter[int] = Counter()
        first, last = TIME_LIMIT_NS, 0
        for opcode, begin, end in iterate(records):
            if opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._declare(opcode, records[begin:end])
            elif opcode == Opcode.MESSAGE:
                time_ns = int.from_bytes(records[begin + 6 : begin + 14], "little")
                counts[int.from_bytes(records[begin : begin + 2], "little")] += 1
                first, last = min(first, time_ns), max(last, time_ns)
        if not whole:
            self._index.warnings.append(
                f"the last chunk is cut short: {plural(counts.total(), 'message')} of it "
                f"could be read, from {len(records)} of {head.size} bytes"
            )
        if not counts:
            return
        self._index.counts += counts
        length = len(body) + _HEAD
        self._index.segments.append(
            Segment(first, last, offset, length, frozenset(counts), not whole)
        )

    def _extend_run(self, offset: int, length: int, head: bytes) -> None:
        """Add a message that stands outside any chunk to the present run of such messages."""
        channel = int.from_bytes(head[:2], "little")
        time_ns = int.from_bytes(head[6:14], "little")
        self._index.counts[channel] += 1
        run = self._run
        if run is None or offset + length - run.offset > RUN_LENGTH:
            self._end_run()
            run = Segment(time_ns, time_ns, offset, 0, frozenset())
        self._run = Segment(
            min(run.start_ns, time_ns),
            max(run.end_ns, time_ns),
            run.offset,
            offset + length - run.offset,
            run.channels | {channel},
        )

    def _end_run(self) -> None:
        if self._run is not None:
            self._index.segments.append(self._run)
            self._run = None
