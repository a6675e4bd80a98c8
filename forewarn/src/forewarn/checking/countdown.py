"""Risk of a bounded response: the layers of its countdown are never multiplied out.

With b the states that answer, a those that trigger without an answer, ``P_B = P diag(b)``,
``P_N = P diag(not b)``, ``P_A = P diag(a)`` and ``P_I = P diag(not a)``, the layer r of the
countdown (r more ticks may pass) has ``x_r = P_B x_I + P_N x_{r-1}`` with ``x_0 = 1``, and
the idle layer has ``x_I = P_I x_I + P_A x_L``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

from forewarn.checking.elimination import absorption
from forewarn.checking.graph import Certain, certain
from forewarn.checking.labels import ENDED
from forewarn.checking.operators import Mask, Operator, restricted
from forewarn.errors import CheckingError
from forewarn.models.chain import Chain, Floats
from forewarn.properties.automaton import Automaton

TRIGGER, RESPONSE = 1, 2
DENSE_STATES = 256
RESIDUAL = 1e-13


@dataclass(frozen=True, eq=False)
class Countdown:
    """A chain seen by the automaton of a bounded response.

    Attributes
    ----------
    chain : Chain
        The chain.
    layers : int
        Number of waiting states L of the automaton.
    idle, raised, waiting, answered : Operator
        ``P_I``, ``P_A``, ``P_N`` and ``P_B``; rows of states without successors are zero, and
        so are columns of states that end the obligation.
    ended : ndarray of bool, shape (n,)
        States that end every obligation.
    """

    chain: Chain
    layers: int
    idle: Operator
    raised: Operator
    waiting: Operator
    answered: Operator
    ended: Mask


def is_countdown(automaton: Automaton) -> bool:
    """Tell whether the automaton has the layered numbering that this module relies on."""
    layers = automaton.transitions.shape[0] - 2
    if automaton.countdown is None or automaton.transitions.shape[1] != 3 or layers < 0:
        return False
    violated = layers + 1
    expected = np.zeros((layers + 2, 3), dtype=np.int64)
    expected[0, TRIGGER] = layers if layers else violated
    for r in range(1, layers + 1):
        expected[r, :RESPONSE] = violated if r == 1 else r - 1
    expected[violated] = violated
    return bool((automaton.transitions == expected).all()) and automaton.violated == violated


def countdown(chain: Chain, classes: NDArray[np.int64], layers: int) -> Countdown:
    """Return the operators of a bounded response with `layers` waiting states."""
    ended = classes == ENDED
    answer, trigger = classes == RESPONSE, classes == TRIGGER
    rows = chain.live & ~ended
    return Countdown(
        chain=chain,
        layers=layers,
        idle=restricted(chain, rows, ~trigger & ~ended),
        raised=restricted(chain, rows, trigger),
        waiting=restricted(chain, rows, ~answer & ~ended),
        answered=restricted(chain, rows, answer),
        ended=ended,
    )


def waiting_powers(problem: Countdown) -> Floats:
    """Return ``P_N^r 1`` for r = 0..L: no answer for r ticks, shape (n, L + 1)."""
    powers = np.empty((problem.layers + 1, problem.chain.size))
    powers[0] = 1.0
    for r in range(problem.layers):
        powers[r + 1] = problem.waiting(powers[r])
    return powers.T


def bounded(problem: Countdown, horizon: int) -> Floats:
    """Return the table for a horizon of `horizon` steps, shape (n, L + 2)."""
    n, layers = problem.chain.size, problem.layers
    values = np.zeros((n, layers + 2))
    values[:, -1] = 1.0
    if horizon <= layers:
        powers = waiting_powers(problem)
        values[:, 1 : horizon + 1] = powers[:, 1 : horizon + 1]
        return values
    for _ in range(horizon):
        # Layer "0 more ticks" is the violation itself.
        below = np.concatenate([values[:, -1:], values[:, 1:-2]], axis=1)
        idle = problem.idle(values[:, 0]) + problem.raised(values[:, -2 if layers else -1])
        answered = problem.answered(values[:, 0])
        if layers:
            values[:, 1:-1] = answered[:, None] + problem.waiting(np.ascontiguousarray(below))
        values[:, 0] = idle
    return values


def unbounded(problem: Countdown) -> tuple[Floats, Certain]:
    """Return the table without horizon, shape (n, L + 2), and what the graph alone decides."""
    n, layers = problem.chain.size, problem.layers
    powers = waiting_powers(problem)
    sure = idle_certain(problem, powers[:, -1])
    idle = sure.one.astype(np.float64)
    maybe = ~(sure.zero | sure.one)
    if maybe.any():
        dense = int(maybe.sum()) <= DENSE_STATES
        solve = _solve_dense if dense else _solve_iteratively
        idle[maybe] = solve(problem, maybe, sure, powers[:, -1])
    values = np.empty((n, layers + 2))
    values[:, 0] = idle
    values[:, -1] = 1.0
    answered = problem.answered(idle)
    layer: Floats = np.ones(n)
    for r in range(1, layers + 1):
        layer = answered + problem.waiting(layer)
        values[:, r] = layer
    return np.minimum(values, 1.0), sure


def _through_wait(problem: Countdown, values: Floats) -> Floats:
    """Return ``sum_{j < L} P_N^j P_B values``: what an obligation brings once it is answered."""
    if not problem.layers:
        return np.zeros_like(values)
    answered = problem.answered(values)
    total = answered
    for _ in range(problem.layers - 1):
        total = answered + problem.waiting(total)
    return total


def idle_certain(problem: Countdown, expired: Floats) -> Certain:
    """Return the states whose risk, with no obligation pending, is 0 or 1 by the graph alone.

    Waiting is taken as unlimited. That is exact for probability 0: a wait longer than the
    bound is a violation itself. For probability 1 it errs on the side of leaving a state to
    the linear system.
    """
    n, g = problem.chain.size, problem.chain.supports.shape[0]
    # Nodes: idle states, waiting states, and for each of them the choice of a prior, violation.
    violated, safe = 2 * (n + g), 2 * (n + g) + 1
    blocks = [
        (problem.idle, 0, 0),
        (problem.raised, 0, n),
        (problem.waiting, n, n),
        (problem.answered, n, 0),
    ]
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    for operator, source, target in blocks:
        part = operator.matrix.tocoo()
        rows.append(part.row + source)
        columns.append(part.col + target)
        if operator.prior is not None:
            users = np.flatnonzero(operator.prior)
            prior_node = 2 * n + (g if source else 0)
            rows.append(users + source)
            columns.append(prior_node + operator.group[users])
            drawn = operator.supports.tocoo()
            rows.append(drawn.row + prior_node)
            columns.append(drawn.col + target)
    expire = np.flatnonzero(expired > 0) + n
    rows.append(expire)
    columns.append(np.full(expire.size, violated))
    leave = np.flatnonzero(_leaving(problem) > 0)
    for source in (0, n):
        rows.append(leave + source)
        columns.append(np.full(leave.size, safe))
    where = (np.concatenate(rows), np.concatenate(columns))
    size = safe + 1
    graph = sparse.csr_matrix((np.ones(where[0].size, dtype=np.int8), where), shape=(size, size))
    targets = np.zeros(size, dtype=bool)
    targets[violated] = True
    result = certain(graph, targets)
    return Certain(result.zero[:n], result.one[:n])


def _leaving(problem: Countdown) -> Floats:
    """Return the probability to step into a state that ends every obligation, shape (n,)."""
    chain = problem.chain
    rows = chain.live & ~problem.ended
    step = restricted(chain, rows, problem.ended)(np.ones(chain.size))
    step[~rows] = 1.0
    return step


def _solve_dense(problem: Countdown, maybe: Mask, sure: Certain, expired: Floats) -> Floats:
    """Solve for the idle layer by elimination, shape (number of `maybe`,)."""
    n = problem.chain.size
    leaving = _leaving(problem)
    columns = np.column_stack([np.eye(n), leaving])
    waiting, answered = problem.waiting.dense(), problem.answered.dense()
    direct = np.column_stack([answered, leaving])
    total = _power_sum(waiting, direct, problem.layers)
    raised = problem.raised.dense()
    moves = problem.idle.dense() + raised @ total[:, :n]
    violated = raised @ expired + moves[:, sure.one].sum(axis=1)
    safe = columns[:, n] + raised @ total[:, n] + moves[:, sure.zero].sum(axis=1)
    exits = np.column_stack([violated, safe])[maybe]
    return absorption(moves[np.ix_(maybe, maybe)], exits)[:, 0]


def _power_sum(matrix: Floats, start: Floats, terms: int) -> Floats:
    """Return ``sum_{j < terms} matrix^j start`` by doubling."""
    total = np.zeros_like(start)
    block, power, done = start, matrix, np.eye(matrix.shape[0])
    while terms:
        if terms & 1:
            total = total + done @ block
            done = done @ power
        terms >>= 1
        if terms:
            block = block + power @ block
            power = power @ power
    return total


def _solve_iteratively(problem: Countdown, maybe: Mask, sure: Certain, expired: Floats) -> Floats:
    """Solve for the idle layer by GMRES on the condensed system, shape (number of `maybe`,)."""
    n = problem.chain.size

    def condensed(values: Floats) -> Floats:
        return problem.idle(values) + problem.raised(_through_wait(problem, values))

    def apply(part: Floats) -> Floats:
        full = np.zeros(n)
        full[maybe] = part
        return np.asarray(part - condensed(full)[maybe])

    right = (problem.raised(expired) + condensed(sure.one.astype(np.float64)))[maybe]
    size = int(maybe.sum())
    system = linalg.LinearOperator((size, size), matvec=apply, dtype=np.float64)
    guess = np.zeros(size)
    for _ in range(4):
        residual = right - apply(guess)
        if np.abs(residual).max() <= RESIDUAL * np.abs(right).max():
            return guess
        step, _ = linalg.gmres(system, residual, restart=60, maxiter=20, atol=0.0)
        guess = guess + step
    residual = right - apply(guess)
    if np.abs(residual).max() > 1e-10 * np.abs(right).max():
        raise CheckingError(
            "the linear system of the unbounded risk does not converge",
            accepted="a chain that leaves its transient states faster, or a horizon",
        )
    return guess
