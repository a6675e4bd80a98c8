"""Expected time to the violation, against the distribution written out step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from small_chains import given_chain

from forewarn.checking.explanation import expected_steps
from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import backward_induction
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain

Response = Callable[[int], Automaton]
MakeChain = Callable[..., Chain]


@pytest.mark.parametrize("bound", [0, 1, 4])
@pytest.mark.parametrize("horizon", [1, 3, 4, 5, 9, 40])
@pytest.mark.parametrize("fast", [True, False])
def test_it_is_the_mean_of_the_time_within_the_horizon(
    random_chain: MakeChain, response: Response, bound: int, horizon: int, fast: bool
) -> None:
    chain = random_chain(15, 4, 2, 0.01, bound)
    rng = np.random.default_rng(1)
    classes = rng.choice([0, 1, 2], size=15, p=[0.6, 0.2, 0.2])
    classes[chain.absorbing] = ENDED
    automaton = response(bound) if fast else replace(response(bound), countdown=None)
    tables = np.array(list(backward_induction(chain, automaton, classes, horizon)))
    at = np.diff(tables, axis=0)
    steps = np.arange(1, horizon + 1)[:, None, None]
    with np.errstate(invalid="ignore"):
        expected = (steps * at).sum(axis=0) / at.sum(axis=0)
    expected[:, automaton.violated] = 0.0
    found = expected_steps(chain, automaton, classes, horizon)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_a_wait_that_cannot_be_answered_ends_when_it_must(response: Response) -> None:
    chain = given_chain([[1.0]])
    found = expected_steps(chain, response(5), np.array([0]), 10)
    assert found[0, 1:].tolist() == [1, 2, 3, 4, 5, 0]
    assert np.isnan(found[0, 0])
