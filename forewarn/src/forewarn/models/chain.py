"""The discrete-time Markov chain: sparse probabilities plus a prior of low rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import CheckingError

Floats = NDArray[np.float64]

ROW_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Chain:
    """Transition probabilities ``P[i, j] = sparse[i, j] + prior[i] * supports[group[i], j]``.

    Smoothing fills every row. It is kept as the choice of one of `g` distributions over valid
    successors (one for each pattern of forbidden transitions, mostly a single one), so that the
    matrix is never dense and nothing is ever subtracted: a chain is a sparse chain with `g`
    more states that take no time.

    `sparse` (shape (n, n)): what was counted, divided by the row's total weight; 1 on the diagonal
        of absorbing rows.
    `prior` (shape (n,)): probability of a step by smoothing alone.
    `group` (shape (n,)): which row of `supports` applies.
    `supports` (shape (g, n)): distributions over successors.
    `absorbing` (shape (n,)): terminal states.
    `unseen` (shape (n,)): states without data and without smoothing; their rows are zero.
    """

    sparse: sparse.csr_matrix
    prior: Floats
    group: NDArray[np.int64]
    supports: sparse.csr_matrix
    absorbing: NDArray[np.bool_]
    unseen: NDArray[np.bool_]

    def __post_init__(self) -> None:
        check_probabilities(self.sparse, "transition probabilities")
        check_probabilities(self.supports, "prior distributions")
        if not np.isfinite(self.prior).all() or (self.prior < 0).any():
            raise CheckingError("prior weights must be finite and not negative")
        total = np.asarray(self.sparse.sum(axis=1)).ravel() + self.prior
        expected = np.where(self.unseen, 0.0, 1.0)
        wrong = np.flatnonzero(np.abs(total - expected) > ROW_TOLERANCE)
        if wrong.size:
            raise CheckingError(
                f"row {wrong[0]} of the transition matrix sums to {total[wrong[0]]:.12g}",
                accepted="rows that sum to 1",
            )

    @property
    def size(self) -> int:
        """Number of states."""
        return int(self.sparse.shape[0])

    @property
    def smoothed(self) -> bool:
        """Whether any row has a prior."""
        return bool(self.prior.any())

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """Mask of the states that have successors: neither absorbing nor unseen."""
        return np.asarray(~(self.absorbing | self.unseen))

    def apply(self, values: Floats) -> Floats:
        """Return ``P @ values`` for `values` of shape (n,) or (n, m)."""
        result = self.sparse @ values
        if self.smoothed:
            drawn = (self.supports @ values)[self.group]
            result += self.prior * drawn if values.ndim == 1 else self.prior[:, None] * drawn
        return np.asarray(result)

    def row(self, index: int) -> Floats:
        """Return the successor distribution of one state, shape (n,)."""
        row = self.sparse[index].toarray().ravel().astype(np.float64)
        if self.prior[index]:
            row += self.prior[index] * self.supports[self.group[index]].toarray().ravel()
        return np.asarray(row)

    def to_csr(self) -> sparse.csr_matrix:
        """Return P as one sparse matrix, shape (n, n); full rows where there is a prior."""
        if not self.smoothed:
            return self.sparse.copy()
        filled = sparse.diags(self.prior).tocsr() @ self.supports[self.group]
        result = (self.sparse + filled).tocsr()
        result.eliminate_zeros()
        result.sort_indices()
        return result

    def augmented(self) -> sparse.csr_matrix:
        """Return the chain with one more state for each prior, which takes no time.

        Shape (n + g, n + g); where `to_csr` has full rows, this has one entry more a row.
        """
        if not self.smoothed:
            return self.sparse.copy()
        users = np.flatnonzero(self.prior)
        number = self.supports.shape[0]
        drawing = sparse.csr_matrix(
            (self.prior[users], (users, self.group[users])), shape=(self.size, number)
        )
        return sparse.bmat([[self.sparse, drawing], [self.supports, None]], format="csr")

    def flat(self) -> Chain:
        """Return the same chain with the prior written out in its rows."""
        if not self.smoothed:
            return self
        return Chain.of_rows(self.to_csr(), self.absorbing, self.unseen)

    @staticmethod
    def of_rows(
        rows: sparse.csr_matrix, absorbing: NDArray[np.bool_], unseen: NDArray[np.bool_]
    ) -> Chain:
        """Return the chain of a matrix of shape (n, n), without a prior."""
        n = rows.shape[0]
        group = np.zeros(n, dtype=np.int64)
        none = sparse.csr_matrix((1, n), dtype=np.float64)
        return Chain(rows, np.zeros(n), group, none, absorbing, unseen)


def check_probabilities(matrix: sparse.csr_matrix, what: str) -> None:
    """Refuse entries that are negative or not finite; raises CheckingError."""
    if (np.isfinite(matrix.data) & (matrix.data >= 0)).all():
        return
    coo = matrix.tocoo()
    at = int(np.flatnonzero(~np.isfinite(coo.data) | (coo.data < 0))[0])
    raise CheckingError(
        f"{what}: entry [{coo.row[at]}, {coo.col[at]}] is {coo.data[at]}",
        accepted="finite numbers >= 0",
    )
