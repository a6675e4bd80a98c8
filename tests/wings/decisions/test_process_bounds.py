"""Bounds of a decision process: the truth is inside, more counts narrow them, all see the same."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from decision_processes import random_process
from extent import WHOLE, examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, stats

from forewarn.errors import CheckingError
from forewarn.models.process import ActionCounts, DecisionProcess
from forewarn.wings.decisions import process_bounds
from forewarn.wings.decisions.mdp import extreme_within, optimal
from forewarn.wings.decisions.process_bounds import CountedProcess, Query, counted_process

CHOOSING: Any = ("greatest", "least", "recorded")


def sampled(rng: np.random.Generator, truth: DecisionProcess, visits: int) -> ActionCounts:
    """Return what was seen in some visits to each choice."""
    dense = truth.matrix.toarray()
    counts = np.array([rng.multinomial(visits, row / row.sum()) for row in dense])
    total = counts.sum(axis=1)
    return ActionCounts(
        tuple(range(truth.size)),
        tuple(f"a{k}" for k in range(len(dense))),
        truth.groups,
        sparse.csr_matrix(counts),
        total,
    )


def queries(n: int, horizon: int | None) -> list[Query]:
    targets, through = np.arange(n) == n - 1, np.arange(n) != n - 2
    return [Query(targets, through, choosing, horizon) for choosing in CHOOSING]


def true_value(truth: DecisionProcess, bounds: CountedProcess, query: Query) -> Any:
    process, maximise = truth, query.choosing == "greatest"
    if query.choosing == "recorded":
        share = np.zeros((truth.size, bounds.mix.size))
        share[truth.owner, np.arange(bounds.mix.size)] = bounds.mix
        process = DecisionProcess(
            sparse.csr_matrix(share @ truth.matrix.toarray()), np.arange(truth.size + 1)
        )
    if query.horizon is None:
        return optimal(process, query.targets, query.through, maximise=maximise).values
    return extreme_within(process, query.targets, query.through, query.horizon, maximise=maximise)


@pytest.mark.parametrize("horizon", [6, None])
def test_the_truth_is_inside_as_often_as_promised(horizon: int | None) -> None:
    missed, widths, times = 0, [], 60 if WHOLE else 15
    for seed in range(times):
        rng = np.random.default_rng(seed)
        truth = random_process(rng, 6, stay=0.1)
        bounds = counted_process(sampled(rng, truth, 300), 6, confidence=0.8)
        out = False
        for query in queries(6, horizon):
            found, true = bounds.value(query), true_value(truth, bounds, query)
            out |= bool((true < found.lower - 1e-9).any() or (true > found.upper + 1e-9).any())
            widths.append(float((found.upper - found.lower).mean()))
        missed += out
    # 20 % may miss; more would have a chance of one in a thousand.
    assert missed <= stats.binom.ppf(0.999, times, 0.2)
    if horizon is not None:
        assert np.mean(widths) < 0.5


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000), st.sampled_from([0, 1, 5, None]))
@example(104, None)
def test_more_of_the_same_counts_narrow_the_bounds_and_the_estimate_stays_inside(
    seed: int, horizon: int | None
) -> None:
    rng = np.random.default_rng(seed)
    truth = random_process(rng, 5)
    counted = sampled(rng, truth, int(rng.integers(1, 60)))
    more = counted._replace(counts=counted.counts * 3, recorded=counted.recorded * 3)
    for query in queries(5, horizon):
        few, many = (counted_process(each, 8).value(query) for each in (counted, more))
        assert (few.lower <= few.estimate).all() and (few.estimate <= few.upper).all()
        assert (few.choice_lower <= few.choice_estimate).all()
        assert (few.choice_estimate <= few.choice_upper).all()
        np.testing.assert_allclose(many.estimate, few.estimate, atol=1e-9)
        slack = 0.0 if horizon is not None else 1e-7
        assert (many.lower >= few.lower - 1e-9 - slack).all()
        assert (many.upper <= few.upper + 1e-9 + slack).all()


@pytest.mark.parametrize("worst", [True, False])
def test_a_step_is_a_linear_programme(worst: bool) -> None:
    """One row: the extreme expectation over its intervals, with elsewhere as one more successor."""
    groups = np.array([0, 1, 2, 3, 4])
    counts = sparse.csr_matrix(np.array([[2, 5, 9, 1], [0, 4, 0, 0], [0, 0, 4, 0], [0, 0, 0, 4]]))
    counted = ActionCounts(tuple(range(4)), ("a",) * 4, groups, counts, np.full(4, 4))
    bounds = counted_process(counted, 50)
    targets = np.array([False, True, False, False])
    # Two steps, so that the successors have values of their own.
    query = Query(targets, np.ones(4, dtype=bool), "greatest", 2)
    one = bounds.value(Query(targets, query.through, "greatest", 1))
    values = np.append(one.upper if worst else one.lower, float(worst))
    values[1] = 1.0
    first = bounds.intervals.rows == 0
    ranges = list(zip(bounds.intervals.lower[first], bounds.intervals.upper[first], strict=True))
    ranges.append((0.0, bounds.intervals.elsewhere[0]))
    sign = -1.0 if worst else 1.0
    best = optimize.linprog(sign * values, A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=ranges)
    found = bounds.value(query)
    given = found.upper[0] if worst else found.lower[0]
    # Elsewhere is never spared: what may be there is, also where it does not help.
    assert given == pytest.approx(sign * best.fun, abs=1e-9)


def test_what_was_never_done_leaves_everything_open() -> None:
    groups = np.array([0, 1, 2])
    counts = sparse.csr_matrix(np.array([[0, 5], [0, 0]]))
    counted = ActionCounts((0, 1), ("go", ""), groups, counts, np.array([5, 0]))
    goal = Query(np.zeros(2, dtype=bool), np.ones(2, dtype=bool), "least", None)
    found = counted_process(counted, 2).value(goal)
    assert np.isnan(found.estimate[1]) and (found.lower[1], found.upper[1]) == (0.0, 1.0)
    assert (found.lower[0], found.upper[0]) == (0.0, 1.0)
    assert "nothing was seen done" in " ".join(found.notes)
    assert found.sound and not counted_process(counted, 2, grown=True).value(goal).sound
    with pytest.raises(CheckingError, match=r"confidence of 1\.0"):
        counted_process(counted, 2, confidence=1.0)
    with pytest.raises(CheckingError, match="-1 steps"):
        counted_process(counted, 2).value(Query(goal.targets, goal.through, "least", -1))


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([20, 200]))
def test_bounds_without_a_horizon_are_those_of_a_long_one(seed: int, visits: int) -> None:
    rng = np.random.default_rng(seed)
    bounds = counted_process(sampled(rng, random_process(rng, 6), visits), 40)
    for unbounded, long in zip(queries(6, None), queries(6, 300), strict=True):
        ever, far = bounds.value(unbounded), bounds.value(long)
        # What is reached within so many steps is reached, and little is reached later.
        assert (ever.lower >= far.lower - 1e-7).all() and (ever.upper >= far.upper - 1e-7).all()
        np.testing.assert_allclose(ever.lower, far.lower, atol=1e-3)
        np.testing.assert_allclose(ever.upper, far.upper, atol=1e-3)
        np.testing.assert_allclose(ever.choice_upper, far.choice_upper, atol=1e-3)


def test_bounds_that_stop_early_hold_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    bounds = counted_process(sampled(rng, random_process(rng, 40, stay=0.0), 4_000), 60)
    stopped = 0
    for query in queries(40, None):
        tight = bounds.value(query)
        with monkeypatch.context() as patch:
            patch.setattr(process_bounds, "FEWEST_IMPROVED", 1)
            patch.setattr(process_bounds, "MAX_IMPROVED", 0)
            patch.setattr(process_bounds, "MAX_WORK", 0)
            early = bounds.value(query)
        said = "stopped early" in " ".join(early.notes)
        stopped += said
        assert "stopped early" not in " ".join(tight.notes)
        # One sweep may be all that it takes.
        assert said or np.abs(early.upper - tight.upper).max() <= 1e-7
        assert said or np.abs(early.lower - tight.lower).max() <= 1e-7
        assert (early.lower <= tight.lower + 1e-7).all()
        assert (early.upper >= tight.upper - 1e-7).all()
    assert stopped > 0


def test_large_processes_without_structure_end_in_seconds() -> None:
    """A factorisation of this one took minutes."""
    n, rng = 10_000 if WHOLE else 2_000, np.random.default_rng(1)
    targets = rng.integers(0, n, (2 * n, 5))
    rows = np.repeat(np.arange(2 * n), 5)
    counts = sparse.csr_matrix(
        (rng.multinomial(500, np.full(5, 0.2), 2 * n).ravel(), (rows, targets.ravel())),
        shape=(2 * n, n),
    )
    counted = ActionCounts(
        tuple(range(n)), ("a",) * (2 * n), np.arange(0, 2 * n + 1, 2), counts, np.full(2 * n, 500)
    )
    goal, way = rng.random(n) < 0.02, rng.random(n) < 0.97
    begin = time.process_time()
    found = counted_process(counted, n).value(Query(goal, way | goal, "greatest", None))
    assert time.process_time() - begin < 30
    assert "stopped early" not in " ".join(found.notes)
    assert (found.lower <= found.estimate).all() and (found.estimate <= found.upper).all()
