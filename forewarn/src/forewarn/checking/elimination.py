"""Absorption probabilities without a single subtraction (Grassmann, Taksar, Heyman 1985)."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from forewarn.errors import CheckingError

if TYPE_CHECKING:
    from forewarn.models.chain import Floats


def absorption(moves: Floats, exits: Floats) -> Floats:
    """Return the probability to leave a transient chain by each exit, shape (n, k).

    States are eliminated one by one; the probability to leave a state is the sum of what leaves
    it, never one minus what stays. Every number is a sum of products of non-negative numbers, so
    each entry is right to some ``n`` roundings, however slowly the chain leaves.

    `moves`, shape (n, n): non-negative weights of moves among the states; the diagonal is ignored.
    `exits`, shape (n, k): non-negative weights of the exits. Rows of both need not sum to 1: only
    ratios count.
    Raises CheckingError if a state cannot leave (its probabilities are not defined), or numbers
    underflow.
    """
    a = np.array(moves, dtype=np.float64)
    b = np.array(exits, dtype=np.float64)
    n = a.shape[0]
    out = np.empty(n)
    for k in range(n - 1, -1, -1):
        out[k] = leaving = _way_out(k, a[k, :k].sum() + b[k].sum())
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


def sparse_absorption(
    moves: sparse.csr_matrix, hit: Floats, miss: Floats, max_entries: int = 20_000_000
) -> Floats:
    """Return the probability to leave by `hit`, shape (n,), by sparse elimination.

    States with the fewest paths through them go first (Markowitz).

    `moves`, shape (n, n): non-negative weights of moves; the diagonal is ignored.
    `hit`, `miss`, shape (n,): non-negative weights of the two exits.
    `max_entries`: moves that elimination may add before it gives up.
    Raises CheckingError if a state cannot leave, or elimination adds too many moves.
    """
    n = moves.shape[0]
    after, before = _neighbours(moves)
    good, bad = hit.tolist(), miss.tolist()
    queue = [(len(before[k]) * len(after[k]), k) for k in range(n)]
    heapq.heapify(queue)
    gone = [False] * n
    order: list[tuple[int, dict[int, float], float, float]] = []
    added = 0
    while queue:
        cost, k = heapq.heappop(queue)
        if gone[k]:
            continue
        if cost < len(before[k]) * len(after[k]):
            heapq.heappush(queue, (len(before[k]) * len(after[k]), k))
            continue
        gone[k] = True
        out = _way_out(k, sum(after[k].values()) + good[k] + bad[k])
        added += len(before[k]) * len(after[k])
        if added > max_entries:
            raise CheckingError(
                "the linear system is too large to be solved without loss of accuracy",
                accepted="a smaller chain, or a horizon",
            )
        order.append((k, after[k], good[k], out))
        for i in before[k]:
            share = after[i].pop(k) / out
            good[i] += share * good[k]
            bad[i] += share * bad[k]
            for j, weight in after[k].items():
                if j != i:
                    after[i][j] = after[i].get(j, 0.0) + share * weight
                    before[j].add(i)
        for j in after[k]:
            before[j].discard(k)
    values = np.zeros(n)
    for k, following, direct, out in reversed(order):
        values[k] = (direct + sum(w * values[j] for j, w in following.items())) / out
    return values


def _neighbours(moves: sparse.csr_matrix) -> tuple[list[dict[int, float]], list[set[int]]]:
    """Return what follows each state, with weights, and what comes before it."""
    n = moves.shape[0]
    after: list[dict[int, float]] = [{} for _ in range(n)]
    before: list[set[int]] = [set() for _ in range(n)]
    coo = moves.tocoo()
    for i, j, weight in zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True):
        if i != j and weight > 0:
            after[i][j] = after[i].get(j, 0.0) + weight
            before[j].add(i)
    return after, before


def _way_out(state: int, weight: float) -> float:
    """Return the weight of all that leaves a state, which the others are divided by."""
    if not weight > 0:
        raise CheckingError(
            f"state {state} of the linear system has no way out in floating-point numbers",
            accepted="a chain that leaves its transient states",
        )
    return weight
