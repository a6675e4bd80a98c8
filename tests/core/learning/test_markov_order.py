"""The test of the Markov property finds memory where there is some, and seldom elsewhere."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from forewarn.learning.markov_order import markov_tests


def triples(states: list[int]) -> Counter[tuple[int, int, int]]:
    return Counter(zip(states, states[1:], states[2:], strict=False))


def run(length: int, seed: int, memory: float) -> list[int]:
    """Four states; in state 0 the next one tends to repeat the one before, by `memory`."""
    rng = np.random.default_rng(seed)
    states = [0, 1]
    for _ in range(length):
        if states[-1] == 0 and rng.random() < memory:
            states.append(states[-2])
        else:
            states.append(int(rng.integers(0, 4)))
    return states


def test_memory_is_found_in_the_state_that_has_it() -> None:
    found = markov_tests(triples(run(4000, 1, 0.3)))
    assert [result.state for result in found if result.violated] == [0]
    assert "history: 2" in found[0].advice
    assert found[0].information > 10 * max(result.information for result in found[1:])
    assert not found[1].advice


def test_a_chain_without_memory_seldom_fails() -> None:
    failures = sum(
        any(result.violated for result in markov_tests(triples(run(2000, seed, 0.0)), 0.05))
        for seed in range(100)
    )
    assert failures <= 12


def test_the_statistic_is_the_likelihood_ratio_of_the_table() -> None:
    table = {(1, 0, 1): 30, (1, 0, 2): 10, (2, 0, 1): 15, (2, 0, 2): 25}
    found = markov_tests(table)[0]
    expected = stats.chi2_contingency([[30, 10], [15, 25]], correction=False, lambda_=0)
    assert found.statistic == pytest.approx(expected[0])
    assert found.p_value == pytest.approx(expected[1])
    assert (found.freedom, found.visits) == (1, 80)


def test_what_is_too_rare_is_pooled_or_left_out() -> None:
    assert markov_tests({(1, 0, 1): 3, (2, 0, 2): 2}) == []
    rare = {(1, 0, 1): 40, (1, 0, 2): 40, (2, 0, 1): 40, (2, 0, 2): 40, (3, 0, 1): 1, (1, 0, 3): 1}
    found = markov_tests(rare)[0]
    assert found.visits == 162
    assert found.freedom == 1
    assert found.p_value > 0.05


def test_no_triples_give_no_tests() -> None:
    assert markov_tests({}) == []
