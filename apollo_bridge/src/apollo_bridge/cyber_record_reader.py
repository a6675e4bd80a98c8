"""The sound part of the package cyber-record, which reads the sections of a record.

Used are the messages and numbers of the sections (``record_pb2``), and the methods of ``Reader``
that read header, index and chunks. What cyber-record 0.1 has above them fails on records as they
are found in practice; tests/bridge/test_cyber_record.py shows each fault, and tells when one is
mended:

- ``Record(path)`` raises where a recorder was killed or the file is cut, and where two channels
  bring different files of one name, for all channels share one pool.
- ``read_messages`` keeps the order within chunks, which is not that of time, gives None on channels
  without descriptor, and no raw bytes.
- The size of a section is taken as it stands: a damaged one asks for gigabytes.
- ``record_to_mcap`` does not write the schemas that Foxglove expects.
- Importing it defines ``cyber/proto/record.proto`` for the whole process, which keeps Apollo's own
  Python packages out, and is kept out by them; and it needs protobuf 5.29. It is therefore imported
  when the first record is read. Where that fails, records are walked section by section with the
  bridge's own layouts of the same messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple

from apollo_bridge.messages import DAMAGE


class Entry(NamedTuple):
    """A chunk as the index of a file has it: its times, and where its body's section begins."""

    start_ns: int
    end_ns: int
    position: int
    size: int


class Contents(NamedTuple):
    """What the index of a whole file says; channels are messages with name, type and descriptor."""

    channels: tuple[Any, ...]
    chunks: tuple[Entry, ...]


class _Sections:
    """What is added to cyber-record's `Reader`, whose methods it calls.

    It reads no section beyond the end of the file, and believes an index only if it fits.
    """

    kinds: Any
    section: Any
    failure: type[Exception]
    _read: Callable[[int], bytes]
    _skip_size: Callable[[int], object]
    _cur_position: Callable[[], int]
    _set_position: Callable[[int], object]
    read_header: Callable[[], Any]
    read_index: Callable[[Any], Any]

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(SimpleNamespace(_file=file))  # type: ignore[call-arg]
        self.size = os.fstat(file.fileno()).st_size

    def _read_section(self, section: Any) -> None:
        section.type = int.from_bytes(self._read(4), "little")
        self._skip_size(4)
        section.size = int.from_bytes(self._read(8), "little")
        if section.size > self.size - self._cur_position():
            raise self.failure(f"a section of {section.size} bytes exceeds the file")

    def contents(self) -> Contents | None:
        """Return what the index says; None if there is none, or it does not fit the file."""
        try:
            header = self.read_header()
            index = self.read_index(header) if header and header.is_complete else None
            if index is None or self._cur_position() != self.size:
                return None
            found = self._believed(index.indexes)
        except (self.failure, *DAMAGE, ValueError, OSError):
            return None
        number = sum(channel.message_number for channel in found.channels)
        promised = (header.chunk_number, header.message_number)
        described = all(channel.proto_desc for channel in found.channels)
        return found if (len(found.chunks), number) == promised and described else None

    def _believed(self, entries: Any) -> Contents:
        kinds = self.kinds
        parts: dict[int, list[Any]] = {kind: [] for kind in kinds.SectionType.values()}
        for entry in entries:
            parts[entry.type].append(entry)
        chunks = []
        for head, body in zip(
            parts[kinds.SECTION_CHUNK_HEADER], parts[kinds.SECTION_CHUNK_BODY], strict=True
        ):
            times, size = head.chunk_header_cache, self._size_of_body(body.position)
            chunks.append(Entry(times.begin_time, times.end_time, body.position, size))
        channels = [part.channel_cache for part in parts[kinds.SECTION_CHANNEL]]
        return Contents(tuple(channels), tuple(chunks))

    def _size_of_body(self, position: int) -> int:
        self._set_position(position)
        section = self.section()
        self._read_section(section)
        if section.type != self.kinds.SECTION_CHUNK_BODY:
            raise self.failure(f"no chunk begins at byte {position}")
        return int(section.size)


@lru_cache(maxsize=1)
def load() -> type[Any] | None:
    """Return a reader of sections built on that of cyber-record; None where it cannot be imported.

    It is made with an open file, and beside the methods of cyber-record's `Reader` has `contents`.
    """
    try:
        from cyber_record.common import Section
        from cyber_record.cyber.proto import record_pb2
        from cyber_record.reader import Reader
        from cyber_record.record_exception import RecordException
    except Exception:  # what protobuf raises differs from version to version
        return None
    parts = {"kinds": record_pb2, "section": Section, "failure": RecordException}
    return type("SectionReader", (_Sections, Reader), parts)
