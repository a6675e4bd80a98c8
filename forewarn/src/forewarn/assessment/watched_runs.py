"""The runs of a recording as they were watched for anomalies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from forewarn.assessment.lines import anomaly_record
from forewarn.errors import plural
from forewarn.monitoring.run_anomaly import (
    DISTANCE,
    PART_KNOWN,
    AnomalyRow,
    RunVerdict,
    too_long_in_words,
)


class WatchedRun(NamedTuple):
    """A run of a recording.

    `last`: the row of its last moment, which counts for all of it.
    `moments`: moments of it that were seen.
    `in_part`: moments that were judged although some signals were not known.
    """

    last: AnomalyRow
    moments: int
    in_part: int

    @property
    def anomalous(self) -> bool:
        """It became anomalous."""
        return self.last.verdict == RunVerdict.ANOMALOUS


def watch(runs: list[WatchedRun], row: AnomalyRow) -> None:
    """Take in what is said at one more moment."""
    same = bool(runs) and runs[-1].last.run == row.run
    moments, in_part = runs.pop()[1:] if same else (0, 0)
    runs.append(WatchedRun(row, moments + 1, in_part + (row.step.part == PART_KNOWN)))


def run_record(run: WatchedRun) -> dict[str, Any]:
    """Return what was said of a run as plain values."""
    left = run.moments - run.last.transitions if run.last.statistic == DISTANCE else None
    return {**anomaly_record(run.last), "not_judged": left, "judged_in_part": run.in_part}


def limits(runs: Sequence[WatchedRun], longest: int | None) -> Iterator[str]:
    """Say which moments were judged in part or not at all, and which runs are too long.

    `longest` are the moments of the longest run that the promise is about.
    """
    yield from _not_judged(runs)
    longer = sum(run.last.transitions > longest for run in runs) if longest else 0
    if longest and longer:
        yield (f"{longer:,} of {plural(len(runs), 'run')} had {too_long_in_words(longest)}")


def _not_judged(runs: Sequence[WatchedRun]) -> Iterator[str]:
    moments, in_part = sum(run.moments for run in runs), sum(run.in_part for run in runs)
    left = moments - sum(run.last.transitions for run in runs)
    if left:
        yield (
            f"{left:,} of {moments:,} moments were not judged: no signal was known, or there was "
            "an intervention or no activity"
        )
    if in_part:
        yield (
            f"{in_part:,} of {moments:,} moments were judged by the signals that were known: they "
            "may have been farther from normal"
        )
