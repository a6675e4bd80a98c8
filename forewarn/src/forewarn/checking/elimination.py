"""Absorption probabilities without a single subtraction (Grassmann, Taksar, Heyman 1985)."""

from __future__ import annotations

import numpy as np

from forewarn.errors import CheckingError
from forewarn.models.chain import Floats


def absorption(moves: Floats, exits: Floats) -> Floats:
    """Return the probability to leave a transient chain by each exit, shape (n, k).

    States are eliminated one by one; the probability to leave a state is the sum of what leaves
    it, never one minus what stays. Every number is a sum of products of non-negative numbers, so
    each entry is right to some ``n`` roundings, however slowly the chain leaves.

    Parameters
    ----------
    moves : ndarray, shape (n, n)
        Non-negative weights of moves among the states; the diagonal is ignored.
    exits : ndarray, shape (n, k)
        Non-negative weights of the exits. Rows of both need not sum to 1: only ratios count.

    Raises
    ------
    CheckingError
        If a state cannot leave (its probabilities are not defined), or numbers underflow.
    """
    a = np.array(moves, dtype=np.float64)
    b = np.array(exits, dtype=np.float64)
    n = a.shape[0]
    out = np.empty(n)
    for k in range(n - 1, -1, -1):
        leaving = a[k, :k].sum() + b[k].sum()
        if not leaving > 0:
            raise CheckingError(
                f"state {k} of the linear system has no way out in floating-point numbers",
                accepted="a chain that leaves its transient states",
            )
        out[k] = leaving
        if k:
            share = a[:k, k] / leaving
            touched = np.flatnonzero(share)
            part = share[touched, None]
            a[touched, :k] += part * a[k, :k]
            b[touched] += part * b[k]
    result = np.empty_like(b)
    for k in range(n):
        result[k] = (b[k] + a[k, :k] @ result[:k]) / out[k]
    return result
