"""Options of commands that read many recordings: who reads, what is kept, what may be missing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forewarn.cli.common import recording_path, whole_number
from forewarn.cli.output import Output
from forewarn.errors import RecordingError, plural
from forewarn.learning.executors import Executor, local, processes_for
from forewarn.learning.shard_store import ShardStore

Unreadable = Literal["stop", "leave-out"]
NAMED = 10
"""Recordings left out that are named one by one."""


@dataclass(frozen=True)
class FleetOptions:
    """The arguments of commands that read many recordings."""

    jobs: int
    on: str | None
    unreadable: Unreadable


def add_fleet(
    parser: argparse.ArgumentParser, text: str = "processes that read recordings (1)", jobs: int = 1
) -> None:
    """Add ``-j``, ``--on`` and ``--unreadable``.

    Parameters
    ----------
    text : str
        What ``-j`` means.
    jobs : int
        Its default; 0 for as many as pay.
    """
    parser.add_argument("-j", "--jobs", type=whole_number, default=jobs, metavar="N", help=text)
    parser.add_argument(
        "--on",
        metavar="ADDRESS",
        help="read on the workers of this Dask scheduler, such as tcp://scheduler:8786, in place "
        "of processes of this machine",
    )
    parser.add_argument(
        "--unreadable",
        choices=("stop", "leave-out"),
        default="stop",
        help="what to do about a recording that cannot be read: stop, or name it and leave it out "
        "(stop)",
    )


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add ``--store``."""
    parser.add_argument(
        "--store",
        type=recording_path,
        metavar="FOLDER",
        help="keep what each recording gives to models there, and take from there what is known "
        "already: another recording costs that recording",
    )


def store_at(folder: Path | None) -> ShardStore | None:
    """Return the store that ``--store`` names, if it does."""
    return None if folder is None else ShardStore(folder)


class Readers:
    """Who reads the recordings of a command, and which of them could not be read.

    Parameters
    ----------
    recordings : sequence of Path
        All that are read; where none of them can be, the last error is raised.
    """

    def __init__(self, options: FleetOptions, recordings: Sequence[Path]) -> None:
        self._number = len(recordings)
        self.left_out: dict[Path, RecordingError] = {}
        listener = self._take if options.unreadable == "leave-out" else None
        self.executor: Executor
        if options.on is None:
            self.executor = local(options.jobs or processes_for(recordings), listener)
        else:
            from forewarn.learning.cluster import Cluster  # Dask is asked for here alone

            self.executor = Cluster(options.on, listener)

    def _take(self, path: Path, error: RecordingError) -> None:
        self.left_out.setdefault(path, error)
        if len(self.left_out) == self._number:
            raise error

    def warn(self, output: Output) -> None:
        """Name what was left out, and say how many there are."""
        errors = list(self.left_out.values())
        for error in errors[:NAMED]:
            output.warn(f"left out: {error}")
        if errors:
            output.warn(
                f"{len(errors)} of {plural(self._number, 'recording')} could not be read and "
                f"{'is' if len(errors) == 1 else 'are'} left out"
            )

    def record(self) -> dict[str, str]:
        """Return all that was left out with the reasons, for ``--json``."""
        return {str(path): str(error) for path, error in self.left_out.items()}
