"""Probability to reach a set in a sparse chain (``phi U psi``), with the error under control."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

from forewarn.checking.elimination import absorption
from forewarn.checking.graph import Certain, certain
from forewarn.errors import CheckingError
from forewarn.models.chain import ROW_TOLERANCE, Floats

DENSE_STATES = 600
ACCURACY = 1e-10
ROUNDING = 1e-15


def reach(
    matrix: sparse.csr_matrix,
    targets: NDArray[np.bool_],
    through: NDArray[np.bool_] | None = None,
) -> tuple[Floats, Certain]:
    """Return the probability to reach `targets` from every node, and what the graph decides.

    Parameters
    ----------
    matrix : csr_matrix, shape (n, n)
        Transition probabilities. An empty row is a node that is never left.
    targets : ndarray of bool, shape (n,)
        Nodes to reach.
    through : ndarray of bool, shape (n,), optional
        Nodes allowed on the way; all by default.

    Raises
    ------
    CheckingError
        If a row does not sum to 1, or the accuracy of the result cannot be assured.
    """
    total = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = np.flatnonzero(~(np.abs(total - 1.0) <= ROW_TOLERANCE) & (np.diff(matrix.indptr) > 0))
    wrong = wrong[~targets[wrong]]
    if wrong.size:
        raise CheckingError(
            f"row {wrong[0]} of the transition matrix sums to {total[wrong[0]]:.12g}",
            accepted="rows that sum to 1",
        )
    sure = certain(matrix, targets, through)
    values = sure.one.astype(np.float64)
    maybe = ~(sure.zero | sure.one)
    if maybe.any():
        inner = matrix[maybe]
        hit = np.asarray(inner[:, sure.one].sum(axis=1)).ravel()
        miss = np.asarray(inner[:, sure.zero].sum(axis=1)).ravel()
        values[maybe] = solve(sparse.csr_matrix(inner[:, maybe]), hit, miss)
    return values, sure


def solve(inner: sparse.csr_matrix, hit: Floats, miss: Floats) -> Floats:
    """Return the probability to leave by `hit` and not by `miss`, shape (n,)."""
    n = inner.shape[0]
    if n <= DENSE_STATES:
        return absorption(inner.toarray(), np.column_stack([hit, miss]))[:, 0]
    return _solve_sparse(inner, hit, miss)


def _solve_sparse(inner: sparse.csr_matrix, hit: Floats, miss: Floats) -> Floats:
    """Solve by sparse LU, and bound the error by a second solution.

    The diagonal is the sum of what leaves a state, not one minus what stays. The inverse of the
    system is non-negative, so a vector z with ``system @ z >= |residual|`` bounds the error.
    """
    stays = sparse.diags(inner.diagonal())
    moves = sparse.csr_matrix(inner - stays)
    leaving = np.asarray(moves.sum(axis=1)).ravel() + hit + miss
    system = sparse.csc_matrix(sparse.diags(leaving) - moves)
    factors = linalg.splu(system)
    values = factors.solve(hit)
    values += factors.solve(hit - system @ values)
    rounding = ROUNDING * (hit + abs(system) @ np.abs(values))
    residual = np.abs(hit - system @ values) + rounding
    bound = 1.01 * factors.solve(residual)
    if not (bound >= 0).all() or (system @ bound < residual).any() or bound.max() > ACCURACY:
        raise CheckingError(
            "the unbounded probability cannot be computed to 1e-10 in floating-point numbers",
            accepted="a chain that leaves its transient states faster, or a horizon",
        )
    return np.asarray(np.clip(values, 0.0, 1.0))
