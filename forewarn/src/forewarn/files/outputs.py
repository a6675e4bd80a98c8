"""Write outputs: whole or not at all, and never in the place of something else.

A plain file is replaced once all is written, and keeps owner and mode; a symbolic link stays, and
the file it leads to is replaced. What is not a plain file (a device, a FIFO, a pipe, a descriptor
such as ``/dev/stdout``) is written straight into: to replace ``/dev/null`` by a file would break
the machine for all others.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forewarn.errors import InputError
from forewarn.files.remote import RemotePath

_LINKS = 40  # as many as Linux follows
_NAME = 100  # a draft's name is longer than its file's, which may be as long as names can be
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class OutputFile:
    """A text that is written piece by piece; leaving the block puts it where it belongs.

    If the block ends with an exception, a plain file stays as it was. A plain file is written in
    place, and not replaced, only where nothing else keeps its owner: in a folder that this user may
    not write to, or if it belongs to someone else; and where it is a mount of its own.

    `path`: where to write.
    `error`: what to raise if that fails.
    Raises InputError if it cannot be written; the file that was there is as before.
    """

    def __init__(self, path: Path | str, error: type[InputError] = InputError) -> None:
        self.path = Path(path)
        self._error = error
        with self._errors_named():
            descriptor, self._draft = _open(self.path)
        # Names of files may be no text: what cannot be written in UTF-8 is spelled out.
        self._stream = os.fdopen(
            descriptor, "w", encoding="utf-8", errors="backslashreplace", newline=""
        )

    def write(self, text: str) -> None:
        """Append to the text; raises InputError."""
        with self._errors_named():
            self._stream.write(text)

    def write_bytes(self, data: bytes) -> None:
        """Append bytes; raises InputError."""
        with self._errors_named():
            self._stream.flush()
            self._stream.buffer.write(data)

    def __enter__(self) -> OutputFile:
        """Return the file."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        """Put the text in its place, or drop it after an exception."""
        try:
            if kind is None:
                with self._errors_named():
                    self._stream.close()
                    if self._draft is not None:
                        _replace(self._draft, Path(os.path.realpath(self.path)))
        finally:
            with suppress(OSError):
                self._stream.close()
            if self._draft is not None:
                with suppress(OSError):
                    self._draft.unlink(missing_ok=True)

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise self._error(f"cannot be written: {reason}", file=self.path) from error


def write_output(path: Path | str, text: str, error: type[InputError] = InputError) -> None:
    """Write a text as `OutputFile` does; raises InputError, or what `error` says."""
    with OutputFile(path, error) as file:
        file.write(text)


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes as `OutputFile` does, or to a remote file; raises InputError."""
    if isinstance(path, RemotePath):
        try:
            path.write_bytes(data)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=path) from error
        return
    with OutputFile(path) as file:
        file.write_bytes(data)


def create_output(path: Path | str) -> io.RawIOBase:
    """Open a new file, or what is no plain file, to write bytes as they come.

    Raises FileExistsError if there is a plain file, a folder or a link that leads nowhere.
    Raises OSError if it cannot be opened; so does a FIFO without a reader, for it would be waited
    for.
    """
    path = Path(path)
    opened = _descriptor(path)
    if opened is not None:
        descriptor = _duplicate(opened)
    elif not _is_special(path):
        descriptor = os.open(path, _NEW, 0o666)
    else:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise OSError(errno.ENXIO, "no process reads it") from error
            raise
        os.set_blocking(descriptor, True)
    return io.FileIO(descriptor, "wb")


def check_output(*paths: Path | None) -> None:
    """Refuse what cannot be written before the work, not after it; raises InputError."""
    for path in paths:
        if path is None or isinstance(path, RemotePath) or _descriptor(path) is not None:
            continue
        if path.is_dir():
            raise InputError("is a folder", file=path, accepted="the name of a file to write")
        if path.exists():
            if path.is_block_device():
                raise InputError("is a disk", file=path, accepted="the name of a file to write")
            if not os.access(path, os.W_OK):
                accepted = "a file of yours"
                raise InputError("may not be written to", file=path, accepted=accepted)
            continue
        folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
        if not folder.is_dir():
            accepted = "a file in a folder that exists"
            raise InputError(f"there is no folder {folder}", file=path, accepted=accepted)
        if not os.access(folder, os.W_OK | os.X_OK):
            accepted = "a file in a folder of yours"
            raise InputError(f"{folder} may not be written to", file=path, accepted=accepted)


def is_stdout(path: Path | None) -> bool:
    """Return whether a path stands for this process's standard output, as /dev/stdout does."""
    return path is not None and _descriptor(path) == 1


def _open(path: Path) -> tuple[int, Path | None]:
    """Return a descriptor to write to, and the draft behind it if that is to replace the file."""
    opened = _descriptor(path)
    if opened is not None:
        return _duplicate(opened), None
    if _is_special(path):
        return os.open(path, os.O_WRONLY | os.O_NOCTTY), None
    target = Path(os.path.realpath(path))
    try:
        found = target.stat()
    except FileNotFoundError:
        return _draft(target)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        descriptor, draft = _draft(target)
    except PermissionError:
        return os.open(target, os.O_WRONLY | os.O_TRUNC), None
    try:
        _take_after(descriptor, found)
    except PermissionError:
        os.close(descriptor)
        draft.unlink()
        return os.open(target, os.O_WRONLY | os.O_TRUNC), None
    return descriptor, draft


def _is_special(path: Path) -> bool:
    """Return whether something is there that is neither a plain file nor a folder."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISBLK(mode):
        raise PermissionError(errno.EACCES, "is a disk")
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _draft(target: Path) -> tuple[int, Path]:
    # The same name for each life of a process: what a killed one left is found and used again.
    name = os.fsdecode(os.fsencode(target.name)[:_NAME])
    draft = target.with_name(f".{name}.{threading.get_native_id()}.tmp")
    draft.unlink(missing_ok=True)
    return os.open(draft, _NEW, 0o666), draft


def _take_after(descriptor: int, found: os.stat_result) -> None:
    """Give a draft the owner and mode of the file that it replaces."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode))


def _replace(draft: Path, target: Path) -> None:
    try:
        draft.replace(target)
    except OSError as error:
        if error.errno != errno.EBUSY:  # a mount of its own, as containers have them
            raise
        shutil.copyfile(draft, target)


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that a path such as /dev/stdout stands for."""
    if isinstance(path, RemotePath):
        return None
    for _ in range(_LINKS):
        folder = os.path.realpath(path.parent)
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder) and path.name.isdigit():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, os.readlink(path))
    return None


def _duplicate(descriptor: int) -> int:
    if descriptor == 1:
        sys.stdout.flush()
    return os.dup(descriptor)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep others who ask so from a file until the block ends.

    Where the file system has no locks, nothing keeps others from it.

    Raises InputError if another process has it.
    Raises OSError if the file cannot be opened.
    """
    while True:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    "another process adds to it, and one of both would be lost",
                    file=path,
                    accepted="one after the other",
                ) from None
            except OSError:
                pass
            # The one before may have replaced it between the two lines.
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return
