"""Fitting the maps that calibrate risks: isotonic regression and Platt's logistic curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ModelError
from forewarn.learning.logistic import least_logistic
from forewarn.models.estimates import Line

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEPS = 100
CLOSE = 1e-12


def judged(risk: Floats, followed: Bools, weight: Floats) -> tuple[Floats, Bools, Floats]:
    """Return the ticks with a risk strictly between 0 and 1: what is certain is not calibrated."""
    inner = (risk > 0) & (risk < 1)
    return risk[inner], followed[inner], weight[inner]


def fit_isotonic(
    risk: Floats, followed: Bools, weight: Floats, prior: float
) -> tuple[tuple[float, float], ...]:
    """Return the knots of an isotonic map.

    Neighbouring risks whose order the frequencies contradict are pooled (the pool adjacent
    violators algorithm; Ayer et al., 1955). A knot stands at the mean risk of each pool. A pool
    of few ticks proves little, so the model's own prediction counts as `prior` ticks more; without
    it every risk below the first violation would become 0.

    `risk` (shape (n,)): predicted, within (0, 1).
    `followed` (shape (n,)): whether a violation followed.
    `weight` (shape (n,)): how many ticks each stands for.
    `prior`: ticks; those of a horizon, say, since they share their outcome.

    Returns pairs with rising risks and frequencies that do not fall (tuple of (risk, frequency)).
    """
    values, where = np.unique(risk, return_inverse=True)
    total = np.bincount(where, weights=weight, minlength=len(values))
    hits = np.bincount(where, weights=followed * weight, minlength=len(values))
    pools: list[list[float]] = []  # ticks, sum of risks, violations
    for ticks, value, hit in zip(total.tolist(), values.tolist(), hits.tolist(), strict=True):
        pools.append([ticks, ticks * value, hit])
        # a/b >= c/d without dividing
        while len(pools) > 1 and pools[-2][2] * pools[-1][0] >= pools[-1][2] * pools[-2][0]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    ticks_in, risks_in, hits_in = np.array(pools, dtype=np.float64).reshape(-1, 3).T
    middle = risks_in / ticks_in
    share = np.maximum.accumulate((hits_in + prior * middle) / (ticks_in + prior))
    rising = np.append(True, np.diff(middle) > 0)[: len(middle)]  # means may round to equal
    inner = rising & (middle > 0) & (middle < 1)
    return tuple(zip(middle[inner].tolist(), share[inner].tolist(), strict=True))


def fit_platt(risk: Floats, followed: Bools, weight: Floats) -> Line:
    """Return Platt's line over the log-odds, by Newton's method with his softened targets.

    `followed` (shape (n,)): whether a violation followed; both must occur.

    Raises ModelError if a higher risk goes with fewer violations: no rising map can mend that.
    """
    hits = float(weight[followed].sum())
    misses = float(weight[~followed].sum())
    target = np.where(followed, (hits + 1) / (hits + 2), 1 / (misses + 2))
    odds = np.log(risk) - np.log1p(-risk)
    design = np.stack((odds, np.ones_like(odds)), axis=1)
    line = np.array([0.0, np.log((hits + 1) / (misses + 1))])

    def loss(_: Floats, at: Floats) -> float:
        return float(np.sum(weight * (np.logaddexp(0, at) - target * at)))

    def slopes(_: Floats, share: Floats) -> tuple[Floats, Floats]:
        gradient = design.T @ (weight * (share - target))
        return gradient, (design.T * (weight * share * (1 - share))) @ design + CLOSE * np.eye(2)

    line = least_logistic(design, line, loss, slopes, STEPS, CLOSE)
    if not line[0] > 0:
        raise ModelError(
            f"the frequency of violations falls with the risk (slope {line[0]:.3g})",
            accepted="recordings on which the risk tells something; method isotonic",
        )
    return Line(float(line[0]), float(line[1]))
