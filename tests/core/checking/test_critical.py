"""Most probable paths and critical sub-systems, against trying all of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from decision_processes import random_process
from extent import examples, repetitions
from scipy import sparse

from forewarn.checking.critical import critical_subsystem, within
from forewarn.checking.probable_paths import probable_paths
from forewarn.errors import CheckingError
from forewarn.wings.decisions.mdp import optimal


def chain(seed: int, n: int) -> sparse.csr_matrix:
    """Return the chain of the policy that reaches the last state most often."""
    process = random_process(np.random.default_rng(seed), n, stay=0.1)
    goal = np.arange(n) == n - 1
    policy = optimal(process, goal, np.ones(n, dtype=bool), maximise=True).policy
    return sparse.csr_matrix(process.matrix[policy])


def alone(matrix: np.ndarray, targets: np.ndarray, states: tuple[int, ...]) -> float:
    """Return the probability to reach the targets from state 0 by powers of the sub-matrix."""
    part = np.array(states)
    inner = matrix[np.ix_(part, part)].copy()
    inner[targets[part]] = 0.0
    value = targets[part].astype(float)
    power = inner
    total = value.copy()
    # (I + M)(I + M^2)(I + M^4)... is the sum of all powers.
    for _ in range(40):
        total = total + power @ total
        power = power @ power
    return float(total[part == 0].max(initial=0.0))


@pytest.mark.parametrize("seed", range(examples(25)))
def test_the_smallest_by_trying_all_sets(seed: int) -> None:
    n = 8
    matrix, targets = chain(seed, n), np.arange(n) >= n - 2
    dense = matrix.toarray()
    whole = within(matrix, 0, targets, np.ones(n, dtype=bool))
    if whole == 0.0:
        pytest.skip("the targets are out of reach")
    bound = whole * float(np.random.default_rng(seed).choice([0.0, 0.3, 0.7, 0.95]))
    found = critical_subsystem(matrix, 0, targets, bound)
    sizes = (
        size
        for size in range(1, n + 1)
        for rest in itertools.combinations(range(1, n), size - 1)
        if alone(dense, targets, (0, *rest)) > bound + 1e-12
    )
    assert found.minimal and len(found.states) == next(sizes)
    assert found.probability == pytest.approx(alone(dense, targets, found.states), abs=1e-9)
    assert found.probability > bound
    # Without the programme it is critical all the same, and says that it may not be the smallest.
    small = critical_subsystem(matrix, 0, targets, bound, exact_states=0)
    assert alone(dense, targets, small.states) > bound
    assert len(small.states) >= len(found.states) >= small.at_least
    assert small.minimal == (len(small.states) <= small.at_least)


@pytest.mark.parametrize("seed", range(examples(10)))
def test_paths_by_trying_all_of_them(seed: int) -> None:
    n, most = 5, 6
    matrix, targets = chain(seed, n), np.arange(n) == n - 1
    dense = matrix.toarray()
    every = []
    for length in range(most + 1):
        for way in itertools.product(range(n - 1), repeat=length):
            states = (0, *way, n - 1)
            every.append(np.prod(dense[states[:-1], states[1:]]))
    expected = sorted((p for p in every if p > 0), reverse=True)[:5]
    found = list(probable_paths(matrix, 0, targets, 5, shortest=most + 1))
    np.testing.assert_allclose([path.probability for path in found], expected, rtol=1e-9)
    for path in found:
        product = np.prod(dense[path.states[:-1], path.states[1:]])
        assert path.probability == pytest.approx(product)


def test_a_cycle_that_must_be_passed_many_times() -> None:
    """Only one path in a thousand turns leaves; no small number of paths is enough."""
    matrix = sparse.csr_matrix(
        [[0, 1, 0, 0], [0.999, 0, 0.0006, 0.0004], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    targets = np.array([False, False, True, False])
    found = critical_subsystem(matrix, 0, targets, 0.5)
    assert found.states == (0, 1, 2) and found.minimal
    assert found.probability == pytest.approx(0.6, abs=1e-9)
    paths = list(probable_paths(matrix, 0, targets, 3))
    assert [len(path.states) for path in paths] == [3, 5, 7]


def test_one_state_no_target_and_bounds_that_hold() -> None:
    single = sparse.csr_matrix([[1.0]])
    assert critical_subsystem(single, 0, np.array([True]), 0.9).states == (0,)
    for targets, bound in ((np.array([False]), 0.0), (np.array([True]), 1.0)):
        with pytest.raises(CheckingError, match="does not break"):
            critical_subsystem(single, 0, targets, bound)
    with pytest.raises(CheckingError, match="initial state 1"):
        critical_subsystem(single, 1, np.array([True]), 0.5)
    assert list(probable_paths(single, 0, np.array([False]), 3)) == []


def test_many_states_within_the_budget() -> None:
    """A long way on which a step may fail: a part of it is enough, and certified."""
    n = repetitions(100_000)
    inner = np.arange(n - 2)
    rows = np.concatenate([np.repeat(inner, 2), [n - 2, n - 1]])
    columns = np.concatenate(
        [np.stack([inner + 1, np.full(n - 2, n - 1)], 1).ravel(), [n - 2, n - 1]]
    )
    data = np.concatenate([np.tile([0.999, 0.001], n - 2), [1.0, 1.0]])
    matrix = sparse.csr_matrix((data, (rows, columns)), shape=(n, n))
    found = critical_subsystem(matrix, 0, np.arange(n) == n - 1, 0.3, budget=1.0)
    assert found.probability > 0.3
    # 357 steps fail with more than 0.3: 1 - 0.999 ** 357.
    assert 358 <= len(found.states) <= 1000 and not found.minimal
