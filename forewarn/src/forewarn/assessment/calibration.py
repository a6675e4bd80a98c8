"""Calibration as a step of learning: fit maps to held-out runs, and judge them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from forewarn.assessment.history import UNKNOWN_STATE, History, Track
from forewarn.assessment.reliability import Calibration, Predictions, calibrate, pool
from forewarn.config.sections import PropertySpec
from forewarn.errors import ModelError
from forewarn.learning.calibration_fit import fit_isotonic, fit_platt, judged
from forewarn.learning.folds import dealt
from forewarn.models.calibration_map import Method, Recalibration
from forewarn.monitoring.tables import CompiledProperty, LoadedModel

FOLDS = 5


def raw_track(
    compiled: CompiledProperty, model: LoadedModel, history: History, track: Track
) -> Track:
    """Return a run with what the chain by itself predicted, for comparison.

    Ticks at which more than one state of the automaton was possible are left out.
    """
    assert compiled.raw is not None and compiled.table is not None
    rows = np.array([model.index.get(code, -1) for code in history.known_states] + [-1])
    row = rows[np.where(track.state == UNKNOWN_STATE, -1, track.state)]
    known = (row >= 0) & (track.automaton >= 0)
    place = np.maximum(row, 0), np.maximum(track.automaton, 0)
    same = known & (compiled.table.values[place] == track.probability)
    raw = np.where(same, compiled.raw.values[place], np.nan)
    return replace(track, probability=raw)


@dataclass(frozen=True)
class Fitted:
    """How a map came about.

    `found`: the map; None if none could be fitted.
    `before`, `after`: of the chain's risk, and of the calibrated one: each run judged by a map
        fitted to runs of other groups, or it would be praised for what it has learned by heart.
    """

    name: str
    found: Recalibration | None
    reason: str
    before: Calibration | None
    after: Calibration | None


def fit(
    name: str,
    section: PropertySpec,
    parts: Sequence[Predictions],
    *,
    method: Method | None,
    rate: float,
    recordings: Sequence[str] = (),
    clusters: Sequence[str] | None = None,
) -> Fitted:
    """Fit the map of one property to held-out runs, and judge it.

    `parts`: of the chain, one for each run, which it must not have learned from.
    `method`: ``isotonic``, ``platt``, or None to judge the chain alone.
    `recordings`: digests of the runs' recordings.
    `clusters`: the group of each run; each is by itself by default.
    """
    everything = pool(parts)
    before = calibrate(everything)
    if method is None:
        return Fitted(name, None, "not asked for", before, None)
    try:
        found = _fitted(name, section, everything, method, rate)
    except ModelError as error:
        return Fitted(name, None, str(error), before, None)
    found = replace(found, recordings=tuple(recordings))
    names = clusters or [str(index) for index in range(len(parts))]
    return Fitted(name, found, "", before, _crossed(name, section, parts, names, method, rate))


def _fitted(
    name: str, section: PropertySpec, seen: Predictions, method: Method, rate: float
) -> Recalibration:
    risk, followed, weight = judged(seen.risk, seen.followed, seen.weights)
    if not followed.any() or followed.all():
        what = "no" if not followed.any() else "every"
        raise ModelError(
            f"a violation follows {what} tick of the held-out recordings",
            accepted="recordings with violations and without",
        )
    blank = Recalibration(
        name,
        section.formula,
        section.horizon,
        method,
        ticks=len(risk),
    )
    if method == "platt":
        line = fit_platt(risk, followed, weight)
        return replace(blank, slope=line.slope, intercept=line.intercept)
    prior = 1.0 if math.isinf(section.horizon) else max(1.0, section.horizon * rate)
    return replace(blank, knots=fit_isotonic(risk, followed, weight, prior))


def _crossed(
    name: str,
    section: PropertySpec,
    parts: Sequence[Predictions],
    clusters: Sequence[str],
    method: Method,
    rate: float,
) -> Calibration | None:
    folds = min(FOLDS, len(set(clusters)))
    if folds < 2:
        return None
    judged_parts: list[Predictions] = []
    fold = dealt(clusters, folds)
    for index in range(folds):
        others = [part for part, own in zip(parts, fold, strict=True) if own != index]
        try:
            found = _fitted(name, section, pool(others), method, rate)
        except ModelError:
            return None  # too few violations to part them
        judged_parts += [
            part._replace(risk=found(part.risk))
            for part, own in zip(parts, fold, strict=True)
            if own == index
        ]
    return calibrate(pool(judged_parts))
