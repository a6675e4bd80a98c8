"""Recordings that cannot be read by ranges are copied to this machine while they are open.

ROS 1 bags, SQLite bags and traces are. The copies of one process take at most a quota.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from forewarn.errors import InputError, RecordingError
from forewarn.files.remote import RemotePath
from forewarn.recordings.interface import Recording, WrappedRecording

QUOTA = "FOREWARN_STAGING_QUOTA"
DEFAULT_GB = 20.0

_lock = threading.Lock()
_taken = 0


class Staged:
    """Copies of remote files, in a folder of their own until it is closed."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="forewarn-staged-")
        self._bytes = 0

    def copy(self, path: RemotePath) -> Path:
        """Return a copy of a file; raises RecordingError if it exceeds the quota."""
        global _taken
        size, quota = path.stat().st_size, _quota()
        with _lock:
            if _taken + size > quota:
                raise RecordingError(
                    f"has {size / 1e9:.3g} GB that must be copied to this machine to be read, and "
                    f"{max(0.0, quota - _taken) / 1e9:.3g} GB of the quota are free",
                    file=path,
                    accepted=f"MCAP, which needs no copy, or a greater {QUOTA} (GB for a process)",
                )
            _taken += size
            self._bytes += size
        target = Path(self._folder.name) / path.name
        try:
            path.copy_to(target, size)
        except OSError as error:
            raise RecordingError(f"cannot be copied ({error.strerror})", file=path) from error
        return target

    def close(self) -> None:
        """Remove the copies."""
        global _taken
        with _lock:
            _taken -= self._bytes
            self._bytes = 0
        self._folder.cleanup()


def _quota() -> float:
    text = os.environ.get(QUOTA, str(DEFAULT_GB))
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not found >= 0:
        raise InputError(repr(text), key=QUOTA, accepted="a number of GB, 0 or more")
    return found * 1e9


class StagedRecording(WrappedRecording):
    """A recording that is read from a copy; see `Recording` for the members."""

    def __init__(self, path: RemotePath, opened: Callable[[Path], Recording]) -> None:
        self._staged = Staged()
        try:
            whole = opened(self._staged.copy(path))
        except RecordingError as error:
            self._staged.close()
            raise RecordingError(error.problem, accepted=error.accepted, file=path) from error
        except BaseException:
            self._staged.close()
            raise
        super().__init__(path, whole)

    def close(self) -> None:
        """Close and remove the copy."""
        super().close()
        self._staged.close()
