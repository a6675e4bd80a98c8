"""One table for monitors of any kind: the same alerts, terms and intervals for all of them.

A contender is anything that gives a score a tick. Its threshold is fixed, or chosen on the runs for
learning; what the table says comes from the other runs, and intervals from resampling those as
wholes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.harness.page import resampled, rounded, table, told
from evaluation.harness.runs import Fold, Pass
from forewarn.assessment.comparison import best_point
from forewarn.assessment.episodes import AlertRule, ScoredRun, scored_run
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.reliability import (
    UNDECIDED,
    Predictions,
    calibrate,
    outcomes,
    pool,
    predictions,
)
from forewarn.assessment.tradeoff import Point, middle_of_best, pool_points, run_points
from forewarn.logic.specification import CompiledSpec

THRESHOLDS = (0.3, 0.5, 0.7)
"""Of risk: what the paper's 0.7, 0.5 and 0.3 for the probability of safety are."""


@dataclass(frozen=True)
class Group:
    """Runs that one threshold was chosen for: the runs for choosing, and those for judging."""

    tuning: Sequence[ScoredRun]
    judged: Sequence[ScoredRun]


@dataclass(frozen=True)
class Contender:
    """A monitor: its name, its alerts apart from the threshold, and its scores."""

    name: str
    rule: AlertRule
    groups: Sequence[Group]

    @property
    def judged(self) -> list[ScoredRun]:
        """All runs that the figures are about."""
        return [trace for group in self.groups for trace in group.judged]

    @property
    def tuning(self) -> list[ScoredRun]:
        """All runs that thresholds are chosen on."""
        return [trace for group in self.groups for trace in group.tuning]


Chooser = Callable[[Sequence[ScoredRun], AlertRule], float]
"""Returns the threshold that suits some runs best."""

Score = Callable[[Pass, ScoredRun], NDArray[np.float64]]
"""Returns the score of every tick of a run, the greater the more dangerous."""


def best_balance(traces: Sequence[ScoredRun], rule: AlertRule) -> float:
    """Return the score of greatest F1 over ticks, of which some precede a violation.

    Over alerts instead of ticks, one alarm that never ends would be the best of all where most
    runs have a violation. Infinity (never alert) if no violation follows any tick.
    """
    del rule
    scores, truths = [], []
    for trace in traces:
        followed, known = outcomes(trace)
        chosen = known & np.isin(trace.status, UNDECIDED) & np.isfinite(trace.score)
        scores.append(trace.score[chosen])
        truths.append(followed[chosen])
    score, truth = np.concatenate(scores), np.concatenate(truths)
    if not truth.any():
        return math.inf
    levels, where = np.unique(score, return_inverse=True)
    hits = np.cumsum(np.bincount(where, weights=truth)[::-1])[::-1]
    alarms = np.cumsum(np.bincount(where)[::-1])[::-1]
    chosen = middle_of_best(levels.tolist(), (2 * hits / (alarms + truth.sum())).tolist())
    assert chosen is not None
    return float(levels[chosen])


def within(budget: float, **limits: Any) -> Chooser:
    """Return the chooser of the longest lead within a budget of false alarms an hour."""
    return lambda traces, rule: best_point(traces, rule, budget, **limits).threshold


def risk_traces(runs: Iterable[Pass], name: str) -> list[ScoredRun]:
    """Return what the monitor said of a property in each run."""
    return [scored_run(track) for run in runs for track in run.tracks if track.name == name]


def contender(
    label: str, rule: AlertRule, folds: Iterable[Fold], name: str, score: Score | None = None
) -> Contender:
    """Return what the monitor said of a property, or another score of the same runs."""

    def traces(runs: Sequence[Pass]) -> list[ScoredRun]:
        told = risk_traces(runs, name)
        if score is None:
            return told
        return [
            trace._replace(score=score(run, trace), unseen=None)
            for run, trace in zip(runs, told, strict=True)
        ]

    return Contender(label, rule, [Group(*map(traces, fold)) for fold in folds])


def signal_contenders(
    compiled: CompiledSpec, name: str, folds: Sequence[Fold], signs: Mapping[str, float]
) -> list[Contender]:
    """Return single signals as contenders; -1 as sign where small values are the dangerous ones."""
    rule = without_own_release(AlertRule.of(compiled.spec.properties[name]))

    def score(signal: str, sign: float) -> Score:
        return lambda run, trace: sign * run.signals[signal]

    return [contender(s, rule, folds, name, score(s, sign)) for s, sign in signs.items()]


def without_own_release(rule: AlertRule) -> AlertRule:
    """Return the rule for a quantity: it releases where it alerts, for its zero means nothing."""
    return AlertRule(None, rule.enter, rule.exit, rule.hold)


def rows_of(
    contender: Contender,
    choose: Chooser,
    *,
    fixed: Sequence[float] = (),
    resamples: int = 500,
    seed: int = 1,
) -> list[dict[str, Any]]:
    """Return a row for each fixed threshold and one for the threshold chosen on other runs."""
    area = _area(contender, resamples, seed)
    rows = [
        _row(contender, [level] * len(contender.groups), f"{level:g}", resamples, seed)
        for level in fixed
    ]
    chosen = [choose(group.tuning, contender.rule) for group in contender.groups]
    rows.append(_row(contender, chosen, "tuned", resamples, seed))
    return [row | area for row in rows]


def _row(
    contender: Contender, thresholds: Sequence[float], how: str, resamples: int, seed: int
) -> dict[str, Any]:
    points = [
        point
        for group, threshold in zip(contender.groups, thresholds, strict=True)
        for point in run_points(group.judged, threshold, rule=contender.rule)
    ]
    whole = pool_points(points)

    def given(name: str, figure: Callable[[Point], float | None]) -> dict[str, Any]:
        about = f"{name.removesuffix('_per_hour')}_interval"
        return resampled(name, lambda drawn: figure(pool_points(drawn)), points,
                         resamples=resamples, seed=seed, ends=about)  # fmt: skip

    return {
        "monitor": contender.name,
        "threshold": how,
        "thresholds": list(map(rounded, thresholds)),
        "violations": whole.violations,
        "detected": whole.detected,
        **given("recall", lambda p: p.recall),
        **given("lead_mean", lambda p: p.lead.mean if p.lead else None),
        **given("lead_median", lambda p: p.lead.median if p.lead else None),
        "lead_fifth_percentile": rounded(whole.lead.fifth_percentile) if whole.lead else None,
        "false_alarms": whole.false_alarms,
        **given("false_alarms_per_hour", lambda p: p.false_alarms_per_hour),
        **given("precision", lambda p: p.precision),
        **given("alert_share", lambda p: p.alert_share),
        "hours": rounded(whole.hours),
    }


def _area(contender: Contender, resamples: int, seed: int) -> dict[str, Any]:
    def area(runs: Sequence[ScoredRun]) -> float | None:
        return precision_recall(runs, contender.rule.unseen).area

    return resampled("area", area, contender.judged, resamples=resamples, seed=seed)


def calibration_of(
    runs: Iterable[Pass], name: str, *, resamples: int = 200, seed: int = 1
) -> dict[str, Any] | None:
    """Return Brier score, its skill, expected calibration error and the reliability bins."""
    parts = [predictions(t) for run in runs for t in run.tracks if t.name == name]
    found = calibrate(pool(parts))
    if found is None:
        return None

    def given(name: str) -> dict[str, Any]:
        def figure(drawn: Sequence[Predictions]) -> float | None:
            return getattr(calibrate(pool(drawn)), name, None)

        return resampled(name, figure, parts, resamples=resamples, seed=seed)

    return {
        "ticks": found.ticks,
        "censored": found.censored,
        "base_rate": rounded(found.base_rate),
        **given("brier"),
        "skill": rounded(found.skill),
        **given("expected_error"),
        "bins": [[b.ticks, rounded(b.predicted), rounded(b.observed)] for b in found.bins],
    }


def compare(
    forewarn: Contender,
    rivals: Sequence[Contender],
    choose: Chooser,
    *,
    resamples: int = 500,
    seed: int = 1,
) -> list[dict[str, Any]]:
    """Return the rows of the monitor, then of every rival.

    Rivals are sorted by their area under the precision-recall curve on the tuning runs: the first
    is the one that somebody would have taken who knew no others.
    """
    rows = rows_of(forewarn, choose, fixed=THRESHOLDS, resamples=resamples, seed=seed)
    ranked = sorted(
        rivals, key=lambda rival: -precision_recall(rival.tuning, rival.rule.unseen).area
    )
    for rival in ranked:
        rows += rows_of(rival, choose, resamples=resamples, seed=seed)
    return rows


HEADINGS = (
    *("Monitor", "Threshold", "Found", "Lead mean", "median", "5 %"),
    *("False alarms/h", "In alert", "Precision", "PR area"),
)


def markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the rows as a table, intervals in brackets."""
    return table(HEADINGS, list(map(_cells, rows))).rstrip()


def _cells(row: Mapping[str, Any]) -> list[str]:
    def seconds(value: float | None) -> str:
        return "-" if value is None else f"{value:.2g} s" if value < 10 else f"{value:.1f} s"

    return [
        row["monitor"],
        row["threshold"] if row["threshold"] != "tuned" else _tuned(row["thresholds"]),
        f"{row['detected']} of {row['violations']}",
        seconds(row["lead_mean"]),
        seconds(row["lead_median"]),
        seconds(row["lead_fifth_percentile"]),
        told(row, "false_alarms_per_hour", "{:.0f}", "false_alarms_interval"),
        _share(row["alert_share"]),
        told(row, "precision", "{:.2f}"),
        told(row, "area", "{:.2f}"),
    ]


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2g} %" if value < 0.0995 else f"{100 * value:.0f} %"


def _tuned(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "tuned: never"
    low, high = min(known), max(known)
    return f"tuned: {low:.2g}" if low == high else f"tuned: {low:.2g} to {high:.2g}"
