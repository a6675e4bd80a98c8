"""Exact bounds against their definitions, and guarantees against many synthetic worlds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

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


def test_the_rule_of_thumb_of_three_over_n() -> None:
    """0 misses in 12 support 22 % at 95 %; for 5 % it takes 59."""
    assert miss_bound(0, 12, 0.95) == pytest.approx(1 - 0.05 ** (1 / 12))
    assert needed_trials(0.05, 0.95) == 59
    assert needed_trials(0.05, 0.9) == 45
    assert rate_bound(0, 2.0, 0.95) == pytest.approx(-math.log(0.05) / 2)
    assert needed_exposure(1.0, 0.9) == pytest.approx(-math.log(0.1))


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(0, 40), st.sampled_from([0.8, 0.9, 0.99]))
def test_bounds_are_where_the_tail_is_what_the_confidence_leaves(
    misses: int, more: int, confidence: float
) -> None:
    trials = misses + more
    bound = miss_bound(misses, trials, confidence)
    if more:
        assert stats.binom.cdf(misses, trials, bound) == pytest.approx(1 - confidence)
    else:
        assert bound == 1.0
    rate = rate_bound(misses, 3.0, confidence)
    assert stats.poisson.cdf(misses, 3.0 * rate) == pytest.approx(1 - confidence)
    exposure = needed_exposure(0.7, confidence, misses)
    assert rate_bound(misses, exposure, confidence) == pytest.approx(0.7)
    assert rate_bound(misses, 0.0, confidence) == math.inf


@settings(deadline=None)
@given(st.floats(0.01, 0.6), st.sampled_from([0.8, 0.9, 0.99]), st.integers(0, 5))
def test_what_is_needed_suffices_and_one_less_does_not(
    alpha: float, confidence: float, misses: int
) -> None:
    count = needed_trials(alpha, confidence, misses)
    assert miss_bound(misses, count, confidence) <= alpha + 1e-9
    assert count == misses + 1 or miss_bound(misses, count - 1, confidence) > alpha - 1e-9


def test_more_than_can_be_counted_is_not_searched_for_ever() -> None:
    assert needed_trials(1e-9, 0.9) > 10_000_000


@settings(deadline=None)
@given(st.integers(1, 60), st.floats(0.01, 0.99))
def test_without_loss_hoeffding_and_bentkus_are_exact(runs: int, alpha: float) -> None:
    found = bounded_p(np.zeros((runs, 1)), alpha)[0]
    assert found == pytest.approx((1 - alpha) ** runs)
    assert found == pytest.approx(binomial_p(np.array([0]), runs, alpha)[0])


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.25, 1 / 3, 1.0]), min_size=1, max_size=30),
    st.sampled_from([0.8, 0.9]),
)
def test_a_loss_bound_is_the_least_mean_that_is_not_excluded(
    losses: list[float], confidence: float
) -> None:
    column = np.array(losses)[:, None]
    (bound,) = loss_bounds(column, confidence)
    assert bound >= column.mean() - 1e-9
    if bound < 1:
        assert bounded_p(column, min(bound + 1e-6, 1 - 1e-9))[0] <= 1 - confidence + 1e-4
    assert bounded_p(column, bound - 1e-6)[0] > 1 - confidence - 1e-4


def test_bounds_without_any_run() -> None:
    assert loss_bounds(np.zeros((0, 2)), 0.9).tolist() == [1.0, 1.0]
    assert bounded_p(np.zeros((0, 2)), 0.1).tolist() == [1.0, 1.0]
    assert miss_bound(0, 0, 0.9) == 1.0


def test_p_values_of_bounded_losses_are_valid_at_the_edge() -> None:
    """At a mean loss of exactly alpha, p <= d happens with probability d at most."""
    generator = np.random.default_rng(5)
    alpha = 0.2
    for shape in ("coin", "thirds", "beta"):
        if shape == "coin":
            losses = (generator.random((40, 4000)) < alpha).astype(float)
        elif shape == "thirds":
            losses = generator.binomial(3, alpha, (40, 4000)) / 3
        else:
            losses = generator.beta(alpha, 1 - alpha, (40, 4000))
        assert (bounded_p(losses, alpha) <= 0.1).mean() <= 0.1 + 3 * math.sqrt(0.09 / 4000)


def test_the_sequence_stops_at_the_first_that_cannot_be_rejected() -> None:
    assert fixed_sequence(np.array([0.01, 0.1, 0.2, 0.01]), 0.1) == 2
    assert fixed_sequence(np.array([0.3, 0.01]), 0.1) == 0
    assert fixed_sequence(np.array([0.01, 0.02]), 0.1) == 2
    assert fixed_sequence(np.array([math.nan]), 0.1) == 0
