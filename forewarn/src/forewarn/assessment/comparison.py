"""Monitors side by side on the same runs: what each is worth, and whether the difference is real.

Whatever a contender is, it has one score at each tick, and all are judged by the violations that
the first one saw. Nothing that is chosen or fitted for a run is chosen on it: thresholds and maps
from scores to probabilities come from the runs of other folds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.censoring import settled
from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.reliability import (
    UNDECIDED,
    Calibration,
    Predictions,
    calibrate,
    outcomes,
    pool,
)
from forewarn.assessment.resampling import alike, interval, resampled
from forewarn.assessment.tradeoff import (
    MAX_THRESHOLDS,
    Point,
    every_threshold,
    middle_of_best,
    pool_points,
    run_points,
    trade_off,
)
from forewarn.errors import InputError, ModelError
from forewarn.learning.calibration_fit import fit_platt

Floats = NDArray[np.float64]
Figure = Callable[[Sequence[int]], float]


@dataclass(frozen=True)
class Contender:
    """A monitor, or a rival quantity.

    `name`: for people.
    `rule`: its alerts, without the threshold.
    `runs`: its verdicts about one property in each run.
    `probabilities`: for each run the probability of a violation within the horizon, NaN where there
        is none; None if the score is no probability.
    `states`: states of its model.
    """

    name: str
    rule: AlertRule
    runs: tuple[ScoredRun, ...]
    probabilities: tuple[Floats, ...] | None = None
    states: int | None = None


class Estimate(NamedTuple):
    """A figure, and the ends of its 95 % interval over resampled runs; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ContenderScores:
    """What a contender is worth.

    `area`: under the precision-recall curve, over ticks; an out_of_model state is what the rule
        makes of it.
    `calibration`: over the ticks at which all contenders have a probability; None without any.
    `brier`: mean squared error of the probability.
    `point`: what the thresholds chosen for the budget give.
    `lead`: mean lead time over all violations, in seconds or steps; one that is missed counts as 0.
    `thresholds`: the lowest and the highest one that a fold was given; infinite for no alert.
    `out_of_model`: share of the ticks at which its model did not know the state.
    `differences`: what is more (`area`, `brier`, `lead`) than with the first contender, run by run;
        empty for that one.
    `drawn`: recordings, or groups of them, that are drawn for intervals; those with a violation.
    """

    name: str
    area: Estimate
    calibration: Calibration | None
    brier: Estimate
    point: Point
    lead: Estimate
    thresholds: tuple[float, float]
    states: int | None
    out_of_model: float
    differences: dict[str, Estimate]
    drawn: tuple[int, int]


def compare(
    contenders: Sequence[Contender],
    folds: Sequence[int],
    budget: float,
    *,
    alert_share: float = math.inf,
    resamples: int = 500,
    seed: int = 1,
    clusters: Sequence[str] | None = None,
) -> list[ContenderScores]:
    """Judge contenders on the same runs.

    `contenders`: the first one's violations are everybody's.
    `folds`: the fold of each run.
    `budget`: false alarms in an hour (or 3,600 steps) at most, for the lead time.
    `alert_share`: share of the time that may be spent in alert: one alarm that never ends is a
        single one.
    `clusters`: the group of each run: runs of a group are drawn together. By default each is alone.

    Raises InputError if the contenders were not asked at the same moments.
    """
    shared = with_one_truth(contenders)
    probabilities = [_probabilities(one, folds) for one in shared]
    known = _known(shared[0].runs, [found for found in probabilities if found is not None])
    choose = partial(best_point, budget=budget, alert_share=alert_share)
    figures = [
        _Figures.of(one, found, known, folds, choose)
        for one, found in zip(shared, probabilities, strict=True)
    ]
    groups = alike(range(len(folds)) if clusters is None else clusters)
    violated = sum(any(shared[0].runs[run].violation.any() for run in group) for group in groups)
    drawn = [_drawn(found, groups, resamples, seed) for found in figures]
    return [
        ContenderScores(
            one.name,
            drawn[index]["area"].estimate,
            found.calibration(range(len(folds))),
            drawn[index]["brier"].estimate,
            pool_points(found.points),
            drawn[index]["lead"].estimate,
            found.thresholds,
            one.states,
            _out_of_model(one.runs),
            {name: mine.minus(drawn[0][name]).estimate for name, mine in drawn[index].items()}
            if index
            else {},
            (len(groups), violated),
        )
        for index, (one, found) in enumerate(zip(shared, figures, strict=True))
    ]


class _Drawn(NamedTuple):
    """A figure over all runs, and over each resample of them."""

    value: float
    resamples: Floats
    groups: int

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.value, *interval(self.resamples, self.groups))

    def minus(self, other: _Drawn) -> _Drawn:
        difference = self.resamples - other.resamples
        return _Drawn(self.value - other.value, difference, self.groups)


def _drawn(
    figures: _Figures, groups: Sequence[Sequence[int]], resamples: int, seed: int
) -> dict[str, _Drawn]:
    """Return area, Brier score and lead of a contender, each over the same resamples of groups."""

    def over(figure: Figure) -> Callable[[Sequence[Sequence[int]]], float]:
        return lambda drawn: figure([run for group in drawn for run in group])

    return {
        name: _Drawn(
            over(figure)(groups),
            resampled(groups, over(figure), resamples=resamples, seed=seed),
            len(groups),
        )
        for name, figure in (
            ("area", figures.area),
            ("brier", figures.brier),
            ("lead", figures.lead),
        )
    }


def _known(
    runs: Sequence[ScoredRun], probabilities: Sequence[tuple[Floats, ...]]
) -> list[NDArray[np.bool_]]:
    """Tell at which ticks of each run an outcome is judged and everybody has a probability."""
    return [
        _judged(run) & ~np.any([np.isnan(found[i]) for found in probabilities], axis=0)
        for i, run in enumerate(runs)
    ]


def best_point(
    traces: Sequence[ScoredRun],
    rule: AlertRule,
    budget: float,
    *,
    ranks: int = MAX_THRESHOLDS,
    alert_share: float = math.inf,
) -> Point:
    """Return the point of longest mean lead within a budget of false alarms an hour.

    A missed violation counts as 0 s. A tie is decided by what was detected and by fewer false
    alarms, and then as `tune` does. Where more scores occur, thresholds are tried at so many ranks.
    One alarm that never ends is a single false one: `alert_share` is how much of the time may be
    spent in alert. If no score that occurs keeps to both, the threshold is infinite, for no alert.
    """
    points = trade_off(traces, every_threshold(traces, ranks), rule=rule)
    merits: list[Any] = [
        (sum(p.leads), p.detected, -p.false_alarms)
        if (p.false_alarms_per_hour or 0.0) <= budget and (p.alert_share or 0.0) <= alert_share
        else None
        for p in points
    ]
    chosen = middle_of_best([p.threshold for p in points], merits)
    if chosen is None:
        (never,) = trade_off(traces, [math.inf], rule=rule)
        return never
    return points[chosen]


def differing_violations(one: Contender, other: Contender) -> int:
    """Return the ticks at which one contender saw a violation happen and the other one did not."""
    return sum(
        int((a.violation != b.violation).sum())
        for a, b in zip(one.runs, other.runs, strict=True)
        if len(a.violation) == len(b.violation)
    )


def with_one_truth(contenders: Sequence[Contender]) -> list[Contender]:
    """Return contenders whose runs have the violations of the first one, and its ends of runs.

    Raises InputError if they were not asked at the same moments.
    """
    first = replace(contenders[0], runs=tuple(settled(contenders[0].runs)))
    return [_with_truth(one, first) for one in contenders]


def _with_truth(one: Contender, first: Contender) -> Contender:
    found = []
    for mine, theirs in zip(one.runs, first.runs, strict=True):
        if not np.array_equal(mine.ticks, theirs.ticks) or mine.rate != theirs.rate:
            raise InputError(
                f"{one.name} and {first.name} were not asked at the same moments",
                accepted="monitor files of the same clock, rate and time",
            )
        # An infinite score would reach even the infinite threshold, which stands for no alert.
        score = np.minimum(mine.score, sys.float_info.max)
        found.append(theirs._replace(score=score, out_of_model=mine.out_of_model))
    return Contender(one.name, one.rule, tuple(found), one.probabilities, one.states)


def _judged(run: ScoredRun) -> NDArray[np.bool_]:
    """Tell at which ticks nothing is violated yet and what follows is known."""
    return np.asarray(outcomes(run)[1] & np.isin(run.status, UNDECIDED))


def _out_of_model(runs: Sequence[ScoredRun]) -> float:
    out_of_model = [
        np.zeros(0, dtype=bool),
        *(r.out_of_model for r in runs if r.out_of_model is not None),
    ]
    return float(np.concatenate(out_of_model).sum()) / max(1, sum(len(run.ticks) for run in runs))


def _probabilities(one: Contender, folds: Sequence[int]) -> tuple[Floats, ...] | None:
    """Return the probabilities of a contender, from its scores where it has none of its own.

    The map is Platt's over the log-odds of a score's rank among those of other folds; None if a
    fold has no rising one.
    """
    if one.probabilities is not None:
        return one.probabilities
    maps: dict[int, Callable[[Floats], Floats]] = {}
    for fold in set(folds):
        others = [run for run, at in zip(one.runs, folds, strict=True) if at != fold]
        try:
            maps[fold] = _map(others)
        except ModelError:
            return None
    return tuple(maps[at](run.score) for run, at in zip(one.runs, folds, strict=True))


def _map(runs: Sequence[ScoredRun]) -> Callable[[Floats], Floats]:
    chosen = [_judged(run) & ~np.isnan(run.score) for run in runs]
    score = np.concatenate([np.zeros(0), *(r.score[c] for r, c in zip(runs, chosen, strict=True))])
    followed = np.concatenate(
        [np.zeros(0, bool), *(outcomes(r)[0][c] for r, c in zip(runs, chosen, strict=True))]
    )
    if not followed.any() or followed.all():
        raise ModelError("nothing to learn a probability from", accepted="violations, and none")
    order = np.sort(score)

    def rank(values: Floats) -> Floats:
        # The middle of those that are equal; strictly within 0 and 1.
        below = np.searchsorted(order, values) + np.searchsorted(order, values, side="right")
        return np.asarray((below + 1) / (2 * len(order) + 2))

    line = fit_platt(rank(score), followed, np.ones(len(score)))

    def probability(values: Floats) -> Floats:
        place = rank(values)
        odds = line.slope * (np.log(place) - np.log1p(-place)) + line.intercept
        return np.where(np.isnan(values), np.nan, 1 / (1 + np.exp(-odds)))

    return probability


@dataclass(frozen=True)
class _Figures:
    """What can be asked of any choice of runs."""

    rule: AlertRule
    runs: tuple[ScoredRun, ...]
    parts: list[Predictions] | None
    points: list[Point]
    thresholds: tuple[float, float]

    @classmethod
    def of(
        cls,
        one: Contender,
        probabilities: tuple[Floats, ...] | None,
        known: Sequence[NDArray[np.bool_]],
        folds: Sequence[int],
        choose: Callable[[Sequence[ScoredRun], AlertRule], Point],
    ) -> _Figures:
        parts = None
        if probabilities is not None:
            parts = [
                Predictions(found[judged], outcomes(run)[0][judged], 0)
                for run, found, judged in zip(one.runs, probabilities, known, strict=True)
            ]
        points: list[Point | None] = [None] * len(folds)
        chosen = []
        for fold in sorted(set(folds)):
            here = [i for i, at in enumerate(folds) if at == fold]
            others = [run for run, at in zip(one.runs, folds, strict=True) if at != fold]
            chosen.append(choose(others, one.rule).threshold)
            found = run_points([one.runs[i] for i in here], chosen[-1], rule=one.rule)
            for i, point in zip(here, found, strict=True):
                points[i] = point
        ends = min(chosen), max(chosen)
        return cls(
            one.rule, one.runs, parts, [point for point in points if point is not None], ends
        )

    def area(self, drawn: Sequence[int]) -> float:
        return precision_recall([self.runs[i] for i in drawn], self.rule.out_of_model).area

    def calibration(self, drawn: Sequence[int]) -> Calibration | None:
        return None if self.parts is None else calibrate(pool([self.parts[i] for i in drawn]))

    def brier(self, drawn: Sequence[int]) -> float:
        if self.parts is None:
            return math.nan
        whole = pool([self.parts[i] for i in drawn])
        return float(np.mean((whole.risk - whole.followed) ** 2)) if len(whole.risk) else math.nan

    def lead(self, drawn: Sequence[int]) -> float:
        whole = pool_points([self.points[i] for i in drawn])
        return sum(whole.leads) / whole.violations if whole.violations else math.nan
