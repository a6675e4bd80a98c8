"""What differs between groups: the p-values are exact, recordings are what varies."""

from __future__ import annotations

import itertools
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

from forewarn.models.counts import CountModel
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.fleet.group_counts import GroupTable
from forewarn.wings.fleet.group_differences import (
    discovery_rates,
    find_differences,
    least_p,
    permutation_p,
)

Ints = NDArray[np.int64]


@given(values=st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=40))
def test_rates_are_scipys(values: list[float]) -> None:
    np.testing.assert_allclose(
        discovery_rates(values), stats.false_discovery_control(values), rtol=1e-12
    )


@given(sizes=st.lists(st.integers(1, 3), min_size=2, max_size=3).filter(lambda s: sum(s) < 8))
def test_the_least_p_value_is_that_of_all_ways_to_part_recordings(sizes: list[int]) -> None:
    labels = [group for group, size in enumerate(sizes) for _ in range(size)]
    # Names of groups do not matter: a parting is a set of sets.
    parted = {
        frozenset(
            frozenset(at for at, label in enumerate(order) if label == group)
            for group in range(len(sizes))
        )
        for order in set(itertools.permutations(labels))
    }
    assert least_p(np.array(sizes)) == pytest.approx(1 / len(parted))


def likelihood_ratio(counts: Ints, labels: tuple[int, ...]) -> float:
    """Return scipy's G statistic of groups against ways to go on."""
    groups = np.array([counts[np.array(labels) == group].sum(axis=0) for group in (0, 1)])
    groups = groups[:, groups.sum(axis=0) > 0]
    if groups.shape[1] < 2:
        return 0.0
    found = stats.chi2_contingency(groups, correction=False, lambda_="log-likelihood")
    return float(found.statistic)


@pytest.mark.parametrize("seed", range(6))
def test_the_p_value_is_that_of_all_permutations(seed: int) -> None:
    draw = np.random.default_rng(seed)
    counts = draw.poisson(draw.uniform(0.5, 12, size=(7, 3))).astype(np.int64) + 1
    labels = (0, 0, 0, 1, 1, 1, 1)
    seen = likelihood_ratio(counts, labels)
    orders = [
        tuple(int(i not in chosen) for i in range(7))
        for chosen in itertools.combinations(range(7), 3)
    ]
    exact = np.mean([likelihood_ratio(counts, order) >= seen - 1e-9 for order in orders])
    found = permutation_p(
        counts.astype(np.float64), np.array(labels), np.random.default_rng(seed), 8_000, 8_000
    )
    assert len(orders) == comb(7, 3) == factorial(7) // factorial(3) // factorial(4)
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 8_000) + 1e-4)


def test_an_early_end_gives_the_same_p_value_on_average() -> None:
    counts = np.array([[5, 1], [3, 3], [4, 2], [2, 5], [3, 4], [1, 5.0]])
    labels = np.array([0, 0, 0, 1, 1, 1])
    rng = np.random.default_rng(0)
    long = permutation_p(counts, labels, rng, 10_000, 10_000)
    short = [permutation_p(counts, labels, rng, 10_000) for _ in range(200)]
    assert np.mean(short) == pytest.approx(long, rel=0.1)


def dwelling(draw: np.random.Generator, recordings: int) -> NDArray[np.float64]:
    """Return how often recordings that differ among each other stay in a state, and leave it."""
    leave = draw.beta(1.5, 6, size=recordings)
    visits = draw.integers(50, 150, size=recordings)
    left = draw.binomial(visits, leave)
    return np.column_stack([visits - left, left]).astype(np.float64)


def test_recordings_that_differ_among_each_other_make_no_difference_between_groups() -> None:
    draw, labels = np.random.default_rng(1), np.repeat([0, 1], 8)
    found, of_ticks = [], []
    for _ in range(200):
        counts = dwelling(draw, 16)
        found.append(permutation_p(counts, labels, draw, 499))
        groups = np.array([counts[labels == group].sum(axis=0) for group in (0, 1)])
        of_ticks.append(float(stats.chi2_contingency(groups).pvalue))
    named = int((np.array(found) <= 0.05).sum())
    assert stats.binomtest(named, 200, 0.05, alternative="greater").pvalue > 1e-3
    # The test that takes ticks for independent is why recordings are permuted.
    assert (np.array(of_ticks) <= 0.05).mean() > 0.3


def model_of(table: GroupTable, states: int) -> CountModel:
    total = np.asarray(table.counts.sum(axis=0)).ravel()
    counts = sparse.csr_matrix((total, (table.row, table.column)), shape=(states, states))
    return CountModel(
        Vocabulary(("a", "b", "c", "d"), ()), 10.0, "d", tuple(range(states)),
        sparse.csr_matrix(counts, dtype=np.int64), np.zeros(states, dtype=np.int64),
    )  # fmt: skip


def fleet(moved: tuple[int, ...], seed: int, recordings: int = 12, states: int = 10) -> GroupTable:
    """Return the counts of three robots, the last of which leaves some states more often."""
    draw = np.random.default_rng(seed)
    member = np.repeat([0, 1, 2], recordings)
    parts = []
    for state in range(states):
        leave = draw.beta(20, 80, size=len(member))
        if state in moved:
            leave[member == 2] = np.minimum(3 * leave[member == 2], 1)
        visits = draw.integers(60, 120, size=len(member))
        left = draw.binomial(visits, leave)
        parts += [visits - left, left]
    kinds = [(s, t) for s in range(states) for t in sorted([s, (s + 1) % states])]
    for state in range(states):
        if (state + 1) % states < state:  # sorted by the next state
            parts[2 * state], parts[2 * state + 1] = parts[2 * state + 1], parts[2 * state]
    row, column = np.array(kinds).T
    counts = sparse.csr_matrix(np.column_stack(parts).astype(np.int64))
    return GroupTable(("a", "b", "c"), member, row, column, counts)


def test_the_states_that_one_robot_leaves_more_often_are_named() -> None:
    table = fleet((2, 7), 0)
    found = find_differences(table, model_of(table, 10))
    assert {one.state for one in found.moved} == {2, 7}
    assert (found.tested, found.untold) == (10, 0)
    for one in found.moved:
        assert (one.group, one.recordings) == ("c", 36)
        assert one.share == pytest.approx(0.6 if one.to != one.state else 0.4, abs=0.12)
        assert one.elsewhere == pytest.approx(0.2 if one.to != one.state else 0.8, abs=0.08)


def test_few_of_those_that_are_named_are_chance() -> None:
    false = named = 0
    for seed in range(6):
        table = fleet((2, 7), seed)
        states = {one.state for one in find_differences(table, model_of(table, 10)).moved}
        assert states >= {2, 7}
        false, named = false + len(states - {2, 7}), named + len(states)
    assert stats.binomtest(false, named, 0.05, alternative="greater").pvalue > 1e-3


def test_too_few_recordings_tell_nothing_and_are_counted() -> None:
    table = fleet((2,), 0, recordings=2)
    found = find_differences(table, model_of(table, 10))
    assert (found.tested, found.untold, found.moved) == (0, 10, ())  # p is 1 / 15 at least
