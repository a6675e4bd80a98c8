"""Bounds of an estimate where recordings are what varies: ticks of one resemble each other.

What is bounded is the share of the moments in a product state that a violation follows, in
recordings like those that were learned from. Two intervals tell of it.

*Frequency*: what followed the moments there, recording by recording (`shares`). It needs no model,
so it holds whatever the chain forgets, and is wide where few recordings have been.

*Resampled*: how the estimate varies over recordings drawn with replacement, on the scale of its
log-odds, widened by how far it is off elsewhere. Each draw leaves recordings out; what followed in
these, against what the draw predicted for them, tells how unlike estimate and outcome are in a
state. That is what no draw shows by itself: the memory that a chain lacks, successors that only
recordings to come have, drivers unlike those that were drawn. Its standard deviation over states is
the largest that the outcomes do not refute.

Where the estimate lies within the counted bounds, the narrower of the two is taken. Where it does
not, outcomes contradict it, and the bounds reach from it over all of the counted interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from forewarn.learning.estimates.choice import calibrated_scores, mixture_table
from forewarn.learning.estimates.problem import Bools, Counts, Floats, Problem, Sample
from forewarn.learning.estimates.shares import Tally, shapes, share_bounds, tally
from forewarn.logic.automaton import Automaton
from forewarn.models.estimates import Line, Mixture
from forewarn.states.interface import is_terminal

LEAST = 1e-9
FARTHEST = 40.0
"""Log-odds beyond which a probability is 0 or 1."""
HALVINGS = 50
SPREADS = np.concatenate([[0.0], np.geomspace(0.05, 5.0, 25)])
REFUTED = 1.35
"""Log-likelihood below the greatest at which a spread is refuted: one-sided, 95 % (Wilks)."""
NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
FEWEST = 2
"""Recordings in a state, and recordings with a violation, without which draws say nothing."""


def clustered_bounds(
    problem: Problem,
    mixtures: tuple[tuple[Mixture, Line], ...],
    tables: tuple[Floats, ...],
    *,
    samples: int,
    confidence: float,
) -> list[tuple[Floats, Floats]]:
    """Return lower and upper bounds of tables, shape (n, m) each.

    `mixtures` (tuple of (Mixture, Line)): what the tables are made of.
    `tables` (shape (n, m)): the estimates. Bounds are 0 or 1 where the automaton decides, whatever
        comes next, and [0, 1] where an estimate is NaN.
    `samples`: how often recordings are drawn.
    `confidence`: of the interval, half of the rest on either side.
    """
    evidence = [_Evidence.of(problem, *mixture) for mixture in mixtures]
    drawn = [_Drawn(found, table) for found, table in zip(evidence, tables, strict=True)]
    count = problem.recordings
    rng = np.random.default_rng(int(problem.model.seed[:16], 16))
    for _ in range(samples if count else 0):
        sample = problem.sample(rng.multinomial(count, np.full(count, 1 / count)))
        for one, mixture in zip(drawn, mixtures, strict=True):
            one.add(sample, mixture_table(sample, *mixture))
    certain = _certain(problem)
    found = []
    for one, table in zip(drawn, tables, strict=True):
        lower, upper = (part.reshape(table.shape) for part in one.bounds(confidence))
        unknown = np.isnan(table)
        lower = np.where(unknown, 0.0, np.fmin(lower, table))
        upper = np.where(unknown, 1.0, np.fmax(upper, table))
        found.append((np.where(certain, table, lower), np.where(certain, table, upper)))
    return found


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Moments of recordings, and what they add to the log-odds of the table; arrays (k,)."""

    recording: Counts
    cell: Counts
    visits: Floats
    followed: Floats
    push: Floats
    cells: int

    @classmethod
    def of(cls, problem: Problem, mixture: Mixture, line: Line) -> _Evidence:
        rows, (n, m) = problem.rows, problem.shape
        weights = np.array(calibrated_scores(mixture, line))
        push = rows.scores @ weights if weights.size else np.zeros(len(rows.recording))
        cell = rows.state * m + rows.automaton
        found = cls(rows.recording, cell, rows.visits, rows.followed, push, n * m)
        return found.where(~np.isnan(push))  # a moment without all scores has another table

    def where(self, kept: Bools) -> _Evidence:
        """Return some of the rows."""
        return _Evidence(
            self.recording[kept],
            self.cell[kept],
            self.visits[kept],
            self.followed[kept],
            self.push[kept],
            self.cells,
        )

    @property
    def tally(self) -> Tally:
        """What recordings tell of each cell."""
        return tally(self.recording, self.cell, self.visits, self.followed, self.cells)

    def sums(self, weights: Floats) -> Floats:
        """Add up something of the rows of each cell."""
        return np.asarray(
            np.bincount(self.cell, weights=weights, minlength=self.cells), dtype=np.float64
        )

    def shifts(self, odds: Floats, share: Floats) -> Floats:
        """Return what to add to the log-odds of each cell so that its moments have such a share."""
        if not self.push.any():
            return np.asarray(logit(share) - odds)
        low: Floats = np.full(self.cells, -FARTHEST)
        high: Floats = np.full(self.cells, FARTHEST)
        visits = self.sums(self.visits)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            predicted = expit((odds + middle)[self.cell] + self.push)
            short = self.sums(self.visits * predicted) < share * visits
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.where(share <= 0, -np.inf, np.where(share >= 1, np.inf, (low + high) / 2))


class _Drawn:
    """How one table varies over draws, and what it predicts for recordings that a draw lacks."""

    def __init__(self, evidence: _Evidence, table: Floats) -> None:
        self._evidence, self._table = evidence, table.ravel()
        self._odds = _log_odds(np.where(np.isnan(self._table), 0.5, self._table))
        self._draws = 0
        self._total, self._squares = (np.zeros(evidence.cells) for _ in range(2))
        self._left_out, self._predicted = (np.zeros(len(evidence.cell)) for _ in range(2))

    def add(self, sample: Sample, table: Floats) -> None:
        """Take in the table of one draw."""
        values = table.ravel()
        seen = ~np.isnan(values) & np.repeat(sample.seen, table.shape[1])
        odds = np.where(seen, _log_odds(np.where(seen, values, 0.5)), self._odds)
        away = odds - self._odds
        self._draws += 1
        self._total += away
        self._squares += away * away
        rows = self._evidence
        out = (sample.times[rows.recording] == 0) & seen[rows.cell]
        self._left_out += out
        self._predicted += np.where(out, expit(odds[rows.cell] + rows.push), 0.0)

    def bounds(self, confidence: float) -> tuple[Floats, Floats]:
        """Return lower and upper bounds, shape (cells,) each."""
        tally = self._evidence.tally
        counted = [
            self._evidence.shifts(self._odds, share) for share in share_bounds(tally, confidence)
        ]
        half = self._half(tally, confidence)
        lower, upper = (expit(self._odds + shift) for shift in counted)
        agrees = (counted[0] <= 0) & (counted[1] >= 0)
        widths = expit(self._odds + half) - expit(self._odds - half)
        resampled = agrees & (widths < upper - lower)
        return (
            np.where(resampled, expit(self._odds - half), lower),
            np.where(resampled, expit(self._odds + half), upper),
        )

    def _half(self, tally: Tally, confidence: float) -> Floats:
        """Return half of the resampled intervals, in log-odds; infinite where there is none."""
        rows = self._evidence
        violated = len(np.unique(rows.recording[rows.followed > 0]))
        inner = (self._table > 0) & (self._table < 1)
        kept = (self._left_out > 0) & inner[rows.cell]
        if self._draws < FEWEST or violated < FEWEST or not kept.any():
            return np.full(rows.cells, np.inf)
        variance = (self._squares - self._total**2 / self._draws) / (self._draws - 1)
        variance = np.maximum(variance, 0.0)
        judged = rows.where(kept)
        predicted = judged.sums(judged.visits * (self._predicted[kept] / self._left_out[kept]))
        spread = _spread(judged.tally, predicted, variance)
        quantile = float(stdtrit(violated - 1, 0.5 + confidence / 2))
        half = quantile * np.sqrt(variance + spread**2)
        return np.where(inner & (tally.recordings >= FEWEST), half, np.inf)


def _spread(tally: Tally, predicted: Floats, variance: Floats) -> float:
    """Return the largest deviation of log-odds over cells that what followed does not refute.

    `predicted` (shape (cells,)): moments that were predicted to have a violation follow, by what
        had not seen them.
    `variance` (shape (cells,)): of the log-odds over draws: expected even of an estimate that is
        right.
    """
    cells = np.flatnonzero(tally.visits > 0)
    a, b = (part[cells] for part in shapes(tally, 0.5))
    number = np.minimum(a + b, tally.visits[cells])
    followed = number * tally.followed[cells] / tally.visits[cells]
    odds = _log_odds(predicted[cells] / tally.visits[cells])
    likelihoods = []
    for spread in SPREADS:
        away = np.sqrt(variance[cells] + spread**2)[:, None] * NODES
        at = odds[:, None] + away
        logs = followed[:, None] * -np.logaddexp(0, -at)
        logs = logs - (number - followed)[:, None] * np.logaddexp(0, at)
        most = logs.max(axis=1)
        likelihoods.append(float((most + np.log(np.exp(logs - most[:, None]) @ WEIGHTS)).sum()))
    left = np.flatnonzero(np.array(likelihoods) >= max(likelihoods) - REFUTED)
    return float(SPREADS[left[-1]])


def _certain(problem: Problem) -> Bools:
    """Tell where the automaton alone decides what happens within the horizon, shape (n, m)."""
    automaton, _, horizon = problem.question
    decided = steps_to_violation(automaton) > (np.inf if horizon is None else horizon)
    decided |= np.isinf(steps_to_violation(automaton))
    if automaton.violated is not None:
        decided[automaton.violated] = True
    over = np.array([is_terminal(state) for state in problem.model.states], dtype=bool)
    return np.asarray(over[:, None] | decided[None, :])


def steps_to_violation(automaton: Automaton) -> Floats:
    """Return the fewest letters from each state to `violated`, whatever they are; inf if none."""
    found = np.full(automaton.n_states, np.inf)
    if automaton.violated is not None:
        found[automaton.violated] = 0
    for _ in range(automaton.n_states):
        shorter = np.minimum(found, 1 + found[automaton.transitions].min(axis=1))
        if np.array_equal(shorter, found):
            break
        found = shorter
    return found


def _log_odds(share: Floats) -> Floats:
    inner = np.clip(share, LEAST, 1 - LEAST)
    return np.asarray(np.log(inner) - np.log1p(-inner))
