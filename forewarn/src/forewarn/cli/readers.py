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
from forewarn.cli.common import recording_path, recordings_argument, whole_number
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.config.file import MonitorSpec
from forewarn.errors import RecordingError, plural
from forewarn.learning.executors import Executor, local, processes_for
from forewarn.learning.shard_store import ShardStore
from forewarn.recordings.parts import ACCEPTED, Part, moment
from forewarn.recordings.registry import existing_recordings
from forewarn.registry import part

Result = TypeVar("Result")

Unreadable = Literal["stop", "leave-out"]
NAMED = 10
"""Recordings left out that are named one by one."""


def jobs_option(text: str = "processes that read recordings", jobs: int = 1) -> Any:
    """Declare ``-j``; by default, 0 means as many processes as pay."""
    return option(text, "N", "-j", of=whole_number, default=jobs)


def store_option() -> Any:
    """Declare ``--store``."""
    text = "keep the counts of each recording there, and read none twice"
    return option(text, "FOLDER", of=recording_path)


def part_option(flag: str, verb: str) -> Any:
    """Declare ``--from`` or ``--to``."""
    text = f"where the part of each recording {verb} that counts: {ACCEPTED}"
    return option(text, "TIME", flag, of=_moment)


def _moment(text: str) -> str:
    try:
        return moment(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} (accepted: {ACCEPTED})") from None


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """The arguments of commands that read many recordings; some have no store, or need all."""

    jobs: int = jobs_option()
    scheduler: str | None = option(
        "read on the workers of this Dask scheduler, such as tcp://scheduler:8786", "ADDRESS"
    )
    unreadable: Unreadable = option(
        "stop at a recording that cannot be read, or name it and leave it out", default="stop"
    )
    store: Path | None = None
    allow_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class PartOptions(FleetOptions):
    """The arguments of those that take a part of each recording."""

    recordings: list[Path] = recordings_argument()
    begin: str | None = part_option("--from", "begins")
    end: str | None = part_option("--to", "ends")

    def existing(self, spec: MonitorSpec | None = None) -> list[Path]:
        """Return the recordings to read; raises RecordingError."""
        return existing_recordings(self.recordings, spec, Part(self.begin, self.end))


class Readers:
    """Who reads the recordings of a command and how, and which of them could not be read.

    Parameters
    ----------
    recordings : sequence of Path
        All that are read; where none of them can be, the last error is raised.
    output : Output
        Shows how far they are, and what was left out.
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
            cluster = part("fleet", "cluster", "--scheduler")
            self.executor = cluster.Cluster(options.scheduler, listener)

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
