"""What the state may be, and how probably: forward filtering with the learned chain.

Where predicates are unknown or sometimes wrong, the worst case over all possible states says
little. The belief of a property is the distribution over product states (state, state of its live
automaton) given all readings so far. It takes a step of the chain, and then Bayes' rule with the
probability of the readings (the forward algorithm of hidden Markov models; for monitors Junges,
Torfah and Seshia, "Runtime Monitors for Markov Decision Processes", CAV 2021, section 4). The
expected risk is the mean of the risk table over the belief.

All sums are taken in the order of the states, one number after the other: the same bits anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forewarn.monitoring.branches import BEGINS, ENDS, LASTS
from forewarn.monitoring.property_risk import pushed
from forewarn.monitoring.verdict import NO_EXPECTED, ExpectedFigure
from forewarn.states.interface import Observed, is_terminal

if TYPE_CHECKING:
    from forewarn.checking.interface import RiskOfActions
    from forewarn.models.chain import Chain, Floats
    from forewarn.monitoring.tables import CompiledProperty, LoadedModel

#: Product states that a belief holds from one moment to the next: the most probable ones.
LIMIT = 512
#: Missed moments that the chain is followed through; from then on a belief stays as it is.
MAX_BLIND = 50
#: Numbers kept of readings that occurred before.
MAX_KEPT = 1 << 21

Ints = NDArray[np.int64]
Belief: TypeAlias = tuple[tuple[int | None, int, float], ...]
"""State code (None: any), branch of the live automaton, and probability; () is not asked for."""


def beginning(branch: int) -> Belief:
    """Return the belief before the first moment: the branch is certain, the state unknown."""
    return ((None, branch, 1.0),)


class Readings(NamedTuple):
    """The model's states that agree with what is read, and how probable that is in each."""

    rows: Ints  # Rising
    likelihood: Floats  # All above 0


@dataclass(frozen=True, eq=False)
class Filter:
    """What the beliefs of all properties are computed with."""

    model: LoadedModel
    chain: Chain
    # How often each state was seen; 0 for terminal labels. Where nothing is known of the moment
    # before, states are as probable as they were frequent.
    seen: Floats
    # Numbers of the predicates that may be read wrongly, and how probable that is
    observation_error: tuple[tuple[int, float], ...] = ()
    remembered: int = 0  # Bits of a state that repeat earlier readings of them
    limit: int = LIMIT
    _memo: dict[Observed, Readings] = field(default_factory=dict)

    def readings(self, observation: Observed) -> Readings:
        """Return which states agree with an observation."""
        known = observation.state
        if known is not None and (not self.observation_error or is_terminal(known)):
            row = self.model.index.get(known)
            rows = np.array([] if row is None else [row], dtype=np.int64)
            return Readings(rows, np.ones(rows.shape))
        found = self._memo.get(observation)
        if found is None:
            found = self._agreeing(observation)
            if (len(self._memo) + 1) * self.seen.size <= MAX_KEPT:
                self._memo[observation] = found
        return found

    def _agreeing(self, observation: Observed) -> Readings:
        model, codes = self.model, self.model.codes
        if not self.observation_error:
            rows = np.flatnonzero(model.vocabulary.agreeing(codes, observation))
            return Readings(rows, np.ones(rows.shape))
        # Only states of predicates have observation errors; see `observation_errors`.
        known, mask = observation.known, observation.mask  # type: ignore[attr-defined]
        unsure = sum(1 << number for number, _ in self.observation_error) | self.remembered
        loose = observation._replace(state=None, known=known & ~unsure)  # type: ignore[attr-defined]
        rows = np.flatnonzero(model.vocabulary.agreeing(codes, loose))
        found, plain = np.ones(rows.shape), codes[rows] >= 0
        for number, wrong in self.observation_error:
            if known >> number & 1:
                holds = np.asarray((codes[rows] >> number) & 1, dtype=np.int64)
                right = holds == (mask >> number & 1)
                found *= np.where(plain, np.where(right, 1.0 - wrong, wrong), 1.0)
        return Readings(rows[found > 0], found[found > 0])

    def arriving(self, belief: Belief, readings: Readings) -> Arrivals:
        """Return how probable each state and branch was a moment later, before Bayes' rule."""
        chain, rows = self.chain, readings.rows
        branches = sorted({branch for _, branch, _ in belief})
        place = {branch: i for i, branch in enumerate(branches)}
        shape = len(branches), rows.size
        at = np.array([place[branch] for _, branch, _ in belief], dtype=np.int64)
        share = np.array([probability for *_, probability in belief])
        get = self.model.index.get
        source = np.array([-1 if code is None else get(code, -1) for code, *_ in belief])
        agreeing = set(rows[self.chain.absorbing[rows]].tolist())
        # What follows a terminal label, or a state that the chain knows no way out of, is unknown.
        follows = np.array([row >= 0 and self._leads_on(row, agreeing) for row in source.tolist()])
        mass = self._sparse(at[follows], share[follows], source[follows], rows, shape)
        groups = chain.supports.shape[0]
        drawn = _sums(
            at[follows] * groups + chain.group[source[follows]],
            share[follows] * chain.prior[source[follows]],
            shape[0] * groups,
        ).reshape(shape[0], groups)
        for group in np.flatnonzero(drawn.any(axis=0)).tolist():
            mass += drawn[:, group, None] * self._support(group)[rows]
        new = _sums(at[~follows], share[~follows], shape[0])
        if new.any():
            mass += new[:, None] * self.frequency(rows)
        return Arrivals(tuple(branches), mass, bool(follows.any()))

    def _leads_on(self, row: int, agreeing: set[int]) -> bool:
        return row in agreeing if self.chain.absorbing[row] else not self.chain.unseen[row]

    def _sparse(
        self, at: Ints, share: Floats, source: Ints, rows: Ints, shape: tuple[int, int]
    ) -> Floats:
        matrix = self.chain.sparse
        begins = matrix.indptr[source].astype(np.int64)
        lengths = matrix.indptr[source + 1].astype(np.int64) - begins
        owner = np.repeat(np.arange(source.size), lengths)
        offset = np.arange(owner.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entry = begins[owner] + offset
        position = np.full(self.seen.size, -1)
        position[rows] = np.arange(rows.size)
        target = position[matrix.indices[entry]]
        kept = target >= 0
        weights = share[owner[kept]] * matrix.data[entry[kept]]
        cells = at[owner[kept]] * shape[1] + target[kept]
        return _sums(cells, weights, shape[0] * shape[1]).reshape(shape)

    def _support(self, group: int) -> Floats:
        supports = self.chain.supports
        part = slice(supports.indptr[group], supports.indptr[group + 1])
        found = np.zeros(self.seen.size)
        found[supports.indices[part]] = supports.data[part]
        return found

    def frequency(self, rows: Ints) -> Floats:
        """Return how frequent some states are, as shares of all that was seen."""
        return self.seen[rows] / self._total

    @cached_property
    def _total(self) -> float:
        return max(_sum(self.seen), 1.0)


class Arrivals(NamedTuple):
    """States a moment later, before what is read there counts."""

    branches: tuple[int, ...]  # Branches of the moment before, rising
    mass: Floats  # Joint probability of the branch and of each state that agrees with the readings
    # False if the chain leads from no state of the moment before to what is read now
    followed: bool


def follow(
    filter_: Filter,
    compiled: CompiledProperty,
    belief: Belief,
    observation: Observed,
    action: str | None = None,
    odds: float | None = None,
) -> tuple[Belief, ExpectedFigure]:
    """Return the belief of a property after one moment, and the expected risk.

    `action`: what is being done, for risks of actions.
    `odds`: what scores of the moment multiply odds by, where the risk has scores and all are known.
    """
    readings = filter_.readings(observation)
    if not readings.rows.size:
        return _beyond(compiled, belief, observation), NO_EXPECTED._replace(left_out=0.0)
    if readings.rows.size == 1 and len({branch for _, branch, _ in belief}) == 1:
        return _certain(filter_, compiled, belief[0][1], readings.rows, action, odds)
    branches, mass, followed = filter_.arriving(belief, readings)
    mass = mass * readings.likelihood
    restarted = False
    if not mass.any():
        restarted = followed
        mass = _anew(filter_, belief, branches, readings)
    live = compiled.live
    letters = _letters(filter_, compiled, readings.rows)
    cells = np.flatnonzero(mass)
    share = mass.ravel()[cells]
    share = share / _sum(share)
    state = cells % readings.rows.size
    before = np.array(branches, dtype=np.int64)[cells // readings.rows.size]
    outcome = live.outcome[before, letters[state]]
    after = live.following[before, letters[state]].astype(np.int64)
    risks = _risks(compiled, readings.rows[state], after, outcome, action, odds)
    merged, owner = np.unique(state * len(live.following) + after, return_inverse=True)
    total = _sums(owner, share, merged.size)
    kept, left_out = _most_probable(total, filter_.limit)
    states = filter_.model.states
    rows = readings.rows[merged[kept] // len(live.following)].tolist()
    found = zip(
        [states[row] for row in rows],
        (merged[kept] % len(live.following)).tolist(),
        (total[kept] / _sum(total[kept])).tolist(),
        strict=True,
    )
    return tuple(found), ExpectedFigure(_mean(share, risks), left_out, restarted)


def _certain(
    filter_: Filter,
    compiled: CompiledProperty,
    branch: int,
    rows: Ints,
    action: str | None,
    odds: float | None,
) -> tuple[Belief, ExpectedFigure]:
    """Return the belief where state and automaton are certain, whatever came before."""
    letter = int(_letters(filter_, compiled, rows)[0])
    after = compiled.live.following[branch, letter : letter + 1].astype(np.int64)
    outcome = compiled.live.outcome[branch, letter : letter + 1]
    risk = float(_risks(compiled, rows, after, outcome, action, odds)[0])
    state = filter_.model.states[int(rows[0])]
    return ((state, int(after[0]), 1.0),), ExpectedFigure(risk, 0.0, False)


def _anew(filter_: Filter, belief: Belief, branches: Sequence[int], readings: Readings) -> Floats:
    """Return a belief that starts again: the branches as probable as before, any state."""
    place = {branch: i for i, branch in enumerate(branches)}
    share = np.zeros(len(branches))
    for _, branch, probability in belief:
        share[place[branch]] += probability
    often = filter_.frequency(readings.rows)
    often = (often if often.any() else np.ones(often.shape)) * readings.likelihood
    return np.asarray(share[:, None] * often)


def _beyond(compiled: CompiledProperty, belief: Belief, observation: Observed) -> Belief:
    """Return the belief where the model knows no state that agrees: the automaton goes on."""
    live, state = compiled.live, observation.state
    letters = (
        compiled.compatible_letters(observation) if state is None else compiled.letters_of(state)
    )
    found: dict[int, float] = {}
    for _, branch, probability in belief:
        for letter in letters:
            after = int(live.following[branch, letter])
            found[after] = found.get(after, 0.0) + probability / len(letters)
    return tuple((state, branch, found[branch]) for branch in sorted(found))


def _letters(filter_: Filter, compiled: CompiledProperty, rows: Ints) -> Ints:
    """Return the live letter of each state."""
    found = compiled.row_classes[rows].copy()
    for i in np.flatnonzero(filter_.chain.absorbing[rows]).tolist():
        found[i] = compiled.live.letter(filter_.model.states[int(rows[i])])
    return np.asarray(found)


def _risks(
    compiled: CompiledProperty,
    rows: Ints,
    branches: Ints,
    outcome: NDArray[np.uint8],
    action: str | None,
    odds: float | None,
) -> Floats:
    """Return the risk in each product state: 1 in a violation, 0 at an episode's end."""
    table: RiskOfActions | None = compiled.of_actions
    assert compiled.table is not None
    over = (outcome == BEGINS) | (outcome == LASTS)
    quiet = ~over & (outcome != ENDS)
    # A branch that has ended lies beyond the table's columns.
    columns = np.where(quiet, branches, compiled.live.initial)
    if table is None and compiled.scored is not None and odds is not None:
        values = pushed(compiled.scored, compiled.scored.table.values[rows, columns], odds)
    elif table is None:
        values = compiled.table.values[rows, columns]
    elif action:
        done = [table.done.get((row, action), -1) for row in rows.tolist()]
        looked = table.done_values[np.maximum(done, 0), columns]
        values = np.where(np.array(done) < 0, np.nan, looked)
    else:
        values = table.values[rows, columns]
    return np.where(quiet, values, over.astype(np.float64))


def _mean(share: Floats, risks: Floats) -> float:
    """Return the mean over the states whose risk is known; NaN if there is none."""
    known = ~np.isnan(risks)
    weight = _sum(share[known])
    return min(_sum(share[known] * risks[known]) / weight, 1.0) if weight else math.nan


def _most_probable(total: Floats, limit: int) -> tuple[Ints, float]:
    """Return where the `limit` greatest shares are, in order, and the sum of all others."""
    if total.size <= limit:
        return np.arange(total.size), 0.0
    order = np.argsort(-total, kind="stable")
    return np.sort(order[:limit]), _sum(total[np.sort(order[limit:])])


def _sum(values: Floats) -> float:
    """Return the sum, taken one after the other."""
    return float(_sums(np.zeros(values.size, dtype=np.int64), values, 1)[0])


def _sums(places: Ints, values: Floats, size: int) -> Floats:
    """Return the sum of the values of each place, shape (size,), taken one after the other."""
    found: Floats = np.bincount(places, weights=values, minlength=size).astype(np.float64)
    return found
