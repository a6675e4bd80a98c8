"""Read zstd files that may be cut short or damaged, as far as they go."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

UNPACKED_LIMIT = 1 << 31
"""Bytes that anything packed may become: a few thousand bytes can stand for more than a disk."""
_RATIO = 100  # recordings of sensors shrink to a tenth; much larger ones than the limit are in use
_BLOCK = 1 << 18
_PIECE = 1 << 11  # zstd makes at most 64 MB of it


class CutError(Exception):
    """A compressed file ends too early or is damaged; the text says which."""


def most(packed: int) -> int:
    """Return how many bytes a file of `packed` bytes may become."""
    return max(UNPACKED_LIMIT, _RATIO * packed)


def unpacked(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the contents of a zstd file of one or more frames, in pieces of 64 MB at most.

    Raises CutError at damage, and after the last piece that keeps within `most` bytes.
    """
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    left = most
    try:
        for block in _pieces(file):
            while block:
                if unpacker.eof:
                    unpacker = zstandard.ZstdDecompressor().decompressobj()
                piece = unpacker.decompress(block)
                left -= len(piece)
                if left < 0:
                    raise CutError(f"it unpacks to more than {most} bytes")
                yield piece
                block = unpacker.unused_data if unpacker.eof else b""
    except zstandard.ZstdError as error:
        raise CutError(f"it is damaged ({error})") from error
    if not unpacker.eof:
        raise CutError("it is cut short")


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        for first in range(0, len(block), _PIECE):
            yield block[first : first + _PIECE]


class ZstdFile(io.RawIOBase):
    """A zstd file as a stream; reading past its damage raises CutError."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._blocks = unpacked(file, most)
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
