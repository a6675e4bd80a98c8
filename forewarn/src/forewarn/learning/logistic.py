"""The weights of least logistic loss: for Platt's calibration and for the pooled estimate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def least_logistic(
    rows: Floats,
    start: Floats,
    loss: Callable[[Floats, Floats], float],
    slopes: Callable[[Floats, Floats], tuple[Floats, Floats]],
    steps: int,
    close: float,
) -> Floats:
    """Return the weights of least loss, by Newton's method whose steps are halved while they fail.

    `rows` (shape (k, d)): ``rows @ weights`` are log-odds.
    `start` (shape (d,)): the first weights.
    `loss`: the loss of weights, shape (d,), and of their log-odds, shape (k,).
    `slopes`: the gradient, shape (d,), and the curvature, shape (d, d), of the loss at weights, and
        at the probabilities of their log-odds, shape (k,).
    `steps`: steps at most.
    `close`: a step of which no part is as long is the last one.
    """
    weights, odds = start, rows @ start
    now = loss(weights, odds)
    for _ in range(steps):
        share = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
        gradient, curvature = slopes(weights, share)
        step = np.linalg.solve(curvature, gradient)
        before, odds = now, rows @ (weights - step)
        while (now := loss(weights - step, odds)) > before and np.abs(step).max() > close:
            step = step / 2
            odds = rows @ (weights - step)
        weights = weights - step
        if np.abs(step).max() < close:
            break
    return weights
