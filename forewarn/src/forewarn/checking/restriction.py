"""A chain's transition matrix restricted to some rows and columns, as an operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from forewarn.models.chain import Chain, Floats

Mask = NDArray[np.bool_]

# Below this size, or this share of non-zero entries, numpy's dense product is the faster one.
DENSE_SIZE = 160
DENSE_SHARE = 0.15


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
