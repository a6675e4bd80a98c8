"""From a goal to thresholds: the longest lead time that a budget of false alarms allows.

The thresholds that are tried are fixed before any recording is seen, and a guarantee is tested from
the most cautious one on (`guarantee`), so that it holds for whatever is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.guarantee import (
    binomial_p,
    bounded_p,
    fixed_sequence,
    loss_bounds,
    miss_bound,
    needed_exposure,
    needed_trials,
    rate_bound,
)
from forewarn.assessment.tradeoff import Point, detections, middle_of_best, trade_off
from forewarn.config.sections import PropertySpec, Thresholds
from forewarn.signals.clock import Clock
from forewarn.signals.clock_kinds import Grid

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Unit = Literal["run", "violation"]

LEAST_VIOLATIONS = 5
"""Of so many, the true median of lead times lies between the least and the greatest that were seen
with a probability of 1 - 2 * 0.5**5 = 94 %; with fewer, next to nothing is known of it."""
FEW_VIOLATIONS = 20
"""Of so many, all of them foreseen, up to 11 % may be missed in truth (at 90 %)."""
DIGITS = 3
# Fine where it matters most, and short enough to be read in a file.
GRID = tuple(
    np.round(
        np.concatenate(
            (
                np.arange(0.001, 0.0195, 0.001),
                np.arange(0.02, 0.1975, 0.005),
                np.arange(0.2, 0.975, 0.01),
                np.arange(0.98, 0.9995, 0.001),
            )
        ),
        3,
    ).tolist()
)


@dataclass(frozen=True)
class Goal:
    """What the user asks for.

    `false_alarms_per_hour`: budget: false alarms in an hour of watching, at most; in 3,600 steps
        where the clock is steps, as in all figures "per hour".
    `miss_rate`: with a guarantee: share of the violations that may be missed, in (0, 1).
    `confidence`: of the guarantee and of all bounds, one-sided, in (0, 1).
    `unit`: what is exchangeable. Runs, or blocks of them: the loss of a run is the share of its
        violations that were missed, and its mean over runs with a violation is the miss rate;
        violations of one run may depend on each other. Violations: each counts by itself, which
        needs them independent.
    `alert_share`: share of the time that may be spent at ACT, at most.
    `enter`: values of `enter` to try; that of the property if there is none.
    `least_violations`: below so many nothing is recommended.
    `block`: ticks of the blocks of a run that are exchangeable; None for runs as wholes.
    `crossed`: every run is judged by a model of the other runs. These models share runs, so that
        losses depend on each other, and none of them will be in use: nothing is proven of the one
        that will.
    `clusters`: the group of each run: runs of a group are alike, so that groups are exchangeable in
        place of runs, and each counts once. Empty where runs are by themselves.
    `clock`: says durations for people.
    """

    false_alarms_per_hour: float
    miss_rate: float | None = None
    confidence: float = 0.9
    unit: Unit = "run"
    alert_share: float = 0.1
    enter: tuple[int, ...] = ()
    least_violations: int = LEAST_VIOLATIONS
    block: int | None = None
    crossed: bool = False
    clusters: tuple[str, ...] = field(default=(), repr=False)
    clock: Clock = Grid(1.0)  # noqa: RUF009 (a frozen value)


@dataclass(frozen=True)
class Candidate:
    """One choice of thresholds, and what it gives.

    `enter`: consecutive ticks that begin an alert.
    `thresholds`: in the proportions of the monitor file.
    `point`: what came of it over all runs.
    `lead`: median lead time over all violations, a missed one counting as 0 s; NaN without
        violations.
    `mean_lead`: the same, mean.
    `miss_bound`, `false_alarm_bound`: exact upper bounds of the miss rate and of the false alarms
        an hour, for thresholds that were fixed before the recordings were made.
    `p_value`: of "more is missed than the goal allows"; None if no guarantee was asked for.
    `supported`: the test of the guarantee is passed, or none was asked for.
    `proven`: a guarantee was asked for, and holds.
    `affordable`: budget and alert share are kept.
    """

    enter: int
    thresholds: Thresholds
    point: Point
    lead: float
    mean_lead: float
    miss_bound: float
    false_alarm_bound: float
    p_value: float | None
    supported: bool
    proven: bool
    affordable: bool


@dataclass(frozen=True)
class Support:
    """What the recordings can tell.

    `runs`, `runs_with_violation`, `violations`: how many there are; of runs, of their blocks, or of
        groups of runs.
    `trials`: runs (or blocks, or groups) with a violation, or violations: what the guarantee
        counts.
    `least_miss_rate`: upper bound of the miss rate if nothing at all was missed.
    `needed_trials`: how many show the wished miss rate if none is missed; None if none was wished.
    `needed_hours`: hours that show the budget to be kept if there is no false alarm.
    """

    runs: int
    runs_with_violation: int
    violations: int
    hours: float
    trials: int
    least_miss_rate: float
    needed_trials: int | None
    needed_hours: float


@dataclass(frozen=True)
class Tuning:
    """The trade-off of one property and the choice from it.

    `candidates`: by `enter`, then by rising thresholds.
    `present`: the thresholds of the monitor file.
    `chosen`: None if nothing reaches the goal and foresees half of the violations at least, or
        there are too few violations to tell.
    """

    name: str
    goal: Goal
    support: Support
    candidates: tuple[Candidate, ...]
    present: Candidate
    chosen: Candidate | None


def scaled(thresholds: Thresholds, act: float) -> Thresholds:
    """Return thresholds in the same proportions with another `act`, rounded for a file."""

    def share(level: float) -> float:
        return min(float(f"{level / thresholds.act * act:.{DIGITS}g}"), act)

    release = share(thresholds.release)
    if release >= act:  # only rounding can bring it there
        release = float(np.nextafter(act, 0))
    return Thresholds(warn=share(thresholds.warn), act=act, release=release)


def tune(name: str, section: PropertySpec, scored_runs: Sequence[ScoredRun], goal: Goal) -> Tuning:
    """Choose thresholds for a property.

    Among the thresholds whose guarantee holds, if one was asked for, and which keep the budget,
    the one with the greatest median lead time wins, which must be above 0 s. Misses count as 0 s
    in it, or a monitor would gain by missing what it foresees late. If that is equal, the mean
    decides, then fewer false alarms. Neighbouring thresholds that are alike in all of this are a
    flat range; the lowest of these ranges is taken, and its middle, which is far from where other
    recordings would differ.

    `section`: its section of the monitor file, whose proportions between thresholds are kept.
    `scored_runs`: one for each run, which the model must not have learned from.
    `goal`: what is asked for. With several values of `enter`, each is tested at its share of the
        error, so that the guarantee holds for all of them together.
    """
    enters = goal.enter or (section.enter,)
    strict = replace(goal, confidence=1 - (1 - goal.confidence) / len(enters))
    candidates = [
        candidate
        for enter in enters
        for candidate in _sweep(section, scored_runs, strict, enter, GRID)
    ]
    (present,) = _sweep(section, scored_runs, goal, section.enter, (section.thresholds.act,))
    support = _support(scored_runs, strict)
    enough = support.violations >= goal.least_violations
    chosen = _choose(candidates) if enough else None
    return Tuning(name, goal, support, tuple(candidates), present, chosen)


def _choose(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the middle of the lowest range of the best thresholds that fulfil the wish."""
    enters = list(dict.fromkeys(candidate.enter for candidate in candidates))
    merits = [
        (*_merit(c), -enters.index(c.enter))
        if c.affordable and c.supported and c.lead > 0
        else None
        for c in candidates
    ]
    chosen = middle_of_best([c.thresholds.act for c in candidates], merits)
    return None if chosen is None else candidates[chosen]


def _merit(candidate: Candidate) -> tuple[float, float, int]:
    return candidate.lead, candidate.mean_lead, -candidate.point.false_alarms


def _sweep(
    section: PropertySpec,
    scored_runs: Sequence[ScoredRun],
    goal: Goal,
    enter: int,
    grid: Sequence[float],
) -> list[Candidate]:
    levels = [scaled(section.thresholds, act) for act in grid]
    release = {level.act: level.release for level in levels}
    rule = replace(AlertRule.of(section), release=release.__getitem__, enter=enter)
    points = trade_off(scored_runs, grid, rule=rule)
    happened, detected = _exchangeable(scored_runs, grid, rule, goal)
    losses = run_losses(happened, detected)
    p_values, proven = prove(happened, detected, goal)
    bounds = _miss_bounds(points, losses, goal)
    return [
        _candidate(
            enter,
            thresholds,
            point,
            goal,
            missed=float(bounds[i]),
            p_value=None if p_values is None else float(p_values[i]),
            supported=i < proven,
        )
        for i, (thresholds, point) in enumerate(zip(levels, points, strict=True))
    ]


def _exchangeable(
    scored_runs: Sequence[ScoredRun], levels: Sequence[float], rule: AlertRule, goal: Goal
) -> tuple[Counts, Counts]:
    """Count violations and what each level detected by what is exchangeable: see `detections`."""
    happened, detected = detections(scored_runs, levels, rule=rule, block=goal.block)
    if not goal.clusters:
        return happened, detected
    _, group = np.unique(goal.clusters, return_inverse=True)
    groups = np.arange(group.max(initial=-1) + 1)[:, None] == group
    return groups @ happened, groups @ detected


def run_losses(happened: Counts, detected: Counts) -> Floats:
    """Return the share of violations that each run (or group) with one missed, shape (m, k)."""
    some = happened > 0
    return 1 - detected[some] / happened[some, None]


def prove(happened: Counts, detected: Counts, goal: Goal) -> tuple[Floats | None, int]:
    """Test the guarantee of a goal for one threshold after the other.

    `happened` (shape (n,)): violations of each run, block or group.
    `detected` (shape (n, k)): how many of them each threshold detected, from the most cautious one
        on.
    `goal`: the miss rate, the confidence and what is exchangeable.

    `p_values`: of "more is missed"; None if no guarantee was asked for (shape (k,) or None).
    `proven`: for how many thresholds, from the first on, the guarantee holds.
    """
    if goal.miss_rate is None:
        return None, detected.shape[1]
    if goal.unit == "run":
        p_values = bounded_p(run_losses(happened, detected), goal.miss_rate)
    else:
        missed = happened.sum() - detected.sum(axis=0)
        p_values = binomial_p(missed, int(happened.sum()), goal.miss_rate)
    return p_values, fixed_sequence(p_values, 1 - goal.confidence)


def _miss_bounds(points: Sequence[Point], losses: Floats, goal: Goal) -> Floats:
    if goal.unit == "run":
        return loss_bounds(losses, goal.confidence)
    return np.array([miss_bound(p.missed, p.violations, goal.confidence) for p in points])


def _candidate(
    enter: int,
    thresholds: Thresholds,
    point: Point,
    goal: Goal,
    *,
    missed: float,
    p_value: float | None,
    supported: bool,
) -> Candidate:
    leads = np.concatenate((point.leads, np.zeros(point.missed)))
    rate, share = point.false_alarms_per_hour, point.alert_share
    return Candidate(
        enter=enter,
        thresholds=thresholds,
        point=point,
        lead=float(np.median(leads)) if leads.size else np.nan,
        mean_lead=float(np.mean(leads)) if leads.size else np.nan,
        miss_bound=missed,
        false_alarm_bound=rate_bound(point.false_alarms, point.hours, goal.confidence),
        p_value=p_value,
        supported=supported,
        proven=supported and p_value is not None and not goal.crossed,
        affordable=rate is not None
        and share is not None
        and rate <= goal.false_alarms_per_hour
        and share <= goal.alert_share,
    )


def _support(scored_runs: Sequence[ScoredRun], goal: Goal) -> Support:
    happened, _ = _exchangeable(scored_runs, [1.0], AlertRule(), goal)
    violations, runs = int(happened.sum()), int((happened > 0).sum())
    trials = runs if goal.unit == "run" else violations
    (point,) = trade_off(scored_runs, [1.0])
    return Support(
        runs=len(happened),
        runs_with_violation=runs,
        violations=violations,
        hours=point.hours,
        trials=trials,
        least_miss_rate=miss_bound(0, trials, goal.confidence),
        needed_trials=None
        if goal.miss_rate is None
        else needed_trials(goal.miss_rate, goal.confidence),
        needed_hours=needed_exposure(goal.false_alarms_per_hour, goal.confidence),
    )
