"""Fit a danger score: boosted trees and a line, judged on recordings that they did not see.

How many trees there are, and how steep the line may be, is what predicts recordings best that were
left out, fold by fold; the log-odds are the mean of both, unless one of them predicts better by
itself. The fits of a fold then judge its recordings: where these are counted, and where cuts are
chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.config.sections import PropertySpec
from forewarn.errors import ConfigError
from forewarn.learning.danger_line import RIDGES, Line, fit_line
from forewarn.learning.danger_trees import (
    MOST_TREES,
    boosted,
    ensemble_of,
    logits_of,
    losses_of,
    lost,
    need_sklearn,
)
from forewarn.learning.folds import fold_of
from forewarn.states.danger import DangerFit, Ensemble, Scoring, lags_of
from forewarn.states.danger.fit import features_of
from forewarn.states.danger.score import compiled_trees

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FOLDS = range(10, 21)
"""Numbers of folds that are tried: the first with violations, and ticks without, beside each.

Folds are not of the same size: of 25 recordings the largest of five held 9, so that its fit saw 16,
and too few trees were chosen (evaluation/RESULTS.md, walker).
"""

MOST_NUMBERS = 8_000_000
"""Numbers that are fitted to: features of all rows. With more, every second tick is left out."""

MOST_WEIGHED = 5000
BINS = 6


class Rows(NamedTuple):
    """What one recording gives a danger score to learn from.

    Attributes
    ----------
    digest : str
        Digest of the recording.
    ticks : ndarray of int64, shape (n,)
        Numbers of the ticks that were judged.
    features : ndarray of float64, shape (n, features)
        Of all signals that may be used; NaN where unknown.
    followed : ndarray of bool, shape (n,)
        A violation followed within the horizon.
    censored : int
        Ticks whose outcome is not known.
    others : frozenset of str
        Signals with a value that is no number.
    """

    digest: str
    ticks: NDArray[np.int64]
    features: Floats
    followed: Bools
    censored: int
    others: frozenset[str]


@dataclass(frozen=True, eq=False)
class FittedScore:
    """A danger score, and how it came about.

    Attributes
    ----------
    fit : DangerFit
        The score.
    scores : ndarray of float64, shape (n,)
        What it says of each tick that was fitted to, by the trees that did not see the recording.
    followed : ndarray of bool, shape (n,)
        Whether a violation followed.
    censored : int
        Ticks whose outcome is not known.
    stride : int
        One of so many ticks was fitted to.
    left_out : tuple of str
        Signals that it does not use: texts, arrays, and what was never known.
    losses : ndarray of float64, shape (trees,)
        Mean log loss on the recordings that were left out, after each tree, of trees alone.
    line : float
        Share of the line in the log-odds: 0, a half or 1.
    """

    fit: DangerFit
    scores: Floats
    followed: Bools
    censored: int
    stride: int
    left_out: tuple[str, ...]
    losses: Floats
    line: float = 0.0


Tell = Callable[[int, int], None]


def thinned(
    recordings: Iterable[Sequence[Rows]], most: int = MOST_NUMBERS
) -> tuple[list[list[Rows]], int]:
    """Collect the rows of recordings; from too many, every second, fourth, ... tick is kept.

    Parameters
    ----------
    recordings : iterable of sequence of Rows
        What each recording gives each of the scores.
    most : int
        How many numbers are kept at the most.

    Returns
    -------
    parts : list of list of Rows
        The same, in the order of the digests.
    stride : int
        Ticks are kept whose number it divides.
    """
    found: list[list[Rows]] = []
    stride = 1
    seen: set[str] = set()
    for parts in recordings:
        if parts[0].digest in seen:
            continue  # a copy, which is not counted either
        seen.add(parts[0].digest)
        found.append([_every(part, stride) for part in parts])
        while sum(one.features.size for kept in found for one in kept) > most:
            stride *= 2
            found = [[_every(one, stride) for one in kept] for kept in found]
    return sorted(found, key=lambda kept: kept[0].digest), stride


def _every(part: Rows, stride: int) -> Rows:
    kept = part.ticks % stride == 0
    # Copies, for else all that a recording gave would stay.
    return part._replace(
        ticks=part.ticks[kept], features=part.features[kept], followed=part.followed[kept]
    )


def fit_score(
    scoring: Scoring,
    directions: Sequence[int],
    name: str,
    section: PropertySpec,
    parts: Sequence[Rows],
    stride: int = 1,
    tell: Tell | None = None,
) -> FittedScore:
    """Fit a danger score to the rows of recordings.

    Parameters
    ----------
    scoring : Scoring
        The score, not fitted: signals that may be used, and the history.
    directions : sequence of int
        For each of its signals 1, -1 or 0; see `DangerFit`.
    name, section : str and PropertySpec
        The property.
    parts : sequence of Rows
        In the order of the digests.
    tell : callable, optional
        Told how many of how many fits are done.

    Raises
    ------
    ConfigError
        If a signal is no number or never known, or there is nothing to tell apart.
    """
    used, left_out = _usable(scoring, parts)
    lags = lags_of(scoring.moments)
    width = len(features_of("x", lags, scoring.moments))
    columns = [scoring.signals.index(one) * width + k for one in used for k in range(width)]
    x = np.concatenate([part.features for part in parts])[:, columns]
    y = np.concatenate([part.followed for part in parts])
    folds = _folds(scoring.name, name, parts)
    fold = np.concatenate([np.full(len(p.ticks), fold_of(p.digest, folds)) for p in parts])
    signs = [directions[scoring.signals.index(one)] for one in used]
    constraints = _constraints(signs, len(lags), scoring.moments)
    models, lines, losses = [], [], np.zeros(MOST_TREES)
    ways = _ways_of_lines(width, len(used))
    straight = np.zeros((len(ways), len(y)))
    for index in range(folds):
        here = fold == index
        models.append(boosted(x[~here], y[~here], constraints, MOST_TREES))
        losses += losses_of(models[-1], x[here], y[here])
        lines.append([fit_line(x[~here], y[~here], constraints, *way) for way in ways])
        straight[:, here] = [line.logit(x[here]) for line in lines[-1]]
        if tell is not None:
            tell(index + 1, folds + 1)
    count = int(np.argmin(losses)) + 1
    way = int(np.argmin([lost(logits, y).sum() for logits in straight]))
    bent = np.zeros(len(y))
    for index, model in enumerate(models):
        bent[fold == index] = logits_of(model, x[fold == index], count)
    recording = np.concatenate([np.full(len(p.ticks), i) for i, p in enumerate(parts)])
    share = _share_of_line(bent, straight[way], y, recording)
    known = ~np.isnan(x).any(axis=0)
    whole = fit_line(x, y, constraints, *ways[way])
    blank = DangerFit(
        name=scoring.name,
        foresees=name,
        formula=section.formula,
        horizon=section.horizon,
        paper_counting=section.paper_counting,
        signals=used,
        moments=scoring.moments,
        lags=lags,
        directions=tuple(signs),
        ensemble=_both(boosted(x, y, constraints, count), count, whole, share, known),
        recordings=tuple(part.digest for part in parts),
        fitted_with=f"scikit-learn {need_sklearn().__version__}",
        unseeing=tuple(
            _both(model, count, line[way], share, known)
            for model, line in zip(models, lines, strict=True)
        ),
    )
    scores = _crossed(blank, x, fold)
    fit = replace(blank, cuts=cuts_of(scores[y]), weights=_weights(blank, x))
    if tell is not None:
        tell(folds + 1, folds + 1)
    censored = sum(part.censored for part in parts)
    return FittedScore(fit, scores, y, censored, stride, left_out, losses / len(y), share)


def cuts_of(scores: Floats) -> tuple[float, ...]:
    """Return cuts between which equal shares of the violations lie, readable and rising.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        Scores of the ticks that a violation followed.
    """
    found = np.quantile(scores, np.arange(1, BINS) / BINS, method="lower")
    rounded = {float(f"{cut:.2g}") for cut in found.tolist()}
    return tuple(sorted(cut for cut in rounded if 0 < cut < 1))


def _usable(scoring: Scoring, parts: Sequence[Rows]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    width = len(features_of("x", lags_of(scoring.moments), scoring.moments))
    others = frozenset[str]().union(*(part.others for part in parts))
    used = []
    for index, signal in enumerate(scoring.signals):
        values = [part.features[:, index * width] for part in parts]
        known = any(np.isfinite(column).any() for column in values)
        if signal not in others and known:
            used.append(signal)
        elif scoring.named:
            what = "is no number in some recordings" if signal in others else "is never known"
            raise ConfigError(
                f"{signal!r} {what}",
                key=f"danger.{scoring.name}.from[{index}]",
                accepted="signals that are numbers or Booleans, and known at times",
            )
    if not used:
        raise ConfigError(
            "no signal is a number that is known at times",
            key=f"danger.{scoring.name}",
            accepted="at least one signal that is a number or a Boolean",
        )
    return tuple(used), tuple(one for one in scoring.signals if one not in used)


def _folds(score: str, name: str, parts: Sequence[Rows]) -> int:
    """Return a number of folds such that something can be fitted without each of them."""
    violations = sum(bool(part.followed.any()) for part in parts)
    for folds in FOLDS:
        fold = [fold_of(part.digest, folds) for part in parts]
        beside = (
            [part.followed for part, own in zip(parts, fold, strict=True) if own != index]
            for index in {*fold}
        )
        if len({*fold}) > 1 and all(_parted(others) for others in beside):
            return folds
    raise ConfigError(
        f"violations of {name} follow ticks of {violations} of {len(parts)} recordings, which is "
        "too few to fit a score without one of them",
        key=f"danger.{score}.for",
        accepted="recordings of at least two violations, in different recordings, and of what is "
        "no violation",
    )


def _parted(outcomes: Sequence[Bools]) -> bool:
    return any(part.any() for part in outcomes) and any((~part).any() for part in outcomes)


def _constraints(signs: Sequence[int], lags: int, moments: int) -> list[int]:
    """Return the direction of each feature: what was, stays as it is where the present changes."""
    found = []
    for sign in signs:
        found += [sign, *[0] * lags, *[sign] * lags, *([sign] * 2 if moments else [])]
    return found


def _ways_of_lines(width: int, signals: int) -> list[tuple[float, Bools | None]]:
    """Return ridges, and features that lines may use: the present ones alone, or all.

    Few recordings cannot tell what the many features of the past are worth.
    """
    present: Bools = np.arange(width * signals) % width == 0
    choices = (present, None) if width > 1 else (None,)
    return [(ridge, chosen) for chosen in choices for ridge in RIDGES]


def _share_of_line(bent: Floats, straight: Floats, y: Bools, recording: NDArray[np.int64]) -> float:
    """Return how much the line counts beside the trees: a half, unless one alone is better.

    It is better if it loses less by more than a standard error over recordings.
    """
    mean = lost((bent + straight) / 2, y)
    gains = []
    for alone in (bent, straight):
        gained = np.bincount(recording, mean - lost(alone, y))
        sure = gained.sum() - float(np.std(gained)) * len(gained) ** 0.5
        gains.append(max(float(sure), 0.0))
    return 0.5 if not any(gains) else float(gains[1] > gains[0])


def _crossed(fit: DangerFit, x: Floats, fold: NDArray[np.int64]) -> Floats:
    """Return what the trees of each row's fold say, by the code that runs in the step."""
    found = np.full(len(x), np.nan)
    for index, ensemble in enumerate(fit.unseeing):
        trees = compiled_trees(len(fit.signals), fit.moments, fit.lags, ensemble)
        for row in np.flatnonzero(fold == index).tolist():
            found[row] = trees.judge(np.ascontiguousarray(x[row]))
    return found


def _weights(fit: DangerFit, x: Floats) -> tuple[float, ...]:
    """Return the mean of how much each signal moves the logit, over some thousand rows."""
    trees = compiled_trees(len(fit.signals), fit.moments, fit.lags, fit.ensemble)
    chosen = x[:: max(1, len(x) // MOST_WEIGHED)]
    shares = [trees.explain(np.ascontiguousarray(row)) for row in chosen]
    return tuple(np.abs(np.array(shares)).mean(axis=0)[1:].tolist())


def _both(model: Any, count: int, line: Line, share: float, known: Bools) -> Ensemble:
    """Return trees and line as plain data, the line with so large a share of the log-odds."""
    trees = ensemble_of(model, count if share < 1 else 0, known)
    slopes = share * line.slope
    needed = np.array(trees.needed, dtype=bool) | (known & (slopes != 0))
    scale = line.scale
    rows = np.column_stack((slopes, scale.centre, scale.low, scale.high)).tolist()
    return replace(
        trees,
        base=(1 - share) * trees.base + share * line.intercept,
        value=tuple((1 - share) * value for value in trees.value),
        needed=tuple(map(int, needed)),
        line=tuple(map(tuple, rows)) if share else (),
    )
