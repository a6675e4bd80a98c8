"""GMRES with products that stay on one core.

scipy's calls threaded BLAS for every scalar product: on a robot whose cores are busy, waiting
for the other threads takes longer than the sums themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from forewarn.models.chain import Floats

# Size of the Krylov space at most; the best solution within it is returned.
DIMENSION = 80


def gmres(apply: Callable[[Floats], Floats], right: Floats, tolerance: float) -> Floats:
    """Return an approximate solution x of ``apply(x) = right`` (Saad and Schultz 1986).

    Parameters
    ----------
    apply : callable
        The matrix, for vectors of shape (n,).
    right : ndarray, shape (n,)
        Right-hand side.
    tolerance : float
        Residual to reach, relative to the right-hand side.
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
