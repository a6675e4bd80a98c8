"""Horizons far beyond what the chain takes to mix, against powers of the dense product."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from small_chains import given_chain

from forewarn.checking.explanation import expected_steps
from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import (
    LONG,
    backward_induction,
    bounded_on_product,
    first_violations,
    geometric_sums,
    risk_table,
)
from forewarn.logic.automaton import Automaton
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.models.chain import Chain

MakeChain = Callable[..., Chain]
FORMULAS = [
    "always(not (a and b))",
    "always(rise(a) implies next(not b))",
    "always(a implies eventually[0:3 steps](b))",
    "always(a implies (not b until[0:4 steps] (not a)))",
    "a implies next(b)",
]
AUTOMATA = [compile_formula(parse_formula(text), rate=1.0) for text in FORMULAS]


def classes_of(automaton: Automaton, chain: Chain) -> NDArray[np.int64]:
    letters = np.arange(chain.size) % 4 & len(automaton.letter_class) - 1
    classes = automaton.letter_class[letters].astype(np.int64)
    classes[chain.absorbing] = ENDED
    return classes


def by_powers(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int
) -> NDArray[np.float64]:
    """Return the table from the product, written out densely and raised to a power."""
    n, m = chain.size, automaton.n_states
    dense, product = chain.to_csr().toarray(), np.zeros((n * m + 1, n * m + 1))
    product[-1, -1] = 1.0
    for s in range(n):
        for q in range(m):
            at = s * m + q
            if q == automaton.violated:
                product[at, at] = 1.0
            elif chain.absorbing[s]:
                product[at, -1] = 1.0
            else:
                for t in np.flatnonzero(dense[s]).tolist():
                    c = classes[t]
                    to = -1 if c == ENDED else t * m + automaton.transitions[q, c]
                    product[at, to] += dense[s, t]
    power = np.linalg.matrix_power(product, horizon)
    violated = np.zeros(n * m + 1)
    if automaton.violated is not None:
        violated[automaton.violated : n * m : m] = 1.0
    return (power @ violated)[:-1].reshape(n, m)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(AUTOMATA),
    st.integers(2, 7),
    st.integers(1, 3),
    st.integers(0, 1),
    st.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
    st.integers(LONG + 1, 300_000),
    st.integers(0, 1000),
)
def test_long_horizons_equal_powers_of_the_product(
    random_chain: MakeChain,
    automaton: Automaton,
    n: int,
    successors: int,
    terminals: int,
    leave: float,
    horizon: int,
    seed: int,
) -> None:
    chain = random_chain(n + terminals, successors, terminals, leave * terminals, seed)
    classes = classes_of(automaton, chain)
    horizon = min(horizon, 3000 if n > 4 else horizon)
    found = bounded_on_product(chain, automaton, classes, horizon)
    assert found == pytest.approx(
        by_powers(chain, automaton, classes, horizon), rel=1e-8, abs=1e-14
    )


@pytest.mark.parametrize("automaton", AUTOMATA, ids=FORMULAS)
@pytest.mark.parametrize("horizon", [LONG + 1, 2000])
def test_times_are_the_sums_over_all_steps(
    random_chain: MakeChain, automaton: Automaton, horizon: int
) -> None:
    chain = random_chain(9, 3, 1, 1e-3, 5)
    classes = classes_of(automaton, chain)
    tables = np.array(list(backward_induction(chain, automaton, classes, horizon)))
    found = first_violations(chain, automaton, classes, horizon)
    assert found.risk == pytest.approx(tables[-1], rel=1e-9, abs=1e-15)
    moment = (np.arange(1, horizon + 1)[:, None, None] * np.diff(tables, axis=0)).sum(axis=0)
    assert found.moment == pytest.approx(moment, rel=1e-7, abs=1e-10)


def test_chains_side_by_side_have_ratios_of_their_own(random_chain: MakeChain) -> None:
    automaton, chains = AUTOMATA[1], [random_chain(6, 3, 1, 10.0**-k, k) for k in range(2, 6)]
    matrix = sparse.block_diag([chain.sparse for chain in chains], format="csr").toarray()
    side_by_side = given_chain(matrix, np.concatenate([chain.absorbing for chain in chains]))
    classes = [classes_of(automaton, chain) for chain in chains]
    found = bounded_on_product(side_by_side, automaton, np.concatenate(classes), 5000, blocks=4)
    alone = [
        bounded_on_product(c, automaton, k, 5000) for c, k in zip(chains, classes, strict=True)
    ]
    assert found == pytest.approx(np.concatenate(alone), rel=1e-9)


@given(st.floats(0.0, 1.0), st.integers(1, 300))
def test_geometric_sums_are_sums(ratio: float, terms: int) -> None:
    powers = ratio ** np.arange(1, terms + 1)
    total, moment = geometric_sums(np.array([ratio]), terms)
    assert total[0] == pytest.approx(powers.sum(), rel=1e-12, abs=1e-300)
    assert moment[0] == pytest.approx(
        (powers * np.arange(1, terms + 1)).sum(), rel=1e-12, abs=1e-300
    )


@pytest.mark.parametrize("automaton", AUTOMATA[:4], ids=FORMULAS[:4])
def test_a_horizon_of_200000_steps_takes_no_time(automaton: Automaton) -> None:
    matrix = np.array([[1 - 1e-5, 1e-5], [0.3, 0.7]])
    chain = given_chain(matrix, np.zeros(2, dtype=bool))
    letters = np.array([0, len(automaton.letter_class) - 1])
    classes = automaton.letter_class[letters].astype(np.int64)
    begin = time.thread_time()
    risk_table(chain, automaton, classes, 200_000)
    expected_steps(chain, automaton, classes, 200_000)
    assert time.thread_time() - begin < 2.0  # 11 s and more where every step is taken
