"""P-values of the surprises of steps, and the evidence of a change that they add up to."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class StepShares(NamedTuple):
    """Surprises of the steps of normal runs.

    `values`: surprises that occurred, rising.
    `above`: weight of those that are at least as great; of none at the end.
    `runs`: how many runs they are from, each of weight 1.
    """

    values: Floats
    above: Floats
    runs: int

    @classmethod
    def of(cls, steps: Sequence[tuple[float, float]], runs: int) -> StepShares:
        """Return the shares of surprises with their weights."""
        weights = np.cumsum([weight for _, weight in steps][::-1])[::-1]
        return cls(np.array([value for value, _ in steps]), np.append(weights, 0.0), runs)

    def p_values(self, surprises: Sequence[float]) -> Floats:
        """Return the p-value of each surprise among those of a step of a random one of the runs."""
        # Weights are shares of runs: their sum is the number of runs but for rounding.
        greater = self.above[np.searchsorted(self.values, surprises, side="left")]
        found = (1.0 + greater) / (self.runs + 1.0)
        return np.asarray(np.minimum(found, 1.0), dtype=np.float64)


def evidence(p_value: float) -> float:
    """Return the logarithm of ``1 / (2 sqrt(p))``, a bet that pays where p-values are small.

    Its exponential has the mean 1 over uniform p-values (Vovk, Nouretdinov and Gammerman, 2003).
    """
    return -0.5 * math.log(p_value) - math.log(2.0)


def cusum(reference: StepShares, surprises: Sequence[float]) -> Floats:
    """Return the greatest evidence of a change so far, shape (transitions,).

    The sum of the evidence of each step starts again at 0 whenever it falls below (Page's CUSUM on
    a conformal martingale: Vovk et al., "Retrain or not retrain", 2021). Steps of a run depend on
    each other, so that no limit for the sum follows from the steps; it comes from whole runs.
    """
    found, level, greatest = [], 0.0, 0.0
    for p_value in reference.p_values(surprises).tolist():
        level = max(level + evidence(p_value), 0.0)
        greatest = max(greatest, level)
        found.append(greatest)
    return np.array(found)


def conformal_p(past: Sequence[float], value: float) -> float:
    """Return ``(1 + #{past >= value}) / (n + 1)``.

    If the value is exchangeable with the n past ones, it is at most alpha with a probability of at
    most alpha, for every alpha (Vovk, Gammerman and Shafer, 2005, proposition 2.4).

    `past` (shape (n,)): rising.
    """
    return (1 + len(past) - bisect_left(past, value)) / (len(past) + 1)
