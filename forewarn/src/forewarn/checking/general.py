"""Risk for any deterministic automaton: backward induction, or a linear system on the product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.graph import Certain
from forewarn.checking.labels import ENDED
from forewarn.checking.reachability import reach
from forewarn.models.chain import Chain, Floats
from forewarn.properties.automaton import Automaton


def entered_states(automaton: Automaton, classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the automaton state after reading each chain state, shape (n, m)."""
    return np.asarray(automaton.transitions.T[np.maximum(classes, 0)], dtype=np.int64)


def bounded(chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int) -> Floats:
    """Return the table for a horizon of `horizon` steps, shape (n, m)."""
    for values in backward_induction(chain, automaton, classes, horizon):
        last = values
    return last


def backward_induction(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int
) -> Iterator[Floats]:
    """Yield the tables for 0, 1, ... `horizon` steps, shape (n, m)."""
    n, m = chain.size, automaton.transitions.shape[0]
    values: Floats = np.zeros((n, m))
    if automaton.violated is not None:
        values[:, automaton.violated] = 1.0
    yield values
    known = {automaton.violated, automaton.satisfied}
    moving = np.array([q for q in range(m) if q not in known], dtype=np.int64)
    entered = entered_states(automaton, classes)[:, moving]
    ended = classes == ENDED
    # Where a terminal state has been read, only a violation counts.
    stopped = ~chain.live | ended
    for _ in range(horizon):
        after = np.take_along_axis(values, entered, axis=1)
        after[ended] = 0.0
        following = chain.apply(after)
        following[stopped] = 0.0
        values = values.copy()
        values[:, moving] = following
        yield values


def product_graph(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64]
) -> tuple[sparse.csr_matrix, NDArray[np.bool_]]:
    """Return the product as one sparse chain and the mask of its violated nodes.

    Nodes are ``s * m + q`` for the product states, then ``(n + k) * m + q`` for the choice of a
    successor by prior k with the automaton in q (it takes no time), and one last node where all
    obligations end. Rows of nodes where nothing happens any more are empty.
    """
    n, m = chain.size, automaton.transitions.shape[0]
    g = chain.supports.shape[0]
    entered = entered_states(automaton, classes)
    states = np.arange(m)
    size = (n + g) * m + 1
    after = np.arange(n)[:, None] * m + entered
    after[classes == ENDED] = size - 1
    moves = chain.sparse.tocoo()
    live = chain.live & (classes != ENDED)
    keep = live[moves.row]
    rows = [(moves.row[keep, None] * m + states).ravel()]
    columns = [after[moves.col[keep]].ravel()]
    data = [np.repeat(moves.data[keep], m)]
    users = np.flatnonzero(live & (chain.prior > 0))
    rows.append((users[:, None] * m + states).ravel())
    columns.append(((n + chain.group[users][:, None]) * m + states).ravel())
    data.append(np.repeat(chain.prior[users], m))
    drawn = chain.supports.tocoo()
    rows.append(((n + drawn.row[:, None]) * m + states).ravel())
    columns.append(after[drawn.col].ravel())
    data.append(np.repeat(drawn.data, m))
    violated = np.zeros(size, dtype=bool)
    if automaton.violated is not None:
        violated[: n * m].reshape(n, m)[:, automaton.violated] = True
    row, column, value = np.concatenate(rows), np.concatenate(columns), np.concatenate(data)
    inner = ~violated[row]
    graph = sparse.csr_matrix((value[inner], (row[inner], column[inner])), shape=(size, size))
    return graph, violated


def unbounded(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64]
) -> tuple[Floats, Certain]:
    """Return the table without horizon, shape (n, m), and what the graph alone decides."""
    n, m = chain.size, automaton.transitions.shape[0]
    graph, violated = product_graph(chain, automaton, classes)
    values, sure = reach(graph, violated)
    values = values[: n * m].reshape(n, m)
    return values, Certain(sure.zero[: n * m].reshape(n, m), sure.one[: n * m].reshape(n, m))
