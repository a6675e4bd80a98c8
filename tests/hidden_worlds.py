"""Worlds whose risks are known exactly: drivers differ, and what a state shows is not all there is.

A driver keeps to one of several kinds, and a hidden mode (somebody brakes, or does not) lasts for a
while. Recordings show the state alone. So moments of one recording resemble each other, and the
chain of what they show is not the one that moved them; each can be switched off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, ndtri

from forewarn.checking.credible import RiskQuery
from forewarn.checking.interface import label_states
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.estimates.problem import Problem
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel
from forewarn.models.shards import Outcomes, Shard
from forewarn.monitoring.estimated import judged_property
from forewarn.states.vocabulary import Vocabulary

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

ATOMS = "abcd"
STATES = 1 << len(ATOMS)
HORIZON = 10
TICKS = 100
KINDS = 5
TEXT = f"""
rate: 1
startup_grace: 0
signals: {{v: {{timeout: never}}}}
predicates: {{{", ".join(f"{atom}: v > {i}" for i, atom in enumerate(ATOMS))}}}
terminal: {{crash: v < 0}}
properties: {{p: {{formula: always(not crash), horizon: {HORIZON}, estimator: frequency}}}}
"""
SPEC = compile_spec(parse_spec(parse_document(TEXT)))
JUDGED = judged_property(SPEC.spec, "p", SPEC.automata[0])


class Recorded(NamedTuple):
    """States of recordings, shape (recordings, TICKS), -1 after a crash; ticks of the crashes."""

    states: Counts
    crash: Counts


@dataclass(frozen=True, eq=False)
class World:
    """A chain over hidden modes and states, one for each kind of driver.

    Attributes
    ----------
    steps : ndarray, shape (2, STATES, STATES)
        Where those that do not crash go, by mode; rows sum to 1.
    crash : ndarray, shape (KINDS, 2, STATES)
        Probability to crash at the next tick.
    change : ndarray, shape (STATES,)
        Probability to draw the mode anew.
    start : ndarray, shape (STATES,)
        Distribution of the first state.
    """

    steps: Floats
    crash: Floats
    change: Floats
    start: Floats

    @classmethod
    def draw(cls, seed: int, drivers: float, memory: float) -> World:
        """Return a world.

        Parameters
        ----------
        drivers, memory : float
            How far kinds of drivers (a standard deviation), and modes, are apart in the log-odds
            of a crash.
        """
        rng = np.random.default_rng(seed)
        steps = np.zeros((2, STATES, STATES))
        for mode in range(2):
            for state in range(STATES):
                after = rng.choice(STATES, size=rng.integers(2, 5), replace=False)
                stay = rng.choice([0.0, 0.6])
                steps[mode, state, after] = (1 - stay) * rng.dirichlet(np.ones(after.size))
                steps[mode, state, state] += stay
        if memory == 0:
            steps[1] = steps[0]
        danger = rng.normal(-5.5, 1.8, STATES)
        modes = danger + memory * np.array([[-1.0], [1.0]])
        kinds = drivers * ndtri((np.arange(KINDS) + 0.5) / KINDS)
        crash = expit(modes[None] + kinds[:, None, None])
        change = rng.uniform(0, 0.06, STATES)
        return cls(steps, crash, change, rng.dirichlet(np.full(STATES, 0.5)))

    def truth(self) -> Floats:
        """Return the share of moments in each state that a crash follows within the horizon.

        NaN where nobody gets to. Moments whose horizon ends after the recording do not count.
        """
        visits, followed = np.zeros(STATES), np.zeros(STATES)
        for crash in self.crash:
            step = np.zeros((2, STATES, 2, STATES))
            for mode in range(2):
                moved = (1 - crash[mode])[:, None] * self.steps[mode]
                step[mode, :, mode] += (1 - self.change / 2)[:, None] * moved
                step[mode, :, 1 - mode] += (self.change / 2)[:, None] * moved
            step = step.reshape(2 * STATES, 2 * STATES)
            left = np.linalg.matrix_power(step, HORIZON).sum(axis=1).reshape(2, STATES)
            at = np.tile(self.start / 2, 2)
            for _ in range(TICKS - HORIZON):
                here = at.reshape(2, STATES)
                visits += here.sum(axis=0)
                followed += (here * (1 - left)).sum(axis=0)
                at = at @ step
        return np.asarray(np.where(visits > 0, followed / np.maximum(visits, 1e-300), np.nan))

    def record(self, recordings: int, seed: int) -> Recorded:
        """Drive."""
        rng = np.random.default_rng(seed)
        kind, mode = rng.integers(0, KINDS, recordings), rng.integers(0, 2, recordings)
        state = rng.choice(STATES, size=recordings, p=self.start)
        states = np.full((recordings, TICKS), -1)
        crashed = np.full(recordings, TICKS)
        further = self.steps.cumsum(axis=2)
        for tick in range(TICKS):
            alive = crashed == TICKS
            states[alive, tick] = state[alive]
            hit = alive & (rng.random(recordings) < self.crash[kind, mode, state])
            crashed[hit] = tick + 1
            drawn = rng.random(recordings)[:, None]
            after = np.minimum((drawn > further[mode, state]).sum(axis=1), STATES - 1)
            anew = rng.random(recordings) < self.change[state]
            state, mode = after, np.where(anew, rng.integers(0, 2, recordings), mode)
        return Recorded(states, crashed)


def problem_of(recorded: Recorded) -> Problem:
    """Return what a model learned from recordings knows, with what followed in each."""
    used = np.unique(recorded.states[recorded.states >= 0])
    place = np.full(STATES, -1)
    place[used] = np.arange(used.size)
    size = used.size + 1  # the last one is the crash
    total, shards = np.zeros((size, size), dtype=np.int64), []
    for number, (states, crash) in enumerate(zip(*recorded, strict=True)):
        path = place[states[: min(crash, TICKS)]]
        path = np.append(path, size - 1) if crash < TICKS else path
        moves = np.zeros_like(total)
        np.add.at(moves, (path[:-1], path[1:]), 1)
        total += moves
        judged = path[: min(TICKS - HORIZON, len(path) - (crash < TICKS))]
        hit = np.arange(len(judged)) + HORIZON >= crash
        visits = np.bincount(judged, minlength=size)
        followed = np.bincount(judged, weights=hit, minlength=size).astype(np.int64)
        rows = np.flatnonzero(visits)
        about = (rows, np.zeros_like(rows), visits[rows], followed[rows])
        outcomes = {JUDGED: Outcomes(np.column_stack(about).astype(np.int64))}
        before, after = np.nonzero(moves)
        moved = np.column_stack([before, after, moves[before, after]]).astype(np.int64)
        shards.append(Shard(f"r{number}", moved, outcomes))
    model = CountModel(
        Vocabulary(tuple(ATOMS), ("crash",)),
        1.0,
        "world",
        (*used.tolist(), -1),
        sparse.csr_matrix(total),
        np.zeros(size, dtype=np.int64),
        shards=tuple(shards),
    )
    classes = label_states(SPEC.automata[0], model.vocabulary, model.states)
    return Problem(model, RiskQuery(SPEC.automata[0], classes, HORIZON), JUDGED)
