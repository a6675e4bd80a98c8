"""Read zstd files that may be cut short or damaged, as far as they go."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

_BLOCK = 1 << 18


class CutError(Exception):
    """A compressed file ends too early or is damaged; the text says which."""


def unpacked(file: BinaryIO) -> Iterator[bytes]:
    """Yield the contents of a zstd file of one or more frames; raises CutError at damage."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    try:
        while block := file.read(_BLOCK):
            while block:
                if unpacker.eof:
                    unpacker = zstandard.ZstdDecompressor().decompressobj()
                yield unpacker.decompress(block)
                block = unpacker.unused_data if unpacker.eof else b""
    except zstandard.ZstdError as error:
        raise CutError(f"it is damaged ({error})") from error
    if not unpacker.eof:
        raise CutError("it is cut short")


class ZstdFile(io.RawIOBase):
    """A zstd file as a stream; reading past its damage raises CutError."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._blocks = unpacked(file)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill `buffer` with what comes next; return the number of bytes, 0 at the end."""
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = memoryview(block)
        number = min(len(buffer), len(self._left))
        buffer[:number] = self._left[:number]
        self._left = self._left[number:]
        return number

    def close(self) -> None:
        """Close the file below as well."""
        self._file.close()
        super().close()
