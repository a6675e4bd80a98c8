"""A chain's transition matrix restricted to some rows and columns, as an operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.models.chain import Chain, Floats

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Operator:
    """Non-negative matrix ``matrix + diag(prior) @ supports[group]``, applied without forming it.

    Attributes
    ----------
    matrix : csr_matrix, shape (n, m)
        Sparse part.
    prior : ndarray of shape (n,) or None
        Weight of the low-rank part; None if there is none.
    group : ndarray of int, shape (n,)
        Row of `supports` for each row of the operator.
    supports : csr_matrix, shape (g, m)
        Rows of the low-rank part.
    """

    matrix: sparse.csr_matrix
    prior: Floats | None
    group: NDArray[np.int64]
    supports: sparse.csr_matrix

    def __call__(self, values: Floats) -> Floats:
        """Return the product with `values`, shape (m,) or (m, k)."""
        result = self.matrix @ values
        if self.prior is not None:
            drawn = (self.supports @ values)[self.group]
            result += self.prior * drawn if values.ndim == 1 else self.prior[:, None] * drawn
        return np.asarray(result)

    def dense(self) -> Floats:
        """Return the matrix as an array."""
        result = self.matrix.toarray().astype(np.float64)
        if self.prior is not None:
            result += self.prior[:, None] * self.supports.toarray()[self.group]
        return np.asarray(result)


def restricted(chain: Chain, rows: Mask, columns: Mask) -> Operator:
    """Return the chain's matrix with all other rows and columns set to zero, shape (n, n)."""
    keep = sparse.diags(columns.astype(np.float64))
    matrix = sparse.csr_matrix(sparse.diags(rows.astype(np.float64)) @ chain.sparse @ keep)
    matrix.eliminate_zeros()
    supports = sparse.csr_matrix(chain.supports @ keep)
    supports.eliminate_zeros()
    prior = np.where(rows, chain.prior, 0.0)
    smoothed = bool(prior.any()) and supports.nnz > 0
    return Operator(matrix, prior if smoothed else None, chain.group, supports)
