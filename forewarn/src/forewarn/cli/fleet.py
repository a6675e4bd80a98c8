"""Options of commands that read many recordings: who reads, what is kept, what may be missing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from forewarn.cli.common import whole_number
from forewarn.cli.output import Output
from forewarn.errors import RecordingError, plural
from forewarn.learning.executors import Executor, local

Unreadable = Literal["stop", "leave-out"]
NAMED = 10
"""Recordings left out that are named one by one."""


def add_executor(parser: argparse.ArgumentParser, text: str, default: int = 1) -> None:
    """Add ``-j`` and ``--on``."""
    parser.add_argument("-j", "--jobs", type=whole_number, default=default, metavar="N", help=text)
    parser.add_argument(
        "--on",
        metavar="ADDRESS",
        help="read on the workers of this Dask scheduler, such as tcp://scheduler:8786, in place "
        "of processes of this machine",
    )


def add_unreadable(parser: argparse.ArgumentParser) -> None:
    """Add ``--unreadable``."""
    parser.add_argument(
        "--unreadable",
        choices=("stop", "leave-out"),
        default="stop",
        help="what to do about a recording that cannot be read: stop, or name it and leave it out "
        "(stop)",
    )


def executor_of(jobs: int, on: str | None) -> Executor | None:
    """Return who reads the recordings; None where neither was said."""
    if on is None:
        return local(jobs) if jobs else None
    from forewarn.learning.cluster import Cluster  # Dask is asked for here alone

    return Cluster(on)


class LeftOutRecordings:
    """Recordings that cannot be read, where the user has chosen to leave them out.

    Parameters
    ----------
    number : int
        How many recordings there are; where none is left, the last error is raised.
    """

    def __init__(self, choice: Unreadable, number: int) -> None:
        self._number = number
        self.found: dict[Path, RecordingError] = {}
        self.listener = self._take if choice == "leave-out" else None

    def _take(self, path: Path, error: RecordingError) -> None:
        self.found.setdefault(path, error)
        if len(self.found) == self._number:
            raise error

    def warn(self, output: Output) -> None:
        """Name them, and say how many there are."""
        errors = list(self.found.values())
        for error in errors[:NAMED]:
            output.warn(f"left out: {error}")
        if errors:
            output.warn(
                f"{len(errors)} of {plural(self._number, 'recording')} could not be read and "
                f"{'is' if len(errors) == 1 else 'are'} left out"
            )

    def record(self) -> dict[str, str]:
        """Return all of them with the reasons, for ``--json``."""
        return {str(path): str(error) for path, error in self.found.items()}
