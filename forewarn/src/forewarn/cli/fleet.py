"""Options of commands that read many recordings: who reads, what is kept, what may be missing."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from forewarn.assessment.progress import overall
from forewarn.assessment.replay import RecordedRun, Replaying, replay_recordings
from forewarn.cli.common import add_recordings, recording_path, whole_number
from forewarn.cli.output import Output
from forewarn.config.file import MonitorSpec
from forewarn.errors import RecordingError, plural
from forewarn.learning.executors import Executor, local, processes_for
from forewarn.learning.shard_store import ShardStore
from forewarn.recordings.given import existing_recordings
from forewarn.recordings.parts import ACCEPTED, Part, moment

Result = TypeVar("Result")

Unreadable = Literal["stop", "leave-out"]
NAMED = 10
"""Recordings left out that are named one by one."""


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """The arguments of commands that read many recordings; some have no store, or need all."""

    jobs: int
    scheduler: str | None
    unreadable: Unreadable
    store: Path | None = None
    allow_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class PartOptions(FleetOptions):
    """The arguments of those that take a part of each recording."""

    recordings: list[Path]
    begin: str | None
    end: str | None

    def existing(self, spec: MonitorSpec | None = None) -> list[Path]:
        """Return what is to be read; raises RecordingError."""
        return existing_recordings(self.recordings, spec, Part(self.begin, self.end))


def add_parts(parser: argparse.ArgumentParser) -> None:
    """Add the positional recordings, ``--from`` and ``--to``."""
    add_recordings(parser)
    for name, dest, text in (("--from", "begin", "begins"), ("--to", "end", "ends")):
        parser.add_argument(
            name,
            dest=dest,
            type=_moment,
            metavar="TIME",
            help=f"where the part of each recording {text} that counts: {ACCEPTED}",
        )


def _moment(text: str) -> str:
    try:
        return moment(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} (accepted: {ACCEPTED})") from None


def add_fleet(
    parser: argparse.ArgumentParser, text: str = "processes that read recordings (1)", jobs: int = 1
) -> None:
    """Add ``-j``, ``--scheduler`` and ``--unreadable``.

    Parameters
    ----------
    text : str
        What ``-j`` means.
    jobs : int
        Its default; 0 for as many as pay.
    """
    parser.add_argument("-j", "--jobs", type=whole_number, default=jobs, metavar="N", help=text)
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="read on the workers of this Dask scheduler, such as tcp://scheduler:8786",
    )
    parser.add_argument(
        "--unreadable",
        choices=("stop", "leave-out"),
        default="stop",
        help="stop at a recording that cannot be read, or name it and leave it out (stop)",
    )


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add ``--store``."""
    parser.add_argument(
        "--store",
        type=recording_path,
        metavar="FOLDER",
        help="keep the counts of each recording there, and read none twice",
    )


class Readers:
    """Who reads the recordings of a command and how, and which of them could not be read.

    Parameters
    ----------
    recordings : sequence of Path
        All that are read; where none of them can be, the last error is raised.
    output : Output
        Told how far they are, and what was left out.
    """

    def __init__(self, options: FleetOptions, recordings: Sequence[Path], output: Output) -> None:
        self.output = output
        self.allow_missing = options.allow_missing
        self.store = None if options.store is None else ShardStore(options.store)
        self._number = len(recordings)
        self.left_out: dict[Path, RecordingError] = {}
        listener = self._take if options.unreadable == "leave-out" else None
        self.executor: Executor
        if options.scheduler is None:
            self.executor = local(options.jobs or processes_for(recordings), listener)
        else:
            from forewarn.learning.cluster import Cluster  # Dask is asked for here alone

            self.executor = Cluster(options.scheduler, listener)

    def _take(self, path: Path, error: RecordingError) -> None:
        self.left_out.setdefault(path, error)
        if len(self.left_out) == self._number:
            raise error

    def read(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        *shared: Any,
        verb: str = "reading",
    ) -> list[tuple[Path, Result]]:
        """Return what a work makes of each recording, with a bar; see `Executor.each`."""
        with self.output.progress(f"{verb} {plural(len(paths), 'recording')}") as tell:
            update = overall(paths, tell)
            with closing(self.executor.each(paths, work, shared, update)) as reading:
                return list(reading)

    def replay(
        self,
        how: Replaying,
        paths: Sequence[Path],
        on_lines: Callable[[Path, bytes], None] | None = None,
    ) -> list[RecordedRun]:
        """Replay recordings, with a bar; see `replay_recordings`."""
        bars = self.output.progress
        return replay_recordings(how, paths, executor=self.executor, on_lines=on_lines, bars=bars)

    def warn(self) -> None:
        """Name what was left out, and say how many there are."""
        errors = list(self.left_out.values())
        for error in errors[:NAMED]:
            self.output.warn(f"left out: {error}")
        if errors:
            self.output.warn(
                f"{len(errors)} of {plural(self._number, 'recording')} could not be read and "
                f"{'is' if len(errors) == 1 else 'are'} left out"
            )

    def record(self) -> dict[str, str]:
        """Return all that was left out with the reasons, for ``--json``."""
        return {str(path): str(error) for path, error in self.left_out.items()}
