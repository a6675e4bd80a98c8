"""One process at a time, where a file is read and then replaced by what it becomes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forewarn.errors import InputError


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
