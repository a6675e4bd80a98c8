"""The fast methods for bounded responses equal plain backward induction and elimination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from small_chains import given_chain

from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import bounded_on_product, risk_table
from forewarn.checking.response import bounded as passage
from forewarn.checking.response import operators
from forewarn.checking.response import unbounded as idle
from forewarn.checking.response.operators import countdown, is_countdown
from forewarn.errors import CheckingError
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain

Response = Callable[[int], Automaton]
MakeChain = Callable[..., Chain]


def some_classes(chain: Chain, seed: int = 0) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    classes = rng.choice([0, 1, 2], size=chain.size, p=[0.6, 0.2, 0.2])
    classes[chain.absorbing] = ENDED
    return classes


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("terminals", [0, 2])
@pytest.mark.parametrize("bound", [0, 1, 5, 12])
def test_within_a_horizon_it_equals_backward_induction(
    random_chain: MakeChain,
    response: Response,
    monkeypatch: pytest.MonkeyPatch,
    dense: bool,
    terminals: int,
    bound: int,
) -> None:
    if not dense:
        monkeypatch.setattr(operators, "DENSE_SIZE", 0)
        monkeypatch.setattr(operators, "DENSE_SHARE", 2.0)
    chain = random_chain(20, 4, terminals, 0.01, bound)
    classes = some_classes(chain)
    automaton = response(bound)
    counting, slow = countdown(chain, classes, bound), replace(automaton, countdown=None)
    for horizon in (0, 3, 5, 6, 11, 12, 13, 30, 300, 3000):
        plain = bounded_on_product(chain, slow, classes, horizon)
        fast = passage.bounded(counting, horizon)
        np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-13, err_msg=f"{horizon}")


def test_long_horizons_stop_at_the_geometric_rest(
    random_chain: MakeChain, response: Response
) -> None:
    chain = random_chain(30, 6, 1, 0.01, 1)
    problem = countdown(chain, some_classes(chain), 4)
    expired = passage.waiting_powers(problem, 4)[-1]
    found = passage.first_passage(problem, expired, 100_000, 1e-10)
    assert found.ratio is not None
    assert len(found.first) < 1000


def test_slow_chains_are_exact_without_the_geometric_rest(response: Response) -> None:
    # Two halves that never meet have different ratios: no common geometric series.
    matrix = np.kron(np.eye(2), [[0.5, 0.5], [0.3, 0.7]])
    matrix[0, :2] = 0.9, 0.1
    chain = given_chain(matrix)
    classes = np.array([1, 0, 1, 2])
    plain = bounded_on_product(chain, replace(response(2), countdown=None), classes, 400)
    fast = passage.bounded(countdown(chain, classes, 2), 400)
    np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-13)


def test_a_large_history_is_traded_for_layers(
    random_chain: MakeChain, response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = random_chain(20, 4, 2, 0.01, 3)
    problem = countdown(chain, some_classes(chain), 5)
    usual = passage.bounded(problem, 80)
    monkeypatch.setattr(passage, "MAX_HISTORY", 0)
    np.testing.assert_allclose(passage.bounded(problem, 80), usual, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("bound", [0, 1, 5, 40])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_a_horizon_all_solvers_agree(
    random_chain: MakeChain,
    response: Response,
    monkeypatch: pytest.MonkeyPatch,
    bound: int,
    seed: int,
) -> None:
    chain = random_chain(60, 5, 3, 0.002, seed)
    classes = some_classes(chain, seed)
    direct = risk_table(chain, response(bound), classes, None).values
    product = risk_table(chain, replace(response(bound), countdown=None), classes, None).values
    monkeypatch.setattr(idle, "DENSE_STATES", 0)
    iterative = risk_table(chain, response(bound), classes, None).values
    np.testing.assert_allclose(direct, product, rtol=0, atol=1e-10)
    np.testing.assert_allclose(iterative, product, rtol=0, atol=1e-9)


def test_without_a_horizon_a_chain_that_hardly_leaves_is_solved_or_refused(
    random_chain: MakeChain, response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = random_chain(40, 3, 2, 1e-9, 5)
    classes = some_classes(chain)
    exact = risk_table(chain, response(30), classes, None).values
    monkeypatch.setattr(idle, "DENSE_STATES", 0)
    monkeypatch.setattr(idle, "LAST_RESORT_STATES", 0)
    try:
        iterative = risk_table(chain, response(30), classes, None).values
    except CheckingError:
        return
    np.testing.assert_allclose(iterative, exact, rtol=0, atol=1e-9)


def test_a_long_way_without_branches_is_solved_on_the_product(
    response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 600 states in a row, then a fork: a Krylov space of 80 vectors does not see to the end.
    n = 602
    matrix = np.diag(np.ones(n - 1), 1)
    matrix[n - 3] = 0.0
    matrix[n - 3, 0], matrix[n - 3, n - 2], matrix[n - 3, n - 1] = 0.5, 0.2, 0.3
    matrix[n - 2] = matrix[n - 1] = 0.0
    matrix[n - 2, n - 2] = matrix[n - 1, n - 1] = 1.0
    chain = given_chain(matrix, np.arange(n) == n - 1)
    classes = np.zeros(n, dtype=np.int64)
    classes[n - 2], classes[n - 1] = 1, ENDED
    monkeypatch.setattr(idle, "DENSE_STATES", 0)
    monkeypatch.setattr(idle, "LAST_RESORT_STATES", 0)
    table = risk_table(chain, response(3), classes, None)
    np.testing.assert_allclose(table.values[: n - 2, 0], 0.4, atol=1e-10)


def test_only_the_layered_numbering_is_taken_for_a_countdown(response: Response) -> None:
    automaton = response(3)
    assert is_countdown(automaton)
    assert not is_countdown(replace(automaton, countdown=None))
    other = automaton.transitions.copy()
    other[2, 0] = 0
    assert not is_countdown(replace(automaton, transitions=other))
