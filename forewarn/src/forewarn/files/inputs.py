"""Input files: opened only where they are plain ones, for others may never end or never begin."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading.

    Raises
    ------
    OSError
        If it cannot be opened, or is a folder, a pipe, a socket or a device: reading a pipe
        would wait for whoever writes into it, and a device may have no end.
    """
    # Without O_NONBLOCK, opening a pipe waits as well; for plain files it means nothing.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFREG:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'no file')}, no plain file", str(path))
