"""The evaluation of a learned score in Python, written from its documentation: the oracle of C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from forewarn.wings.scores.fit import Ensemble

Row = Sequence[float | None]


def features(window: Sequence[Row], lags: Sequence[int]) -> list[float]:
    """Return the features of a window, by brute force; NaN where one is unknown."""
    found = []
    for values in zip(*window, strict=True):
        known = [math.nan if value is None else value for value in values]
        then = [known[max(len(known) - 1 - lag, 0)] for lag in lags]
        found += [known[-1], *(known[-1] - value for value in then)]
    return found


def walk(ensemble: Ensemble, root: int, x: Sequence[float]) -> list[int]:
    """Return the nodes from a root to a leaf."""
    path = [root]
    while ensemble.feature[path[-1]] >= 0:
        node = path[-1]
        value = x[ensemble.feature[node]]
        if math.isnan(value):
            left = bool(ensemble.missing_left[node])
        else:
            left = value <= ensemble.threshold[node]
        path.append((ensemble.left if left else ensemble.right)[node])
    return path


def is_known(ensemble: Ensemble, x: Sequence[float]) -> bool:
    return not any(
        math.isnan(value) and needed for value, needed in zip(x, ensemble.needed, strict=True)
    )


def logit(ensemble: Ensemble, x: Sequence[float]) -> float:
    total = ensemble.base
    for root in ensemble.roots:
        total += ensemble.value[walk(ensemble, root, x)[-1]]
    for feature in range(len(ensemble.line)):
        total += on_line(ensemble, feature, x)
    return total


def on_line(ensemble: Ensemble, feature: int, x: Sequence[float]) -> float:
    slope, centre, lowest, highest = ensemble.line[feature]
    value = x[feature]
    return 0.0 if math.isnan(value) else slope * (min(max(value, lowest), highest) - centre)


def probability(logit: float) -> float:
    x = min(max(logit, -30.0), 30.0)
    e = _exp_of_minus(abs(x))
    return 1.0 / (1.0 + e) if x >= 0 else e / (1.0 + e)


def _exp_of_minus(x: float) -> float:
    t = -x
    k = math.floor(t * 1.4426950408889634 + 0.5)
    r = (t - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    total = 1.0
    for i in range(14, 0, -1):
        total = 1.0 + total * r / i
    return math.ldexp(total, k)


def score(ensemble: Ensemble, x: Sequence[float]) -> float | None:
    return probability(logit(ensemble, x)) if is_known(ensemble, x) else None


def shares(ensemble: Ensemble, x: Sequence[float], per_signal: int) -> list[float] | None:
    if not is_known(ensemble, x):
        return None
    found = [ensemble.base] + [0.0] * (len(ensemble.needed) // per_signal)
    for root in ensemble.roots:
        path = walk(ensemble, root, x)
        found[0] += ensemble.value[root]
        for node, following in pairwise(path):
            signal = ensemble.feature[node] // per_signal
            found[1 + signal] += ensemble.value[following] - ensemble.value[node]
    for feature in range(len(ensemble.line)):
        found[1 + feature // per_signal] += on_line(ensemble, feature, x)
    return found
