"""How often something happens in an hour, with an interval that takes recordings as what varies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

CONFIDENCE = 0.95


class Rate(NamedTuple):
    """Events in an hour.

    `events`: how many there were.
    `hours`: time in which they could have happened.
    `lower`, `upper`: the interval of the rate; infinite where nothing was watched.
    `dispersion`: how much more events vary between recordings than chance alone would let them; 1
        or more.
    """

    events: int
    hours: float
    lower: float
    upper: float
    dispersion: float

    @property
    def rate(self) -> float:
        """Events in an hour; NaN where nothing was watched."""
        return self.events / self.hours if self.hours else math.nan


def event_rate(events: Sequence[int], hours: Sequence[float]) -> Rate:
    """Return the rate of events over recordings.

    The interval is the exact one of independent events (Garwood 1936), for as many events and hours
    as recordings are worth: both are divided by Pearson's dispersion (quasi-Poisson; McCullagh and
    Nelder 1989, 6.2), where it is above 1. Without events, or with one recording, it is 1.

    `events`, `hours`: of each recording.
    """
    counts, spent = np.asarray(events, dtype=np.float64), np.asarray(hours, dtype=np.float64)
    counts, spent = counts[spent > 0], spent[spent > 0]
    total, time = float(counts.sum()), float(spent.sum())
    if not time:
        return Rate(0, 0.0, 0.0, math.inf, 1.0)
    dispersion = 1.0
    if total and len(counts) > 1:
        expected = total * spent / time
        dispersion = max(
            float(((counts - expected) ** 2 / expected).sum()) / (len(counts) - 1), 1.0
        )
    tail, number, exposure = (1 - CONFIDENCE) / 2, total / dispersion, time / dispersion
    lower = float(special.gammaincinv(number, tail)) / exposure if number else 0.0
    upper = float(special.gammaincinv(number + 1, 1 - tail)) / exposure
    return Rate(int(total), time, lower, upper, dispersion)
