"""Thresholds that part the values of a number, as people would write them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def thresholds_between(values: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return thresholds between neighbouring values, as the shortest decimals that part them."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        return np.empty(0)
    places = np.arange(len(distinct) - 1)
    if len(places) > most:
        levels = np.arange(1, most + 1) * (len(values) - 1) // (most + 1)
        places = np.unique(np.searchsorted(distinct, np.sort(values)[levels]))
        places = places[places < len(distinct) - 1]
    return np.array([_between(distinct[i], distinct[i + 1]) for i in places])


def _between(low: float, high: float) -> float:
    """Return a short decimal t near the middle with ``low <= t < high``; between wholes a whole.

    It is finite, for an expression has to be able to say it.
    """
    if low == -np.inf:
        below = 0.0 if high == np.inf else np.floor(high) - 1
        return float(below if below < high else np.nextafter(high, -np.inf))
    if high == np.inf:
        return float(low)
    middle = low / 2 + high / 2
    if low == np.floor(low) and high == np.floor(high) and abs(middle) < 1e15:
        return float(np.floor(middle))
    for digits in range(1, 18):
        short = float(f"{middle:.{digits}g}")
        if low < short < high:
            return short
    return float(low)


def written(number: float) -> str:
    """Return a number as expressions have it; a whole one without a point."""
    whole = number == int(number) and abs(number) < 1e15
    return str(int(number)) if whole else repr(float(number))
