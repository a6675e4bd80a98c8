"""Risk of a bounded response without a horizon: one linear system over the chain's own states.

The layers of the countdown condense to ``x_I = (P_I + P_A M) x_I + P_A P_N^L 1`` with
``M = sum_{j < L} P_N^j P_B``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.reachability import Certain, certain, gmres, norm, solve_dense
from forewarn.checking.response.operators import Countdown, as_table, waiting_powers
from forewarn.errors import CheckingError

if TYPE_CHECKING:
    from forewarn.checking.response.operators import Mask
    from forewarn.models.chain import Floats

DENSE_STATES = 256
LAST_RESORT_STATES = 1500
PRECISION = 1e-10
CUT = 1e-7
MAX_REFINEMENTS = 12
MAX_PROOF_STEPS = 16
ABSOLUTE = 1e-10


def unbounded(problem: Countdown, precision: float = PRECISION) -> tuple[Floats, Certain]:
    """Return the table without horizon, shape (n, L + 2), and what the graph alone decides.

    `precision`: relative error allowed to the iterative solution of large systems.
    Raises CheckingError if the accuracy cannot be assured.
    """
    layers = problem.layers
    powers = waiting_powers(problem, layers)
    sure = idle_certain(problem, powers[-1])
    idle = sure.one.astype(np.float64)
    maybe = ~(sure.zero | sure.one)
    if maybe.any():
        if problem.blocks > 1 and problem.dense_waiting is not None:
            idle[maybe] = _solve_blocks(problem, maybe, sure, powers[-1])[maybe]
        else:
            idle[maybe] = _solve(problem, maybe, sure, powers, precision)
    answered = problem.answered(idle)
    # The powers are not needed any more: their memory takes the layers.
    powers[0] = 1.0
    for r in range(1, layers + 1):
        powers[r] = answered + problem.waiting(powers[r - 1])
    return as_table(idle, powers[1:]), sure


def idle_certain(problem: Countdown, expired: Floats) -> Certain:
    """Return the states whose risk, with no obligation pending, is 0 or 1 by the graph alone.

    Waiting is taken as unlimited. That is exact for probability 0: a wait longer than the
    bound is a violation itself. For probability 1 it errs on the side of leaving a state to
    the linear system.
    """
    n, g = problem.size, problem.chain.supports.shape[0]
    # Nodes: idle states, waiting states, the choice of a prior in either, violation, safety.
    priors = {0: 2 * n, n: 2 * n + g}
    violated, safe = 2 * (n + g), 2 * (n + g) + 1
    blocks = [
        (problem.idle, 0, 0),
        (problem.raised, 0, n),
        (problem.waiting, n, n),
        (problem.answered, n, 0),
    ]
    edges: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for operator, source, target in blocks:
        part = operator.matrix.tocoo()
        edges.append((part.row + source, part.col + target))
        if operator.prior is not None:
            users = np.flatnonzero(operator.prior)
            drawn = operator.supports.tocoo()
            edges.append((users + source, operator.group[users] + priors[source]))
            edges.append((drawn.row + priors[source], drawn.col + target))
    expire = np.flatnonzero(expired > 0) + n
    edges.append((expire, np.full(expire.size, violated)))
    leave = np.flatnonzero(problem.leaving > 0)
    edges.extend((leave + source, np.full(leave.size, safe)) for source in (0, n))
    rows, columns = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    graph = sparse.csr_matrix(
        (np.ones(rows.size, dtype=np.int8), (rows, columns)), shape=(safe + 1, safe + 1)
    )
    targets = np.zeros(safe + 1, dtype=bool)
    targets[violated] = True
    result = certain(graph, targets)
    return Certain(result.zero[:n], result.one[:n])


def _solve(
    problem: Countdown, maybe: Mask, sure: Certain, powers: Floats, precision: float
) -> Floats:
    """Solve for the idle layer, shape (number of `maybe`,), by whatever is fast and safe."""
    if problem.size <= DENSE_STATES:
        return _solve_dense(problem, maybe, sure, powers[-1])
    found = _solve_iteratively(problem, maybe, sure, powers, precision)
    if found is not None:
        return found
    if problem.size <= LAST_RESORT_STATES:
        return _solve_dense(problem, maybe, sure, powers[-1])
    raise CheckingError(
        "the linear system of the risk without a horizon does not converge",
        accepted="a chain that leaves its transient states faster, or a horizon",
    )


def _solve_dense(problem: Countdown, maybe: Mask, sure: Certain, expired: Floats) -> Floats:
    """Solve for the idle layer with a dense matrix, shape (number of `maybe`,)."""
    n = problem.size
    direct = np.column_stack([problem.answered.dense(), problem.leaving])
    total = power_sum(problem.waiting.dense(), direct, problem.layers)
    raised = problem.raised.dense()
    after = raised @ total
    moves = problem.idle.dense() + after[:, :n]
    violated = raised @ expired + moves[:, sure.one].sum(axis=1)
    safe = problem.leaving + after[:, n] + moves[:, sure.zero].sum(axis=1)
    return solve_dense(moves[np.ix_(maybe, maybe)], violated[maybe], safe[maybe])


def _solve_blocks(problem: Countdown, maybe: Mask, sure: Certain, expired: Floats) -> Floats:
    """Solve for the idle layers of many small chains at once, shape (n,); rest meaningless."""
    waiting = problem.in_blocks(problem.waiting)
    raised = problem.in_blocks(problem.raised)
    blocks, size = waiting.shape[:2]

    def column(values: Floats) -> Floats:
        return values.reshape(blocks, size, 1)

    direct = np.concatenate([problem.in_blocks(problem.answered), column(problem.leaving)], axis=2)
    after = raised @ power_sum(waiting, direct, problem.layers)
    moves = problem.in_blocks(problem.idle) + after[:, :, :size]
    good = column(sure.zero.astype(np.float64))
    bad = column(sure.one.astype(np.float64))
    hit = raised @ column(expired) + moves @ bad
    miss = column(problem.leaving) + after[:, :, size:] + moves @ good
    inside = maybe.reshape(blocks, size)
    moves *= inside[:, :, None] & inside[:, None, :]
    moves[:, np.arange(size), np.arange(size)] = 0.0
    leaving = np.where(inside, moves.sum(axis=2) + hit[:, :, 0] + miss[:, :, 0], 1.0)
    system = -moves
    system[:, np.arange(size), np.arange(size)] = leaving
    return np.asarray(np.linalg.solve(system, hit).ravel())


def power_sum(matrix: Floats, start: Floats, terms: int) -> Floats:
    """Return ``sum_{j < terms} matrix^j start`` by doubling; leading axes are a batch."""
    total = np.zeros_like(start)
    power, block = matrix, start
    while terms:
        if terms & 1:
            # What was summed so far moves behind the block of the present power.
            total = block + power @ total
        terms >>= 1
        if terms:
            block = block + power @ block
            power = power @ power
    return total


def _solve_iteratively(
    problem: Countdown, maybe: Mask, sure: Certain, powers: Floats, precision: float
) -> Floats | None:
    """Solve for the idle layer by GMRES on the condensed system, shape (number of `maybe`,).

    The Krylov space is built with waits cut short where they have become geometric; residuals
    are those of the full system. None if the precision cannot be proven.
    """
    n = problem.size
    cut = _geometric_from(powers)

    def condensed(part: Floats, short: bool = False) -> Floats:
        full = np.zeros(n)
        full[maybe] = part
        after = through_wait(problem, full, cut if short else None)
        return np.asarray((problem.idle(full) + problem.raised(after))[maybe])

    ones = sure.one.astype(np.float64)
    certainly = problem.idle(ones) + problem.raised(through_wait(problem, ones, None))
    right = (problem.raised(powers[-1]) + certainly)[maybe]
    guess: Floats = np.zeros(right.size)
    residual = right
    for _ in range(MAX_REFINEMENTS):
        tolerance = min(1e-2, max(0.05 * precision, 1e-14) * norm(right) / norm(residual))
        step = gmres(lambda part: part - condensed(part, short=True), residual, tolerance)
        guess = guess + step
        residual = right - (guess - condensed(guess))
        if _within(condensed, residual, right, precision):
            return np.maximum(guess, 0.0)
    return guess if _small(condensed, residual) else None


def _within(
    condensed: Callable[[Floats], Floats], residual: Floats, right: Floats, precision: float
) -> bool:
    """Tell whether the relative error of a solution is proven to be at most `precision`.

    With A the non-negative matrix, ``|x - guess| <= sum_i A^i |r|`` and ``x = sum_i A^i b``. If
    ``|r| <= e b`` after both have taken the same steps, the error is at most ``e x``.
    """
    error, known = np.abs(residual), right
    for _ in range(MAX_PROOF_STEPS):
        if (error <= precision * known).all():
            return True
        if error.max() > precision * known.max():
            return False
        error, known = np.abs(residual) + condensed(error), right + condensed(known)
    return False


def _small(condensed: Callable[[Floats], Floats], residual: Floats) -> bool:
    """Tell whether the absolute error of a solution is proven not to matter.

    If ``z - A z >= 1/2`` everywhere for some z >= 0, the error is at most ``2 max |r| z``; z comes
    from solving for the expected number of steps.
    """
    steps = gmres(lambda part: part - condensed(part), np.ones_like(residual), 1e-3)
    if (steps < 0).any() or (steps - condensed(steps) < 0.5).any():
        return False
    return bool(2.0 * np.abs(residual).max() * steps.max() <= ABSOLUTE)


class Geometric(NamedTuple):
    """Waits of more than `ticks` are multiples, by `ratio` a tick, of the wait of `ticks`."""

    ticks: int
    ratio: float


def _geometric_from(powers: Floats) -> Geometric | None:
    """Return from where on waiting only loses a constant share, if it does."""
    for ticks in range(8, powers.shape[0] - 1, 8):
        positive = powers[ticks] > 0
        ratios = powers[ticks + 1][positive] / powers[ticks][positive]
        if ratios.size and 0 < ratios.max() - ratios.min() <= CUT * ratios.min():
            return Geometric(ticks, float(ratios.mean()))
    return None


def through_wait(problem: Countdown, values: Floats, cut: Geometric | None) -> Floats:
    """Return ``sum_{j < L} P_N^j P_B values``: what an obligation brings once it is answered."""
    layers = problem.layers
    term = problem.answered(values)
    total = term.copy() if layers else np.zeros_like(term)
    for j in range(1, layers):
        term = problem.waiting(term)
        if cut is not None and j == cut.ticks:
            share = (1.0 - cut.ratio ** (layers - j)) / (1.0 - cut.ratio)
            return np.asarray(total + share * term)
        total += term
    return total
