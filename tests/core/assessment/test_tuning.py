"""Choosing thresholds in worlds whose truth is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.tradeoff import detections, trade_off
from forewarn.assessment.tuning import (
    GRID,
    LEAST_VIOLATIONS,
    Goal,
    Unit,
    prove,
    scaled,
    tune,
)
from forewarn.cli.tune_output import conclusions, obstacles, warnings
from forewarn.config.sections import PropertySpec, Thresholds
from forewarn.monitoring.verdict import PropertyStatus

SECTION = PropertySpec(
    formula="always(not crash)",
    thresholds=Thresholds(warn=0.25, act=0.5, release=0.2),
    enter=1,
    exit=1,
    hold=0.0,
)
RATE = 10.0
HORIZON = 30


def a_goal(*arguments: Any, **options: Any) -> Goal:
    """Return a goal that is content with one violation."""
    return Goal(*arguments, **{"least_violations": 1, **options})


def a_run(peaks: list[float], noise: list[float] = [], lead: int = 10) -> ScoredRun:  # noqa: B006
    """One violation after each peak of the score, `lead` ticks later; a lone peak per noise."""
    block = HORIZON + 20
    score = np.zeros((len(peaks) + len(noise), block))
    violation = np.zeros(score.shape, dtype=bool)
    for i, peak in enumerate(peaks):
        score[i, 5 : 6 + lead] = peak
        violation[i, 5 + lead] = True
    for i, peak in enumerate(noise, len(peaks)):
        score[i, 5] = peak
    happened = violation.ravel()
    status = np.where(happened, PropertyStatus.VIOLATED, PropertyStatus.SATISFIED_SO_FAR).astype(
        np.int8
    )
    return ScoredRun(RATE, HORIZON, np.arange(score.size), score.ravel(), happened, status)


def test_the_longest_lead_within_the_budget_wins() -> None:
    run = a_run([0.35, 0.35], [0.4, 0.2])
    late = np.flatnonzero(run.violation)[:, None] - np.arange(5)
    run.score[late] = 0.9  # 0.35 one second before each violation, 0.9 in its last half
    hours = len(run.ticks) / RATE / 3600
    found = tune("crash", SECTION, [run], a_goal(1.5 / hours, alert_share=1.0))
    assert found.chosen is not None
    assert (found.chosen.thresholds.act, found.chosen.lead) == (0.28, 1.0)  # of 0.21 to 0.35
    assert found.chosen.point.false_alarms == 1
    stricter = tune("crash", SECTION, [run], a_goal(0.5 / hours, alert_share=1.0))
    assert stricter.chosen is not None
    assert (stricter.chosen.thresholds.act, stricter.chosen.lead) == (0.65, 0.4)  # of 0.41 to 0.9
    assert (stricter.support.runs, stricter.support.violations) == (1, 2)


def test_equal_leads_are_told_apart_by_false_alarms_and_then_the_middle_is_taken() -> None:
    found = tune("crash", SECTION, [a_run([0.9], [0.3])], a_goal(1e6, alert_share=1.0))
    assert found.chosen is not None
    assert found.chosen.thresholds.act == pytest.approx(0.605, abs=0.006)  # of 0.31 to 0.9
    assert found.chosen.point.false_alarms == 0


def test_where_every_threshold_finds_the_same_the_middle_one_is_chosen() -> None:
    found = tune("crash", SECTION, [a_run([1.0] * 6)], a_goal(1.0, alert_share=1.0))
    assert {(c.lead, c.point.false_alarms) for c in found.candidates} == {(1.0, 0)}
    assert found.chosen is not None
    assert found.chosen.thresholds.act == pytest.approx(0.5, abs=0.006)


def test_of_two_ranges_that_are_equal_the_lower_one_is_taken() -> None:
    run = a_run([0.0, 0.0])
    run.violation[:], run.status[:] = False, PropertyStatus.SATISFIED_SO_FAR
    run.violation[80], run.status[80] = True, PropertyStatus.VIOLATED
    run.score[30], run.score[31:40], run.score[40:81] = 0.5, 0.1, 0.9
    # An alert is released below 0.4 of its threshold. Up to 0.25 the bump is in the right alert,
    # which is as long as the horizon in any case; up to 0.5 it is a false one; above, it is none.
    found = tune("crash", SECTION, [run], a_goal(1e9, alert_share=1.0))
    false = {c.thresholds.act: c.point.false_alarms for c in found.candidates if c.lead == 3.0}
    assert (false[0.2], false[0.4], false[0.8]) == (0, 1, 0)
    assert found.chosen is not None
    assert found.chosen.thresholds.act == pytest.approx(0.125, abs=0.006)


@pytest.mark.parametrize(("count", "chosen"), [(4, False), (5, True)])
def test_nothing_is_recommended_from_too_few_violations(count: int, chosen: bool) -> None:
    found = tune("crash", SECTION, [a_run([0.9] * count)], Goal(1.0, alert_share=1.0))
    assert LEAST_VIOLATIONS == 5
    assert (found.chosen is not None) == chosen
    assert found.candidates  # the trade-off is shown in any case
    (told,) = warnings(found)
    assert f"ONLY {count} VIOLATIONS" in told
    if not chosen:
        (why,) = obstacles(found)
        assert why == (
            "nothing is recommended from 4 violations: record at least 5, or say "
            "--least-violations 4"
        )


def test_folds_support_a_guarantee_and_do_not_prove_it() -> None:
    runs = [a_run([0.9]) for _ in range(60)]
    alone = tune("crash", SECTION, runs, a_goal(1.0, miss_rate=0.1, alert_share=1.0))
    crossed = tune(
        "crash", SECTION, runs, a_goal(1.0, miss_rate=0.1, alert_share=1.0, crossed=True)
    )
    assert alone.chosen is not None and crossed.chosen is not None
    assert (alone.chosen.supported, alone.chosen.proven) == (True, True)
    assert (crossed.chosen.supported, crossed.chosen.proven) == (True, False)
    assert any(line.startswith("proven at 90 %: at most 10 %") for line in conclusions(alone))
    assert any(line.startswith("supported, not proven: at") for line in conclusions(crossed))


def test_blocks_of_one_long_run_count_as_runs_do() -> None:
    generator = np.random.default_rng(3)
    peaks = generator.random((12, 2)).round(3).tolist()
    runs = [a_run(one_peak) for one_peak in peaks]
    long = a_run([peak for one_peak in peaks for peak in one_peak])
    size = len(runs[0].ticks)
    levels = [0.1, 0.5, 0.9]
    rule = AlertRule.of(SECTION)
    for one, other in zip(
        detections(runs, levels, rule=rule),
        detections([long], levels, rule=rule, block=size),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    goal = a_goal(1e9, miss_rate=0.4, alert_share=1.0)
    apart, whole = (
        tune("crash", SECTION, traces, replace(goal, block=block))
        for traces, block in ((runs, None), ([long], size))
    )
    assert apart.support == whole.support
    assert [c.p_value for c in apart.candidates] == [c.p_value for c in whole.candidates]


def test_an_alarm_that_never_ends_is_no_foresight() -> None:
    always = a_run([0.9])
    always = always._replace(score=np.maximum(always.score, 0.05))
    goal = a_goal(false_alarms_per_hour=1e6, alert_share=0.5)
    found = tune("crash", SECTION, [always], goal)
    assert found.chosen is not None
    assert found.chosen.thresholds.act > 0.05
    first = found.candidates[0]
    assert first.point.alert_share is not None and first.point.alert_share > 0.9
    assert not first.affordable
    assert first.lead <= HORIZON / RATE


def test_thresholds_keep_their_proportions_and_their_order() -> None:
    section = Thresholds(warn=0.25, act=0.5, release=0.2)
    assert scaled(section, 0.3) == Thresholds(warn=0.15, act=0.3, release=0.12)
    assert scaled(section, 0.5) == section


@settings(deadline=None)
@given(st.sampled_from(GRID), st.floats(0.001, 1), st.floats(0, 1), st.floats(1e-6, 0.9999))
def test_scaled_thresholds_are_always_valid(
    act: float, at: float, warn: float, free: float
) -> None:
    section = Thresholds(act=at, warn=warn * at, release=free * at)
    found = scaled(section, act)
    assert found.act == act
    assert found.release < found.act
    assert found.warn <= found.act


def test_the_present_thresholds_are_judged_as_well() -> None:
    runs = [a_run([0.9, 0.45])]
    found = tune("crash", SECTION, runs, a_goal(1.0, alert_share=1.0))
    assert found.present.thresholds == SECTION.thresholds
    assert found.present.point.missed == 1
    (same,) = trade_off(runs, [0.5], rule=AlertRule(0.2, exit=1, hold=0.0))
    assert found.present.point == same


def test_nothing_is_chosen_without_violations_or_within_an_impossible_budget() -> None:
    assert tune("crash", SECTION, [a_run([], [0.5])], a_goal(1e6)).chosen is None
    noisy = a_run([0.9], [0.999] * 3)
    assert tune("crash", SECTION, [noisy], a_goal(1.0)).chosen is None


def test_several_enters_are_tried_at_their_share_of_the_error() -> None:
    flicker = a_run([0.6], [0.9, 0.9])  # one tick of noise above what precedes the violation
    alone = tune("crash", SECTION, [flicker], a_goal(1.0))
    assert alone.chosen is None
    goal = a_goal(1.0, miss_rate=0.9, confidence=0.5, enter=(1, 2), alert_share=1.0)
    found = tune("crash", SECTION, [flicker], goal)
    assert found.chosen is not None
    assert (found.chosen.enter, found.chosen.thresholds.act) == (2, 0.3)  # of 0.001 to 0.6
    assert found.support.least_miss_rate == pytest.approx(0.75)  # at 75 %, not 50 %


def test_too_few_violations_prove_nothing() -> None:
    runs = [a_run([0.9]) for _ in range(12)]
    goal = a_goal(1.0, miss_rate=0.05, confidence=0.95, alert_share=1.0)
    found = tune("crash", SECTION, runs, goal)
    assert found.chosen is None
    assert found.support.trials == 12
    assert found.support.needed_trials == 59
    assert found.support.least_miss_rate == pytest.approx(0.2209, abs=1e-4)
    enough = tune("crash", SECTION, runs * 5, goal)
    assert enough.chosen is not None
    assert enough.chosen.miss_bound <= 0.05
    assert enough.chosen.false_alarm_bound == pytest.approx(
        -math.log(0.05) / (60 * len(runs[0].ticks) / RATE / 3600)
    )


WORLDS = 1000
ALPHA, DELTA = 0.2, 0.1


def broken_promises(unit: Unit, together: int) -> float:
    """Return how often the true miss rate of the highest proven threshold exceeds the promise.

    Scores before violations are uniform in (0, 1), so a threshold t misses the share t. Those of
    one run are `group_by` times the same: the worst dependence.
    """
    generator = np.random.default_rng(2021)
    goal = a_goal(1.0, miss_rate=ALPHA, confidence=1 - DELTA, unit=unit)
    grid = np.array(GRID)
    happened = np.full(40, together)
    wrong = 0
    for _ in range(WORLDS):
        peaks = generator.random(40)
        detected = together * (peaks[:, None] >= grid).astype(np.int64)
        _, proven = prove(happened, detected, goal)
        wrong += proven > 0 and grid[proven - 1] > ALPHA
    return wrong / WORLDS


TOLERANCE = 2 * math.sqrt(DELTA * (1 - DELTA) / WORLDS)


@pytest.mark.parametrize("unit", ["run", "violation"])
def test_the_true_miss_rate_exceeds_the_promise_as_rarely_as_said(unit: Unit) -> None:
    rate = broken_promises(unit, together=1)
    assert rate <= DELTA + TOLERANCE
    assert unit == "run" or rate > 0.03  # the exact test wastes little


def test_violations_that_depend_are_why_runs_are_counted() -> None:
    assert broken_promises("run", together=3) <= DELTA + TOLERANCE
    assert broken_promises("violation", together=6) > 1.5 * DELTA


def test_runs_of_a_group_that_are_alike_are_why_groups_are_counted() -> None:
    """As above, but all 20 runs of a group have the same score before their violation."""
    generator = np.random.default_rng(2022)
    goal, size = a_goal(1.0, miss_rate=ALPHA, confidence=1 - DELTA), 20
    grid = np.array(GRID)
    broken = {"runs": 0, "groups": 0}
    for _ in range(WORLDS):
        detected = (generator.random((20, 1)) >= grid).astype(np.int64)
        runs = np.ones(20 * size, dtype=np.int64), np.repeat(detected, size, axis=0)
        for name, counts in (("runs", runs), ("groups", (np.full(20, size), size * detected))):
            _, proven = prove(*counts, goal)
            broken[name] += bool(proven > 0 and grid[proven - 1] > ALPHA)
    assert broken["groups"] / WORLDS <= DELTA + TOLERANCE
    assert broken["runs"] / WORLDS > 2 * DELTA


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.05, 1.0)), min_size=1, max_size=8))
@settings(max_examples=examples(20), deadline=None)
def test_a_group_is_one_run_with_the_violations_of_all_its_runs(
    runs: list[tuple[int, float]],
) -> None:
    goal = a_goal(1e9, miss_rate=0.4, alert_share=1.0)
    alone = [a_run([peak]) for _, peak in runs]
    grouped = tune(
        "crash", SECTION, alone, replace(goal, clusters=tuple(str(group) for group, _ in runs))
    )
    whole = [a_run([p for g, p in runs if g == group]) for group in sorted({g for g, _ in runs})]
    together = tune("crash", SECTION, whole, goal)
    assert grouped.support.runs == len(whole)
    assert grouped.support.trials == together.support.trials
    for one, other in zip(grouped.candidates, together.candidates, strict=True):
        assert one.p_value == pytest.approx(other.p_value)
        assert one.miss_bound == pytest.approx(other.miss_bound)
        assert (one.proven, one.lead) == (other.proven, other.lead)


def test_what_is_promised_names_groups() -> None:
    runs = [a_run([0.9]) for _ in range(60)]
    clusters = tuple(f"robot={i // 2}" for i in range(60))
    goal = a_goal(1.0, miss_rate=0.1, alert_share=1.0, clusters=clusters)
    found = tune("crash", SECTION, runs, goal)
    (promise,) = [line for line in conclusions(found) if line.startswith("proven")]
    assert "30 groups with a violation, exchangeable" in promise
    assert "on average over groups that have one" in promise


def test_the_guarantee_is_tested_on_what_the_runs_detected() -> None:
    generator = np.random.default_rng(1)
    peaks = generator.random((30, 2)).round(3)
    goal = a_goal(1e9, miss_rate=0.4, alert_share=1.0)
    found = tune("crash", SECTION, [a_run(run) for run in peaks.tolist()], goal)
    detected = (peaks[:, :, None] >= np.array(GRID)).sum(axis=1)
    p_values, proven = prove(np.full(30, 2), detected, goal)
    assert p_values is not None
    assert 10 < proven < len(GRID) - 10
    assert [c.p_value for c in found.candidates] == pytest.approx(p_values.tolist())
    assert [c.proven for c in found.candidates] == [i < proven for i in range(len(GRID))]


def test_a_section_with_another_enter_is_tuned_with_it() -> None:
    section = replace_enter(2)
    found = tune("crash", section, [a_run([0.6], [0.9])], a_goal(1.0, alert_share=1.0))
    assert found.chosen is not None and found.chosen.enter == 2


def replace_enter(enter: int) -> PropertySpec:
    return SECTION.model_copy(update={"enter": enter})
