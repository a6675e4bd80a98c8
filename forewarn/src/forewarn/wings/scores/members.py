"""The members of a learned score: boosted trees of two sizes, and a line of the present.

Small trees foresee more with few recordings, larger ones with many. Trees need many violations to
follow what changes smoothly, where a line needs few. Trees also look at how signals have changed;
beside them a line of these changes adds nothing. Very few recordings do not tell which signals
matter: where the monitor file gives some of them a direction, there are small trees of these alone
as well. Recordings do not tell reliably which member predicts the next ones best
(evaluation/RESULTS.md). So all count, with weights close to preset ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.learning.estimates.ensemble import fit_weights, mixed
from forewarn.wings.scores.boosted_trees import LARGE, SMALL, STEP, boosted, joined, lost, stages
from forewarn.wings.scores.fit import Ensemble
from forewarn.wings.scores.line import RIDGES, Line, fit_lines

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Folds = NDArray[np.int64]

DIRECTED = "small trees of signals with a direction"
SIZES = {"trees": LARGE, "small trees": SMALL, DIRECTED: SMALL}
PRIOR = {"trees": 0.3, "small trees": 0.3, DIRECTED: 0.3, "line": 0.4}
"""Weights of the members until recordings tell better, divided by the sum of those that there are.
"""

TELLING = 8
"""From so many recordings with a violation on, they tell which signals matter.

With fewer, trees of signals with a direction foresee more; with more, nothing is gained
(evaluation/RESULTS.md).
"""

HOLD = 1.0
"""How strongly weights are held near them, divided by the recordings with a violation."""

LEAST = 1e-6
"""Smaller weights are 0."""


class Columns(NamedTuple):
    """The features of each member.

    `trees` (shape (features,)): by the name of the member.
    `line` (shape (features,)): what signals are at present.
    """

    trees: dict[str, Bools]
    line: Bools

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members, the line last."""
        return (*self.trees, "line")


@dataclass(frozen=True, eq=False)
class Members:
    """The members that were fitted to some rows.

    `columns`: the features of each.
    `trees`: models of scikit-learn.
    `line`: over all features, with slopes for those of the present.
    """

    columns: Columns
    trees: tuple[Any, ...]
    line: Line

    def ensemble(self, rounds: Sequence[int], weights: Floats, known: Bools) -> Ensemble:
        """Return the weighted sum of log-odds as plain data.

        `rounds`: how many trees of each kind count.
        `weights` (shape (1 + members,)): the intercept first.
        `known` (shape (features,)): which features were known in all rows.
        """
        intercept, *bent, straight = weights.tolist()
        used = map(np.flatnonzero, self.columns.trees.values())
        forests = zip(self.trees, used, rounds, bent, strict=True)
        found = joined([one for one in forests if one[-1] > 0], known)
        slopes, scale = straight * self.line.slope, self.line.scale
        needed = np.array(found.needed, dtype=bool) | (known & (slopes != 0))
        rows = np.column_stack((slopes, scale.centre, scale.low, scale.high)).tolist()
        return replace(
            found,
            base=float(intercept + found.base + straight * self.line.intercept),
            needed=tuple(map(int, needed)),
            line=tuple(map(tuple, rows)) if slopes.any() else (),
        )


@dataclass(frozen=True, eq=False)
class Chosen:
    """The members, how many trees there are, and what each counts.

    `whole`: fitted to all rows.
    `unseeing`: fitted without the rows of each fold.
    `rounds`: trees of each kind.
    `weights` (shape (1 + members,)): the intercept first.
    `scores` (shape (n,)): the score of each row by the members that were fitted without it.
    """

    whole: Members
    unseeing: tuple[Members, ...]
    rounds: tuple[int, ...]
    weights: Floats
    scores: Floats

    @property
    def shares(self) -> dict[str, float]:
        """The weight of each member."""
        return dict(zip(self.whole.columns.names, self.weights[1:].tolist(), strict=True))


def columns_of(width: int, signs: Sequence[int], clusters: int) -> Columns:
    """Return the features of the members.

    Trees of signals with a direction are there if some have one and others have none, and few
    recordings have a violation.

    `width`: how many features a signal has, the present one first.
    `signs`: for each signal 1, -1 or 0; see `LearnedScoreFit`.
    `clusters`: recordings with a violation, those of a group as one.
    """
    present: Bools = np.arange(width * len(signs)) % width == 0
    directed: Bools = np.repeat(np.array(signs) != 0, width)
    trees = {"trees": np.ones_like(present), "small trees": np.ones_like(present)}
    if clusters < TELLING and 0 < directed.sum() < len(directed):
        trees[DIRECTED] = directed
    return Columns(trees, present)


class Data(NamedTuple):
    """What members are fitted to.

    `x` (shape (n, features)): NaN where unknown.
    `y` (shape (n,)): whether a violation followed.
    `constraints`: for each feature 1 if the risk may only rise with it, -1 if it may only fall,
        else 0.
    `columns`: the features of each member.
    """

    x: Floats
    y: Bools
    constraints: Sequence[int]
    columns: Columns

    def of(self, rows: Bools) -> Data:
        """Return the same of some rows."""
        return self._replace(x=self.x[rows], y=self.y[rows])

    def trees(self, rounds: Sequence[int]) -> tuple[Any, ...]:
        """Fit so many trees of each kind."""
        constraints = np.asarray(self.constraints)
        return tuple(
            boosted(self.x[:, own], self.y, constraints[own].tolist(), count, SIZES[name])
            for (name, own), count in zip(self.columns.trees.items(), rounds, strict=True)
        )

    def lines(self) -> list[Line]:
        """Fit a line with each ridge to the features of the present."""
        return fit_lines(self.x, self.y, self.constraints, self.columns.line)


def fit_members(
    data: Data,
    fold: Folds,
    folds: int,
    clusters: int,
    most: int,
    tell: Callable[[int, int], None],
) -> Chosen:
    """Fit all members, and choose by recordings that are left out, fold by fold.

    The ridge of the line, and the number of trees of each kind, are those that predict them best.

    `fold` (shape (n,)): from 0 to `folds` - 1.
    `clusters`: recordings with a violation, those of a group as one.
    `most`: trees of each kind at the most.
    `tell`: called with how many of how many fits are done.
    """
    forests, lines = [], []
    bent = [np.zeros((most // STEP, len(data.y)), np.float32) for _ in data.columns.trees]
    straight = np.zeros((len(RIDGES), len(data.y)))
    for index in range(folds):
        here = fold == index
        seen, x = data.of(~here), data.x[here]
        forests.append(seen.trees([most] * len(bent)))
        lines.append(seen.lines())
        for found, model, own in zip(bent, forests[-1], data.columns.trees.values(), strict=True):
            found[:, here] = stages(model, x[:, own])
        straight[:, here] = [line.logit(x) for line in lines[-1]]
        tell(index + 1, folds + 1)
    tried: list[NDArray[Any]] = [*bent, straight]
    best = [_best(found, data.y) for found in tried]
    logits = np.column_stack([found[at] for found, at in zip(tried, best, strict=True)])
    weights = fit_weights(
        logits,
        data.y.astype(np.float64),
        np.ones(len(data.y)),
        _prior(data.columns),
        HOLD / max(clusters, 1),
    )
    weights[1:][weights[1:] < LEAST] = 0.0
    rounds, ridge = tuple(STEP * (at + 1) for at in best[:-1]), best[-1]
    whole = Members(data.columns, data.trees(rounds), data.lines()[ridge])
    unseeing = tuple(
        Members(data.columns, trees, found[ridge])
        for trees, found in zip(forests, lines, strict=True)
    )
    return Chosen(whole, unseeing, rounds, weights, mixed(logits, weights))


def _best(logits: NDArray[Any], y: Bools) -> int:
    """Return which row of log-odds, shape (tried, n), loses least."""
    return int(np.argmin([lost(row, y).sum() for row in logits]))


def _prior(columns: Columns) -> Floats:
    weights = np.array([PRIOR[name] for name in columns.names])
    return np.asarray(weights / weights.sum())
