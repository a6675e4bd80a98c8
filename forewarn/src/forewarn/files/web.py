"""Answers of web servers, bounded in size and in time: one may go on for ever."""

from __future__ import annotations

import errno
import re
import time
from typing import Any

import aiohttp

LARGEST = 1 << 28
"""Bytes of an answer that is kept in memory: a listing, or a file that is read as a whole."""
LARGEST_RANGE = 1 << 30
GRACE, SLOWEST = 60.0, 10_000
"""Seconds after which so many bytes a second have to have come."""
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Limit:
    """Counts bytes as they come.

    `most`: how many may come.
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self._number, self._begun = 0, time.monotonic()

    def take(self, number: int) -> None:
        """Take in that bytes have come; raises OSError if they are too many, or too slow."""
        self._number += number
        if self._number > self.most:
            raise OSError(errno.EFBIG, f"the server sends more than {self.most:.0f} bytes")
        if time.monotonic() - self._begun > GRACE + self._number / SLOWEST:
            raise OSError(errno.ETIMEDOUT, f"the server sends less than {SLOWEST} bytes a second")


class _Content:
    """The stream of an answer, read with a limit: of size only where all of it is kept."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._most, self._pace = stream, most, Limit(float("inf"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def read(self, n: int = -1) -> bytes:
        if n >= 0:
            piece: bytes = await self._stream.read(n)
            self._pace.take(len(piece))
            return piece
        limit, pieces = Limit(self._most), list[bytes]()
        while piece := await self._stream.readany():
            limit.take(len(piece))
            pieces.append(piece)
        return b"".join(pieces)


class BoundedResponse(aiohttp.ClientResponse):  # type: ignore[misc]
    """An answer whose content has a limit: as much as was asked for, if that is a range."""

    async def start(self, connection: Any) -> Any:
        """Begin to read it."""
        started = await super().start(connection)
        asked = _RANGE.fullmatch(self.request_info.headers.get("Range", ""))
        most = LARGEST
        if asked and self.status == 206:
            most = min(int(asked[2]) - int(asked[1]) + 1, LARGEST_RANGE)
        self.content: Any = _Content(self.content, most)
        return started


async def client(**options: Any) -> Any:
    """Return a client for fsspec: no limit for the whole, but for each pause."""
    patience = aiohttp.ClientTimeout(total=None, sock_connect=GRACE / 2, sock_read=GRACE)
    # The user's fsspec may be set up with more, such as headers.
    return aiohttp.ClientSession(
        **{"timeout": patience, **options, "response_class": BoundedResponse}
    )
