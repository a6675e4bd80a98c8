"""Counterexamples of probability: small sub-systems that break a bound by themselves."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray
from scipy import optimize, sparse

from forewarn.checking.probable_paths import distances, probable_paths
from forewarn.checking.reachability import backward_reachable, reach
from forewarn.errors import CheckingError

if TYPE_CHECKING:
    from forewarn.models.chain import Floats
    from forewarn.models.process import Mask

EXACT_STATES = 200
BUDGET = 10.0
MARGIN = 1e-9
RANKING_STEPS = 2_000


class CriticalSubsystem(NamedTuple):
    """States that suffice to break an upper bound of reachability.

    `probability`: probability to reach the targets within these states alone; greater than the
    bound.
    `minimal`: whether no fewer states do; else the sub-system is small and certified by its
    probability.
    `at_least`: a proven lower bound of the number of states of every critical sub-system.
    """

    states: tuple[int, ...]  # indices of the states, rising; targets that are needed are among them
    probability: float
    bound: float  # the bound that is broken
    minimal: bool
    at_least: Annotated[int, Ge(0)]
    method: str  # what was done, for people


class CriticalPart(NamedTuple):
    """A part of the process that breaks the bound by itself.

    `probability`, `bound`, `minimal`, `at_least`, `method`: see `CriticalSubsystem`.
    """

    states: tuple[str, ...]  # their names
    probability: float
    bound: float
    minimal: bool
    at_least: int
    method: str


def within(matrix: sparse.csr_matrix, start: int, targets: Mask, states: Mask) -> float:
    """Return the probability to reach the targets without leaving `states`.

    Raises CheckingError if a row does not sum to 1, or the accuracy cannot be assured.
    """
    if not states[start]:
        return 0.0
    return float(reach(matrix, targets & states, states)[0][start])


def critical_subsystem(
    matrix: sparse.csr_matrix,
    start: int,
    targets: Mask,
    bound: float,
    *,
    exact_states: int = EXACT_STATES,
    budget: float = BUDGET,
) -> CriticalSubsystem:
    """Return a smallest set of states whose sub-system reaches the targets too often.

    A sub-system keeps some states of a chain and the transitions among them; what leads out of it
    is lost. Up to `exact_states` relevant states, a mixed-integer programme finds the smallest
    (Wimmer, Jansen, Abraham, Becker and Katoen 2012). Else, or if time runs out, path fragments
    are added by their probability, as in the local search of Jansen et al. (2011); where that
    takes too long, states by the probability that they carry. What is not needed is left out
    again. For a decision process take the chain of a policy, the maximising one say: the
    sub-system is smallest for that policy.

    `matrix`, shape (n, n): transition probabilities of a chain.
    `start`: the initial state.
    `targets`, shape (n,): the bad states.
    `bound`: the broken bound: the probability to reach a bad state is greater.
    `exact_states`: relevant states up to which the smallest is looked for.
    `budget`: seconds that the search may take; a solution under way is still finished.
    Raises CheckingError if the bound is not broken, or arguments do not fit.
    """
    matrix = sparse.csr_matrix(matrix)
    _check_broken(matrix, start, targets, bound)
    end = time.monotonic() + budget
    relevant = _relevant(matrix, start, targets)
    greedy = _pruned(matrix, start, targets, bound, _grown(matrix, start, targets, bound, end), end)
    found, least, how = greedy, 1, "states were added by the probability that they carry"
    if int(relevant.sum()) <= exact_states:
        found, least, how = _smallest(matrix, start, targets, bound, relevant, greedy, end)
    size = int(found.sum())
    return CriticalSubsystem(
        tuple(np.flatnonzero(found).tolist()),
        within(matrix, start, targets, found),
        bound,
        least >= size,
        least,
        f"{how}: {'no fewer states are enough' if least >= size else 'fewer may be enough'}",
    )


def _check_broken(matrix: sparse.csr_matrix, start: int, targets: Mask, bound: float) -> None:
    """Raise CheckingError unless the arguments fit and the bound is broken."""
    n = matrix.shape[0]
    if not 0 <= start < n or targets.shape != (n,):
        raise CheckingError(
            f"initial state {start} and targets of shape {targets.shape} for {n} states",
            accepted=f"0 to {n - 1}, and shape ({n},)",
        )
    whole = within(matrix, start, targets, np.ones(n, dtype=bool))
    if not 0.0 <= bound < whole:
        raise CheckingError(
            f"the probability {whole:.9g} does not break the bound {bound:.9g}",
            accepted="a bound that is 0 or more, and below the probability",
        )


def _relevant(matrix: sparse.csr_matrix, start: int, targets: Mask) -> Mask:
    """Return the states on some path from the initial state to a target, shape (n,)."""
    first = np.zeros(targets.size, dtype=bool)
    first[start] = True
    moving = sparse.csr_matrix(sparse.diags((~targets).astype(float)) @ matrix)
    reached = backward_reachable(sparse.csr_matrix(moving.T), first)
    return reached & backward_reachable(moving, targets & reached)


def _grown(matrix: sparse.csr_matrix, start: int, targets: Mask, bound: float, end: float) -> Mask:
    """Return a critical set of states that grows by fragments of paths."""
    states = np.zeros(targets.size, dtype=bool)
    path = next(probable_paths(matrix, start, targets, 1))
    states[list(path.states)] = True
    number, stop = 1, end - 0.75 * max(end - time.monotonic(), 0.0)
    while within(matrix, start, targets, states) <= bound:
        if time.monotonic() > stop:
            return _ranked(matrix, start, targets, bound)
        states |= _fragments(
            matrix, targets, states, _visits(matrix, start, states, targets), number
        )
        number *= 2
    return states


def _ranked(matrix: sparse.csr_matrix, start: int, targets: Mask, bound: float) -> Mask:
    """Return a critical set of the states that carry most of the probability."""
    relevant = _relevant(matrix, start, targets)
    carried = _visits(matrix, start, relevant, targets, RANKING_STEPS)
    carried *= reach(matrix, targets)[0]
    order = np.argsort(-carried, kind="stable")
    order = np.concatenate([[start], order[order != start]])

    def first(number: int) -> Mask:
        states = np.zeros(targets.size, dtype=bool)
        states[order[:number]] = True
        return states

    low, high = 0, 1
    while high < order.size and within(matrix, start, targets, first(high)) <= bound:
        low, high = high, 2 * high
    high = min(high, order.size)
    while high - low > 1:
        middle = (low + high) // 2
        if within(matrix, start, targets, first(middle)) > bound:
            high = middle
        else:
            low = middle
    return first(high)


def _visits(
    matrix: sparse.csr_matrix, start: int, states: Mask, targets: Mask, steps: int = 200
) -> Floats:
    """Return how often each of `states` is met within some steps inside of them, shape (n,)."""
    moving = sparse.csr_matrix(matrix.multiply((states & ~targets)[:, None]).multiply(states)).T
    moving = moving.tocsr()
    present = np.zeros(targets.size)
    present[start] = 1.0
    total = present.copy()
    for _ in range(steps):
        present = moving @ present
        total += present
        if present.sum() <= MARGIN:
            break
    return total


def _fragments(
    matrix: sparse.csr_matrix, targets: Mask, states: Mask, visits: Floats, number: int
) -> Mask:
    """Return the states of the most probable ways that leave the sub-system and come back."""
    goal = states | targets
    left = distances(matrix, goal)
    inside = np.flatnonzero(states & ~targets)
    sub = matrix[inside].tocoo()
    origin = inside[sub.row]
    new = ~states[sub.col] & (sub.data > 0) & np.isfinite(left[sub.col])
    origin, entered, chance = origin[new], sub.col[new], sub.data[new]
    worth = np.log(np.maximum(visits[origin], 1e-300)) + np.log(chance) - left[entered]
    fresh = np.zeros(targets.size, dtype=bool)
    for k in np.argsort(-worth, kind="stable")[:number].tolist():
        state = int(entered[k])
        while not goal[state] and not fresh[state]:
            fresh[state] = True
            part = slice(matrix.indptr[state], matrix.indptr[state + 1])
            following, chances = matrix.indices[part], matrix.data[part]
            with np.errstate(divide="ignore"):
                state = int(following[np.argmin(left[following] - np.log(chances))])
        fresh[state] = True
    return fresh


def _pruned(
    matrix: sparse.csr_matrix, start: int, targets: Mask, bound: float, states: Mask, end: float
) -> Mask:
    """Return `states` without those that can go, the least visited first."""
    visits = _visits(matrix, start, states, targets)
    kept = states.copy()
    block = max(int(states.sum()) // 4, 1)
    while time.monotonic() < end:
        order = [s for s in np.argsort(visits, kind="stable").tolist() if kept[s] and s != start]
        gone = False
        for k in range(0, len(order), block):
            trial = kept.copy()
            trial[order[k : k + block]] = False
            if within(matrix, start, targets, trial) > bound:
                kept, gone = trial, True
            if time.monotonic() > end:
                return kept
        if block == 1 and not gone:
            return kept
        block = max(block // 2, 1)
    return kept


def _smallest(
    matrix: sparse.csr_matrix,
    start: int,
    targets: Mask,
    bound: float,
    relevant: Mask,
    known: Mask,
    end: float,
) -> tuple[Mask, int, str]:
    """Return the smallest critical set found, a lower bound of its size, and what was done.

    A set that satisfies the programme within its tolerances but not in truth is cut off: a
    critical set has a state outside of it.
    """
    if not hasattr(optimize, "milp"):
        return (
            known,
            1,
            "states were added by the probability that they carry (scipy has no milp before 1.9)",
        )
    states = np.flatnonzero(relevant)
    m, rows = states.size, _programme(matrix, states, start, targets, bound)
    choices = np.concatenate([np.ones(m), np.zeros(m)])
    least = 1
    while time.monotonic() < end:
        result = optimize.milp(
            choices,
            constraints=rows,
            integrality=choices,
            bounds=optimize.Bounds(0.0, 1.0),
            options={"time_limit": max(end - time.monotonic(), 0.1)},
        )
        dual = result.get("mip_dual_bound")
        if dual is not None and np.isfinite(dual):
            least = max(least, math.ceil(dual - 1e-6))
        if result.x is None:
            break
        found = np.zeros(targets.size, dtype=bool)
        found[states[np.round(result.x[:m]) > 0]] = True
        if within(matrix, start, targets, found) > bound:
            best = found if found.sum() < known.sum() else known
            return best, min(least, int(best.sum())), "a mixed-integer programme was solved"
        outside = np.concatenate([(~found[states]).astype(float), np.zeros(m)])
        rows.append(optimize.LinearConstraint(sparse.csr_matrix(outside[None]), 1.0, np.inf))
    return known, min(least, int(known.sum())), "a mixed-integer programme ran out of time"


def _programme(
    matrix: sparse.csr_matrix, states: NDArray[np.int64], start: int, targets: Mask, bound: float
) -> list[optimize.LinearConstraint]:
    """Return what a critical set among some states, shape (m,), satisfies.

    The variables are m choices of states, then m probabilities to reach a target within them.
    """
    m, place = states.size, int(np.flatnonzero(states == start)[0])
    inner = sparse.csr_matrix(matrix[states][:, states])
    goal = targets[states]
    moves = sparse.csr_matrix(inner.multiply((~goal).astype(float)[:, None]))
    unit = sparse.identity(m)
    chosen = sparse.hstack([-unit, unit])
    flow = sparse.hstack([sparse.csr_matrix((m, m)), unit - moves])[np.flatnonzero(~goal)]
    begin = sparse.csr_matrix(([1.0], ([0], [m + place])), shape=(1, 2 * m))
    rows = [
        optimize.LinearConstraint(sparse.csr_matrix(chosen), -np.inf, 0.0),
        optimize.LinearConstraint(begin, bound, np.inf),
    ]
    if flow.shape[0]:
        rows.append(optimize.LinearConstraint(sparse.csr_matrix(flow), -np.inf, 0.0))
    return rows
