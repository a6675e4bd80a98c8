"""Trade-offs against the policy and the events themselves, walked tick by tick."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from walked_runs import LEVELS, THRESHOLDS, a_trace, a_track, alerts_at, cells, drawn, rules, walked

from forewarn.assessment.episodes import AlertRule, scored_run
from forewarn.assessment.events import find_events, score
from forewarn.assessment.history import Track
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.resampling import bootstrap, interval
from forewarn.assessment.tradeoff import (
    Point,
    detections,
    every_threshold,
    middle_of_best,
    pool_points,
    run_points,
    trade_off,
)
from forewarn.monitoring.policy import Level


@settings(deadline=None)
@given(st.lists(cells, min_size=1, max_size=3), rules, st.data())
def test_alerts_and_figures_are_those_of_the_policy_and_of_the_events(
    runs: list[list[tuple[str, float]]], rule: AlertRule, data: st.DataObject
) -> None:
    tracks = [
        a_track(run, data.draw(st.lists(st.sampled_from([1] * 9 + [4]), min_size=len(run),
                                        max_size=len(run))))
        for run in runs
    ]  # fmt: skip
    traces = [scored_run(track) for track in tracks]
    thresholds = [0.25, 0.9, 0.1, 0.5]
    options = {name: getattr(rule, name) for name in AlertRule.__dataclass_fields__}
    for point in trade_off(traces, thresholds, rule=rule):
        by_hand = [walked(track, point.threshold, rule) for track in tracks]
        for trace, track in zip(traces, by_hand, strict=True):
            on = alerts_at(trace, point.threshold, **options)
            np.testing.assert_array_equal(on, track.level == Level.ACT)
        same_as_events(point, by_hand)
        singles = run_points(traces, point.threshold, rule=rule)
        for single, track in zip(singles, by_hand, strict=True):
            same_as_events(single, [track])
        pooled = pool_points(singles)
        assert pooled.hours == pytest.approx(point.hours)
        assert pooled.alert_hours == pytest.approx(point.alert_hours)
        alike = replace(pooled, hours=point.hours, alert_hours=point.alert_hours)
        assert alike == point
        happened, detected = detections(traces, [point.threshold], rule=rule)
        assert happened.tolist() == [single.violations for single in singles]
        assert detected[:, 0].tolist() == [single.detected for single in singles]


def same_as_events(point: Point, tracks: list[Track]) -> None:
    events = [find_events(track) for track in tracks]
    expected = score("rule", events)
    leads = [v.lead for event in events for v in event.violations if v.lead is not None]
    assert list(point.leads) == leads
    assert point.hours == pytest.approx(expected.hours)
    assert point.alert_hours == pytest.approx(expected.alert_hours)
    for name in ("violations", "detected", "alerts", "right", "late", "false_alarms", "missed",
                 "recall", "precision", "lead"):  # fmt: skip
        ours, theirs = getattr(point, name), getattr(expected, name)
        assert (ours, type(ours)) == (theirs, type(theirs)), name


@pytest.mark.parametrize("block", [None, 7])
def test_long_runs_give_the_figures_of_the_events_run_by_run_and_block_by_block(
    block: int | None,
) -> None:
    for tracks, rule in drawn(60):
        runs = [scored_run(track) for track in tracks]
        walks = [[walked(track, level, rule) for track in tracks] for level in THRESHOLDS]
        for point, by_hand in zip(trade_off(runs, THRESHOLDS, rule=rule), walks, strict=True):
            same_as_events(point, by_hand)
        happened, detected = detections(runs, THRESHOLDS, rule=rule, block=block)
        assert happened.dtype == detected.dtype == np.int64
        for column, by_hand in zip(detected.T.tolist(), walks, strict=True):
            expected = [pair for track in by_hand for pair in by_block(track, block)]
            assert list(zip(happened.tolist(), column, strict=True)) == expected


def by_block(track: Track, block: int | None) -> list[tuple[int, int]]:
    """Count violations and detected ones, one after the other, in each block of the ticks."""
    places = [0] if block is None else sorted({int(tick) // block for tick in track.ticks})
    found = {place: [0, 0] for place in range(places[0], places[-1] + 1)} if places else {0: [0, 0]}
    for violation in find_events(track).violations:
        counts = found[0 if block is None else violation.tick // block]
        counts[0] += 1
        counts[1] += violation.lead is not None
    return [(happened, detected) for happened, detected in found.values()]


@given(st.lists(st.none() | st.integers(0, 2), max_size=8))
def test_of_equal_thresholds_the_middle_of_the_lowest_range_is_chosen(
    merits: list[int | None],
) -> None:
    levels = [k * k / 100 for k in range(len(merits))]
    chosen = middle_of_best(levels, merits)
    greatest = [k for k, merit in enumerate(merits) if merit is not None and merit == max(
        other for other in merits if other is not None)]  # fmt: skip
    if not greatest:
        assert chosen is None
        return
    flat = [k for k in greatest if set(range(greatest[0], k + 1)) <= set(greatest)]
    middle = (levels[flat[0]] + levels[flat[-1]]) / 2
    assert chosen in flat
    assert abs(levels[chosen] - middle) == min(abs(levels[k] - middle) for k in flat)


def test_thinned_thresholds_keep_both_ends() -> None:
    trace = a_trace([i / 1000 for i in range(1000)])
    thin = every_threshold([trace], limit=7)
    assert len(thin) == 7
    assert (thin[0], thin[-1]) == (0.0, 0.999)


def test_scores_need_no_unit_interval() -> None:
    """Minus the time to collision, say: known by its worst value being the greatest."""
    trace = a_trace([-math.inf, -9.0, -3.0, -2.0, -1.0, -math.inf, math.inf], (4,))
    (point,) = trade_off([trace], -3, rule=AlertRule(exit=1, hold=0.0))
    assert isinstance(point.threshold, float)
    assert (point.detected, point.leads, point.false_alarms) == (1, (0.2,), 1)


@pytest.mark.parametrize(("row", "right"), [(4, 1), (5, 0)])
def test_an_alert_that_is_over_was_right_up_to_the_horizon(row: int, right: int) -> None:
    trace = a_trace([0.0, 0.9] + [0.0] * 5, (row,), horizon=3)
    (point,) = trade_off([trace], 0.5, rule=AlertRule(exit=1, hold=0.0))
    assert (point.alerts, point.right, point.false_alarms) == (1, right, 1 - right)


def test_a_missed_violation_counts_as_no_lead_in_the_median() -> None:
    point = Point(0.5, 4, 2, (3.0, 1.0), 2, 2, 0, 0, 1.0)
    assert point.median_lead == 0.5
    assert point.lead is not None and point.lead.median == 2.0
    assert Point(0.5, 0, 0, (), 0, 0, 0, 0, 0.0).median_lead is None


def test_nothing_to_judge_gives_points_without_figures() -> None:
    (point,) = trade_off([], [0.5])
    assert (point.recall, point.precision, point.false_alarms_per_hour) == (None, None, None)
    assert trade_off([]) == trade_off([a_trace([math.nan])]) == ()
    with pytest.raises(ValueError, match=r"^no points to add up$"):
        pool_points([])


def average_precision(scores: list[float], truths: list[bool]) -> float:
    """Davis and Goadrich's sum, every threshold counted out."""
    area, before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        chosen = [t for s, t in zip(scores, truths, strict=True) if s >= threshold]
        recall = sum(chosen) / sum(truths)
        area += (recall - before) * sum(chosen) / len(chosen)
        before = recall
    return area


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.booleans()), min_size=4, max_size=40))
@example([(0.5, True), (0.5, False), (0.1, True), (0.9, False)])
def test_the_area_is_the_average_precision(run: list[tuple[float, bool]]) -> None:
    happened = tuple(i for i, (_, v) in enumerate(run) if v)
    trace = a_trace([s for s, _ in run], happened, horizon=3)
    pairs = [
        (s, any(i < v <= i + 3 for v in happened))
        for i, (s, violated) in enumerate(run)
        if not violated and i + 3 < len(run)
    ]
    found = precision_recall([trace])
    if not any(t for _, t in pairs):
        assert math.isnan(found.area)
        return
    scores, truths = [s for s, _ in pairs], [t for _, t in pairs]
    assert found.area == pytest.approx(average_precision(scores, truths))
    assert found.recall[-1] == 1.0
    assert found.precision[-1] == pytest.approx(sum(truths) / len(truths))


def test_a_tick_without_a_score_is_judged_as_the_policy_takes_it() -> None:
    trace = a_trace([math.nan, 0.5, 0.5, 0.5, 0.0, 0.0], (3,), horizon=2)
    silent = precision_recall([trace])
    out_of_model = np.array([True] + [False] * 5)
    alarmed = precision_recall([trace._replace(out_of_model=out_of_model)])
    assert silent.area == 1.0  # nothing follows the tick without a score, which did not warn
    assert alarmed.area == pytest.approx(0.5 * 0 + 1.0 * 2 / 3)
    told = a_trace([0.1, 0.5, 0.5, 0.5, 0.0, 0.0], (3,), horizon=2)._replace(
        out_of_model=out_of_model
    )
    assert precision_recall([told]).area == 1.0  # scores told what the model did not know
    for answer in ("warn", "ignore"):
        assert precision_recall([trace._replace(out_of_model=out_of_model)], answer).area == 1.0


@pytest.mark.parametrize(("number", "least"), [(4, 0.8), (8, 0.86), (22, 0.92)])
def test_an_interval_from_few_runs_is_as_wide_as_that_of_a_mean(number: int, least: float) -> None:
    """Means of skewed values: quantiles alone cover them in 75, 84 and 91 % of all cases."""
    draws = np.random.default_rng(5)
    covered = plain = 0
    for _ in range(600):
        values = draws.exponential(size=number)
        means = values[draws.integers(number, size=(800, number))].mean(axis=1)
        low, high = interval(means, number)
        covered += low <= 1.0 <= high
        plain += np.quantile(means, 0.025) <= 1.0 <= np.quantile(means, 0.975)
    assert covered / 600 > least > plain / 600 - 0.005


def test_whole_runs_are_resampled() -> None:
    runs = [1.0] * 50 + [0.0] * 50

    def mean(chosen: Any) -> float:
        assert len(chosen) == 100
        return float(np.mean(chosen))

    low, high = bootstrap(runs, mean, resamples=500, seed=1)
    assert 0.36 < low < 0.45
    assert 0.55 < high < 0.64
    assert bootstrap(runs, mean, resamples=500, seed=1) == (low, high)
    narrow = bootstrap(runs, mean, resamples=500, seed=1, level=0.5)
    assert low < narrow[0] < narrow[1] < high
    assert all(math.isnan(end) for end in bootstrap(runs[:1], mean, seed=1))
    assert all(math.isnan(end) for end in bootstrap(runs, lambda _: None, seed=1))


def test_the_ends_are_quantiles_of_the_resampled_statistic() -> None:
    for runs, level in (([0.0, 1.0], 0.95), ([0.0, 1.0, 5.0, 11.5, 27.0, 31.0], 0.8)):
        means: list[float] = []

        def mean(chosen: Any, means: list[float] = means) -> float:
            means.append(float(np.mean(chosen)))
            return means[-1]

        low, high = bootstrap(runs, mean, seed=3, level=level)
        assert len(means) == 1000
        n = len(runs)
        tail = stats.norm.cdf(stats.t(n - 1).ppf((1 - level) / 2) * math.sqrt(n / (n - 1)))
        ends = np.quantile(means, [tail, 1 - tail])
        assert (low, high) == pytest.approx(tuple(ends))


def test_only_scores_that_can_begin_an_alert_are_thresholds() -> None:
    trace = a_trace([math.nan, -math.inf, 0.5, 0.5, math.inf])
    assert every_threshold([trace]).tolist() == [0.5, math.inf]


@pytest.mark.timeout(100)  # a walk of the policy for each threshold would take minutes
def test_many_thresholds_over_many_runs_take_seconds() -> None:
    generator = np.random.default_rng(7)
    walk = np.cumsum(generator.normal(size=(50, 2000)), axis=1)
    traces = [a_trace((1 / (1 + np.exp(-run / 10))).tolist(), (500, 1500), 30) for run in walk]
    points = trade_off(traces, np.linspace(0.001, 0.999, 500))
    recalls = [point.detected for point in points]
    assert len(set(recalls)) > 20
