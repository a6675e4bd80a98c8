"""Least and greatest probabilities, against all policies and against induction by definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from decision_processes import policies, random_process, value_of
from extent import WHOLE, examples
from scipy import sparse

from forewarn.errors import CheckingError
from forewarn.models.process import DecisionProcess
from forewarn.wings.decisions.choices import ChoiceGraph
from forewarn.wings.decisions.mdp import extreme_within, optimal


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("seed", range(examples(15)))
def test_the_extreme_over_all_policies_and_the_policy_that_attains_it(
    seed: int, maximise: bool
) -> None:
    rng = np.random.default_rng(seed)
    process = random_process(rng, 6)
    psi, phi = np.arange(6) == 5, rng.random(6) < 0.8
    found = optimal(process, psi, phi, maximise=maximise)
    values = [value_of(process, policy, psi, phi) for policy in policies(process)]
    expected = np.max(values, axis=0) if maximise else np.min(values, axis=0)
    np.testing.assert_allclose(found.values, expected, atol=1e-10)
    attained = value_of(process, found.policy, psi, phi)
    np.testing.assert_allclose(attained, expected, atol=1e-10)


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("seed", range(examples(5)))
def test_within_a_horizon_by_all_ways_to_choose(seed: int, maximise: bool) -> None:
    """Each step may choose anew: the extreme over all sequences of policies."""
    rng = np.random.default_rng(seed)
    process = random_process(rng, 4, most_choices=2)
    psi, phi = np.arange(4) == 3, np.array([True, True, rng.random() < 0.5, True])
    every = list(policies(process))
    outcomes = []
    for sequence in itertools.product(every, repeat=3):
        value = psi.astype(float)
        for policy in reversed(sequence):
            value = np.where(psi, 1.0, np.where(phi, process.matrix[policy] @ value, 0.0))
        outcomes.append(value)
    expected = np.max(outcomes, axis=0) if maximise else np.min(outcomes, axis=0)
    found = extreme_within(process, psi, phi, 3, maximise=maximise)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_end_components_are_where_some_policy_stays_for_ever(seed: int) -> None:
    rng = np.random.default_rng(seed)
    process = random_process(rng, 6, successors=2, stay=0.5)
    within = rng.random(6) < 0.8
    found = ChoiceGraph(process).end_components(within)
    classes: list[set[int]] = []
    for policy in policies(process):
        chain = process.matrix[policy].toarray() > 0
        ways = np.linalg.matrix_power(chain.astype(float) + np.eye(6), 6) > 0
        for s in range(6):
            closed = set(np.flatnonzero(ways[s]).tolist())
            recurrent = all(ways[t, s] for t in closed)
            if recurrent and within[list(closed)].all() and not (closed == {s} and not chain[s, s]):
                classes.append(closed)
    # Those that meet belong together: one can go from the one to the other and back.
    merged: list[set[int]] = []
    for part in classes:
        meeting = [other for other in merged if other & part]
        merged = [other for other in merged if not other & part]
        merged.append(part.union(*meeting))
    assert {frozenset(np.flatnonzero(found == k).tolist()) for k in range(found.max() + 1)} == {
        frozenset(part) for part in merged
    }


def test_a_state_alone_and_a_target_that_does_not_exist() -> None:
    process = DecisionProcess(sparse.csr_matrix(np.eye(1)), np.array([0, 1]))
    nothing, everything = np.zeros(1, dtype=bool), np.ones(1, dtype=bool)
    for maximise in (True, False):
        assert optimal(process, nothing, everything, maximise=maximise).values.tolist() == [0.0]
        assert optimal(process, everything, everything, maximise=maximise).values.tolist() == [1.0]
        assert extreme_within(process, nothing, everything, 7, maximise=maximise).tolist() == [0.0]
    with pytest.raises(CheckingError, match="-1 steps"):
        extreme_within(process, nothing, everything, -1, maximise=True)


@pytest.mark.parametrize("maximise", [True, False])
def test_many_gamblers(maximise: bool) -> None:
    """Gamblers who may choose the odds: known in closed form (Feller 1968, XIV.2)."""
    size, gamblers = 100, 1000 if WHOLE else 20
    first = np.arange(gamblers)[:, None] * size
    inner = (first + np.arange(1, size - 1)).ravel()
    ends = (first + np.array([0, size - 1])).ravel()
    moves = [(s, t, p) for s in inner.tolist() for t, p in ((s - 1, 0.4), (s + 1, 0.6))]
    moves += [(s, t, 1.0 - p) for s, t, p in moves]
    # Choices of one state stand together: the two of each inner state, one of each end.
    sizes = np.full(size * gamblers, 2)
    sizes[ends] = 1
    groups = np.concatenate([[0], np.cumsum(sizes)])
    half = len(moves) // 2
    rows = [int(groups[s]) + (k >= half) for k, (s, _, _) in enumerate(moves)]
    columns, data = [t for _, t, _ in moves], [p for _, _, p in moves]
    rows += groups[ends].tolist()
    columns += ends.tolist()
    data += [1.0] * ends.size
    process = DecisionProcess(sparse.csr_matrix((data, (rows, columns))), groups)
    broke = np.arange(size * gamblers) % size == 0
    found = optimal(process, broke, np.ones(broke.size, dtype=bool), maximise=maximise).values
    ratio = 1.5 if maximise else 1 / 1.5
    position = np.arange(size, dtype=float)
    expected = (ratio**position - ratio ** (size - 1)) / (1.0 - ratio ** (size - 1))
    np.testing.assert_allclose(
        found.reshape(gamblers, size), np.tile(expected, (gamblers, 1)), atol=1e-9
    )
