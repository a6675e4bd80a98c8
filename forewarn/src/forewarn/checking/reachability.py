"""Probability to reach a set in a sparse chain (``phi U psi``), with the error under control.

What the graph alone decides comes first: which states can reach which, closed classes, probability
0 and 1. The rest is a linear system, for which GMRES keeps its products on one core: scipy's calls
threaded BLAS for every scalar product, and on a robot whose cores are busy, waiting for the other
threads takes longer than the sums themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as scipy_linalg
from scipy import sparse
from scipy.sparse import csgraph, linalg

from forewarn.checking.elimination import absorption, sparse_absorption
from forewarn.errors import CheckingError
from forewarn.models.chain import ROW_TOLERANCE, Floats

DENSE_STATES = 600
ACCURACY = 1e-10
ROUNDING = 1e-15
UNIT = 2.0**-53
MAX_ENVELOPE = 50_000_000
MAX_ELIMINATION = 5_000_000_000
MAX_BLOCKS = 5_000_000
KRYLOV = 1e-12
RESTARTS = 2


def reach(
    matrix: sparse.csr_matrix, targets: NDArray[np.bool_], through: NDArray[np.bool_] | None = None
) -> tuple[Floats, Certain]:
    """Return the probability to reach `targets` from every node, and what the graph decides.

    `matrix`, shape (n, n): transition probabilities. An empty row is a node that is never left.
    `targets`, shape (n,): nodes to reach.
    `through`, shape (n,): nodes allowed on the way; all by default.
    Raises CheckingError if a row does not sum to 1, or the accuracy of the result cannot be
    assured.
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
        hit, miss = inner @ values, inner @ sure.zero.astype(np.float64)
        values[maybe] = solve(sparse.csr_matrix(inner[:, maybe]), hit, miss)
    return values, sure


def solve(inner: sparse.csr_matrix, hit: Floats, miss: Floats) -> Floats:
    """Return the probability to leave by `hit` and not by `miss`, shape (n,).

    `inner`, shape (n, n): moves among the states that are left to solve; the diagonal is ignored.
    `hit`, `miss`, shape (n,): what leaves a state for the target, and for where the target is out
    of reach.
    """
    if inner.shape[0] <= DENSE_STATES:
        return solve_dense(inner.toarray(), hit, miss)
    stays = inner.diagonal()
    moves = sparse.csr_matrix(inner - sparse.diags(stays)) if stays.any() else inner
    # What leaves is summed up: one minus what stays would lose its digits.
    leaving = np.asarray(moves.sum(axis=1)).ravel() + hit + miss
    if leaving.min() > 0:
        place = _forward_places(moves)
        if place is not None:
            result = _by_blocks(moves, leaving, hit, miss, place)
            if result is not None:
                return result
        system = sparse.csc_matrix(sparse.diags(leaving) - moves)
        entries, work = _envelope(moves)
        if entries > MAX_ENVELOPE or work > MAX_ELIMINATION:
            # Factors of a large system without structure do not fit into memory, or take minutes.
            result = _iterated(moves, leaving, hit)
            if result is not None:
                return result
        result = _verified(system, linalg.splu(system).solve, hit)
        if result is not None:
            return result
    return sparse_absorption(inner, hit, miss)


def _forward_places(moves: sparse.csr_matrix) -> NDArray[np.intp] | None:
    """Return places such that no move leads to an earlier component; None if one is large.

    Components are the strongly connected ones: within them alone elimination fills its factors.
    """
    number, component = csgraph.connected_components(moves, directed=True, connection="strong")
    place = component
    if number < component.size:
        sizes = np.bincount(component)
        leaves = np.bincount(component, weights=np.diff(moves.indptr))
        if (sizes * np.where(sizes > 1, sizes + leaves, 0)).sum() > MAX_BLOCKS:
            return None
        place = np.empty_like(component)
        place[np.argsort(component, kind="stable")] = np.arange(place.size)
    # The components come in this order or its reverse; SciPy does not say which.
    from_component = np.repeat(component, np.diff(moves.indptr))
    to_component = component[moves.indices]
    if (from_component <= to_component).all():
        return np.asarray(place)
    if (from_component >= to_component).all():
        return np.asarray(place.size - 1 - place)
    return None


def _by_blocks(
    moves: sparse.csr_matrix, leaving: Floats, hit: Floats, miss: Floats, place: NDArray[np.intp]
) -> Floats | None:
    """Return the solution by factors of a system whose blocks are in these places, else None."""
    system = _placed(moves, leaving, place)
    right = np.empty_like(hit)
    right[place] = hit
    # Each diagonal outweighs its row: nothing need be exchanged. Panels pay for full blocks only.
    factors = linalg.splu(system, permc_spec="NATURAL", diag_pivot_thresh=0.0, panel_size=1)
    if _is_accurate_without_loops(moves, hit, miss, place):
        return np.asarray(np.clip(factors.solve(right), 0.0, 1.0)[place])
    found = _verified(system, factors.solve, right)
    return None if found is None else found[place]


def _placed(
    moves: sparse.csr_matrix, leaving: Floats, place: NDArray[np.intp]
) -> sparse.csc_matrix:
    """Return the system of linear equations with each state in its place."""
    rows = np.concatenate([np.repeat(place, np.diff(moves.indptr)), place])
    columns = np.concatenate([place[moves.indices], place])
    entries = np.concatenate([-moves.data, leaving])
    return sparse.csc_matrix((entries, (rows, columns)), shape=moves.shape)


def _is_accurate_without_loops(
    moves: sparse.csr_matrix, hit: Floats, miss: Floats, place: NDArray[np.intp]
) -> bool:
    """Tell whether substitution alone proves its error to be at most ``ACCURACY``.

    If every move leads to a later place, the factors are the system itself, and no number is
    subtracted from another: relative errors add up, and values are at most 1. A state with one
    way out adds a product and a quotient. One with k moves adds k + 2 roundings by its sum, and
    k + 1 by the sum that it is divided by.
    """
    degree = np.diff(moves.indptr)
    exits = degree + (hit > 0) + (miss > 0)
    roundings = np.where(exits > 1, 2 * degree + 3, 2).sum()
    if 1.01 * roundings * UNIT > ACCURACY:
        return False
    return bool((np.repeat(place, degree) < place[moves.indices]).all())


def _envelope(moves: sparse.csr_matrix) -> tuple[int, int]:
    """Return how many entries elimination could fill at most, and how many products that takes.

    The order is that of Cuthill and McKee.
    """
    order = csgraph.reverse_cuthill_mckee(moves, symmetric_mode=False)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    coo = moves.tocoo()
    reach = np.zeros(order.size, dtype=np.int64)
    distance = np.abs(place[coo.row] - place[coo.col])
    np.maximum.at(reach, np.maximum(place[coo.row], place[coo.col]), distance)
    return int(reach.sum()), int((reach * reach).sum())


def _iterated(moves: sparse.csr_matrix, leaving: Floats, hit: Floats) -> Floats | None:
    """Return the solution by GMRES if its error is proven to be small, else None."""
    scaled = sparse.csr_matrix(sparse.diags(1.0 / leaving) @ moves)
    system = sparse.csr_matrix(sparse.identity(leaving.size) - scaled)

    def inverse(right: Floats) -> Floats:
        found = np.zeros_like(right)
        for _ in range(RESTARTS):
            found = found + gmres(lambda x: x - scaled @ x, right - system @ found, KRYLOV)
            if np.abs(right - system @ found).max() <= KRYLOV * np.abs(right).max():
                break
        return found

    return _verified(system, inverse, hit / leaving)


def solve_dense(inner: Floats, hit: Floats, miss: Floats) -> Floats:
    """Do what `solve` does for a dense matrix: by LU, and by elimination where that is not safe."""
    moves = inner.copy()
    np.fill_diagonal(moves, 0.0)
    leaving = moves.sum(axis=1) + hit + miss
    if leaving.min() > 0:
        system = np.diag(leaving) - moves
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy_linalg.LinAlgWarning)
            factors = scipy_linalg.lu_factor(system, check_finite=False)
            result = _verified(
                system, lambda b: scipy_linalg.lu_solve(factors, b, check_finite=False), hit
            )
        if result is not None:
            return result
    return absorption(inner, np.column_stack([hit, miss]))[:, 0]


def _verified(system: Any, factored: Callable[[Floats], Floats], hit: Floats) -> Floats | None:
    """Return the solution if its error is proven to be at most ``ACCURACY``, else None.

    The inverse of the system is non-negative, so a vector z >= 0 with ``system @ z >= |r|``
    bounds the error of a solution with residual r.
    """
    values = factored(hit)
    values = values + factored(hit - system @ values)
    rounding = ROUNDING * (hit + abs(system) @ np.abs(values))
    residual = np.abs(hit - system @ values) + rounding
    bound = 1.01 * factored(residual)
    if not np.isfinite(bound).all() or (bound < 0).any() or bound.max() > ACCURACY:
        return None
    if (system @ bound < residual).any():
        return None
    return np.asarray(np.clip(values, 0.0, 1.0))


Mask = NDArray[np.bool_]


def backward_reachable(graph: sparse.csr_matrix, targets: Mask) -> Mask:
    """Return the nodes with a path to a target (targets included), shape (n,).

    `graph`, shape (n, n): an edge for each stored, non-zero entry.
    `targets`, shape (n,): where paths end.
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

    `graph`, shape (n, n): edges of the chain. A node without edges stays where it is.
    `targets`, shape (n,): nodes to reach.
    `through`, shape (n,): nodes that may be visited on the way (phi of ``phi U psi``); all by
    default.
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

    `label`, shape (n,): number of the class a state belongs to, -1 for transient states.
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


# Size of the Krylov space at most; the best solution within it is returned.
DIMENSION = 80


def gmres(apply: Callable[[Floats], Floats], right: Floats, tolerance: float) -> Floats:
    """Return an approximate solution x of ``apply(x) = right`` (Saad and Schultz 1986).

    `apply`: the matrix, for vectors of shape (n,).
    `right`, shape (n,): right-hand side.
    `tolerance`: residual to reach, relative to the right-hand side.
    """
    scale = norm(right)
    if scale == 0.0:
        return np.zeros_like(right)
    dimension = min(DIMENSION, right.size)
    basis = np.empty((dimension + 1, right.size))
    basis[0] = right / scale
    hessenberg = np.zeros((dimension + 1, dimension))
    used = dimension
    weights: Floats = np.zeros(1)
    for k in range(dimension):
        vector = apply(basis[k])
        # Twice is enough to keep the basis orthogonal (Kahan and Parlett).
        for _ in range(2):
            parts = np.einsum("ki,i->k", basis[: k + 1], vector)
            hessenberg[: k + 1, k] += parts
            vector -= np.einsum("k,ki->i", parts, basis[: k + 1])
        rest = norm(vector)
        hessenberg[k + 1, k] = rest
        goal = np.zeros(k + 2)
        goal[0] = scale
        solution = np.linalg.lstsq(hessenberg[: k + 2, : k + 1], goal, rcond=None)
        weights = np.asarray(solution[0], dtype=np.float64)
        left = norm(goal - hessenberg[: k + 2, : k + 1] @ weights)
        if left <= tolerance * scale or rest <= 1e-14:
            used = k + 1
            break
        basis[k + 1] = vector / rest
    return np.asarray(np.einsum("k,ki->i", weights, basis[:used]))


def norm(vector: Floats) -> float:
    """Return the Euclidean norm."""
    return float(np.sqrt(np.einsum("i,i->", vector, vector)))
