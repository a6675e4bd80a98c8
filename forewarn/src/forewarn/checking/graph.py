"""Graph analysis of chains: who can reach whom, closed classes, probability 0 and 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

Mask = NDArray[np.bool_]


def backward_reachable(graph: sparse.csr_matrix, targets: Mask) -> Mask:
    """Return the nodes with a path to a target (targets included), shape (n,).

    Parameters
    ----------
    graph : csr_matrix, shape (n, n)
        An edge for each stored, non-zero entry.
    targets : ndarray of bool, shape (n,)
        Where paths end.
    """
    return _leading_to(_backward(graph), targets)


def _backward(graph: sparse.csr_matrix) -> sparse.csc_matrix:
    """Return the graph by columns: the predecessors of a node lie side by side."""
    edges = graph.tocsc(copy=True)
    edges.eliminate_zeros()
    return edges


def _leading_to(edges: sparse.csc_matrix, targets: Mask) -> Mask:
    """Do what `backward_reachable` does: search backwards from a node that all targets lead to."""
    n = edges.shape[0]
    if not targets.any():
        return np.zeros(n, dtype=bool)
    before = np.concatenate([edges.indices, np.flatnonzero(targets).astype(edges.indices.dtype)])
    pointers = np.append(edges.indptr, edges.indices.dtype.type(before.size))
    reverse = sparse.csr_matrix((np.ones(before.size), before, pointers), shape=(n + 1, n + 1))
    order = csgraph.breadth_first_order(reverse, n, return_predecessors=False)
    found = np.zeros(n + 1, dtype=bool)
    found[order] = True
    return np.asarray(found[:n])


class Certain(NamedTuple):
    """Nodes whose probability to reach the targets is 0 or 1 by the graph alone."""

    zero: Mask
    one: Mask


def certain(graph: sparse.csr_matrix, targets: Mask, through: Mask | None = None) -> Certain:
    """Return the nodes that reach `targets` with probability 0 and with probability 1.

    In a finite chain the probability is 0 iff there is no path, and 1 iff no path that avoids
    the targets leads to a node of probability 0 (Baier and Katoen, 2008, section 10.1.1).

    Parameters
    ----------
    graph : csr_matrix, shape (n, n)
        Edges of the chain. A node without edges stays where it is.
    targets : ndarray of bool, shape (n,)
        Nodes to reach.
    through : ndarray of bool, shape (n,), optional
        Nodes that may be visited on the way (phi of ``phi U psi``); all by default.
    """
    allowed = ~targets if through is None else through & ~targets
    inner = _pattern(graph)
    inner.data &= np.repeat(allowed, np.diff(graph.indptr))
    edges = _backward(inner)
    zero = ~_leading_to(edges, targets)
    return Certain(zero, ~_leading_to(edges, zero))


def _pattern(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    data = (graph.data != 0).astype(np.int8)
    return sparse.csr_matrix((data, graph.indices, graph.indptr), shape=graph.shape)


class ClosedClasses(NamedTuple):
    """Sets of states that a chain cannot leave.

    Attributes
    ----------
    label : ndarray of int, shape (n,)
        Number of the class a state belongs to, -1 for transient states.
    """

    number: int
    label: NDArray[np.int64]


def closed_classes(graph: sparse.csr_matrix) -> ClosedClasses:
    """Return the bottom strongly connected components."""
    pattern = _pattern(graph)
    number, label = csgraph.connected_components(pattern, directed=True, connection="strong")
    coo = pattern.tocoo()
    leaving = (label[coo.row] != label[coo.col]) & (coo.data != 0)
    is_open = np.zeros(number, dtype=bool)
    is_open[label[coo.row[leaving]]] = True
    names = np.full(number, -1, dtype=np.int64)
    names[~is_open] = np.arange(int((~is_open).sum()))
    return ClosedClasses(int((~is_open).sum()), names[label])
