"""Files in object stores and on web servers, by fsspec, which is imported here and only when asked.

A `RemotePath` is a path whose text is a URL; readers use it as any other path. Large
files are read by ranges; what was fetched is counted.
"""

from __future__ import annotations

import errno
import glob
import io
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PosixPath
from typing import Any

from forewarn.errors import InputError

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
MAGIC = frozenset("*?[")
SECRETS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:[^/@\s'\"]*@)?(?P<path>[^?\s'\"]*)(?P<query>\?[^\s'\"]*)?"
)
WEB = ("http://", "https://")
LEAST = 1 << 12
"""Bytes that are fetched at a time at least, and from the end of a file four times as many."""
AHEAD = 8
AHEAD_BYTES = 8 << 20
"""How many of the ranges that will be wanted are fetched at the same time."""
WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oci", "oss", "memory"})
"""Stores in which a file appears when it is complete."""
CONTENT = ("ETag", "etag", "md5Hash", "content_md5", "crc32c")
TIMES = ("LastModified", "last_modified", "mtime", "updated", "created")

_lock = threading.Lock()
_fetched = 0


def fetched() -> int:
    """Return how many bytes this process has fetched so far."""
    return _fetched


def _count(number: int) -> None:
    global _fetched
    with _lock:
        _fetched += number


def without_secrets(text: str) -> str:
    """Return a text whose URLs have no user and password, nor a query, which may be a signature."""

    def plain(found: re.Match[str]) -> str:
        scheme, query = found["scheme"], found["query"] or ""
        return f"{scheme}{found['path']}{'?...' if query and scheme in WEB else query}"

    return SECRETS.sub(plain, text)


class RemotePath(PosixPath):
    """A path that is a URL, such as ``s3://bucket/run.mcap``.

    Its text, its name and the errors of its methods have no secret of the URL. These errors are
    OSErrors, or InputErrors if what reads such URLs is not installed.
    """

    _details: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        """Return the URL without its secrets, for people and files."""
        return without_secrets(self.url)

    @property
    def url(self) -> str:
        """The whole URL, for those who fetch."""
        scheme, _, rest = super().__str__().partition(":/")
        return f"{scheme}://{rest}" if rest else super().__str__()

    @property
    def name(self) -> str:
        """The last part, on the web without the query."""
        return super().name.partition("?")[0] if self.url.startswith(WEB) else super().name

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.url, self._details)

    @contextmanager
    def _store(self) -> Iterator[tuple[Any, str]]:
        """Give the file system and the path in it, and make OSErrors of what goes wrong."""
        try:
            from fsspec.core import url_to_fs

            options = {}
            if self.url.startswith(WEB):
                from forewarn.files.web import client

                options["get_client"] = client
            system, path = url_to_fs(self.url, **options)
        except (ImportError, ValueError) as error:
            raise InputError(
                f"cannot be read here: {without_secrets(str(error))}",
                file=str(self),
                accepted="pip install './forewarn[fleet]', and what fsspec needs for such a URL",
            ) from error
        try:
            yield system, path
        except OSError as error:
            status = _status_of(error)
            if status not in (None, 404):
                number = errno.EACCES if status in (401, 403) else errno.EIO
                raise OSError(number, f"the server answers HTTP {status}") from error
            lacks = isinstance(error, FileNotFoundError)
            number = error.errno or (errno.ENOENT if lacks else errno.EIO)
            problem = without_secrets(error.strerror or str(error)) or "not found"
            raise OSError(number, problem) from error
        except Exception as error:  # each store has errors of its own
            problem = without_secrets(f"{type(error).__name__}: {error}")
            raise OSError(errno.EIO, problem) from error

    def details(self) -> Mapping[str, Any]:
        """Return what the store says of the file; asked once."""
        if self._details is None:
            with self._store() as (system, path):
                self._details = dict(system.info(path))
        return self._details

    def identity(self) -> str:
        """Return a text that changes with the content: the store's own checksum, or else its time.

        Without a checksum the URL is part of it: then no two files are the same.
        """
        details = self.details()
        size = details.get("size")
        for key in CONTENT:
            if details.get(key):
                return f"{size} {key.lower()} {details[key]}"
        times = [str(details[key]) for key in TIMES if details.get(key)]
        return f"{self} {size} {' '.join(times)}"

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return kind and size; the rest is 0."""
        details = self.details()
        kind = stat.S_IFDIR if details["type"] == "directory" else stat.S_IFREG
        return os.stat_result((kind, 0, 0, 1, 0, 0, int(details.get("size") or 0), 0, 0, 0))

    def exists(self, **_: Any) -> bool:
        """Tell whether there is a file or a folder."""
        try:
            self.details()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, **_: Any) -> bool:
        """Tell whether it is a folder."""
        return self.exists() and self.details()["type"] == "directory"

    def is_file(self, **_: Any) -> bool:
        """Tell whether it is a file."""
        return self.exists() and self.details()["type"] == "file"

    def iterdir(self) -> Iterator[RemotePath]:  # type: ignore[override]
        """Yield what is in the folder."""
        with self._store() as (system, path):
            found = system.ls(path, detail=True)
            here = str(system._strip_protocol(path)).rstrip("/")
            entries = [entry for entry in found if entry["name"].rstrip("/") != here]
            names = [system.unstrip_protocol(entry["name"]) for entry in entries]
        yield from map(_again, names, entries)

    def matches(self) -> list[RemotePath]:
        """Return the files that a pattern stands for, sorted."""
        with self._store() as (system, path):
            found = system.glob(path, detail=True)
            return [_again(system.unstrip_protocol(name), found[name]) for name in sorted(found)]

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Make the folder, where folders are made at all."""
        with self._store() as (system, path):
            if not self._appears_whole(system):
                system.makedirs(path, exist_ok=True)

    def read_bytes(self) -> bytes:
        """Return all that is in the file."""
        with self._store() as (system, path):
            data: bytes = system.cat_file(path)
        _count(len(data))
        return data

    def write_bytes(self, data: Any) -> int:
        """Write the file as a whole: no reader ever sees a part of it."""
        self._put(lambda system, path: system.pipe_file(path, bytes(data)))
        return len(data)

    def copy_from(self, source: Path) -> None:
        """Write the file as a copy of one on this machine, as a whole."""
        self._put(lambda system, path: system.put_file(str(source), path))

    def _put(self, write: Callable[[Any, str], object]) -> None:
        with self._store() as (system, path):
            if self._appears_whole(system):
                write(system, path)
            else:
                draft = f"{path}.{os.uname().nodename}-{threading.get_native_id()}.tmp"
                write(system, draft)
                system.mv(draft, path)

    def copy_to(self, target: Path, most: int) -> None:
        """Copy the file to this machine; raises OSError if it has more than `most` bytes."""

        def check(size: int | None, value: int, **_: Any) -> None:
            if value > most:
                raise OSError(errno.EFBIG, f"it has more than the {most} bytes that it announced")

        with self._store() as (system, path):
            from fsspec.callbacks import Callback

            system.get_file(path, str(target), callback=Callback(hooks={"most": check}))
        _count(target.stat().st_size)

    def ranges(self, wanted: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes from the first to before the second of each pair, fetched at once."""
        with self._store() as (system, path):
            begins, ends = [begin for begin, _ in wanted], [end for _, end in wanted]
            found = system.cat_ranges([path] * len(wanted), begins, ends, on_error="raise")
        _count(sum(map(len, found)))
        return [bytes(part) for part in found]

    @staticmethod
    def _appears_whole(system: Any) -> bool:
        protocols = system.protocol
        return bool(WHOLE & ({protocols} if isinstance(protocols, str) else {*protocols}))


def _status_of(error: BaseException | None) -> int | None:
    """Return the status of HTTP that an error, or one that it follows from, tells."""
    while error is not None:
        status = getattr(error, "status", None)
        if isinstance(status, int):
            return status
        error = error.__cause__ or error.__context__
    return None


def _again(url: str, details: Mapping[str, Any] | None) -> RemotePath:
    path = RemotePath(url)
    if details and (details["type"] == "directory" or details.get("size") is not None):
        path._details = details  # a web server's listing has no sizes: then it is asked again
    return path


class RemoteFile(io.RawIOBase):
    """A file that is read by ranges of a URL."""

    def __init__(self, path: RemotePath) -> None:
        if path.details().get("size") is None:
            raise OSError(errno.EIO, "its server does not tell how long it is")
        self._path = path
        self._size = path.stat().st_size
        self._position = 0
        self._block: tuple[int, bytes] = (0, b"")
        self._planned: list[tuple[int, int]] = []
        self._ready: dict[int, bytes] = {}

    def plan(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Say which ranges (offset, length) will be read, in which order: several come at once."""
        planned = (one for one in ranges if not self._has(one[0], sum(one)))
        self._planned, self._ready = list(planned), {}

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, fewer at the end of the file only."""
        begin = self._position
        end = self._size if size is None or size < 0 else min(begin + size, self._size)
        if begin >= end:
            return b""
        data = self._planned_range(begin, end - begin) or self._from_block(begin, end)
        self._position = begin + len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _planned_range(self, begin: int, length: int) -> bytes | None:
        if begin not in self._ready:
            if (begin, length) not in self._planned:
                return None
            # What is planned before it was left out, or has been read.
            del self._planned[: self._planned.index((begin, length))]
            wanted, total = list[tuple[int, int]](), 0
            while self._planned and len(wanted) < AHEAD and (not wanted or total < AHEAD_BYTES):
                wanted.append(self._planned.pop(0))
                total += wanted[-1][1]
            ends = [(first, min(first + number, self._size)) for first, number in wanted]
            found = self._path.ranges(ends)
            self._ready = {first: data for (first, _), data in zip(wanted, found, strict=True)}
        data = self._ready.pop(begin)
        return data if len(data) == length else None

    def _has(self, begin: int, end: int) -> bool:
        first, data = self._block
        return first <= begin <= end <= first + len(data)

    def _from_block(self, begin: int, end: int) -> bytes:
        first, data = self._block
        if not self._has(begin, end):
            first, last = begin, min(max(end, begin + LEAST), self._size)
            if last == self._size:  # an index, most likely: its beginning is asked for next
                first = min(begin, max(0, self._size - 4 * LEAST))
            (data,) = self._path.ranges([(first, last)])
            self._block = (first, data)
        return data[begin - first : end - first]


def address(text: Path | str) -> Path:
    """Return the path that a text means, which may be a URL.

    Raises InputError if the URL has an empty part, which paths cannot have.
    """
    if isinstance(text, Path):
        return text
    if not URL.match(text):
        return Path(text)
    scheme, _, rest = text.partition("://")
    if scheme == "file":
        return Path(rest)
    if "//" in rest or not rest:
        raise InputError(
            "the URL has an empty part",
            file=without_secrets(text),
            accepted="a URL such as s3://bucket/run.mcap",
        )
    return RemotePath(text)


def expanded(path: Path) -> list[Path]:
    """Return the paths that a pattern with ``*``, ``?`` or ``[...]`` stands for, sorted.

    A path that is no pattern, or exists, stands for itself.
    """
    if isinstance(path, RemotePath):  # on the web, a query follows "?"
        asked = path.url.partition("?")[0] if path.url.startswith(WEB) else path.url
        return list(path.matches()) if MAGIC & {*asked} else [path]
    if not MAGIC & {*str(path)}:
        return [path]
    return [path] if path.exists() else sorted(map(Path, glob.glob(str(path), recursive=True)))
