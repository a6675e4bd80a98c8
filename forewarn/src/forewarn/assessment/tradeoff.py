"""Lead time against false alarms, for every threshold: what a study shows and tuning chooses from.

Whatever a monitor computes, a risk, a robustness or a time to collision, it gives one score a
tick; the policy turns scores into alerts by a threshold, and the terms of `events` say what came of
them. All figures of all studies are made here, so that they mean the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forewarn.assessment.episodes import AlertRule, ScoredRun, find_episodes
from forewarn.assessment.events import (
    SECONDS_AN_HOUR,
    LeadTimes,
    Rates,
    judge,
    lead_times,
    watched,
)
from forewarn.assessment.excursions import find_excursions

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

MAX_THRESHOLDS = 2000


@dataclass(frozen=True)
class Point(Rates):
    """What one threshold gives, over one run or many.

    `threshold`: score at and above which an alert begins.
    `violations`, `detected`: how many excursions there were, and how many of them were foreseen.
    `leads`: lead time of each detected violation in seconds, in order of runs and time.
    `alerts`, `right`, `late`, `false_alarms`: episodes; of these, those followed by a violation,
        those that came with one or before it had cleared, and those without.
    `hours`, `alert_hours`: time watched, and of it the time at ACT: a monitor that never ends its
        alerts has few false ones and long lead times, and is of no use.
    """

    threshold: float
    violations: int
    detected: int
    leads: tuple[float, ...]
    alerts: int
    right: int
    late: int
    false_alarms: int
    hours: float
    alert_hours: float = 0.0

    @property
    def lead(self) -> LeadTimes | None:
        """Lead times over the detected violations, as the papers give them; None without any."""
        return lead_times(self.leads)

    @property
    def median_lead(self) -> float | None:
        """Median lead time over all violations, a missed one counting as 0 s; None without any.

        Over the detected ones alone a monitor would gain by missing those that it foresees late.
        """
        if not self.violations:
            return None
        return float(np.median(np.concatenate((self.leads, np.zeros(self.missed)))))


def trade_off(
    scored_runs: Sequence[ScoredRun],
    thresholds: ArrayLike | None = None,
    *,
    rule: AlertRule | None = None,
) -> tuple[Point, ...]:
    """Return what every threshold gives over all runs.

    `thresholds` (shape (k,)): scores to try, and the order of the result; by default
        `every_threshold`.
    `rule`: all else about alerts.

    Raises ValueError if a threshold or release level is NaN or minus infinity.
    """
    levels = _levels(every_threshold(scored_runs) if thresholds is None else thresholds)
    counts = np.zeros((5, len(levels)), dtype=np.int64)
    seconds = np.zeros(len(levels))
    leads: list[list[float]] = [[] for _ in levels]
    for tally in _tallies(scored_runs, levels, rule or AlertRule()):
        counts += tally.counts
        seconds += tally.seconds
        for position, lead in zip(tally.threshold.tolist(), tally.leads.tolist(), strict=True):
            leads[position].append(lead)
    happened = sum(map(count_violations, scored_runs))
    hours = sum(map(_hours, scored_runs))
    return tuple(
        _point(threshold, happened, tuple(lead), column, hours, on)
        for threshold, lead, column, on in zip(
            levels.tolist(), leads, counts.T.tolist(), seconds.tolist(), strict=True
        )
    )


def run_points(
    scored_runs: Sequence[ScoredRun],
    threshold: float,
    *,
    rule: AlertRule | None = None,
) -> tuple[Point, ...]:
    """Return what one threshold gives over each run: for bootstrap and counts per run.

    `threshold`: score at and above which an alert begins.
    `rule`: all else about alerts.
    """
    return tuple(
        _point(
            threshold,
            count_violations(scored),
            tuple(tally.leads.tolist()),
            tally.counts[:, 0].tolist(),
            _hours(scored),
            float(tally.seconds[0]),
        )
        for scored, tally in zip(
            scored_runs,
            _tallies(scored_runs, _levels([threshold]), rule or AlertRule()),
            strict=True,
        )
    )


def count_violations(scored: ScoredRun) -> int:
    """Return how many excursions there are in a run."""
    return int(find_excursions(scored).begins.sum())


def detections(
    scored_runs: Sequence[ScoredRun],
    thresholds: ArrayLike,
    *,
    rule: AlertRule,
    block: int | None = None,
) -> tuple[Counts, Counts]:
    """Count violations, and those that each threshold detected, run by run or block by block.

    `thresholds` (shape (k,)): scores at and above which an alert begins.
    `block`: ticks: runs are divided into such blocks, by the number of the tick. Alerts and
        excursions go on across their borders; a violation belongs to the block in which it happens.

    `happened`: violations of each run or block (shape (n,)).
    `detected`: those that were detected (shape (n, k)).
    """
    levels = _levels(thresholds)
    happened: list[Counts] = []
    detected: list[Counts] = []
    for scored, tally in zip(scored_runs, _tallies(scored_runs, levels, rule), strict=True):
        place = np.zeros(len(scored.ticks), dtype=np.int64)
        if block is not None and len(place):
            place = scored.ticks // block - scored.ticks[0] // block
        size = int(place[-1]) + 1 if len(place) else 1
        begins = find_excursions(scored).begins
        happened.append(np.bincount(place[begins], minlength=size))
        cells = place[tally.row] * len(levels) + tally.threshold
        found = np.bincount(cells, minlength=size * len(levels))
        detected.append(found.reshape(size, len(levels)))
    none = np.zeros((0, len(levels)), dtype=np.int64)
    return np.concatenate([np.zeros(0, dtype=np.int64), *happened]), np.concatenate(
        [none, *detected]
    )


def pool_points(points: Sequence[Point]) -> Point:
    """Add up what one threshold gave over several runs; raises ValueError without any."""
    if not points:
        raise ValueError("no points to add up")
    return Point(
        threshold=points[0].threshold,
        violations=sum(point.violations for point in points),
        detected=sum(point.detected for point in points),
        leads=tuple(lead for point in points for lead in point.leads),
        alerts=sum(point.alerts for point in points),
        right=sum(point.right for point in points),
        late=sum(point.late for point in points),
        false_alarms=sum(point.false_alarms for point in points),
        hours=sum(point.hours for point in points),
        alert_hours=sum(point.alert_hours for point in points),
    )


def middle_of_best(levels: Sequence[float], merits: Sequence[Any]) -> int | None:
    """Return which of some rising levels to choose: a tie favours the lower, and not its edge.

    Neighbours of the same greatest merit are a flat range; of the lowest such range it is the one
    nearest to the middle, which is far from where other recordings would differ.

    `levels`: thresholds, rising as far as merits are alike.
    `merits`: what each is worth, to be compared by ``>`` and ``==``; None where it is no candidate.

    Returns its position; None without any candidate.
    """
    best = max((merit for merit in merits if merit is not None), default=None)
    if best is None:
        return None
    first = merits.index(best)
    alike = itertools.takewhile(lambda at: merits[at] == best, range(first, len(merits)))
    flat = list(alike)
    middle = (levels[flat[0]] + levels[flat[-1]]) / 2
    return min(flat, key=lambda at: abs(levels[at] - middle))


def every_threshold(scored_runs: Sequence[ScoredRun], limit: int = MAX_THRESHOLDS) -> Floats:
    """Return the scores that occur, rising, shape (k,): no other threshold begins other alerts.

    `limit`: how many to keep, evenly by rank and with the ends, where there are more.
    """
    scores: Floats = np.unique(
        np.concatenate([np.zeros(0), *(scored.score for scored in scored_runs)])
    )
    scores = scores[~np.isnan(scores) & ~np.isneginf(scores)]
    if len(scores) > limit:
        scores = scores[np.unique(np.linspace(0, len(scores) - 1, limit).round().astype(np.int64))]
    return scores


class _Tally(NamedTuple):
    """One run: detected, alerts, right, late and false ones of each threshold, shape (5, k).

    `seconds` are those at ACT, shape (k,), `leads` the lead times of the violations at `row` that
    were foreseen at position `threshold`, shape (m,).
    """

    counts: Counts
    seconds: Floats
    threshold: Counts
    row: Counts
    leads: Floats


def _tallies(scored_runs: Sequence[ScoredRun], thresholds: Floats, rule: AlertRule) -> list[_Tally]:
    found = find_episodes(scored_runs, thresholds, rule)
    bounds = np.searchsorted(found.run, np.arange(len(scored_runs) + 1))
    return [
        _tally(scored, found.threshold[a:b], found.start[a:b], found.end[a:b], len(thresholds))
        for scored, a, b in zip(scored_runs, bounds[:-1], bounds[1:], strict=True)
    ]


def _tally(scored: ScoredRun, threshold: Counts, start: Counts, end: Counts, size: int) -> _Tally:
    """Count what became of the alerts of one run."""
    judged = judge(scored, start, end)
    right = judged.foresaw | judged.near

    def count(chosen: NDArray[np.bool_] | slice) -> Counts:
        return np.bincount(threshold[chosen], minlength=size)

    on = np.concatenate(([0], np.cumsum(watched(scored))))
    detected = threshold[judged.alert]
    return _Tally(
        np.stack(
            (
                np.bincount(detected, minlength=size),
                count(slice(None)),
                count(right),
                count(judged.late),
                count(~right & ~judged.late),
            )
        ),
        np.bincount(threshold, weights=on[end] - on[start], minlength=size) / scored.rate,
        detected,
        judged.row,
        judged.lead / scored.rate,
    )


def _levels(thresholds: ArrayLike) -> Floats:
    return np.atleast_1d(np.asarray(thresholds, dtype=np.float64))


def _hours(scored: ScoredRun) -> float:
    return float(watched(scored).sum()) / scored.rate / SECONDS_AN_HOUR


def _point(
    threshold: float,
    violations: int,
    leads: tuple[float, ...],
    counts: list[int],
    hours: float,
    seconds: float,
) -> Point:
    detected, alerts, right, late, false_alarms = counts
    on = seconds / SECONDS_AN_HOUR
    return Point(
        threshold, violations, detected, leads, alerts, right, late, false_alarms, hours, on
    )
