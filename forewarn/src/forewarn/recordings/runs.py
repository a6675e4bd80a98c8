"""Runs within a trace: lines that name the run or thread they belong to, each run a recording.

The address of a run is ``trace.jsonl::run=a17``: the file, the key of its lines, the value. Runs
may be interleaved, as those of agents at work side by side are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from forewarn.errors import RecordingError
from forewarn.recordings.interface import Sample
from forewarn.recordings.traces import JsonTrace

MARK = "::"
Opener = Callable[[Path], JsonTrace]
"""Opens a file whose lines may be of several runs."""


class _Run:
    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.digest = hashlib.sha256()

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.digest.update(repr(sample).encode())


class TraceRun(JsonTrace):
    """One run of a trace; see `Recording` for the members."""

    def __init__(self, path: Path, file: Path, key: str, run: str, opener: Opener) -> None:
        stat = file.stat()
        trace, runs = _runs(file, key, opener, stat.st_mtime_ns, stat.st_size)
        if run not in runs:
            shown = ", ".join(list(runs)[:5]) or f"none: no line has the key {key}"
            raise RecordingError(f"there is no run {run!r}", file=path, accepted=shown)
        self.path = path
        self.kind = "run of a trace"
        self.warnings = list(trace.warnings)
        self.size = trace.size
        self.signals = trace.signals
        self.topics = {}
        self.timed = trace.timed
        self._run = runs[run]
        self.count = len(self._run.samples)
        self.start_ns, self.end_ns = self._run.samples[0].time_ns, self._run.samples[-1].time_ns

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield one sample for each line, in the order of time; topics do not matter."""
        del topics
        return iter(self._run.samples)

    def digest(self) -> str:
        """Return the SHA-256 of the values of the run's lines, in hex."""
        return self._run.digest.hexdigest()


def open_run(path: Path, opener: Opener) -> TraceRun | None:
    """Open the run that a path addresses; None if it addresses none."""
    name, mark, rest = path.name.partition(MARK)
    key, equals, run = rest.partition("=")
    if not mark or not equals or path.exists():
        return None
    return TraceRun(path, path.with_name(name), key, unquote(run), opener)


def trace_of(path: Path) -> Path | None:
    """Return the trace that a run is in; None if the path is no address of a run."""
    name, mark, _ = path.name.partition(MARK)
    return path.with_name(name) if mark and not path.exists() else None


def find_runs(path: Path, key: str, opener: Opener) -> list[Path]:
    """Return the addresses of the runs of a trace in order of appearance, or the trace itself.

    Raises RecordingError if some lines name a run and others none, or one names it by something
    else than a text or a whole number.
    """
    stat = path.stat()
    _, runs = _runs(path, key, opener, stat.st_mtime_ns, stat.st_size)
    return [path.with_name(f"{path.name}{MARK}{key}={quote(run, safe='')}") for run in runs] or [
        path
    ]


@lru_cache(maxsize=2)
def _runs(
    path: Path, key: str, opener: Opener, changed_ns: int, size: int
) -> tuple[JsonTrace, dict[str, _Run]]:
    """Return a trace and its runs, read once for all of them; key: what changes with the file."""
    del changed_ns, size
    trace = opener(path)
    runs: dict[str, _Run] = {}
    without = 0
    for sample in trace.read():
        assert isinstance(sample.data, dict)
        name = _name(sample.data.get(key), key, path)
        if name is None:
            without += 1
        else:
            runs.setdefault(name, _Run()).add(sample)
    if runs and without:
        raise RecordingError(
            f"{without} lines do not say by {key!r} which run they belong to, and others do",
            file=path,
            accepted="the key on every line, or on none (`episode:` names another key)",
        )
    return trace, runs


def _name(value: Any, key: str, path: Path) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordingError(
            f"{key}: {value!r} is no name of a run", file=path, accepted="a text or a whole number"
        )
    return str(value)
