"""Exact bounds of proportions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from forewarn.models.chain import Floats


def clopper_pearson(seen: Any, trials: Any, tail: Any) -> tuple[Floats, Floats]:
    """Return the exact bounds of proportions (Clopper and Pearson, 1934).

    Parameters
    ----------
    seen, trials : array_like of int
        How many of how many, ``0 <= seen <= trials``.
    tail : array_like of float
        Probability with which each of the two bounds may fail.

    Returns
    -------
    lower, upper : ndarray
        0 and 1 of no trials.
    """
    k, n = (np.asarray(part, dtype=np.float64) for part in np.broadcast_arrays(seen, trials))
    none, full = k <= 0, k >= n
    lower = np.where(none, 0.0, special.betaincinv(np.where(none, 1.0, k), n - k + 1.0, tail))
    missed = np.where(full, 1.0, n - k)
    upper = np.where(full, 1.0, special.betaincinv(k + 1.0, missed, 1.0 - tail))
    return lower, upper
