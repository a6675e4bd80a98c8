"""The numeric risk tables equal Storm's on the explicit product, written out independently."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from small_chains import bounded_response

from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import risk_table
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.decisions.storm_api import Storm

pytest.importorskip("stormpy", reason="Storm's Python package is the oracle here")


def some_automaton(rng: np.random.Generator, states: int) -> Automaton:
    """Random automaton with absorbing `violated` and `satisfied`."""
    moves = rng.integers(0, states, size=(states, 3)).astype(np.int32)
    moves[-1], moves[-2] = states - 1, states - 2
    names = tuple(map(str, range(states)))
    classes = np.array([0, 1, 2, 2], dtype=np.int32)
    return Automaton(("a", "b"), classes, moves, 0, states - 1, states - 2, names)


def some_model(rng: np.random.Generator, n: int, terminals: int, alpha: object) -> CountModel:
    """Sparse random counts over `n` states, the last ones terminal, some transitions forbidden."""
    counts = rng.integers(1, 30, size=(n, n)) * (rng.random((n, n)) < 4 / n)
    forbidden = (rng.random((n, n)) < 0.05) & (counts == 0)
    counts[np.arange(n), rng.permutation(n)] += 1
    forbidden[counts > 0] = False
    counts[n - terminals :] = 0
    names = tuple(f"t{i}" for i in range(terminals))
    states = (*range(n - terminals), *(-(i + 1) for i in range(terminals)))
    predicates = tuple(f"p{i}" for i in range(6))
    return CountModel(
        Vocabulary(predicates, names),
        10.0,
        "digest",
        states,
        sparse.csr_matrix(counts, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        Smoothing(alpha),  # type: ignore[arg-type]
        sparse.csr_matrix(forbidden),
    )


def product_matrix(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the product entry by entry; the last state is where obligations end."""
    n, m = chain.size, automaton.transitions.shape[0]
    size = n * m + 1
    result = np.zeros((size, size))
    result[-1, -1] = 1.0
    for s in range(n):
        row = chain.row(s)
        for q in range(m):
            here = s * m + q
            if q == automaton.violated:
                result[here, here] = 1.0
            elif chain.absorbing[s] or chain.unseen[s] or classes[s] == ENDED:
                result[here, -1] = 1.0
            else:
                for t in np.flatnonzero(row):
                    ended = classes[t] == ENDED
                    there = -1 if ended else t * m + automaton.transitions[q, classes[t]]
                    result[here, there] += row[t]
    return result


def storm_values(
    matrix: NDArray[np.float64], targets: NDArray[np.bool_], horizon: int | None
) -> NDArray[np.float64]:
    """Return Storm's value for each state; exact rational arithmetic without a horizon."""
    storm = Storm()
    model = storm.dtmc(sparse.csr_matrix(matrix), {"viol": targets}, exact=horizon is None)
    bound = "" if horizon is None else f"<={horizon}"
    return np.asarray(storm.check(model, f'P=? [F{bound} "viol"]'))


def check(model: CountModel, automaton: Automaton, rng: np.random.Generator, horizon: int | None):
    chain = estimate_chain(model)
    classes = rng.integers(0, 3, size=chain.size)
    classes[chain.absorbing] = rng.choice([ENDED, 0, 1], size=int(chain.absorbing.sum()))
    table = risk_table(chain, automaton, classes, horizon)
    n, m = table.values.shape
    matrix = product_matrix(chain, automaton, classes)
    targets = np.zeros(n * m + 1, dtype=bool)
    targets[: n * m].reshape(n, m)[:, automaton.violated] = True
    expected = storm_values(matrix, targets, horizon)[: n * m].reshape(n, m)
    known = ~np.isnan(table.values)
    assert known[~chain.unseen].all()
    np.testing.assert_allclose(table.values[known], expected[known], rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", ["sparse", 1, "none"])
@pytest.mark.parametrize("horizon", [0, 1, 3, 4, 7, 40, None])
@pytest.mark.parametrize("bound", [0, 1, 3])
def test_bounded_response_equals_storm(alpha: object, horizon: int | None, bound: int) -> None:
    rng = np.random.default_rng([bound, horizon or 999, len(str(alpha))])
    for terminals in (0, 2):
        check(some_model(rng, 12, terminals, alpha), bounded_response(bound), rng, horizon)


@pytest.mark.parametrize("alpha", ["sparse", 1, "none"])
@pytest.mark.parametrize("horizon", [0, 1, 9, None])
def test_any_automaton_equals_storm(alpha: object, horizon: int | None) -> None:
    rng = np.random.default_rng([horizon or 999, len(str(alpha))])
    for states in (3, 6):
        check(some_model(rng, 12, 2, alpha), some_automaton(rng, states), rng, horizon)
