"""The records of an MCAP file, read straight from bytes.

The layout is the MCAP specification's (https://mcap.dev/spec). What lies outside the messages
is parsed by the `mcap` package; the walk over the messages of a chunk is ours, because it is the
innermost loop of replay and learning (three times the rate of `rosbags`' reader, see
benchmarks/reading.py), and because it has to get along with files that end anywhere.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import BinaryIO, NamedTuple

import lz4.frame  # type: ignore[import-untyped]
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    AttachmentIndex,
    Channel,
    ChunkIndex,
    Footer,
    Header,
    McapRecord,
    MessageIndex,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)

from forewarn.recordings.interface import TIME_LIMIT_NS, Row
from forewarn.recordings.zstd import UNPACKED_LIMIT

MAGIC = b"\x89MCAP0\r\n"
FOOTER_LENGTH = 9 + 20
CHUNK_LIMIT = UNPACKED_LIMIT
"""Largest chunk that is unpacked: a damaged length must not take all memory."""
COMPRESSIONS = ("zstd", "lz4", "")

_HEAD = struct.Struct("<BQ").unpack_from
_MESSAGE = struct.Struct("<BQHIQQ").unpack_from
_CHUNK = struct.Struct("<QQQII").unpack_from
_LENGTH = struct.Struct("<Q").unpack_from
_OWN_HEAD = 9
_PIECE = 1 << 11
_MESSAGE_HEAD = 31

_PARSERS = {
    Opcode.HEADER: Header.read,
    Opcode.FOOTER: Footer.read,
    Opcode.SCHEMA: Schema.read,
    Opcode.CHANNEL: Channel.read,
    Opcode.MESSAGE_INDEX: MessageIndex.read,
    Opcode.CHUNK_INDEX: ChunkIndex.read,
    Opcode.ATTACHMENT: Attachment.read,
    Opcode.ATTACHMENT_INDEX: AttachmentIndex.read,
    Opcode.STATISTICS: Statistics.read,
    Opcode.METADATA: Metadata.read,
    Opcode.METADATA_INDEX: MetadataIndex.read,
}


class DamageError(Exception):
    """A record is not what the specification says; the text says in which way."""


class ChunkHead(NamedTuple):
    """What precedes the compressed records of a chunk."""

    start_ns: int
    end_ns: int
    size: int
    crc: int
    compression: str
    body: int


class Walk(NamedTuple):
    """The messages found in a stretch of records."""

    rows: list[Row]  # time, topic and payload of each message on a wanted channel, in file order
    ordered: bool  # whether their times never go back
    end: int  # where the last whole record ends


def parse(opcode: int, body: bytes) -> McapRecord | None:
    """Return the record of kind `opcode`, or None for kinds that are of no interest here."""
    parser = _PARSERS.get(opcode)  # type: ignore[call-overload]
    if parser is None:
        return None
    try:
        record: McapRecord = parser(ReadDataStream(BytesIO(body)))
    except (McapError, struct.error, ValueError, OverflowError, MemoryError) as error:
        raise DamageError(f"its {Opcode(opcode).name} record is damaged ({error})") from error
    return record


def iterate(buffer: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, begin and end of the body of each whole record in `buffer`."""
    position, end = 0, len(buffer)
    while position + _OWN_HEAD <= end:
        opcode, length = _HEAD(buffer, position)
        begin = position + _OWN_HEAD
        position = begin + length
        if position > end:
            return
        yield opcode, begin, position


def read_head(file: BinaryIO) -> tuple[int, int] | None:
    """Return opcode and length of the record at the file's position; None at the end."""
    head = file.read(_OWN_HEAD)
    if len(head) < _OWN_HEAD:
        return None
    opcode, length = _HEAD(head)
    return opcode, length


def chunk_head(body: bytes) -> ChunkHead:
    """Parse the head of a chunk record, of which `body` holds at least the beginning."""
    try:
        start_ns, end_ns, size, crc, length = _CHUNK(body)
        compression = body[32 : 32 + length].decode()
        _LENGTH(body, 32 + length)
    except (struct.error, UnicodeDecodeError) as error:
        raise DamageError("its head is damaged") from error
    if size > CHUNK_LIMIT:
        raise DamageError(f"it claims to hold {size} bytes; at most {CHUNK_LIMIT} are accepted")
    if start_ns >= TIME_LIMIT_NS or end_ns >= TIME_LIMIT_NS:
        raise DamageError("its log times lie beyond the year 2262")
    if compression not in COMPRESSIONS:
        raise DamageError(
            f"it is compressed with {compression!r}; zstd, lz4 or no compression is accepted"
        )
    return ChunkHead(start_ns, end_ns, size, crc, compression, 40 + length)


def unpack_chunk(body: bytes) -> bytes:
    """Return the records in a whole chunk; raises DamageError if size or checksum are wrong."""
    head = chunk_head(body)
    stored = body[head.body :]
    try:
        if head.compression == "zstd":
            if zstandard.frame_content_size(stored) not in (-1, head.size):
                raise DamageError("its size differs from the declared one")
            records = zstandard.ZstdDecompressor().decompress(stored, max_output_size=head.size)
        elif head.compression == "lz4":
            unpacker = lz4.frame.LZ4FrameDecompressor()
            records = unpacker.decompress(stored, max_length=head.size + 1)
        else:
            records = stored
    except (zstandard.ZstdError, RuntimeError, ValueError, EOFError, MemoryError) as error:
        raise DamageError(f"it cannot be unpacked ({error})") from error
    if len(records) != head.size:
        raise DamageError(f"it holds {len(records)} bytes where {head.size} were declared")
    if head.crc and zlib.crc32(records) != head.crc:
        raise DamageError("its checksum is wrong")
    return bytes(records)


def unpack_cut_chunk(body: bytes) -> bytes:
    """Return the records at the beginning of a chunk whose end is missing or damaged."""
    head = chunk_head(body)
    stored = memoryview(body)[head.body :]
    if not head.compression:
        return bytes(stored)
    unpack = (
        zstandard.ZstdDecompressor().decompressobj().decompress
        if head.compression == "zstd"
        else lz4.frame.LZ4FrameDecompressor().decompress
    )
    records = bytearray()
    try:
        for first in range(0, len(stored), _PIECE):
            records += unpack(bytes(stored[first : first + _PIECE]))
            if len(records) >= head.size:
                break
    except (zstandard.ZstdError, RuntimeError, ValueError, EOFError, MemoryError):
        pass  # what came before the damage is what the chunk holds
    return bytes(records[: head.size])


def walk(buffer: bytes, wanted: Mapping[int, str]) -> Walk:
    """Collect the messages of the `wanted` channels (id to topic) from the records in `buffer`."""
    rows: list[Row] = []
    append, topic_of = rows.append, wanted.get
    ordered, latest, position, end = True, 0, 0, len(buffer)
    while True:
        try:
            while position < end:
                opcode, length, channel, _, time_ns, _ = _MESSAGE(buffer, position)
                after = position + _OWN_HEAD + length
                if after > end:
                    return Walk(rows, ordered, position)
                if opcode == 5:
                    topic = topic_of(channel)
                    if topic is not None:
                        append((time_ns, topic, buffer[position + _MESSAGE_HEAD : after]))
                        if time_ns < latest:
                            ordered = False
                        latest = time_ns
                position = after
        except struct.error:
            # Fewer bytes are left than a message takes: a short record of another kind, or the end.
            if end - position >= _OWN_HEAD:
                opcode, length = _HEAD(buffer, position)
                if opcode != 5 and position + _OWN_HEAD + length <= end:
                    position += _OWN_HEAD + length
                    continue
        return Walk(rows, ordered, position)
