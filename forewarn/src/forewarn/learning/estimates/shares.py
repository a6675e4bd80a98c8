"""Bounds of the share of moments that a violation follows, where recordings are what varies.

Moments of one recording resemble each other, so a thousand of them may tell as little as one. The
share is fitted with a beta distribution that has its mean and the variance between recordings
(the linearised one of a ratio), and one more recording is added on the unfavourable side: for the
upper bound one in which a violation follows every moment, for the lower bound one without any. Its
size is that of the recording in which a moment lies, on average. Where recordings are alike in size
and each is all or nothing, these are the exact bounds of Clopper and Pearson (Biometrika 26, 1934)
with each recording as one trial; added weight in place of exactness is what Fay and Feuer do for
weighted sums of Poisson variables (Statistics in Medicine 16, 1997).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Floats = NDArray[np.float64]
TINY = 1e-300


class Tally(NamedTuple):
    """What recordings tell of each cell; arrays of shape (cells,).

    `recordings`: recordings with a moment there.
    `visits`, `followed`: moments, and those that a violation followed.
    `visits_squared`, `followed_squared`, `product`: sums over recordings of the squares of both,
        and of their product.
    """

    recordings: Floats
    visits: Floats
    followed: Floats
    visits_squared: Floats
    followed_squared: Floats
    product: Floats


def tally(
    recording: NDArray[np.int64],
    cell: NDArray[np.int64],
    visits: Floats,
    followed: Floats,
    cells: int,
) -> Tally:
    """Add up rows of the same recording and cell, and then the recordings of each cell."""
    pair, where = np.unique(recording * np.int64(cells) + cell, return_inverse=True)
    seen, hit = (
        np.bincount(where, weights=part, minlength=len(pair)) for part in (visits, followed)
    )
    at = pair % cells
    sums = ((seen > 0).astype(np.float64), seen, hit, seen * seen, hit * hit, seen * hit)
    added = [np.bincount(at, weights=part, minlength=cells).astype(np.float64) for part in sums]
    return Tally(*added)


def shapes(tally: Tally, followed: float) -> tuple[Floats, Floats]:
    """Return the beta distribution of each share, shape (cells,) each, with one recording more.

    `followed`: how much of the added recording a violation follows: 1, 0, or 0.5 for half a
        recording either way.
    """
    added = tally.visits_squared / np.maximum(tally.visits, 1.0)
    total = np.maximum(tally.visits + added, 1.0)
    mean = (tally.followed + followed * added) / total
    spread = (
        tally.followed_squared
        - 2 * mean * tally.product
        + mean * mean * tally.visits_squared
        + added * added * (followed * (1 - mean) ** 2 + (1 - followed) * mean**2)
    )
    number = mean * (1 - mean) / np.maximum(spread / total**2, TINY)
    return mean * number, (1 - mean) * number


def share_bounds(tally: Tally, confidence: float) -> tuple[Floats, Floats]:
    """Return lower and upper bounds of the share in each cell, half of the rest on either side.

    They are 0 and 1 where no recording has a moment.
    """
    tail = (1 - confidence) / 2
    some, others = tally.followed > 0, tally.followed < tally.visits
    a, b = (np.maximum(part, TINY) for part in shapes(tally, 1.0))
    upper = np.where(others, betaincinv(a, b, 1 - tail), 1.0)
    a, b = (np.maximum(part, TINY) for part in shapes(tally, 0.0))
    lower = np.where(some, betaincinv(a, b, tail), 0.0)
    return np.asarray(lower), np.asarray(upper)
