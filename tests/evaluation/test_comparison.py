"""What the tables of the studies are made with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evaluation.harness.compare import (
    Contender,
    Group,
    best_balance,
    calibration_of,
    markdown,
    rows_of,
    within,
)
from forewarn.assessment.comparison import best_point
from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.tradeoff import trade_off
from forewarn.monitoring.verdict import PropertyStatus

HORIZON = 5
RULE = AlertRule(exit=1, hold=0.0)


def trace(score: Sequence[float], violations: Sequence[int]) -> ScoredRun:
    size = len(score)
    happened = np.isin(np.arange(size), violations)
    status = np.where(happened, PropertyStatus.VIOLATED, PropertyStatus.SATISFIED_SO_FAR).astype(
        np.int8
    )
    return ScoredRun(10.0, HORIZON, np.arange(size), np.array(score, float), happened, status)


def random_traces(seed: int) -> list[ScoredRun]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(4):
        violations = rng.choice(60, 3, replace=False)
        near = np.array([((violations > t) & (violations <= t + HORIZON)).any() for t in range(60)])
        found.append(trace(np.round(rng.random(60) + 0.5 * near, 1), violations))
    return found


def balance(traces: Sequence[ScoredRun], threshold: float) -> float:
    """F1 over ticks, counted one by one."""
    right = alarms = positive = 0
    for one_trace in traces:
        violated = np.flatnonzero(one_trace.violation)
        for tick in range(len(one_trace.ticks)):
            follows = bool(((violated > tick) & (violated <= tick + HORIZON)).any())
            judged = follows or tick + HORIZON < len(one_trace.ticks)
            if judged and not one_trace.violation[tick]:
                positive += follows
                alarms += one_trace.score[tick] >= threshold
                right += follows and one_trace.score[tick] >= threshold
    return 2 * right / (alarms + positive)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_balance_is_the_best_of_all(seed: int) -> None:
    traces = random_traces(seed)
    levels = np.unique(np.concatenate([one_trace.score for one_trace in traces]))
    chosen = best_balance(traces, RULE)
    assert chosen in levels
    assert balance(traces, chosen) == max(balance(traces, level) for level in levels)


def test_where_nothing_happens_the_best_threshold_is_never_reached() -> None:
    assert best_balance([trace([0.1] * 20, [])], RULE) == math.inf


@pytest.mark.parametrize("budget", [0.0, 500.0, 3000.0])
def test_a_budget_is_kept_if_any_threshold_keeps_it(budget: float) -> None:
    traces = random_traces(7)
    points = {point.threshold: point for point in trade_off(traces, rule=RULE)}
    rates = [point.false_alarms_per_hour or 0.0 for point in points.values()]
    chosen = best_point(traces, RULE, budget)
    if min(rates) <= budget:
        assert (chosen.false_alarms_per_hour or 0.0) <= budget
        leads = [sum(p.leads) for p, rate in zip(points.values(), rates, strict=True)
                 if rate <= budget]  # fmt: skip
        assert sum(chosen.leads) == max(leads)
    else:
        assert chosen.threshold == math.inf and chosen.alerts == 0


def test_a_tie_is_decided_as_tune_does() -> None:
    # A lead is at most the horizon, so that all thresholds foresee as much.
    run = trace([0.0, 0.2, 0.3, 0.4] + [0.9] * 7 + [0.0], [10])
    found = best_point([run], RULE, math.inf)
    points = trade_off([run], rule=RULE)
    alike = [p for p in points if (p.leads, p.false_alarms) == (found.leads, found.false_alarms)]
    middle = (alike[0].threshold + alike[-1].threshold) / 2
    assert len(alike) == 5
    assert abs(found.threshold - middle) == min(abs(p.threshold - middle) for p in alike)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3])
def test_a_share_of_alerts_is_kept_or_there_is_no_alert(share: float) -> None:
    traces = random_traces(7)
    points = trade_off(traces, rule=RULE)
    allowed = [point for point in points if (point.alert_share or 0.0) <= share]
    chosen = best_point(traces, RULE, math.inf, alert_share=share)
    if allowed:
        assert chosen in allowed
        assert sum(chosen.leads) == max(sum(point.leads) for point in allowed)
    else:
        assert chosen.threshold == math.inf and chosen.alerts == 0
    few = best_point(traces, RULE, math.inf, ranks=2)
    assert few.threshold in (points[0].threshold, points[-1].threshold)


def test_each_group_is_judged_with_its_own_threshold() -> None:
    low = trace([0.1] * 10 + [0.2] * 4 + [0.1] * 6, [13])
    high = low._replace(score=low.score * 10)
    contender = Contender("two scales", RULE, [Group([low], [low]), Group([high], [high])])
    (row,) = rows_of(contender, best_balance, resamples=20)
    assert row["thresholds"] == [0.2, 2.0]
    assert (row["detected"], row["violations"], row["false_alarms"]) == (2, 2, 0)
    assert row["lead_median"] == pytest.approx(0.3)


def test_a_table_has_a_row_for_each_threshold() -> None:
    contender = Contender("it", RULE, [Group(random_traces(1), random_traces(2))])
    rows = rows_of(contender, within(1000.0), fixed=(0.3, 0.9), resamples=20)
    lines = markdown(rows).splitlines()
    assert [row["threshold"] for row in rows] == ["0.3", "0.9", "tuned"]
    assert len(lines) == 2 + 3
    assert len({line.count("|") for line in lines}) == 1
    for row in rows:
        low, high = row["area_interval"]
        assert low <= row["area"] <= high


def a_run(found: ScoredRun) -> Any:
    """Return what `calibration_of` looks at of a run."""
    track = SimpleNamespace(
        name="it",
        probability=np.clip(found.score / 2, 0.0, 1.0),
        state=np.zeros(len(found.ticks), dtype=np.int64),
        unsure=None,
        terminal=None,
        **{name: getattr(found, name) for name in ("ticks", "violation", "status", "horizon")},
    )
    return SimpleNamespace(tracks=[track])


def test_calibration_has_intervals_from_runs_drawn_as_wholes() -> None:
    runs = [a_run(random_trace) for random_trace in random_traces(3)]
    found = calibration_of(runs, "it", resamples=300, seed=5)
    assert found is not None
    alone = [calibration_of([run], "it") for run in runs]
    ticks = np.array([item["ticks"] for item in alone if item is not None])
    squares = ticks * [item["brier"] for item in alone if item is not None]
    drawn = np.random.default_rng(5).integers(len(runs), size=(300, len(runs)))
    scores = squares[drawn].sum(axis=1) / ticks[drawn].sum(axis=1)
    assert found["brier_interval"] == pytest.approx(np.quantile(scores, [0.025, 0.975]), rel=1e-3)
    low, high = found["brier_interval"]
    assert low < found["brier"] < high
    low, high = found["expected_error_interval"]
    assert 0 < low < high < 1
    assert alone[0] is not None and alone[0]["brier_interval"] == [None, None]
