"""What an engineer would train instead: classifiers on the same signals, of the same outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from evaluation.harness.runs import Pass, risk_traces
from forewarn.assessment.reliability import UNDECIDED, outcomes

Floats = NDArray[np.float64]
Features = Callable[[Pass], Floats]
"""Returns the features of every tick of a run, shape (ticks, features)."""

Chance = Callable[[Floats], Floats]
"""Returns the probability of a violation for rows of features."""

ROUNDS = 150
"""Of boosting at most: as many as are best on parts of the training runs not fitted on."""

LEAVES = 15
PARTS = 3
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
"""Inverse strengths of the ridge among which logistic regression chooses."""

LARGE = 1e6
LAGS = (2, 5, 10)
"""Ticks that history looks back: 0.2, 0.5 and 1 s at 10 Hz."""


def signals(names: Sequence[str]) -> Features:
    """Return the signals of a tick as its features; infinite ones are large."""

    def rows(one: Pass) -> Floats:
        return np.clip(np.array([one.signals[name] for name in names]).T, -LARGE, LARGE)

    return rows


def with_history(features: Features, lags: Sequence[int] = LAGS) -> Features:
    """Add what features were, how they have changed, and their extremes since the longest lag."""

    def rows(one: Pass) -> Floats:
        now = features(one)
        parts = [now]
        for lag in lags:
            then = np.concatenate((np.full((lag, now.shape[1]), np.nan), now))[: len(now)]
            parts += [then, now - then]
        padded = np.concatenate((np.full((lags[-1], now.shape[1]), np.nan), now))
        windows = np.lib.stride_tricks.sliding_window_view(padded, lags[-1] + 1, axis=0)
        return np.concatenate([*parts, np.fmin.reduce(windows, -1), np.fmax.reduce(windows, -1)], 1)

    return rows


def examples(
    name: str, runs: Sequence[Pass], features: Features
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Return features, outcome and number of the run of all ticks whose outcome is known."""
    rows, truths, numbers = [], [], []
    for number, (one, run) in enumerate(zip(runs, risk_traces(runs, name), strict=True)):
        followed, known = outcomes(run)
        chosen = known & np.isin(run.status, UNDECIDED)
        rows.append(features(one)[chosen])
        truths.append(followed[chosen])
        numbers.append(np.full(int(chosen.sum()), number))
    return np.concatenate(rows), np.concatenate(truths), np.concatenate(numbers)


def boosting(
    rows: Floats,
    truths: NDArray[np.bool_],
    runs: NDArray[np.int64],
    leaves: Sequence[int] = (LEAVES,),
) -> Chance:
    """Fit gradient boosting with the leaves and the rounds that are best on runs left out.

    In one thread: on a machine with other work several wait for each other.
    """
    losses = np.zeros((len(leaves), ROUNDS))
    with threadpool_limits(1):
        for held in _held_out(truths, runs):
            for place, most in enumerate(leaves):
                model = _boosting(ROUNDS, most).fit(rows[~held], truths[~held])
                staged = model.staged_predict_proba(rows[held])
                losses[place] += [_loss(found[:, 1], truths[held]) for found in staged]
        place, rounds = np.unravel_index(np.argmin(losses), losses.shape)
        chosen = _boosting(int(rounds) + 1, leaves[int(place)]).fit(rows, truths)

    def chance(asked: Floats) -> Floats:
        with threadpool_limits(1):
            return np.asarray(chosen.predict_proba(asked)[:, 1])

    return chance


def logistic(rows: Floats, truths: NDArray[np.bool_], runs: NDArray[np.int64]) -> Chance:
    """Fit a logistic regression with the ridge that is best on runs left out.

    A feature is cut at the greatest value that it has where it is not large, and a further one
    tells where it was cut or not known.
    """
    finite = np.where(np.abs(rows) < LARGE, rows, np.nan)
    varies = ~np.isnan(finite).all(axis=0)
    low, high = np.nanmin(finite[:, varies], axis=0), np.nanmax(finite[:, varies], axis=0)

    def prepared(given: Floats) -> Floats:
        given = given[:, varies]
        cut = np.where(np.isnan(given), high, np.clip(given, low, high))
        return np.concatenate((cut, (np.isnan(given) | (given > high)).astype(float)), axis=1)

    def fitted(strength: float, chosen: Any) -> Any:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=500))
        return model.fit(prepared(rows[chosen]), truths[chosen])

    losses = np.zeros(len(STRENGTHS))
    for held in _held_out(truths, runs):
        for place, strength in enumerate(STRENGTHS):
            chance = fitted(strength, ~held).predict_proba(prepared(rows[held]))[:, 1]
            losses[place] += _loss(chance, truths[held])
    model = fitted(STRENGTHS[int(np.argmin(losses))], slice(None))
    return lambda asked: np.asarray(model.predict_proba(prepared(asked))[:, 1])


def _held_out(truths: NDArray[np.bool_], runs: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    parts = [runs % PARTS == part for part in range(PARTS)]
    return [held for held in parts if held.any() and truths[~held].any()]


def _boosting(rounds: int, leaves: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=leaves, early_stopping=False, random_state=1
    )


def _loss(chance: Floats, truths: NDArray[np.bool_]) -> float:
    return float(-np.log(np.clip(np.where(truths, chance, 1 - chance), 1e-6, 1.0)).sum())
