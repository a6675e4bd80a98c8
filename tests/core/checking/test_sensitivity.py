"""How far risk can move: bounds that hold, by random disturbance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse
from small_chains import given_chain

from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import risk_table
from forewarn.checking.sensitivity import estimator_sensitivity, reach_sensitivity
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary

Response = Callable[[int], Automaton]
CLASSES = np.array([0, 1, 2, 0, ENDED])
COUNTS = np.array(
    [[40, 10, 0, 3, 5], [0, 20, 30, 0, 2], [25, 0, 0, 25, 2], [0, 0, 50, 1, 1], [0, 0, 0, 0, 0]]
)


def model(counts: np.ndarray = COUNTS) -> CountModel:
    return CountModel(
        Vocabulary(("a", "b"), ("end",)),
        10.0,
        "d",
        (0, 1, 2, 3, -1),
        sparse.csr_matrix(counts),
        np.array([1, 0, 0, 0, 0]),
        Smoothing("none"),
    )


def disturbed(chain: Chain, size: float, rng: np.random.Generator) -> Chain:
    """Change each entry of the rows that are not terminal by at most `size`."""
    matrix = chain.to_csr().toarray()
    for i in range(4):
        touched = matrix[i] > 0
        # Successors that were never seen count as one: one of them may appear.
        touched[rng.integers(0, 5)] = True
        shift = rng.uniform(-size, size, size=5) * touched
        row = np.maximum(matrix[i] + shift, 0.0)
        row /= row.sum()
        away = np.abs(row - matrix[i]).max()
        matrix[i] += (row - matrix[i]) * min(1.0, size / away)
    return given_chain(matrix, chain.absorbing)


@pytest.mark.parametrize("horizon", [3, 20, None])
def test_the_sensitivity_bounds_what_errors_of_a_size_can_do(
    response: Response, horizon: int | None
) -> None:
    counted = model()
    chain = estimate_chain(counted)
    factor = reach_sensitivity(counted, chain, horizon)
    before = risk_table(chain, response(2), CLASSES, horizon).values
    rng = np.random.default_rng(1)
    for _ in range(60):
        after = risk_table(disturbed(chain, 0.01, rng), response(2), CLASSES, horizon).values
        assert np.abs(after - before).max() <= factor * 0.01 + 1e-12


def test_a_chain_that_never_ends_is_infinitely_sensitive_without_a_horizon() -> None:
    counts = COUNTS.copy()
    counts[:, 4] = 0
    counted = model(counts)
    chain = estimate_chain(counted)
    assert reach_sensitivity(counted, chain, None) == np.inf
    # By hand: 3 successors in the first row, 2 in the others, and one for all never seen.
    spread = np.array([2.0, 1.0, 1.0, 1.0, 0.0])
    total = np.zeros(5)
    for _ in range(5):
        total = spread + np.where(spread > 0, chain.to_csr().toarray() @ total, 0.0)
    assert reach_sensitivity(counted, chain, 5) == pytest.approx(total.max())


def test_estimators_are_compared_on_what_was_visited(response: Response) -> None:
    found = estimator_sensitivity(model(), response(2), CLASSES, 10)
    assert [result.name for result in found] == ["maximum likelihood", "alpha: sparse", "alpha: 1"]
    assert found[0].difference == 0.0
    assert 0 < found[1].difference < found[2].difference
    heavy = estimate_chain(model(), Smoothing(1.0))
    own = risk_table(estimate_chain(model()), response(2), CLASSES, 10).values[:, 0]
    other = risk_table(heavy, response(2), CLASSES, 10).values[:, 0]
    worst = int(np.abs(own - other)[:4].argmax())
    assert found[2].state == worst
    assert found[2].difference == pytest.approx(abs(own - other)[worst])
    assert found[2].mean == pytest.approx(np.average(other[:4], weights=COUNTS[:4].sum(axis=1)))
