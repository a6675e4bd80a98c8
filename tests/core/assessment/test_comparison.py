"""Contenders on the same runs: nothing is judged by what it was chosen on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.assessment.comparison import Contender, best_point, compare, differing_violations
from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.tradeoff import pool_points, run_points
from forewarn.errors import InputError
from forewarn.monitoring.verdict import PropertyStatus

RULE = AlertRule(None, 1, 1, 0)
HORIZON = 4


def scored(scores: list[float], violations: list[int]) -> ScoredRun:
    n = len(scores)
    happened = np.zeros(n, dtype=bool)
    happened[violations] = True
    status = np.full(n, PropertyStatus.SATISFIED_SO_FAR, dtype=np.int8)
    status[happened] = PropertyStatus.VIOLATED
    return ScoredRun(1.0, HORIZON, np.arange(n), np.array(scores), happened, status)


def runs_of(seed: int, number: int = 6) -> tuple[ScoredRun, ...]:
    random = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        at = sorted(random.choice(np.arange(5, 60), size=2, replace=False).tolist())
        score = random.random(60) * 0.6
        for tick in at:
            score[tick - 3 : tick] += 0.35
        found.append(scored(score.tolist(), at))
    return tuple(found)


def probable(name: str, runs: tuple[ScoredRun, ...]) -> Contender:
    return Contender(name, RULE, runs, tuple(run.score for run in runs), 3)


FOLDS = [0, 1, 2, 0, 1, 2]


def test_a_contender_differs_from_itself_in_nothing() -> None:
    first, second = compare(
        [probable("a", runs_of(1)), probable("b", runs_of(1))], FOLDS, 400.0, resamples=50
    )
    assert first.differences == {}
    for difference in second.differences.values():
        assert difference == (0.0, 0.0, 0.0)
    assert (first.area, first.brier, first.lead) == (second.area, second.brier, second.lead)
    assert first.area.low <= first.area.value <= first.area.high


def test_the_figures_are_those_of_all_runs() -> None:
    runs = runs_of(2)
    [found] = compare([probable("a", runs)], FOLDS, 400.0, resamples=10)
    assert found.area.value == precision_recall(runs).area
    errors = []
    for run in runs:
        for tick in range(60 - HORIZON):  # the horizon after the last ones is not observed
            if run.violation[tick]:
                continue
            followed = run.violation[tick + 1 : tick + 1 + HORIZON].any()
            errors.append((run.score[tick] - followed) ** 2)
    assert found.brier.value == pytest.approx(np.mean(errors))
    assert found.calibration is not None
    assert found.calibration.brier == pytest.approx(found.brier.value)
    assert found.out_of_model == 0.0


def test_thresholds_come_from_the_runs_of_other_folds() -> None:
    runs = runs_of(3)
    [found] = compare([probable("a", runs)], FOLDS, 400.0, resamples=10)
    points = [None] * 6
    for fold in range(3):
        others = [run for run, at in zip(runs, FOLDS, strict=True) if at != fold]
        level = best_point(others, RULE, 400.0).threshold
        for i, at in enumerate(FOLDS):
            if at == fold:
                [points[i]] = run_points([runs[i]], level, rule=RULE)
    whole = pool_points(points)  # type: ignore[arg-type]
    assert found.point.leads == whole.leads
    assert found.lead.value == sum(whole.leads) / whole.violations


@settings(max_examples=examples(20))
@given(st.integers(0, 50))
def test_a_rival_is_worth_the_same_in_any_unit(seed: int) -> None:
    """Only the order of its values counts, for ranks and for the map to a probability."""
    runs = runs_of(seed)
    other = tuple(run._replace(score=np.exp(run.score * 3) - 7) for run in runs)
    forewarn = probable("a", runs_of(seed + 1))
    truth = tuple(
        run._replace(score=own.score) for run, own in zip(runs, forewarn.runs, strict=True)
    )
    forewarn = probable("a", truth)
    found = compare(
        [forewarn, Contender("x", RULE, runs), Contender("y", RULE, other)],
        FOLDS, 400.0, resamples=5,
    )  # fmt: skip
    one, two = found[1], found[2]
    assert one.area == two.area
    assert one.brier.value == pytest.approx(two.brier.value, rel=1e-9, nan_ok=True)


def test_what_ranks_better_is_better_in_all_figures() -> None:
    runs = runs_of(5, 12)
    worse = tuple(
        run._replace(score=np.random.default_rng(i).permutation(run.score))
        for i, run in enumerate(runs)
    )
    folds = [i % 3 for i in range(12)]
    contenders = [probable("good", runs), Contender("bad", RULE, worse)]
    good, bad = compare(contenders, folds, 400.0, alert_share=0.2, resamples=100)
    assert bad.differences["area"].high < 0
    assert bad.differences["lead"].high <= 0
    assert good.lead.value > bad.lead.value


def test_a_quantity_that_falls_with_danger_has_no_probability() -> None:
    runs = runs_of(6)
    against = tuple(run._replace(score=-run.score) for run in runs)
    _, found = compare([probable("a", runs), Contender("down", RULE, against)], FOLDS, 60.0)
    assert found.calibration is None
    assert math.isnan(found.brier.value)
    assert not math.isnan(found.area.value)


def test_where_one_has_no_probability_nobody_is_asked_for_one() -> None:
    runs = runs_of(7)
    known = [run.score.copy() for run in runs]
    known[0][:30] = np.nan
    holes = Contender("holes", RULE, runs, tuple(known), 3)
    whole, alone = (
        compare([probable("a", runs), holes], FOLDS, 60.0, resamples=5),
        compare([probable("a", runs)], FOLDS, 60.0, resamples=5),
    )
    assert whole[0].calibration is not None
    assert whole[1].calibration is not None
    assert alone[0].calibration is not None
    assert whole[0].calibration.ticks == whole[1].calibration.ticks < alone[0].calibration.ticks


def test_violations_are_those_of_the_first() -> None:
    mine, theirs = probable("a", runs_of(8)), probable("b", runs_of(9))
    assert differing_violations(mine, theirs) > 0
    _, found = compare([mine, theirs], FOLDS, 60.0, resamples=5)
    expected = [
        run._replace(score=other.score) for run, other in zip(mine.runs, theirs.runs, strict=True)
    ]
    assert found.area.value == precision_recall(expected).area


@pytest.mark.parametrize("answer", ["act", "ignore"])
def test_an_unseen_state_ranks_as_the_rule_takes_it(answer: Literal["act", "ignore"]) -> None:
    one = probable("a", runs_of(8))
    out_of_model = [np.arange(len(run.ticks)) % 7 == 0 for run in one.runs]
    pairs = list(zip(one.runs, out_of_model, strict=True))
    runs = tuple(
        run._replace(score=np.where(there, np.nan, run.score), out_of_model=there)
        for run, there in pairs
    )
    one = replace(one, rule=replace(one.rule, out_of_model=answer), runs=runs)
    found, _ = compare([one, one], FOLDS, 60.0, resamples=5)
    level = np.inf if answer == "act" else -np.inf
    taken = [run._replace(score=np.where(there, level, run.score)) for run, there in pairs]
    assert found.area.value == precision_recall(taken).area


def test_other_moments_are_refused() -> None:
    short = tuple(
        scored(run.score[:50].tolist(), np.flatnonzero(run.violation[:50]).tolist())
        for run in runs_of(1)
    )
    with pytest.raises(InputError, match="were not asked at the same moments"):
        compare([probable("a", runs_of(1)), probable("b", short)], FOLDS, 60.0)


@pytest.mark.parametrize("level", [0.5, math.inf, math.nan], ids=["constant", "infinite", "none"])
def test_what_cannot_keep_to_the_budget_never_alerts(level: float) -> None:
    """A constant alerts always or never; one alarm that never ends may be a single false one."""
    runs = runs_of(11)
    flat = tuple(run._replace(score=np.full(len(run.ticks), level)) for run in runs)
    _, found = compare(
        [probable("a", runs), Contender("flat", RULE, flat)],
        FOLDS, 4000.0, alert_share=0.5, resamples=5,
    )  # fmt: skip
    assert found.thresholds == (math.inf, math.inf)
    assert (found.lead.value, found.point.detected, found.point.alerts) == (0.0, 0, 0)


@settings(max_examples=examples(30))
@given(st.integers(0, 100), st.sampled_from([0.0, 60.0, 400.0]), st.sampled_from([0.0, 0.05, 0.5]))
def test_the_budget_and_the_share_of_alerts_are_always_kept(
    seed: int, budget: float, share: float
) -> None:
    point = best_point(runs_of(seed), RULE, budget, alert_share=share)
    assert (point.false_alarms_per_hour or 0.0) <= budget
    assert (point.alert_share or 0.0) <= share
