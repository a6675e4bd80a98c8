"""What a number of runs supports: exact bounds, p-values, and how many would be needed.

Learn then Test (Angelopoulos, Bates, Candes, Jordan and Lei, 2021) chooses a threshold with a
guarantee: the hypothesis "the miss rate at this threshold exceeds a" is tested for one threshold
after the other, from the most cautious on, each at level d, until one cannot be rejected. Whatever
is chosen among the rejected ones, its true miss rate exceeds a with probability d at most, for any
distribution and any number of runs, if the runs are exchangeable with those to come.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forewarn.models.estimation import clopper_pearson

Floats = NDArray[np.float64]
MAX_TRIALS = 10_000_000
HALVINGS = 40


def fixed_sequence(p_values: Floats, delta: float) -> int:
    """Return how many hypotheses are rejected, from the first on (Learn then Test, section 2.4).

    `p_values` (shape (k,)): in an order that was fixed before the data were seen.
    `delta`: probability of any false rejection.
    """
    kept = np.flatnonzero(~(p_values <= delta))
    return int(kept[0]) if kept.size else len(p_values)


def binomial_p(misses: NDArray[np.int64], trials: int, alpha: float) -> Floats:
    """Return p-values for "more than `alpha` of independent trials are missed".

    `misses` (shape (k,)): misses among the trials, for each hypothesis.
    `trials`: how many; without any, every p-value is 1.
    `alpha`: miss rate, in (0, 1).
    """
    return np.asarray(special.bdtr(misses, trials, alpha), dtype=np.float64)


def bounded_p(losses: Floats, alpha: float | Floats) -> Floats:
    """Return Hoeffding-Bentkus p-values for "the mean loss exceeds `alpha`".

    The lesser of Hoeffding's and Bentkus' tail (Bates et al., 2021; Learn then Test, proposition
    1); with no loss at all it is ``(1 - alpha) ** n``, as exact as the binomial one.

    `losses` (shape (n, k)): independent losses in [0, 1], for each of k hypotheses.
    `alpha` (shape (k,)): mean loss, in (0, 1).
    """
    count = len(losses)
    if not count:
        return np.ones(losses.shape[1])
    hoeffding = np.exp(-count * _divergence(np.minimum(losses.mean(axis=0), alpha), alpha))
    # A whole number of losses may come out a hair too large.
    whole = np.ceil(losses.sum(axis=0) - 1e-9)
    bentkus = math.e * special.bdtr(whole, count, alpha)
    return np.asarray(np.minimum(np.minimum(hoeffding, bentkus), 1.0), dtype=np.float64)


def _divergence(a: Floats, b: float | Floats) -> Floats:
    """Relative entropy of two coins that show heads with probability `a` and `b`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(a > 0, a * np.log(a / b), 0.0)
        tails = np.where(a < 1, (1 - a) * np.log((1 - a) / (1 - b)), 0.0)
    return np.asarray(heads + tails, dtype=np.float64)


def miss_bound(misses: int, trials: int, confidence: float) -> float:
    """Return the exact upper bound of a miss rate (Clopper and Pearson, 1934); 1 without trials."""
    return float(clopper_pearson(misses, trials, 1.0 - confidence)[1])


def loss_bounds(losses: Floats, confidence: float) -> Floats:
    """Return the upper bounds of mean losses that `bounded_p` gives, shape (k,); 1 without runs."""
    size = losses.shape[1]
    low: Floats = np.zeros(size)
    high: Floats = np.ones(size)
    if not len(losses):
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        excluded = bounded_p(losses, middle) <= 1 - confidence
        low, high = np.where(excluded, low, middle), np.where(excluded, middle, high)
    return high


def rate_bound(count: int, exposure: float, confidence: float) -> float:
    """Return the exact upper bound of a rate of independent events (Garwood, 1936).

    `count`: events.
    `exposure`: time in which they happened; the bound is infinite if there was none.
    `confidence`: one-sided, in (0, 1).
    """
    if exposure <= 0:
        return math.inf
    return float(special.gammaincinv(count + 1, confidence)) / exposure


def needed_trials(alpha: float, confidence: float, misses: int = 0) -> int:
    """Return how many trials with so many misses show a miss rate of `alpha` at most."""
    low, high = misses, max(misses, 1)
    while special.bdtr(misses, high, alpha) > 1 - confidence:
        low, high = high, 2 * high
        if high > MAX_TRIALS:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        if special.bdtr(misses, middle, alpha) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def needed_exposure(rate: float, confidence: float, count: int = 0) -> float:
    """Return the time in which so many events show that they are not more frequent than `rate`."""
    return float(special.gammaincinv(count + 1, confidence)) / rate
