"""Every base judged by recordings that it was not made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from forewarn.errors import InputError
from forewarn.learning.estimates.frequency import Bayes, Frequency, OfChain
from forewarn.learning.estimates.logistic import Logistic
from forewarn.learning.estimates.multi_step import MultiStep
from forewarn.learning.estimates.problem import Base, Bools, Counts, Floats, Problem, Setting
from forewarn.learning.folds import parted
from forewarn.models.estimates import Loss
from forewarn.registry import ESTIMATORS, extension

FOLDS = 10
LEAST = 1e-5
"""Risks nearer to 0 or 1 count as this near: one surprise would outweigh all other moments."""

_ALL: tuple[Base, ...] = (OfChain(), Frequency(), Bayes(), Logistic(), MultiStep())
_BY_NAME = {base.name: base for base in _ALL}


def base_of(name: str) -> Base:
    """Return an estimator by its name; raises InputError if no package here has it."""
    found = _BY_NAME.get(name) or extension(ESTIMATORS, name)
    if found is None:
        raise InputError(f"there is no estimator {name!r}", accepted=", ".join(_BY_NAME))
    return cast("Base", found)


@dataclass(frozen=True, eq=False)
class Crossed:
    """Predictions of several estimates at the same moments, none by its own recordings.

    `places` (shape (k,)): the rows of the problem that are predicted.
    `fold` (shape (k,)): the fold of each row's recording.
    `risks`: name to risks, shape (k,), by the setting that predicts best.
    `chosen`: name to that setting.
    """

    problem: Problem
    places: Counts
    fold: Counts
    risks: dict[str, Floats]
    chosen: dict[str, Setting]

    @cached_property
    def visits(self) -> Floats:
        """Moments of each row."""
        return self.problem.rows.visits[self.places]

    @cached_property
    def followed(self) -> Floats:
        """Those that a violation followed."""
        return self.problem.rows.followed[self.places]

    @cached_property
    def scores(self) -> Floats:
        """Logits of the scores, shape (k, scores)."""
        return self.problem.rows.scores[self.places]

    @cached_property
    def recording(self) -> Counts:
        """The recording of each row."""
        return self.problem.rows.recording[self.places]

    def violated(self, where: Bools) -> int:
        """Return how many recordings have a violation at the rows `where`."""
        return len(np.unique(self.recording[where & (self.followed > 0)]))

    def lost(self, risk: Floats) -> Floats:
        """Return the log loss of each row, summed over its moments."""
        return log_loss(risk, self.followed, self.visits)

    def by_recording(self, lost: Floats) -> Floats:
        """Add up what rows lose by recording."""
        found: Floats = np.zeros(self.problem.recordings)
        np.add.at(found, self.recording, lost)
        return found

    def loss(self, name: str, risk: Floats, where: Bools | slice = slice(None)) -> Loss:
        """Return the figures of risks, over the rows `where`."""
        total = self.visits[where].sum()
        misses = self.visits - self.followed
        squared = self.followed * (1 - risk) ** 2 + misses * risk**2
        return Loss(
            name,
            float(self.lost(risk)[where].sum() / total),
            float(squared[where].sum() / total),
        )


def log_loss(risk: Floats, followed: Floats, visits: Floats) -> Floats:
    """Return what is lost by each prediction, in nats, summed over its moments."""
    inner = np.clip(risk, LEAST, 1 - LEAST)
    return np.asarray(-(followed * np.log(inner) + (visits - followed) * np.log1p(-inner)))


def logit(risk: Floats) -> Floats:
    """Return log-odds of risks, of those too near to 0 or 1 as if they were `LEAST` away."""
    inner = np.clip(risk, LEAST, 1 - LEAST)
    return np.asarray(np.log(inner) - np.log1p(-inner))


def cross(problem: Problem, names: Sequence[str], whole: Floats) -> Crossed | None:
    """Predict each recording without its fold, by each base's best setting.

    Moments at which the chain of all recordings is certain are decided, and those in states that
    no other recording has are never seen: none of them is predicted.

    `whole` (shape (n, m)): the risk of the chain of all recordings.

    Returns None where there are not two folds to part.
    """
    rows = problem.rows
    folds = np.array(parted(problem.clusters, FOLDS))
    decided = ~((whole > 0) & (whole < 1))
    usable = ~decided[rows.state, rows.automaton]
    fold = folds[rows.recording] if len(folds) else np.zeros(0, dtype=np.int64)
    if len(np.unique(fold)) < 2:
        return None
    tried = {name: base_of(name).settings(problem) for name in names}
    risks = {(n, s): np.full(len(fold), np.nan) for n, settings in tried.items() for s in settings}
    for number in np.unique(fold).tolist():
        sample = problem.sample((folds != number).astype(np.int64))
        here = np.flatnonzero(fold == number)
        usable[here] &= sample.seen[rows.state[here]]
        for name, setting in risks:
            table = base_of(name).table(sample, setting)
            risks[name, setting][here] = table[rows.state[here], rows.automaton[here]]
    places = np.flatnonzero(usable & ~np.isnan(np.column_stack(list(risks.values()))).any(axis=1))
    if not len(places):
        return None
    best: dict[str, Setting] = {}
    for name, settings in tried.items():
        if settings:
            lost = [
                log_loss(
                    risks[name, setting][places], rows.followed[places], rows.visits[places]
                ).sum()
                for setting in settings
            ]
            best[name] = settings[int(np.argmin(lost))]
    return Crossed(
        problem,
        places,
        fold[places],
        {name: risks[name, setting][places] for name, setting in best.items()},
        best,
    )
