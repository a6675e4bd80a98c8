"""Are the probabilities right? Predicted risk against how often a violation followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.monitoring.history import UNKNOWN_STATE, Track
from forewarn.monitoring.verdict import Status

NEVER = np.iinfo(np.int64).max
Z95 = 1.959963984540054


class Predictions(NamedTuple):
    """Ticks whose outcome is known.

    Attributes
    ----------
    risk : ndarray of float64, shape (m,)
        Predicted probability of a violation within the horizon.
    followed : ndarray of bool, shape (m,)
        A violation did follow.
    censored : int
        Ticks with a risk whose outcome is not known: the run, or what is known, ends earlier.
    """

    risk: NDArray[np.float64]
    followed: NDArray[np.bool_]
    censored: int


def predictions(track: Track) -> Predictions:
    """Pair the risk of each tick with what followed within the horizon.

    Left out are ticks without a known state or risk, and those at which a violation lasts. An
    episode's terminal label ends the wait without violation; the end of the run, an inactive
    phase, a missing tick or a violation that may have happened leave the outcome unknown.
    """
    followed, known = outcomes(
        track.ticks, track.violation, track.possible, track.status, track.horizon
    )
    predicted = (
        ~np.isnan(track.probability)
        & (track.state != UNKNOWN_STATE)
        & np.isin(track.status, (Status.SATISFIED_SO_FAR, Status.CANNOT_BE_VIOLATED))
    )
    judged = predicted & known
    censored = int((predicted & ~judged).sum())
    return Predictions(track.probability[judged], followed[judged], censored)


def outcomes(
    ticks: NDArray[np.int64],
    violation: NDArray[np.bool_],
    possible: NDArray[np.bool_],
    status: NDArray[np.int8],
    horizon: int | None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell for every tick whether a violation followed within the horizon, and if that is known.

    Parameters
    ----------
    ticks, violation, possible, status : ndarray, shape (n,)
        Columns of a `Track`.
    horizon : int or None
        Ticks to look ahead.

    Returns
    -------
    followed, known : ndarray of bool, shape (n,)
        What follows is not known where the run ends earlier, or is interrupted.
    """
    if not len(ticks):
        return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
    violated = _next_after(ticks, violation)
    ended = _next_after(ticks, status == Status.ENDED)
    gap = np.concatenate(([False], np.diff(ticks) != 1))
    lost = _next_after(ticks, (status == Status.INACTIVE) | possible | gap)
    limit = np.full(len(ticks), NEVER) if horizon is None else ticks + horizon
    followed = (violated <= limit) & (violated < lost) & (violated < ended)
    over = np.minimum(limit, ended)
    clear = ~followed & (over <= int(ticks[-1])) & (over < lost) & (over < violated)
    return followed, followed | clear


def _next_after(ticks: NDArray[np.int64], marked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for every row the tick of the next marked row after it, or NEVER."""
    at = np.where(marked, ticks, NEVER)
    following = np.concatenate((at[1:], [NEVER]))
    return np.minimum.accumulate(following[::-1])[::-1]


def pool(parts: Sequence[Predictions]) -> Predictions:
    """Return the predictions of several runs as one."""
    return Predictions(
        np.concatenate([np.zeros(0), *(part.risk for part in parts)]),
        np.concatenate([np.zeros(0, dtype=bool), *(part.followed for part in parts)]),
        sum(part.censored for part in parts),
    )


class Bin(NamedTuple):
    """Ticks with a similar risk.

    Attributes
    ----------
    low, high : float
        Risks in [low, high), the last bin with its upper end.
    ticks : int
        Ticks.
    predicted : float
        Mean risk.
    observed : float
        Share followed by a violation.
    observed_low, observed_high : float
        95 % Wilson score interval of `observed`. Neighbouring ticks depend on each other, so it
        is the least that should be allowed for.
    """

    low: float
    high: float
    ticks: int
    predicted: float
    observed: float
    observed_low: float
    observed_high: float


@dataclass(frozen=True)
class Calibration:
    """How far predicted and observed frequencies agree.

    Attributes
    ----------
    ticks, censored : int
        Ticks judged; ticks whose outcome is not known.
    base_rate : float
        Share of the ticks followed by a violation.
    brier : float
        Mean squared difference of risk and outcome (Brier, 1950): 0 is perfect.
    skill : float or None
        1 - brier / (brier of always predicting the base rate); None where that is perfect.
    expected_error : float
        Mean distance of predicted and observed frequency over bins, weighted by ticks.
    bins : tuple of Bin
        The non-empty ones.
    """

    ticks: int
    censored: int
    base_rate: float
    brier: float
    skill: float | None
    expected_error: float
    bins: tuple[Bin, ...]


def calibrate(pairs: Predictions, bins: int = 10) -> Calibration | None:
    """Measure calibration over equal bins of risk; None without any tick to judge."""
    count = len(pairs.risk)
    if not count:
        return None
    outcome = pairs.followed.astype(np.float64)
    base = float(outcome.mean())
    brier = float(np.mean((pairs.risk - outcome) ** 2))
    reference = base * (1 - base)
    index = np.minimum((pairs.risk * bins).astype(np.int64), bins - 1)
    found = tuple(
        _bin(i / bins, (i + 1) / bins, pairs.risk[index == i], outcome[index == i])
        for i in np.unique(index).tolist()
    )
    error = sum(each.ticks * abs(each.predicted - each.observed) for each in found) / count
    return Calibration(
        ticks=count,
        censored=pairs.censored,
        base_rate=base,
        brier=brier,
        skill=1 - brier / reference if reference else None,
        expected_error=error,
        bins=found,
    )


def _bin(low: float, high: float, risk: NDArray[np.float64], outcome: NDArray[np.float64]) -> Bin:
    observed = float(outcome.mean())
    lower, upper = wilson(observed, len(risk))
    return Bin(low, high, len(risk), float(risk.mean()), observed, lower, upper)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share among `count` trials (Wilson, 1927)."""
    z2 = Z95 * Z95
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = Z95 / (1 + z2 / count) * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return max(0.0, float(centre - spread)), min(1.0, float(centre + spread))
