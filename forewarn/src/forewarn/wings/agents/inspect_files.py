"""Logs of Inspect in its own format, ``.eval``: a ZIP archive of JSON, by default packed by zstd.

Python's `zipfile` knows the list of members, but unpacks no zstd before Python 3.14.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from forewarn.errors import RecordingError
from forewarn.files.inputs import open_plain
from forewarn.recordings.traces import LONGEST, decoder
from forewarn.recordings.zstd import CutError, most, unpacked

BEGIN = b"PK\x03\x04"
ZSTD = 93
"""The method of compression, by the specification of ZIP (APPNOTE 6.3.9, 4.4.5)."""
_HEADER = struct.Struct("<26xHH")
"""The header before a member; at its end are the lengths of the name and of what follows it."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, CutError, EOFError, RuntimeError)


def is_inspect_file(path: Path, head: bytes) -> bool:
    """Tell whether a file is a log of Inspect in its own format."""
    return path.suffix == ".eval" and head.startswith(BEGIN)


def read_samples(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the samples of a log, in the order in which they were finished.

    Raises RecordingError if the file is damaged, or a sample is too long or no JSON object.
    """
    with open_plain(path) as file:
        samples = [one for one in _members(file, path) if one.filename.startswith("samples/")]
        size, limit = sum(one.file_size for one in samples), most(path.stat().st_size)
        if size > limit:
            raise RecordingError(f"unpacks to {size} bytes", accepted=f"up to {limit}", file=path)
        for one in samples:
            yield _sample(file, one, path)


def _members(file: BinaryIO, path: Path) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except (*_DAMAGE, OSError) as error:
        raise RecordingError(
            f"is cut short or damaged ({error})", accepted="a log that was closed", file=path
        ) from error


def _sample(file: BinaryIO, member: zipfile.ZipInfo, path: Path) -> dict[str, Any]:
    where = f"{path}:{member.filename}"
    if member.file_size > LONGEST:
        raise RecordingError(
            f"has {member.file_size} bytes", accepted=f"up to {LONGEST}", file=where
        )
    try:
        data = _unpacked(file, member)
    except (*_DAMAGE, OSError) as error:
        raise RecordingError(f"cannot be unpacked ({error})", file=where) from error
    try:
        sample = decoder.decode(data.decode())
    except (ValueError, RecursionError) as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise RecordingError(f"is no JSON ({problem})", file=where) from error
    if not isinstance(sample, dict) or not isinstance(sample.get("messages"), list):
        raise RecordingError("has no list of messages", accepted="a sample of Inspect", file=where)
    return sample


def _unpacked(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type != ZSTD:
        with zipfile.ZipFile(file) as archive, archive.open(member) as opened:
            return opened.read(LONGEST + 1)
    file.seek(member.header_offset)
    name, extra = _HEADER.unpack(file.read(_HEADER.size))
    file.seek(name + extra, io.SEEK_CUR)
    data = b"".join(unpacked(io.BytesIO(file.read(member.compress_size)), member.file_size))
    if zlib.crc32(data) != member.CRC:
        raise CutError("its checksum is another one")
    return data
