"""Are the probabilities right? Predicted risk against how often a violation followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.history import UNKNOWN_STATE, Track
from forewarn.monitoring.verdict import PropertyStatus

Ticks = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

UNDECIDED = (PropertyStatus.SATISFIED_SO_FAR, PropertyStatus.CANNOT_BE_VIOLATED)
NEVER = np.iinfo(np.int64).max
Z95 = 1.959963984540054


class Predictions(NamedTuple):
    """Ticks whose outcome is known.

    `risk` (shape (m,)): predicted probability of a violation within the horizon.
    `followed` (shape (m,)): a violation did follow.
    `censored`: ticks with a risk whose outcome is not known: the run, or what is known, ends
        earlier.
    `weight` (shape (m,), or None): how many ticks each stands for (`censoring`); None for one each.
    """

    risk: NDArray[np.float64]
    followed: NDArray[np.bool_]
    censored: int
    weight: NDArray[np.float64] | None = None

    @property
    def weights(self) -> NDArray[np.float64]:
        """How many ticks each stands for, shape (m,)."""
        return np.ones(len(self.risk)) if self.weight is None else self.weight


def predictions(track: Track) -> Predictions:
    """Pair the risk of each tick with what followed within the horizon.

    Left out are ticks without a known state or risk, and those at which a violation lasts.
    """
    followed, known = outcomes(track)
    here = predicted(track)
    judged = here & known
    censored = int((here & ~judged).sum())
    return Predictions(track.probability[judged], followed[judged], censored)


def predicted(track: Track) -> NDArray[np.bool_]:
    """Tell for every tick whether there was a risk of a known state, and nothing violated yet."""
    return np.asarray(
        ~np.isnan(track.probability)
        & (track.state != UNKNOWN_STATE)
        & np.isin(track.status, UNDECIDED)
    )


class Waits(NamedTuple):
    """The next tick, from each of n rows on, at which something comes to be; NEVER if none does.

    `violated` (shape (n,)): a violation.
    `over` (shape (n,)): the horizon ends, or an episode ends with a terminal label: nothing more
        can follow.
    `lost` (shape (n,)): what happens is not known: the run is over, a tick is missing, the property
        is inactive or unsure.
    """

    violated: Ticks
    over: Ticks
    lost: Ticks


def waits(run: Track | ScoredRun) -> Waits:
    """Return what the rows of a run wait for."""
    ticks = run.ticks
    ended = run.status == PropertyStatus.ENDED
    if run.terminal is not None:
        ended = ended | run.terminal
    lost = run.status == PropertyStatus.INACTIVE
    if run.unsure is not None:
        lost = lost | run.unsure
    broken = np.diff(ticks, append=NEVER) != 1  # the tick after this row is missing
    gap = np.minimum.accumulate(np.where(broken, ticks + 1, NEVER)[::-1])[::-1]
    limit = np.full(len(ticks), NEVER) if run.horizon is None else ticks + run.horizon
    return Waits(
        violated=_next_after(ticks, run.violation),
        over=np.minimum(limit, _next_after(ticks, ended)),
        lost=np.minimum(gap, _next_after(ticks, lost)),
    )


def outcomes(run: Track | ScoredRun) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell for every tick whether a violation followed within the horizon, and if that is known.

    An outcome is known where the whole horizon was observed, or an episode's terminal label came
    within it: a violation at that label counts, one of the next episode does not. Where the
    observation ends before that, the outcome is unknown **even if a violation was seen first**:
    to keep such ticks and to drop those without a violation would find violations too frequent.

    `followed, known`: `followed` says nothing where the outcome is not known (shape (n,)).
    """
    found = waits(run)
    return found.violated <= found.over, found.over < found.lost


def _next_after(ticks: Ticks, marked: NDArray[np.bool_]) -> Ticks:
    """Return for every row the tick of the next marked row after it, or NEVER."""
    at = np.where(marked, ticks, NEVER)
    following = np.append(at[1:], NEVER)[: len(ticks)]
    return np.minimum.accumulate(following[::-1])[::-1]


def pool(parts: Sequence[Predictions]) -> Predictions:
    """Return the predictions of several runs as one."""
    weigh = any(part.weight is not None for part in parts)
    return Predictions(
        np.concatenate([np.zeros(0), *(part.risk for part in parts)]),
        np.concatenate([np.zeros(0, dtype=bool), *(part.followed for part in parts)]),
        sum(part.censored for part in parts),
        np.concatenate([np.zeros(0), *(part.weights for part in parts)]) if weigh else None,
    )


class Bin(NamedTuple):
    """Ticks with a similar risk.

    `low`, `high`: risks in [low, high), the last bin with its upper end.
    `predicted`: mean risk.
    `observed`: share followed by a violation.
    `observed_low`, `observed_high`: 95 % Wilson score interval of `observed`. Neighbouring ticks
        depend on each other, so it is the least that should be allowed for.
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

    `ticks`, `censored`: ticks judged; ticks whose outcome is not known.
    `base_rate`: share of the ticks followed by a violation.
    `brier`: mean squared difference of risk and outcome (Brier, 1950): 0 is perfect.
    `skill`: 1 - brier / (brier of always predicting the base rate); None where that is perfect.
    `expected_error`: mean distance of predicted and observed frequency over bins, weighted by
        ticks.
    `bins`: the non-empty ones.
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
    outcome, weight = pairs.followed, pairs.weights
    base = float(np.average(outcome, weights=weight))
    brier = float(np.average((pairs.risk - outcome) ** 2, weights=weight))
    reference = base * (1 - base)
    index = np.minimum((pairs.risk * bins).astype(np.int64), bins - 1)
    members = {i: index == i for i in np.unique(index).tolist()}
    found = tuple(
        _bin(i / bins, (i + 1) / bins, pairs.risk[m], outcome[m], weight[m])
        for i, m in members.items()
    )
    shares = [weight[m].sum() for m in members.values()]
    deviations = [abs(bucket.predicted - bucket.observed) for bucket in found]
    return Calibration(
        ticks=count,
        censored=pairs.censored,
        base_rate=base,
        brier=brier,
        skill=1 - brier / reference if reference else None,
        expected_error=float(np.average(deviations, weights=shares)),
        bins=found,
    )


def _bin(low: float, high: float, risk: Floats, outcome: Bools, weight: Floats) -> Bin:
    observed = float(np.average(outcome, weights=weight))
    lower, upper = wilson(observed, len(risk))
    predicted = float(np.average(risk, weights=weight))
    return Bin(low, high, len(risk), predicted, observed, lower, upper)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share among `count` trials (Wilson, 1927)."""
    z2 = Z95 * Z95
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = Z95 / (1 + z2 / count) * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return max(0.0, float(centre - spread)), min(1.0, float(centre + spread))
