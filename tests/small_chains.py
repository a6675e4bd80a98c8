"""Automata by hand and chains at random, for the tests of all checkers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain


def given_chain(matrix: ArrayLike | sparse.spmatrix, absorbing: ArrayLike | None = None) -> Chain:
    """Return the chain of a stochastic matrix, shape (n, n)."""
    rows = sparse.csr_matrix(matrix, dtype=np.float64)
    nowhere = np.zeros(rows.shape[0], dtype=bool)
    marks = nowhere if absorbing is None else np.asarray(absorbing, dtype=bool)
    return Chain.of_rows(rows, marks, nowhere)


def bounded_response(bound: int) -> Automaton:
    """Return ``always(a implies eventually[0:bound](b))``; class 1 is a without b."""
    violated = bound + 1
    moves = np.zeros((bound + 2, 3), dtype=np.int32)
    moves[0, 1] = bound or violated
    for waiting in range(1, bound + 1):
        moves[waiting, :2] = waiting - 1 or violated
    moves[violated] = violated
    names = ("idle", *(f"waiting {k}" for k in range(1, bound + 1)), "violated")
    letters = np.array([0, 1, 2, 2], dtype=np.int32)
    return Automaton(("a", "b"), letters, moves, 0, violated, None, names, bound)


def random_chain(n: int, successors: int, terminals: int, leave: float, seed: int) -> Chain:
    """Return a sparse chain whose last states are terminal."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((n, n))
    for i in range(n - terminals):
        targets = rng.choice(n - terminals, size=min(successors, n - terminals), replace=False)
        matrix[i, targets] = rng.dirichlet(np.ones(targets.size)) * (1 - leave)
        if terminals:
            matrix[i, n - 1 - i % terminals] += leave
    for i in range(n - terminals, n):
        matrix[i, i] = 1.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    absorbing = np.arange(n) >= n - terminals
    return given_chain(matrix, absorbing)
