"""A chain seen by the automaton of a bounded response, whose countdown is never multiplied out.

With b the states that answer, a those that trigger without an answer, ``P_B = P diag(b)``,
``P_N = P diag(not b)``, ``P_A = P diag(a)`` and ``P_I = P diag(not a)``, the layer r of the
countdown (r more ticks may pass) has ``x_r = P_B x_I + P_N x_{r-1}`` with ``x_0 = 1``, and
the idle layer has ``x_I = P_I x_I + P_A x_L``. Each of them is the chain's transition matrix
restricted to some rows and columns, as an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.interface import ENDED

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats

Mask = NDArray[np.bool_]

# Below this size, or this share of non-zero entries, numpy's dense product is the faster one.
DENSE_SIZE = 160
DENSE_SHARE = 0.15


@dataclass(frozen=True, eq=False)
class Operator:
    """Non-negative matrix ``matrix + diag(prior) @ supports[group]``, never formed."""

    matrix: sparse.csr_matrix  # shape (n, m): sparse part
    prior: Floats | None  # shape (n,): weight of the low-rank part; None if there is none
    group: NDArray[np.int64]  # shape (n,): row of `supports` for each row of the operator
    supports: sparse.csr_matrix  # shape (g, m): rows of the low-rank part

    def __call__(self, values: Floats) -> Floats:
        """Return the product with `values`, shape (m,) or (m, k)."""
        if self._array is not None:
            return np.asarray(self._array @ values)
        result = self.matrix @ values
        if self.prior is not None:
            drawn = (self.supports @ values)[self.group]
            result += self.prior * drawn if values.ndim == 1 else self.prior[:, None] * drawn
        return np.asarray(result)

    @cached_property
    def _array(self) -> Floats | None:
        rows, columns = self.matrix.shape
        entries = self.matrix.nnz + (0 if self.prior is None else rows)
        small = max(rows, columns) <= DENSE_SIZE
        return self.dense() if small or entries > DENSE_SHARE * rows * columns else None

    def dense(self) -> Floats:
        """Return the matrix as an array."""
        result = self.matrix.toarray()
        if self.prior is not None:
            result += self.prior[:, None] * self.supports.toarray()[self.group]
        return np.asarray(result, dtype=np.float64)


def restricted(chain: Chain, rows: Mask, columns: Mask) -> Operator:
    """Return the chain's matrix with all other rows and columns set to zero, shape (n, n)."""
    matrix = _masked(chain.sparse, rows, columns)
    supports = _masked(chain.supports, np.ones(chain.supports.shape[0], dtype=bool), columns)
    prior = np.where(rows, chain.prior, 0.0)
    smoothed = bool(prior.any()) and supports.nnz > 0
    return Operator(matrix, prior if smoothed else None, chain.group, supports)


def _masked(matrix: sparse.csr_matrix, rows: Mask, columns: Mask) -> sparse.csr_matrix:
    """Return a copy without the entries outside of `rows` and `columns`."""
    lengths = np.diff(matrix.indptr)
    keep = columns[matrix.indices] & np.repeat(rows, lengths)
    before = np.concatenate([[0], np.cumsum(keep)])
    return sparse.csr_matrix(
        (matrix.data[keep], matrix.indices[keep], before[matrix.indptr]), shape=matrix.shape
    )


def stacked(top: tuple[Operator, Operator], bottom: tuple[Operator, Operator]) -> Operator:
    """Return the block matrix of four operators of one chain, shape (2 n, 2 n)."""
    (a, b), (c, d) = top, bottom
    matrix = sparse.bmat([[a.matrix, b.matrix], [c.matrix, d.matrix]], format="csr")
    if all(part.prior is None for part in (a, b, c, d)):
        return Operator(matrix, None, a.group, a.supports)
    prior = next(part.prior for part in (a, b, c, d) if part.prior is not None)
    supports = sparse.bmat([[a.supports, b.supports], [c.supports, d.supports]], format="csr")
    group = np.concatenate([a.group, c.group + a.supports.shape[0]])
    return Operator(matrix, np.concatenate([prior, prior]), group, supports)


TRIGGER, RESPONSE = 1, 2


@dataclass(frozen=True, eq=False)
class Countdown:
    """A chain seen by the automaton of a bounded response.

    `idle`, `raised`, `waiting`, `answered`: ``P_I``, ``P_A``, ``P_N`` and ``P_B``; rows of states
    without successors are zero, and so are columns of states that end the obligation.
    `blocks`: number of chains of equal size that stand side by side without transitions between
    them.
    """

    chain: Chain
    layers: int  # number of waiting states L of the automaton
    idle: Operator
    raised: Operator
    waiting: Operator
    answered: Operator
    ended: Mask  # shape (n,): states that end every obligation
    blocks: int = 1

    @property
    def size(self) -> int:
        """Number of states of the chain."""
        return self.chain.size

    @cached_property
    def step(self) -> Operator:
        """One step of idle states and newly raised obligations, shape (2 n, 2 n)."""
        return stacked((self.idle, self.raised), (self.answered, self.waiting))

    @cached_property
    def dense_waiting(self) -> Floats | None:
        """``P_N`` of each block, shape (blocks, n / blocks, n / blocks); None if that is large."""
        small = self.size // self.blocks <= DENSE_SIZE
        return self.in_blocks(self.waiting) if small else None

    def in_blocks(self, operator: Operator) -> Floats:
        """Return the diagonal blocks of an operator, shape (blocks, n / blocks, n / blocks)."""
        size = self.size // self.blocks
        result = np.zeros((self.blocks, size, size))
        coo = operator.matrix.tocoo()
        result[coo.row // size, coo.row % size, coo.col % size] = coo.data
        if operator.prior is not None:
            drawn = operator.supports.tocoo()
            spread = np.zeros((operator.supports.shape[0], size))
            spread[drawn.row, drawn.col % size] = drawn.data
            filled = operator.prior[:, None] * spread[operator.group]
            result += filled.reshape(result.shape)
        return result

    @cached_property
    def expiry(self) -> Floats | None:
        """``P_N^L`` of each block, like `dense_waiting`."""
        waiting = self.dense_waiting
        return None if waiting is None else np.linalg.matrix_power(waiting, self.layers)

    @cached_property
    def leaving(self) -> Floats:
        """Probability to step where every obligation ends, shape (n,); 1 where no step is."""
        rows = self.chain.live & ~self.ended
        step = restricted(self.chain, rows, self.ended)(np.ones(self.size))
        return np.where(rows, step, 1.0)


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


def countdown(chain: Chain, classes: NDArray[np.int64], layers: int, blocks: int = 1) -> Countdown:
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
        blocks=blocks,
    )


def waiting_powers(problem: Countdown, upto: int) -> Floats:
    """Return ``P_N^r 1`` for r = 0..upto: no answer for r ticks, shape (upto + 1, n)."""
    powers = np.empty((upto + 1, problem.size))
    powers[0] = 1.0
    for r in range(upto):
        powers[r + 1] = problem.waiting(powers[r])
    return powers


def as_layers(idle: Floats, layers: Floats, violated: Floats | float) -> Floats:
    """Return a table from its idle layer (n,), waiting layers (L, n) and violated one."""
    number, n = layers.shape
    table = np.empty((n, number + 2))
    table[:, 0] = idle
    table[:, 1:-1] = layers.T
    table[:, -1] = violated
    return table


def as_table(idle: Floats, layers: Floats) -> Floats:
    """Return the risk table from its idle layer (n,) and waiting layers (L, n), (n, L + 2)."""
    table = as_layers(idle, layers, 1.0)
    return np.clip(table, 0.0, 1.0, out=table)
