"""Counterexamples of probability: the most probable paths."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from forewarn.errors import CheckingError

if TYPE_CHECKING:
    from forewarn.models.chain import Floats
    from forewarn.models.process import Mask

MAX_QUEUE = 200_000
WEIGHTLESS = 1e-15


class Path(NamedTuple):
    """A path to the targets.

    `states`: indices of the states, the first and the target included; a cycle repeats them.
    """

    states: tuple[int, ...]
    probability: float  # product of its transition probabilities


def probable_paths(
    matrix: sparse.csr_matrix, start: int, targets: Mask, number: int, shortest: int | None = None
) -> Iterator[Path]:
    """Yield the most probable paths from a state to the targets, most probable first.

    Each is the shortest under the lengths ``-log P`` (Han, Katoen and Damman 2009); paths are
    extended in the order of what the best continuation is worth, which is exact.

    `matrix`, shape (n, n): transition probabilities.
    `start`: where paths begin.
    `targets`, shape (n,): where they end, at the first target.
    `number`: how many paths at most.
    `shortest`: steps that a path has at most.
    Raises CheckingError if more than 200,000 beginnings of paths would have to be kept.
    """
    left = distances(matrix, targets)
    if not np.isfinite(left[start]):
        return
    # A path is kept as its last state and what it extends.
    queue: list[tuple[float, int, float, int, Any]] = [(left[start], 0, 0.0, start, None)]
    tie, found = 1, 0
    while queue and found < number:
        _, _, length, state, before = heapq.heappop(queue)
        if targets[state]:
            found += 1
            states = _unrolled(state, before)
            yield Path(states, math.exp(-length))
            continue
        depth = 1 if before is None else before[2] + 1
        if shortest is not None and depth > shortest:
            continue
        part = slice(matrix.indptr[state], matrix.indptr[state + 1])
        for following, chance in zip(
            matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True
        ):
            if chance > 0 and math.isfinite(left[following]):
                longer = length - math.log(chance)
                link = (state, before, depth)
                heapq.heappush(queue, (longer + left[following], tie, longer, following, link))
                tie += 1
        if len(queue) > MAX_QUEUE:
            raise CheckingError(
                f"more than {MAX_QUEUE:,} beginnings of paths are as probable as those found",
                accepted="fewer paths, or a sub-system instead",
            )


def with_start(chain: sparse.csr_matrix, weights: Floats) -> sparse.csr_matrix:
    """Return a chain with one more state, the last: it leads to where runs begin.

    `chain`, shape (n, n): transition probabilities.
    `weights`, shape (n,): share of runs that begin in each state.
    """
    first = sparse.csr_matrix(weights)
    return sparse.csr_matrix(sparse.bmat([[chain, None], [first, np.zeros((1, 1))]]))


def _unrolled(state: int, before: Any) -> tuple[int, ...]:
    states = [state]
    while before is not None:
        states.append(before[0])
        before = before[1]
    return tuple(reversed(states))


def distances(matrix: sparse.csr_matrix, targets: Mask) -> Floats:
    """Return the length of the most probable path to a target from each state, shape (n,)."""
    n = matrix.shape[0]
    coo = matrix.tocoo()
    kept = (coo.data > 0) & ~targets[coo.row]
    goals = np.flatnonzero(targets)
    # Sparse graphs of scipy have no edges of length 0.
    length = np.maximum(-np.log(coo.data[kept]), WEIGHTLESS)
    edges = sparse.csr_matrix(
        (
            np.concatenate([length, np.full(goals.size, WEIGHTLESS)]),
            (
                np.concatenate([coo.col[kept], np.full(goals.size, n)]),
                np.concatenate([coo.row[kept], goals]),
            ),
        ),
        shape=(n + 1, n + 1),
    )
    return np.asarray(csgraph.dijkstra(edges, indices=n)[:n])
