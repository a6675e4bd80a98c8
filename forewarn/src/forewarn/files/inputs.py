"""Input files: opened only where they are plain ones, for others may never end or never begin."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

from forewarn.files.remote import RemoteFile, RemotePath

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class NotPlainFileError(OSError):
    """A pipe, a socket or a device stands where a plain file is wanted."""


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading; a remote one is read by ranges.

    Raises NotPlainFileError if it is a pipe, a socket or a device: reading a pipe would wait for
    its writer, and a device may have no end.
    Raises OSError if it is a folder, or cannot be opened.
    """
    if isinstance(path, RemotePath):
        _check(path.stat(), path)
        return cast(BinaryIO, RemoteFile(path))
    _check(os.stat(path), path)  # opening some devices does things
    # Without O_NONBLOCK, opening a pipe waits as well; for plain files it means nothing.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(os.fstat(descriptor), path)  # something else may have taken its place
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check(found: os.stat_result, path: Path) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "no file")
        raise NotPlainFileError(errno.EINVAL, f"it is {what}, no plain file", str(path))
