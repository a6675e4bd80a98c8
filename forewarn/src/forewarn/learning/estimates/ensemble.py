"""Weights of estimates in a sum of their logits, held near fixed ones where data are few.

Few recordings do not tell reliably what predicts best, nor how far they are to be trusted. To
choose one estimate, or the strength of the hold, costs more than a weak member in a sum does
(evaluation/RESULTS.md). So these are fixed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, stdtrit

from forewarn.errors import ModelError
from forewarn.learning.calibration_fit import fit_platt
from forewarn.learning.estimates.crossing import Crossed, logit
from forewarn.learning.estimates.problem import Bools, Floats
from forewarn.learning.folds import FEW
from forewarn.models.estimates import PLAIN, Line

SHARE = 0.6
"""Weight of all scores together until recordings tell better: states know less than they do."""

HALF = 6.0
"""Recordings with a violation with which scores have half that weight.

A score that is fitted to few is often worse than the chain, and so few do not show it
(evaluation/RESULTS.md).
"""

HOLD = 2.0
"""How strongly weights are held, divided by the recordings with a violation."""

SIGNIFICANT = 1.645
STEPS = 100
CLOSE = 1e-9
TINY = 1e-12


def fit_weights(
    logits: Floats, followed: Floats, visits: Floats, mean: Floats, hold: float
) -> Floats:
    """Return intercept and weights, none of which is negative, shape (1 + d,).

    The loss of a moment, on average, has ``hold / 2`` times the squared distance of the weights
    from `mean` added, and of the intercept from 0.

    `logits` (shape (k, d)): of the estimates.
    `mean` (shape (d,)): weights that the fit is held near.
    """
    start = np.append(0.0, mean)
    rows = np.hstack([np.ones((len(logits), 1)), logits])
    total = visits.sum()
    bounded = np.arange(rows.shape[1]) > 0

    def loss(weights: Floats, odds: Floats) -> float:
        away = weights - start
        fit = np.sum(visits * np.logaddexp(0, odds) - followed * odds) / total
        return float(fit + 0.5 * hold * away @ away)

    # Newton's method, projected (Bertsekas, 1982): who stands at 0 and would fall stays there.
    weights, odds = start, rows @ start
    now = loss(weights, odds)
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
        gradient = rows.T @ (visits * share - followed) / total + hold * (weights - start)
        curvature = (rows.T * (visits * share * (1 - share))) @ rows / total
        free = ~(bounded & (weights <= 0) & (gradient > 0))
        step = np.zeros_like(weights)
        kept = curvature[np.ix_(free, free)] + (hold + TINY) * np.eye(int(free.sum()))
        step[free] = np.linalg.solve(kept, gradient[free])
        length = 1.0
        while True:
            tried = weights - length * step
            tried = np.where(bounded, np.maximum(tried, 0.0), tried)
            reached = rows @ tried
            found = loss(tried, reached)
            if found <= now or length < TINY:
                break
            length /= 2
        moved = float(np.abs(tried - weights).max())
        if found > now or moved < CLOSE:
            break
        weights, odds, now = tried, reached, found
    return weights


def prior(estimates: int, scores: int, violated: int) -> Floats:
    """Return the weights near which others are held, shape (estimates + scores,).

    `violated`: recordings with a violation: the more, the more all scores weigh together.
    """
    if not scores:
        return np.full(estimates, 1 / estimates)
    share = SHARE * violated / (violated + HALF)
    return np.append(np.full(estimates, (1 - share) / estimates), np.full(scores, share / scores))


def mixed(logits: Floats, weights: Floats) -> Floats:
    """Return the risk of weighted logits, shape (k,)."""
    odds = np.clip(weights[0] + logits @ weights[1:], -700, 700)
    return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


def held_weights(
    crossed: Crossed, logits: Floats, where: Bools, mean: Floats, hold: float = HOLD
) -> tuple[Floats, Floats]:
    """Return the weights, and what each fold predicts by those of the others.

    `logits` (shape (k, d)): estimates first, scores last.
    `where` (shape (k,)): rows to fit on: those with all scores.
    `mean` (shape (d,)): weights that the fit is held near: see `prior`.
    `hold`: how strongly, divided by the recordings with a violation.
    """
    hold /= max(1, crossed.violated(where))

    def fitted(rows: Bools) -> Floats:
        return fit_weights(logits[rows], crossed.followed[rows], crossed.visits[rows], mean, hold)

    found = np.full(len(logits), 0.5)
    for number in np.unique(crossed.fold[where]):
        here = where & (crossed.fold == number)
        found[here] = mixed(logits[here], fitted(where & (crossed.fold != number)))
    return fitted(where), found


def spread(differences: Floats) -> float:
    """Return the standard error of a sum over recordings."""
    count = len(differences)
    return float(np.std(differences, ddof=1) * math.sqrt(count)) if count > 1 else math.inf


def surely(gained: Floats, errors: float = SIGNIFICANT) -> bool:
    """Tell whether what is gained is more than chance among recordings explains.

    `gained` (shape (recordings,)): by each of them.
    `errors`: standard errors over recordings from which on it is. Where recordings are few, it
        takes more to be as sure: the standard error is itself estimated from them (Student, 1908).
    """
    if len(gained) < FEW:
        errors = float(stdtrit(len(gained) - 1, ndtr(errors)))
    return bool(gained.sum() > errors * spread(gained))


def choose_line(crossed: Crossed, risk: Floats, where: Bools) -> Line:
    """Return Platt's line if it predicts other recordings better than none, significantly so.

    Each fold is judged by a line of the others.
    """
    odds = logit(risk)
    found = risk.copy()
    for number in np.unique(crossed.fold[where]):
        line = _line(crossed, odds, where & (crossed.fold != number))
        if line is None:
            return PLAIN
        here = where & (crossed.fold == number)
        found[here] = mixed(odds[here, None], np.array([line.intercept, line.slope]))
    gained = np.where(where, crossed.lost(risk) - crossed.lost(found), 0.0)
    line = _line(crossed, odds, where)
    return line if line is not None and surely(crossed.by_recording(gained)) else PLAIN


def _line(crossed: Crossed, odds: Floats, where: Bools) -> Line | None:
    followed, visits = crossed.followed[where], crossed.visits[where]
    if not 0 < followed.sum() < visits.sum():
        return None
    risk = 1 / (1 + np.exp(-odds[where]))
    outcome = np.repeat([True, False], len(risk))
    weight = np.concatenate([followed, visits - followed])
    kept = weight > 0
    try:
        line = fit_platt(np.tile(risk, 2)[kept], outcome[kept], weight[kept])
    except ModelError:
        return None
    return Line(line.slope, line.intercept)
