"""The line of a learned score: a ridge-regularised logistic regression over its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Added to the mean loss of a moment, times half the squared slopes; the best one is taken."""

TAIL = 0.01
"""Share of the violations' values beyond each end within which a feature counts."""

LARGE = 1e299
"""From here on values stand for infinity."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Where each feature counts, and how it is made comparable; all shape (features,).

    `low`, `high`: ends beyond which nothing changes: where the violations of the data are.
    `centre`, `spread`: mean and standard deviation within the ends; what is unknown counts as the
        mean.
    """

    low: Floats
    high: Floats
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, x: Floats, y: Bools) -> Scale:
        """Return the scale of features, shape (n, features), with their outcomes, shape (n,)."""
        low, high = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        centre, spread = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        for column in range(x.shape[1]):
            values = x[:, column]
            usual = np.abs(values) < LARGE  # NaN is not
            here = values[usual & y]
            if not here.size:
                here = values[usual]
            if not here.size:
                continue
            ends = np.quantile(here, (TAIL, 1 - TAIL))
            low[column], high[column] = ends
            inside = np.clip(values[~np.isnan(values)], *ends)
            centre[column], spread[column] = inside.mean(), inside.std()
        return cls(low, high, centre, spread)

    def __call__(self, x: Floats) -> Floats:
        """Return comparable features, shape (n, features)."""
        scale = np.where(self.spread > 0, self.spread, 1.0)
        found = (np.clip(x, self.low, self.high) - self.centre) / scale
        found[:, self.spread == 0] = 0.0
        return np.asarray(np.nan_to_num(found, copy=False, nan=0.0))


@dataclass(frozen=True, eq=False)
class Line:
    """A logistic regression: ``intercept + sum(slope * (clip(x, low, high) - centre))``."""

    intercept: float
    slope: Floats
    scale: Scale

    def logit(self, x: Floats) -> Floats:
        """Return the log-odds of rows, shape (n,)."""
        return np.asarray(self.intercept + self.scale(x) @ (self.slope * self.scale.spread))


def fit_lines(x: Floats, y: Bools, constraints: Sequence[int], used: Bools) -> list[Line]:
    """Fit a line with each of `RIDGES`.

    `x` (shape (n, features)): NaN where unknown.
    `y` (shape (n,)): whether a violation followed.
    `constraints`: for each feature 1 if the risk may only rise with it, -1 if it may only fall,
        else 0.
    `used` (shape (features,)): features that may have a slope.
    """
    scale = Scale.of(x[:, used], y)
    rows, signs = scale(x[:, used]), np.asarray(constraints)[used]
    share = (y.sum() + 0.5) / (len(y) + 1)
    at = np.append(np.log(share / (1 - share)), np.zeros(len(signs)))
    spread = np.where(scale.spread > 0, scale.spread, np.inf)
    found = {}
    for ridge in sorted(RIDGES, reverse=True):  # each begins where the one before ended
        at = _least(rows, y.astype(np.float64), signs.tolist(), ridge, at)
        found[ridge] = _widened(Line(float(at[0]), at[1:] / spread, scale), used)
    return [found[ridge] for ridge in RIDGES]


def _least(
    rows: Floats, truth: Floats, signs: Sequence[int], ridge: float, start: Floats
) -> Floats:
    """Return intercept and slopes of least loss."""
    from scipy.optimize import minimize  # few commands fit a score, and it takes long to import

    def loss(at: Floats) -> tuple[float, Floats]:
        odds = at[0] + rows @ at[1:]
        value = float(np.mean(np.logaddexp(0.0, odds) - truth * odds))
        away = (1 / (1 + np.exp(-np.clip(odds, -700, 700))) - truth) / len(truth)
        gradient = np.append(away.sum(), rows.T @ away + ridge * at[1:])
        return value + 0.5 * ridge * float(at[1:] @ at[1:]), gradient

    limits = {0: (None, None), 1: (0.0, None), -1: (None, 0.0)}
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None), *(limits[sign] for sign in signs)],
        options={"maxiter": 200, "ftol": 1e-9},
    )
    return np.asarray(found.x)


def _widened(line: Line, used: Bools) -> Line:
    """Return a line over all features, without a slope where one is not used."""

    def wide(values: Floats) -> Floats:
        found = np.zeros(len(used))
        found[used] = values
        return found

    scale = line.scale
    parts = (scale.low, scale.high, scale.centre, scale.spread)
    return Line(line.intercept, wide(line.slope), Scale(*map(wide, parts)))
