"""The members of a learned score: boosted trees and lines, of the past and of the present.

Trees need many violations to follow what changes smoothly, where a line needs few. The past has
eight times as many features as the present, which few recordings cannot tell apart; yet it is what
foresees most where they can. Very few recordings do not even tell which signals matter. Whoever
gives some of them a direction says so: there are trees of these alone as well. Which member
predicts recordings to come best, those that are there do not tell reliably (evaluation/RESULTS.md):
so all count, with weights close to preset ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.learning.danger_line import RIDGES, Line, fit_line
from forewarn.learning.danger_trees import boosted, joined, logits_of, lost, stages
from forewarn.learning.estimates.ensemble import fit_weights
from forewarn.states.danger.fit import Ensemble

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Folds = NDArray[np.int64]

PRIOR = {
    "trees": 0.35,
    "trees of the present": 0.15,
    "trees of signals with a direction": 0.25,
    "line": 0.35,
    "line of the present": 0.15,
}
"""Weights of the members until recordings tell better: of the present alone less is known.

They are divided by the sum of those that there are.
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
    """The features of each member, by its name: ndarrays of bool, shape (features,)."""

    trees: dict[str, Bools]
    lines: dict[str, Bools]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members, trees first."""
        return (*self.trees, *self.lines)


@dataclass(frozen=True, eq=False)
class Members:
    """The members that were fitted to some rows.

    Attributes
    ----------
    columns : Columns
        The features of each.
    trees : tuple
        Models of scikit-learn.
    lines : tuple of Line
        Over all features, with slopes for their own.
    """

    columns: Columns
    trees: tuple[Any, ...]
    lines: tuple[Line, ...]

    def logits(self, x: Floats, count: int) -> Floats:
        """Return the log-odds of rows after so many trees, shape (n, members)."""
        bent = [
            logits_of(model, x[:, own], count)
            for own, model in zip(self.columns.trees.values(), self.trees, strict=True)
        ]
        return np.column_stack([*bent, *(line.logit(x) for line in self.lines)])

    def ensemble(self, count: int, weights: Floats, known: Bools) -> Ensemble:
        """Return the weighted sum of log-odds as plain data.

        Parameters
        ----------
        weights : ndarray, shape (1 + members,)
            The intercept first.
        known : ndarray of bool, shape (features,)
            Which features were known in all rows.
        """
        bent, straight = np.split(weights[1:], [len(self.trees)])
        forests = zip(self.columns.trees.values(), self.trees, bent.tolist(), strict=True)
        found = joined(
            [(model, np.flatnonzero(own), weight) for own, model, weight in forests if weight > 0],
            count,
            known,
        )
        slopes = np.sum([w * line.slope for w, line in zip(straight, self.lines, strict=True)], 0)
        level = sum(w * line.intercept for w, line in zip(straight, self.lines, strict=True))
        needed = np.array(found.needed, dtype=bool) | (known & (slopes != 0))
        scale = self.lines[0].scale  # of all features, and alike for all
        rows = np.column_stack((slopes, scale.centre, scale.low, scale.high)).tolist()
        return replace(
            found,
            base=float(weights[0] + found.base + level),
            needed=tuple(map(int, needed)),
            line=tuple(map(tuple, rows)) if slopes.any() else (),
        )


@dataclass(frozen=True, eq=False)
class Chosen:
    """The members, how many trees there are, and what each counts.

    Attributes
    ----------
    whole : Members
        Fitted to all rows.
    unseeing : tuple of Members
        Fitted without the rows of each fold.
    count : int
        Trees of each kind.
    weights : ndarray, shape (1 + members,)
        The intercept first.
    losses : ndarray of float64, shape (trees,)
        Mean log loss on rows of the folds that were left out, after each tree, of the members with
        their weights in `PRIOR`.
    """

    whole: Members
    unseeing: tuple[Members, ...]
    count: int
    weights: Floats
    losses: Floats

    @property
    def shares(self) -> dict[str, float]:
        """The weight of each member."""
        return dict(zip(self.whole.columns.names, self.weights[1:].tolist(), strict=True))


def columns_of(width: int, signs: Sequence[int], clusters: int) -> Columns:
    """Return the features of the members.

    Trees of signals with a direction are there if some have one and others have none, and few
    recordings have a violation.

    Parameters
    ----------
    width : int
        How many features a signal has, the present one first.
    signs : sequence of int
        For each signal 1, -1 or 0; see `LearnedScoreFit`.
    clusters : int
        Recordings with a violation, those of a group as one.
    """
    present: Bools = np.arange(width * len(signs)) % width == 0
    both = {"": np.ones_like(present), **({" of the present": present} if width > 1 else {})}
    directed: Bools = np.repeat(np.array(signs) != 0, width)
    trees = {f"trees{kind}": own for kind, own in both.items()}
    if clusters < TELLING and 0 < directed.sum() < len(directed):
        trees["trees of signals with a direction"] = directed
    return Columns(trees, {f"line{kind}": own for kind, own in both.items()})


class Data(NamedTuple):
    """What members are fitted to.

    Attributes
    ----------
    x : ndarray of float64, shape (n, features)
        NaN where unknown.
    y : ndarray of bool, shape (n,)
        Whether a violation followed.
    constraints : sequence of int
        For each feature 1 if the risk may only rise with it, -1 if it may only fall, else 0.
    columns : Columns
        The features of each member.
    """

    x: Floats
    y: Bools
    constraints: Sequence[int]
    columns: Columns

    def of(self, rows: Bools) -> Data:
        """Return the same of some rows."""
        return self._replace(x=self.x[rows], y=self.y[rows])

    def trees(self, count: int) -> tuple[Any, ...]:
        """Fit so many trees of each kind."""
        return tuple(
            boosted(
                self.x[:, own], self.y, [self.constraints[i] for i in np.flatnonzero(own)], count
            )
            for own in self.columns.trees.values()
        )

    def line(self, own: Bools, ridge: float) -> Line:
        """Fit a line to some of the features."""
        return fit_line(self.x, self.y, self.constraints, ridge, own)


def fit_members(
    data: Data,
    fold: Folds,
    folds: int,
    clusters: int,
    most: int,
    tell: Callable[[int, int], None],
) -> Chosen:
    """Fit all members, and choose by recordings that are left out, fold by fold.

    The ridge of a line is the one that predicts them best, the number of trees the one with which
    all members together do, with their weights in `PRIOR`.

    Parameters
    ----------
    fold : ndarray of int64, shape (n,)
        From 0 to `folds` - 1.
    clusters : int
        Recordings with a violation, those of a group as one.
    most : int
        Trees of each kind at the most.
    tell : callable
        Told how many of how many fits are done.
    """
    y, columns = data.y, data.columns
    prior = _prior(columns)
    bent = np.zeros((most, len(y)))
    tried = np.zeros((len(columns.lines), len(RIDGES), len(y)))
    forests, lines = [], []
    for index in range(folds):
        here = fold == index
        seen, x = data.of(~here), data.x[here]
        forests.append(seen.trees(most))
        lines.append(
            [[seen.line(own, ridge) for ridge in RIDGES] for own in columns.lines.values()]
        )
        used = columns.trees.values()
        for own, model, weight in zip(used, forests[-1], prior.tolist(), strict=False):
            for row, found in zip(bent, stages(model, x[:, own]), strict=True):
                row[here] += weight * found
        tried[:, :, here] = [[line.logit(x) for line in some] for some in lines[-1]]
        tell(index + 1, folds + 1)
    best = [int(np.argmin([lost(logits, y).sum() for logits in some])) for some in tried]
    straight = prior[len(columns.trees) :] @ [
        some[at] for some, at in zip(tried, best, strict=True)
    ]
    losses = np.array([lost(row + straight, y).mean() for row in bent])
    count = int(np.argmin(losses)) + 1
    unseeing = tuple(
        Members(columns, trees, tuple(some[at] for some, at in zip(found, best, strict=True)))
        for trees, found in zip(forests, lines, strict=True)
    )
    logits = np.zeros((len(y), len(prior)))
    for index, one in enumerate(unseeing):
        logits[fold == index] = one.logits(data.x[fold == index], count)
    weights = fit_weights(
        logits, y.astype(np.float64), np.ones(len(y)), prior, HOLD / max(clusters, 1)
    )
    weights[1:][weights[1:] < LEAST] = 0.0
    chosen = zip(columns.lines.values(), best, strict=True)
    straight_of_all = tuple(data.line(own, RIDGES[at]) for own, at in chosen)
    whole = Members(columns, data.trees(count), straight_of_all)
    return Chosen(whole, unseeing, count, weights, losses)


def _prior(columns: Columns) -> Floats:
    weights = np.array([PRIOR[name] for name in columns.names])
    return np.asarray(weights / weights.sum())
