"""Intervals of statistics by resampling whole runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

Floats = NDArray[np.float64]
Item = TypeVar("Item")


def alike(names: Iterable[Hashable]) -> list[list[int]]:
    """Return the places of equal names, which are drawn together, in the order of their first."""
    found: dict[Hashable, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    return [*found.values()]


def bootstrap(
    runs: Sequence[Item],
    statistic: Callable[[Sequence[Item]], float | None],
    *,
    resamples: int = 1000,
    seed: int,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return an interval of a statistic over resampled runs (`interval`).

    Whole runs are drawn with replacement, because the ticks and violations of one run depend on
    each other.

    `runs`: traces, or anything else with one entry a run: `run_points`, whose sum is much quicker.
    `statistic`: from runs to a number; None and NaN mean that a resample has none, and are left
        out.
    `level`: share of the resamples between the ends, in (0, 1).

    Returns both ends; NaN with fewer than two runs, which say nothing about runs, or where no
    resample has the statistic.
    """
    return interval(resampled(runs, statistic, resamples=resamples, seed=seed), len(runs), level)


def resampled(
    runs: Sequence[Item],
    statistic: Callable[[Sequence[Item]], float | None],
    *,
    resamples: int,
    seed: int,
) -> Floats:
    """Return a statistic of each resample, shape (resamples,); none with fewer than two runs.

    NaN where a resample has no value. The same seed draws the same runs: what is computed for two
    statistics may be subtracted.
    """
    if len(runs) < 2:
        return np.zeros(0)
    draws = np.random.default_rng(seed).integers(len(runs), size=(resamples, len(runs)))
    found = [statistic([runs[i] for i in draw]) for draw in draws.tolist()]
    return np.array([math.nan if value is None else value for value in found])


def interval(values: Floats, runs: int, level: float = 0.95) -> tuple[float, float]:
    """Return the expanded percentile interval of resampled values (Hesterberg, 2015).

    Plain quantiles are too narrow where runs are few: resamples of n runs vary less than the
    statistic does, by a factor sqrt((n - 1) / n), and their spread is only an estimate. So the
    quantiles are moved outwards, as far as Student's t asks for the mean of n values. From a
    handful of runs the interval still covers the truth less often than `level` says.

    `values` (shape (resamples,)): NaN is left out.
    `runs`: how many were drawn from.
    """
    values = values[~np.isnan(values)]
    if not values.size or runs < 2:
        return math.nan, math.nan
    tail = ndtr(stdtrit(runs - 1, (1 - level) / 2) * math.sqrt(runs / (runs - 1)))
    low, high = np.quantile(values, (tail, 1 - tail))
    return float(low), float(high)
