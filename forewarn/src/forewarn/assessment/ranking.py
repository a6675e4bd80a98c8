"""How well scores rank ticks, whatever the threshold: the precision-recall curve and its area."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.reliability import UNDECIDED, outcomes

Floats = NDArray[np.float64]


class PrecisionRecall(NamedTuple):
    """The curve over all thresholds, from the greatest down, and the area under it.

    `precision`, `recall` (shape (k,)): share of the ticks at or above a score that a violation
        followed within the horizon, and share of the ticks that a violation followed which are at
        or above it.
    `area`: average precision: precision weighted by the growth of recall, without interpolation,
        which would flatter (Davis and Goadrich, 2006); NaN if no violation followed any tick.
    """

    precision: Floats
    recall: Floats
    area: float


def precision_recall(
    scored_runs: Sequence[ScoredRun], out_of_model: Literal["act", "warn", "ignore"] = "act"
) -> PrecisionRecall:
    """Ask of every tick whether a violation follows within the horizon, and of its score the same.

    Judged are the ticks at which nothing is violated yet and whose outcome is known, the same for
    every monitor. Where it had no score it did not warn (minus infinity); where that was for a
    state that it did not know it did (infinity) if that asks it to `act`, as in `AlertRule`.
    """
    scores: list[Floats] = [np.zeros(0)]
    truths: list[NDArray[np.bool_]] = [np.zeros(0, dtype=bool)]
    for scored in scored_runs:
        followed, known = outcomes(scored)
        score = np.where(np.isnan(scored.score), -np.inf, scored.score)
        if scored.out_of_model is not None:
            silent = scored.out_of_model & np.isnan(scored.score)
            score = np.where(silent & (out_of_model == "act"), np.inf, score)
        judged = known & np.isin(scored.status, UNDECIDED)
        scores.append(score[judged])
        truths.append(followed[judged])
    return curve_of(np.concatenate(scores), np.concatenate(truths))


def curve_of(score: Floats, truth: NDArray[np.bool_]) -> PrecisionRecall:
    """Return the curve of scores, and whether what they foresee came true, both of shape (n,)."""
    order = np.argsort(-score, kind="stable")
    score, truth = score[order], truth[order]
    last = np.flatnonzero(np.append(score[1:] != score[:-1], [True] * bool(len(score))))
    hits = np.cumsum(truth)[last]
    precision = hits / (last + 1)
    recall = hits / truth.sum() if truth.any() else np.full(len(last), np.nan)
    area = float(np.sum(np.diff(recall, prepend=0.0) * precision)) if truth.any() else float("nan")
    return PrecisionRecall(precision, recall, area)
