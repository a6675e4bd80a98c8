"""Normal runs as a step of learning: read those without a violation, and keep their moments."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from forewarn.learning.executors import Executor, Progress
from forewarn.learning.folds import grouping_of
from forewarn.learning.observing import observe
from forewarn.logic.specification import CompiledSpec
from forewarn.recordings.groups import Grouping
from forewarn.recordings.registry import open_recording
from forewarn.wings.anomalies.normal_moments import (
    MOST_RUNS,
    Floats,
    NormalMoments,
    fit_normal,
)

MOST_NUMBERS = 100_000_000
"""Numbers that are held while normal runs are read; recordings beyond are left out."""
NO_NUMBER = "is no number"


@dataclass(frozen=True)
class NormalRun:
    """The signals of a recording while it is judged.

    `values` (shape (moments, signals)): NaN where unknown.
    `others`: signals that were something else than a number.
    """

    digest: str
    group: str
    values: Floats
    others: frozenset[str] = field(default_factory=frozenset)


def learn_normal(
    compiled: CompiledSpec,
    paths: Sequence[Path],
    normal: Collection[str],
    *,
    executor: Executor,
    progress: Progress | None = None,
    allow_missing: bool = False,
) -> NormalMoments:
    """Learn what is normal from the recordings whose digests are `normal`.

    Raises RecordingError if they are too few, or no signal can be compared.
    """
    work = (compiled, grouping_of(compiled.spec), allow_missing)
    runs: dict[str, NormalRun] = {}
    held = 0
    with closing(executor.each(paths, normal_run, work, progress)) as reading:
        for _, run in reading:
            if run.digest in normal and run.digest not in runs:
                runs[run.digest] = run
                held += run.values.size
            if held > MOST_NUMBERS or len(_together(runs.values())) >= MOST_RUNS:
                break
    return fit_normal(
        [np.concatenate(some) for some in _together(runs.values()).values()],
        compiled.abstraction.signals,
        tuple(runs),
        {name: NO_NUMBER for run in runs.values() for name in run.others},
    )


def _together(runs: Iterable[NormalRun]) -> dict[str, list[Floats]]:
    """Return the values of runs by what they belong to: a group, or the recording alone."""
    parts: dict[str, list[Floats]] = {}
    for run in runs:
        parts.setdefault(run.group or run.digest, []).append(run.values)
    return parts


def normal_run(
    path: Path,
    compiled: CompiledSpec,
    grouping: Grouping | None,
    allow_missing: bool,
    progress: Callable[[float], None] | None = None,
) -> NormalRun:
    """Return the signals of a recording at the moments that are judged."""
    abstraction = compiled.abstraction
    names, values, others = abstraction.signals, array("d"), set[str]()
    with open_recording(path) as recording:
        ticks = observe(
            recording, compiled.spec, abstraction, progress, allow_missing=allow_missing
        )
        for tick in ticks:
            if tick.seen.observation.active is True and tick.seen.observation.intervened is False:
                values.extend(map(as_number, tick.seen.values))
                others.update(_no_numbers(names, tick.seen.values))
        digest = recording.digest()
        group = "" if grouping is None else grouping.of(recording)
    rows = np.array(values, dtype=np.float64).reshape(-1, len(names))
    return NormalRun(digest, group, rows, frozenset(others))


def as_number(value: Any) -> float:
    """Return a value as a number; NaN if it is unknown or something else."""
    return float(value) if isinstance(value, int | float) else np.nan


def _no_numbers(names: Sequence[str], values: Sequence[Any]) -> list[str]:
    pairs = zip(names, values, strict=True)
    return [n for n, value in pairs if value is not None and not isinstance(value, int | float)]
