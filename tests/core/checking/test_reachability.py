"""Numerical honesty: right to ten digits, or an error; never a wrong number in silence."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from extent import examples
from scipy import sparse
from small_chains import given_chain

from forewarn.checking import reachability
from forewarn.checking.elimination import absorption, sparse_absorption
from forewarn.checking.numeric import risk_table
from forewarn.checking.reachability import reach
from forewarn.checking.response import unbounded as idle
from forewarn.errors import CheckingError
from forewarn.logic.automaton import Automaton
from forewarn.models.process import DecisionProcess
from forewarn.wings.decisions.mdp import optimal

Response = Callable[[int], Automaton]


def haddad_monmege(n: int) -> sparse.csr_matrix:
    """Chain whose two ends are reached after some 2^n steps, the first with 7/10 (RP 2014).

    State 0 starts: 7/10 to the left arm, 3/10 to the right; each arm goes back to its beginning
    with 1/2 at each of n states.
    """
    size = 2 * n + 3
    good, bad = size - 2, size - 1
    rows, columns, data = [0, 0], [1, n + 1], [0.7, 0.3]
    for arm, end in ((1, good), (n + 1, bad)):
        for k in range(n):
            here = arm + k
            rows += [here, here]
            columns += [end if k == n - 1 else here + 1, 0]
            data += [0.5, 0.5]
    rows += [good, bad]
    columns += [good, bad]
    data += [1.0, 1.0]
    return sparse.csr_matrix((data, (rows, columns)), shape=(size, size))


def goal(matrix: sparse.csr_matrix) -> np.ndarray:
    marks = np.zeros(matrix.shape[0], dtype=bool)
    marks[-2] = True
    return marks


@pytest.mark.parametrize("n", [5, 40, 300])
def test_haddad_and_monmege_s_chain_gives_seven_tenths(n: int) -> None:
    matrix = haddad_monmege(n)
    values, _ = reach(matrix, goal(matrix))
    assert values[0] == pytest.approx(0.7, abs=1e-10)


@pytest.mark.parametrize("n", [20, 300])
def test_no_path_through_the_code_gets_it_wrong_in_silence(
    response: Response, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    # As a bounded response: the good end triggers for ever and is never answered, the bad one
    # never triggers; each solver must give 7/10 or refuse.
    matrix = haddad_monmege(n)
    chain = given_chain(matrix)
    classes = np.zeros(chain.size, dtype=np.int64)
    classes[-2] = 1
    assert risk_table(chain, response(3), classes, None).values[0, 0] == pytest.approx(0.7)
    monkeypatch.setattr(idle, "DENSE_STATES", 0)
    monkeypatch.setattr(idle, "LAST_RESORT_STATES", 0)
    monkeypatch.setattr(reachability, "DENSE_STATES", 0)
    try:
        value = risk_table(chain, response(3), classes, None).values[0, 0]
    except CheckingError:
        return
    assert value == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize(
    ("row", "said"), [([0.5, 0.4], "0.9"), ([np.nan, 1.0], "nan"), ([0.6, 0.6], "1.2")]
)
def test_rows_that_do_not_sum_to_one_are_refused(row: list[float], said: str) -> None:
    with pytest.raises(CheckingError, match=said):
        reach(sparse.csr_matrix([row, [0.0, 1.0]]), np.array([False, True]))


def exact_absorption(moves: np.ndarray, hit: np.ndarray, miss: np.ndarray) -> list[Fraction]:
    """Gauss-Jordan in rational numbers; rows of (moves, hit, miss) as weights."""
    n = len(moves)
    rows = []
    for i in range(n):
        out = sum((Fraction(float(w)) for j, w in enumerate(moves[i]) if j != i), Fraction(0))
        out += Fraction(float(hit[i])) + Fraction(float(miss[i]))
        row = [-Fraction(float(w)) for w in moves[i]]
        row[i] = out
        rows.append([*row, Fraction(float(hit[i]))])
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(n):
            if k != i:
                factor = rows[k][i]
                rows[k] = [v - factor * w for v, w in zip(rows[k], rows[i], strict=True)]
    return [row[n] for row in rows]


@pytest.mark.parametrize("seed", range(8))
def test_elimination_is_right_to_the_last_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 7
    # Probabilities over thirty orders of magnitude.
    moves = 10 ** rng.uniform(-30, 0, size=(n, n)) * (rng.random((n, n)) < 0.6)
    moves[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    hit, miss = 10 ** rng.uniform(-30, -20, size=(2, n))
    expected = [float(value) for value in exact_absorption(moves, hit, miss)]
    dense = absorption(moves, np.column_stack([hit, miss]))[:, 0]
    np.testing.assert_allclose(dense, expected, rtol=1e-13)
    loose = sparse_absorption(sparse.csr_matrix(moves), hit, miss)
    np.testing.assert_allclose(loose, expected, rtol=1e-13)


def test_elimination_refuses_a_state_without_a_way_out() -> None:
    moves = sparse.csr_matrix([[0.0, 1.0], [1.0, 0.0]])
    nothing = np.zeros(2)
    with pytest.raises(CheckingError, match="no way out"):
        absorption(moves.toarray(), np.zeros((2, 2)))
    with pytest.raises(CheckingError, match="no way out"):
        sparse_absorption(moves, nothing, nothing)


def test_sparse_elimination_refuses_to_fill_memory() -> None:
    n = 30
    moves = sparse.csr_matrix(np.full((n, n), 1 / (n + 2)))
    with pytest.raises(CheckingError, match="too large"):
        sparse_absorption(moves, np.full(n, 1 / (n + 2)), np.full(n, 1 / (n + 2)), 100)


def test_large_sparse_systems_equal_elimination(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    n = 200
    matrix = np.zeros((n + 2, n + 2))
    for i in range(n):
        matrix[i, rng.choice(n + 2, size=4, replace=False)] = rng.dirichlet(np.ones(4))
    matrix[n, n] = matrix[n + 1, n + 1] = 1.0
    chain = sparse.csr_matrix(matrix)
    dense, _ = reach(chain, goal(chain))
    monkeypatch.setattr(reachability, "DENSE_STATES", 0)
    loose, _ = reach(chain, goal(chain))
    np.testing.assert_allclose(loose, dense, atol=1e-12)


@pytest.mark.parametrize("loop", [1, 7])
def test_small_loops_one_after_the_other_are_factored_in_their_order(
    loop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any numbering of the states; equal to elimination, which subtracts nothing."""
    monkeypatch.delattr(reachability, "_envelope")  # the way of large loops
    rng = np.random.default_rng(loop)
    n = 800
    place = rng.permutation(n)
    rows, columns = [], []
    for state in range(n):
        first = state - state % loop
        ahead = rng.integers(first, min(n, first + 8 * loop), size=3)
        rows += [place[state]] * 3
        columns += [*place[ahead]]
    moves = sparse.csr_matrix((rng.random(3 * n), (rows, columns)), shape=(n, n))
    leaving = rng.random((n, 2)) + 1e-6
    total = np.asarray(moves.sum(axis=1)).ravel() + leaving.sum(axis=1)
    moves = sparse.csr_matrix(sparse.diags(1 / total) @ moves)
    hit, miss = (leaving / total[:, None]).T
    position = reachability._forward_places(moves)
    assert position is not None
    assert sorted(position) == list(range(n))
    _, component = sparse.csgraph.connected_components(moves, connection="strong")
    coo = moves.tocoo()
    inside = component[coo.row] == component[coo.col]
    assert (inside | (position[coo.row] < position[coo.col])).all()
    found = reachability.solve(moves, hit, miss)
    np.testing.assert_allclose(found, sparse_absorption(moves, hit, miss), atol=1e-12)


def test_one_large_loop_is_not_factored_in_blocks() -> None:
    ring = sparse.csr_matrix(np.roll(np.eye(3_000), 1, axis=1))
    assert reachability._forward_places(ring) is None


@pytest.mark.parametrize("seed", range(examples(5)))
def test_without_loops_substitution_alone_is_right_and_nothing_need_be_verified(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any numbering of the states; equal to exact fractions."""
    monkeypatch.delattr(reachability, "_verified")
    rng = np.random.default_rng(seed)
    n = reachability.DENSE_STATES + 1
    place = rng.permutation(n)
    weights = np.zeros((n, n + 2))  # in an order in which every move leads on
    for state in range(n):
        after = rng.integers(state + 1, min(n, state + 40) + 2, size=3)
        np.add.at(weights[state], after, 10.0 ** -rng.uniform(0, 12, size=3))
    exact = [Fraction(0)] * n + [Fraction(1), Fraction(0)]
    for state in reversed(range(n)):
        leaving = [(Fraction(float(weights[state, j])), j) for j in weights[state].nonzero()[0]]
        exact[state] = sum(w * exact[j] for w, j in leaving) / sum(w for w, _ in leaving)
    moves = sparse.csr_matrix(weights[:, :n][place][:, place])
    found = reachability.solve(moves, weights[place, n], weights[place, n + 1])
    wanted = np.array([float(exact[state]) for state in place])
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0)


def test_so_many_moves_that_roundings_could_count_are_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = reachability.DENSE_STATES + 1
    moves = sparse.csr_matrix(sparse.diags(np.full(n - 1, 0.5), 1, shape=(n, n)))
    hit = np.full(n, 0.25)
    hit[-1], miss = 0.5, np.full(n, 0.25)
    miss[-1] = 0.5
    asked: list[int] = []
    verified = reachability._verified
    monkeypatch.setattr(
        reachability, "_verified", lambda *given: asked.append(1) or verified(*given)
    )
    plain = reachability.solve(moves, hit, miss)
    assert not asked
    monkeypatch.setattr(reachability, "UNIT", reachability.ACCURACY / n)
    np.testing.assert_allclose(reachability.solve(moves, hit, miss), plain, rtol=1e-12)
    assert asked


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_a_decision_process_equals_its_best_policy(seed: int, maximise: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 5
    numbers = rng.integers(1, 4, size=n)
    groups = np.concatenate([[0], np.cumsum(numbers)])
    matrix = np.zeros((groups[-1], n))
    for choice in range(groups[-1]):
        targets = rng.choice(n, size=rng.integers(1, 4), replace=False)
        matrix[choice, targets] = rng.dirichlet(np.ones(targets.size))
    process = DecisionProcess(sparse.csr_matrix(matrix), groups)
    psi, phi = np.arange(n) == n - 1, rng.random(n) < 0.8
    found = optimal(process, psi, phi, maximise=maximise).values
    policies = itertools.product(*(range(groups[s], groups[s + 1]) for s in range(n)))
    values = [reach(sparse.csr_matrix(matrix[list(policy)]), psi, phi)[0] for policy in policies]
    expected = np.max(values, axis=0) if maximise else np.min(values, axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("matrix", "groups", "said"),
    [
        ([[0.5, 0.4], [0, 1]], [0, 1, 2], "sums to 0.9"),
        ([[1.5, -0.5], [0, 1]], [0, 1, 2], "is -0.5"),
        ([[1, 0], [0, 1]], [0, 2, 2], "at least one choice"),
        ([[1, 0], [0, 1]], [0, 1], "at least one choice"),
    ],
)
def test_a_decision_process_must_be_one(matrix: list, groups: list[int], said: str) -> None:
    with pytest.raises(CheckingError, match=said):
        DecisionProcess(sparse.csr_matrix(np.array(matrix, dtype=float)), np.array(groups))
