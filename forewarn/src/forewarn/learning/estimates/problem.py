"""One property and its recordings, any of which may be left out or taken several times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.credible import RiskQuery
from forewarn.checking.numeric import backward_induction, risk_table
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain
from forewarn.models.score_bins import logit_of
from forewarn.models.shards import ENDED, Outcomes, PropertyKey, Shard, matching_outcomes, settled
from forewarn.states.interface import is_terminal

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]
Setting = tuple[float, ...]

MAX_INDUCTION = 20_000_000
"""Numbers that the tables for all horizons up to the property's may have."""


class Rows(NamedTuple):
    """Moments of all recordings that are alike; arrays of shape (k,), `scores` (k, scores).

    `recording`, `state`, `automaton`: where they are. Recordings of one group count as one
        recording.
    `visits`, `followed`: how many they are, and how many of them a violation followed.
    `scores`: logits; NaN where unknown.
    """

    recording: Counts
    state: Counts
    automaton: Counts
    visits: Floats
    followed: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class Problem:
    """A property, and what each recording gave.

    `model`: all counts.
    `question`: automaton, letter classes of the states, horizon.
    `judged`: which outcomes are the property's.
    """

    model: CountModel
    question: RiskQuery
    judged: PropertyKey

    @property
    def shape(self) -> tuple[int, int]:
        """States of the model, and of the automaton."""
        return self.model.size, self.question.automaton.n_states

    @property
    def recordings(self) -> int:
        """Recordings that were counted separately, those of a group as one."""
        return len(self.clusters)

    @property
    def counted(self) -> str:
        """Say what counts as a recording where some are grouped; empty where none are."""
        grouped = any(shard.group for shard in self.model.shards)
        return "those of a group count as one" if grouped else ""

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """Names of the groups, and digests of recordings that are in none."""
        return tuple(dict.fromkeys(shard.cluster for shard in self.model.shards))

    @cached_property
    def _numbered(self) -> list[tuple[int, Shard]]:
        """Return shards, each with the number of its cluster."""
        number = {name: i for i, name in enumerate(self.clusters)}
        return [(number[shard.cluster], shard) for shard in self.model.shards]

    @cached_property
    def rows(self) -> Rows:
        """What followed, recording by recording."""
        width = 4 + len(self.judged.scores)
        parts = []
        for i, judged, found in self._outcomes:
            kept = [*range(4), *(4 + judged.scores.index(name) for name in self.judged.scores)]
            parts.append(np.column_stack([np.full(len(found.visits), i), found.visits[:, kept]]))
        table = np.concatenate([np.zeros((0, 1 + width), dtype=np.int64), *parts])
        return Rows(
            table[:, 0],
            table[:, 1],
            table[:, 2],
            table[:, 3].astype(np.float64),
            table[:, 4].astype(np.float64),
            logit_of(table[:, 5:]),
        )

    @cached_property
    def _outcomes(self) -> list[tuple[int, PropertyKey, Outcomes]]:
        """Return the recordings that tell of the property, and what they tell."""
        recorded = [
            (i, judged, shard.outcomes[judged])
            for i, shard in self._numbered
            if (judged := matching_outcomes(shard.outcomes, self.judged)) is not None
        ]
        found = settled([outcomes for _, _, outcomes in recorded], self.question.horizon)
        return [(i, judged, one) for (i, judged, _), one in zip(recorded, found, strict=True)]

    @cached_property
    def atoms(self) -> Floats:
        """Which predicates hold in which state, shape (n, atoms), without those always alike."""
        space = self.model.vocabulary
        plain = [state for state in self.model.states if not is_terminal(state)]
        telling = [
            atom
            for atom in space.predicates
            if len({space.holds(atom, state) for state in plain}) > 1
        ]
        states = self.model.states
        found = [[space.holds(atom, state) for atom in telling] for state in states]
        return np.array(found, dtype=np.float64).reshape(len(states), len(telling))

    @cached_property
    def _moves(self) -> tuple[Counts, Counts]:
        """Return transitions with their recording, shape (k, 4), and those of no recording."""
        parts = [
            np.column_stack([np.full(len(shard.transitions), i), shard.transitions])
            for i, shard in self._numbered
        ]
        table = np.concatenate([np.zeros((0, 4), dtype=np.int64), *parts])
        rest = (self.model.counts - self._matrix(table[:, 1:])).tocoo()
        return table, np.column_stack([rest.row, rest.col, rest.data]).astype(np.int64)

    def _matrix(self, rows: Counts) -> sparse.csr_matrix:
        n = self.model.size
        return sparse.csr_matrix((rows[:, 2], (rows[:, 0], rows[:, 1])), shape=(n, n))

    @cached_property
    def _lagged(self) -> Mapping[int, tuple[Counts, Counts, Counts, Counts]]:
        """Return recording, product state before and after, and count, by lag."""
        found: dict[int, list[Counts]] = {}
        m = self.shape[1]
        after_all = self.shape[0] * m
        for i, _, outcomes in self._outcomes:
            for lag, steps in outcomes.lags.items():
                later = np.where(
                    steps[:, 2] >= 0,
                    steps[:, 2] * m + steps[:, 3],
                    np.where(steps[:, 2] == ENDED, after_all, after_all + 1),
                )
                before = steps[:, 0] * m + steps[:, 1]
                table = np.column_stack([np.full(len(steps), i), before, later, steps[:, 4]])
                found.setdefault(lag, []).append(table)
        return {lag: tuple(np.concatenate(parts).T) for lag, parts in sorted(found.items())}

    @property
    def lags(self) -> tuple[int, ...]:
        """Lags that were counted, in ticks, if there is the room for what they need."""
        horizon = self.question.horizon
        n, m = self.shape
        if horizon is None or (horizon + 1) * n * m > MAX_INDUCTION:
            return ()
        return tuple(self._lagged)

    def sample(self, times: Counts) -> Sample:
        """Return what the recordings give together if each counts so many times."""
        moves, rest = self._moves
        counted = np.column_stack([moves[:, 1:3], moves[:, 3] * times[moves[:, 0]]])
        model = replace(
            self.model,
            counts=self._matrix(np.concatenate([rest, counted])),
            shards=(),
            steps=(),
            recalibration=(),
            estimates=(),
        )
        rows, (n, m) = self.rows, self.shape
        cells = rows.state * m + rows.automaton
        weight = times[rows.recording]
        total, followed = (
            _sums(cells, weight * part, n * m).reshape(n, m)
            for part in (rows.visits, rows.followed)
        )
        return Sample(self, model, times, total, followed)


def _sums(cells: Counts, weights: Floats, size: int) -> Floats:
    found: Floats = np.zeros(size)
    np.add.at(found, cells, weights)
    return found


@dataclass(frozen=True, eq=False)
class Sample:
    """What some recordings give together.

    `visits`, `followed` (shape (n, m)): moments in each product state whose outcome is known, and
        those a violation followed.
    """

    problem: Problem
    model: CountModel
    times: Counts
    visits: Floats
    followed: Floats

    @cached_property
    def chain(self) -> Chain:
        """The chain of these recordings."""
        return estimate_chain(self.model)

    @cached_property
    def risk(self) -> Floats:
        """The chain's risk, shape (n, m); NaN in states that it does not know."""
        return risk_table(self.chain, *self.problem.question).values

    @cached_property
    def within(self) -> list[Floats]:
        """The chain's risk within 0, 1, ... steps up to the horizon."""
        automaton, classes, horizon = self.problem.question
        assert horizon is not None
        return list(backward_induction(self.chain, automaton, classes, horizon))

    @cached_property
    def seen(self) -> Bools:
        """Which states occur, shape (n,)."""
        left = np.asarray(self.model.counts.sum(axis=1)).ravel()
        entered = np.asarray(self.model.counts.sum(axis=0)).ravel()
        return np.asarray((left + entered + self.visits.sum(axis=1)) > 0)

    @property
    def share(self) -> float:
        """Share of all moments that a violation followed; half a moment more on either side."""
        return float((self.followed.sum() + 0.5) / (self.visits.sum() + 1.0))

    def steps(self, lag: int) -> sparse.csr_matrix:
        """Return the counts of steps of so many ticks, shape (n m, n m + 2).

        The last two columns stand for an episode's end and for a violation before.
        """
        if lag not in self._steps:
            recording, before, later, count = self.problem._lagged[lag]
            n, m = self.problem.shape
            data = (count * self.times[recording]).astype(np.float64)
            self._steps[lag] = sparse.csr_matrix((data, (before, later)), shape=(n * m, n * m + 2))
        return self._steps[lag]

    def table(self, base: Base, setting: Setting) -> Floats:
        """Return the table of an estimate, which several mixtures may have a part in."""
        key = base.name, setting
        if key not in self._tables:
            self._tables[key] = base.table(self, setting)
        return self._tables[key]

    @cached_property
    def _steps(self) -> dict[int, sparse.csr_matrix]:
        return {}

    @cached_property
    def _tables(self) -> dict[tuple[str, Setting], Floats]:
        return {}


class Base(Protocol):
    """One way to estimate the risk of every product state."""

    @property
    def name(self) -> str:
        """What the monitor file calls it."""

    def settings(self, problem: Problem) -> tuple[Setting, ...]:
        """Return the settings to try, the most cautious first; empty if there are none."""

    def table(self, sample: Sample, setting: Setting) -> Floats:
        """Return the probability of a violation within the horizon, shape (n, m)."""

    def words(self, setting: Setting) -> str:
        """Say what was chosen; empty if there is nothing to choose."""
