"""Whether runs change over time: a conformal martingale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

_EXPONENTS = (np.arange(200) + 0.5) / 200


class Drift(NamedTuple):
    """What the order of runs says.

    `evidence`: the greatest natural logarithm that the martingale reached.
    `limit`: from here on drift is reported, ``log(1 / alpha)``.
    `since`: number of the run at which the limit was reached first, from 0; None without drift.
    """

    evidence: float
    limit: float
    since: int | None


def sequential_p(past: Sequence[float], scores: Sequence[float], seed: int = 0) -> Floats:
    """Return the p-value of each score among all before it, shape (n,).

    Ties are broken at random. If all runs are exchangeable, these p-values are independent and
    uniform on (0, 1) (Vovk, Gammerman and Shafer, 2005, theorem 8.1), which p-values against one
    fixed set are not.

    `past` (shape (m,)): scores of the runs before the first one.
    """
    chance = np.random.default_rng(seed).random(len(scores))
    every = np.asarray([*past, *scores], dtype=np.float64)
    found = np.empty(len(scores))
    for i, score in enumerate(scores):
        before = every[: len(past) + i + 1]
        above, equal = int((before > score).sum()), int((before == score).sum())
        found[i] = (above + (1.0 - chance[i]) * equal) / before.size
    return found


def find_drift(p_values: Floats, alpha: float) -> Drift:
    """Tell whether p-values become small: whether runs become more surprising.

    The martingale is the mixture of power martingales ``prod e p^(e - 1)`` over 200 exponents e
    in (0, 1) (Vovk, Nouretdinov and Gammerman, 2003). By Ville's inequality the probability that
    drift is ever reported, over any number of runs, is at most `alpha` if there is none.
    """
    lengths = np.arange(1, p_values.size + 1)[:, None]
    bits = -np.cumsum(np.log(p_values))[:, None]
    powers = lengths * np.log(_EXPONENTS) + (1.0 - _EXPONENTS) * bits
    path = special.logsumexp(powers, axis=1) - np.log(_EXPONENTS.size)
    limit = float(-np.log(alpha))
    reached = np.flatnonzero(path >= limit)
    greatest = float(path.max(initial=0.0))
    return Drift(greatest, limit, int(reached[0]) if reached.size else None)
