"""Probabilities of a decision process, with what the counts leave open about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import sparse

from forewarn.checking.reachability import backward_reachable, gmres
from forewarn.checking.sound import CONFIDENCE, Intervals, row_intervals
from forewarn.errors import CheckingError, plural
from forewarn.models.process import ActionCounts, DecisionProcess, Mask, process_of
from forewarn.wings.decisions.mdp import extreme_within, first_of, optimal

if TYPE_CHECKING:
    from forewarn.models.chain import Floats
    from forewarn.wings.decisions.choices import Choices

Choosing = Literal["greatest", "least", "recorded"]

MAX_SWEEPS = 20_000
MAX_WORK = 30_000_000
MAX_IMPROVED = 20_000_000
"""Transitions times improvements of a policy: some seconds."""

FEWEST_IMPROVED, MOST_IMPROVED, MOST_IDLE = 12, 60, 5
LEAST_LEAK = 1e-9
MAX_STEPS = 200
TIGHT = 1e-12
SLOW = 0.97
SETTLED = 1e-10
CLOSE = 1e-8
WIDE = 0.9
BEYOND = 1e-7
"""How far an estimate may be outside of its bounds by rounding."""


@dataclass(frozen=True, eq=False)
class Query:
    """A probability of ``phi U psi``: `targets` are states of psi, `through` of phi, shape (n,).

    It is over all policies, or with the recorded mix; within `horizon` steps, or ever.
    """

    targets: Mask
    through: Mask
    choosing: Choosing
    horizon: int | None = None


@dataclass(frozen=True, eq=False)
class BoundedValues:
    """A probability from every state, shape (n,), and if a choice is taken first, shape (c,).

    The estimate is NaN where nothing was seen done. The bounds hold for all states, choices and
    queries at once at the `confidence`; they are not `sound` if the traces that are counted here
    also made the states. `policy` attains the estimate; None if that depends on the steps left or
    is a mix.
    """

    estimate: Floats
    lower: Floats
    upper: Floats
    choice_estimate: Floats
    choice_lower: Floats
    choice_upper: Floats
    confidence: float
    sound: bool
    notes: tuple[str, ...] = ()
    policy: Choices | None = None

    def complement(self) -> BoundedValues:
        """Return one minus all of this, with the same policy."""
        return replace(
            self,
            estimate=1.0 - self.estimate,
            lower=1.0 - self.upper,
            upper=1.0 - self.lower,
            choice_estimate=1.0 - self.choice_estimate,
            choice_lower=1.0 - self.choice_upper,
            choice_upper=1.0 - self.choice_lower,
        )


@dataclass(frozen=True, eq=False)
class CountedProcess:
    """The decision processes that counts allow at a confidence, n states and c choices.

    Choices are the observed actions alone. What was never seen after a choice, and a state in which
    nothing was seen done, counts as 1 for an upper and as 0 for a lower bound. `intervals` bound
    all transitions at once, one row for each choice. `grown` tells whether the states were learned
    from the traces that are counted here, `origin` are notes about that.
    """

    counted: ActionCounts
    process: DecisionProcess
    intervals: Intervals
    confidence: float
    grown: bool
    origin: tuple[str, ...] = ()

    @cached_property
    def mix(self) -> Floats:
        """Share of each choice among the recorded ones of its state, shape (c,).

        Where all were imposed, of those.
        """
        owner, n = self.process.owner, self.process.size
        weight = self.counted.recorded.astype(np.float64)
        every = np.asarray(self.counted.counts.sum(axis=1)).ravel().astype(np.float64)
        free = np.bincount(owner, weights=weight, minlength=n) > 0
        weight = np.where(free[owner], weight, np.where(self.counted.acted, every, 1.0))
        return np.asarray(weight / np.bincount(owner, weights=weight, minlength=n)[owner])

    def value(self, query: Query) -> BoundedValues:
        """Return the answer to a query, with bounds; raises CheckingError."""
        if query.horizon is not None and query.horizon < 0:
            raise CheckingError(
                f"a horizon of {query.horizon} steps", accepted="0 or more, or unbounded"
            )
        states, choices, policy = self._estimate(query)
        low, high = _Robust(self, query, worst=False), _Robust(self, query, worst=True)
        lower, low_choice = low.solve()
        upper, high_choice = high.solve()
        notes = _notes(self, query, lower, upper, states)
        if not (low.settled and high.settled):
            notes += (
                "bounds without a horizon stopped early: they hold, and are wider than need be",
            )
        unknown = self.counted.unseen & ~(query.targets | ~query.through)
        estimate = np.where(unknown, np.nan, states)
        choices = np.where(unknown[self.process.owner], np.nan, choices)
        return BoundedValues(
            estimate,
            np.fmin(lower, estimate),
            np.fmax(upper, estimate),
            choices,
            np.fmin(low_choice, choices),
            np.fmax(high_choice, choices),
            self.confidence,
            not self.grown,
            notes,
            policy,
        )

    def _estimate(self, query: Query) -> tuple[Floats, Floats, Choices | None]:
        """Return the estimate from each state, if a choice is taken first, and the policy."""
        process, targets, through = self.process, query.targets, query.through
        maximise = query.choosing == "greatest"
        policy = None
        if query.choosing == "recorded":
            process = self.recorded_chain
        if query.horizon is None:
            values, policy = optimal(process, targets, through, maximise=maximise)
            after = values
        else:
            before = max(query.horizon - 1, 0)
            after = extreme_within(process, targets, through, before, maximise=maximise)
            values = extreme_within(process, targets, through, query.horizon, maximise=maximise)
        owner = self.process.owner
        still = (targets | ~through)[owner] | (query.horizon == 0)
        attained = None if query.choosing == "recorded" else policy
        return values, np.where(still, values[owner], self.process.matrix @ after), attained

    @cached_property
    def recorded_chain(self) -> DecisionProcess:
        """The estimate with the recorded mix of actions, one choice a state."""
        n, c = self.process.size, self.mix.size
        share = sparse.csr_matrix((self.mix, (self.process.owner, np.arange(c))), shape=(n, c))
        return DecisionProcess(sparse.csr_matrix(share @ self.process.matrix), np.arange(n + 1))


def counted_process(
    counted: ActionCounts,
    universe: int,
    *,
    confidence: float = CONFIDENCE,
    grown: bool = False,
    origin: tuple[str, ...] = (),
    process: DecisionProcess | None = None,
) -> CountedProcess:
    """Return the decision processes that counts allow, of a universe of so many states at all.

    The intervals suppose states that were fixed before; with `grown` ones they are not sound. The
    estimate is `process`, with smoothing for instance, by default maximum likelihood.
    """
    intervals = row_intervals(counted.counts, confidence, universe)
    made = process_of(counted) if process is None else process
    return CountedProcess(counted, made, intervals, confidence, grown, origin)


class _Robust:
    """Induction over the worst, or the best, process that the intervals allow.

    Each step chooses its distributions again, within the bounds of its transitions.
    """

    def __init__(self, counted: CountedProcess, query: Query, worst: bool) -> None:
        self.process, self.query, self.worst = counted.process, query, worst
        self.mix = counted.mix
        intervals, unseen = counted.intervals, counted.counted.unseen
        still = query.targets | ~query.through
        self.fixed = still | unseen | counted.counted.terminal
        self.ends = np.where(query.targets | (unseen & ~still & worst), 1.0, 0.0)
        self.rows, self.columns = intervals.rows, intervals.columns
        self.lower, self.spare = intervals.lower, intervals.upper - intervals.lower
        left = 1.0 - np.bincount(self.rows, self.lower, minlength=intervals.size)
        # What may go elsewhere does: it counts as 1 at worst and as 0 at best.
        away = np.minimum(intervals.elsewhere, left)
        self.budget = left - away
        room = np.bincount(self.rows, self.spare, minlength=intervals.size)
        # What the upper bounds do not take can only be elsewhere.
        self.away = away + np.maximum(self.budget - room, 0.0)
        self.settled = True

    def expect(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the value of each choice (c,), and the probabilities that give it (k,)."""
        following = values[self.columns]
        rank = np.empty(values.size, dtype=np.int64)
        rank[np.argsort(-values if self.worst else values)] = np.arange(values.size)
        # Rows stay together, and the most (least) valuable successors of each come first.
        order = np.argsort(self.rows * values.size + rank[self.columns])
        room = self.spare[order]
        total = np.concatenate([[0.0], np.cumsum(room)])
        start = np.searchsorted(self.rows, np.arange(self.budget.size))
        given = np.clip(self.budget[self.rows] - total[:-1] + total[start][self.rows], 0.0, room)
        chances = self.lower.copy()
        chances[order] += given
        found = np.bincount(self.rows, chances * following, minlength=self.budget.size)
        return found + self.away * self.worst, chances

    def step(self, values: Floats) -> Floats:
        """Return the values one step earlier, shape (n,)."""
        return np.where(self.fixed, self.ends, self._chosen(self.expect(values)[0]))

    def _chosen(self, found: Floats) -> Floats:
        groups = self.process.groups[:-1]
        if self.query.choosing == "recorded":
            return np.asarray(np.add.reduceat(self.mix * found, groups))
        best = np.maximum if self.query.choosing == "greatest" else np.minimum
        return np.asarray(best.reduceat(found, groups))

    def solve(self) -> tuple[Floats, Floats]:
        """Return the bound from each state, and if a choice is taken first."""
        horizon, owner = self.query.horizon, self.process.owner
        if horizon is None:
            values = after = self._unbounded()
        else:
            values = after = np.where(self.fixed, self.ends, 0.0)
            for _ in range(horizon):
                values, after = self.step(values), values
        found = np.where(horizon == 0, values[owner], self.expect(after)[0])
        choices = np.where(self.fixed[owner], self.ends[owner], found)
        # Sums of probabilities may be off by their rounding.
        return np.clip(values, 0.0, 1.0), np.clip(choices, 0.0, 1.0)

    def _unbounded(self) -> Floats:
        """Return a bound of the probability ever to reach the targets, shape (n,).

        What goes elsewhere at each step makes the induction a contraction: where the step of a
        vector moves state s by r[s], the fixpoint is within ``max r[s] / leak[s]`` of it. So any
        vector gives a bound; policies are improved until it is tight, or the work is spent.
        """
        free = ~self.fixed
        leak = self._leak()
        if not (leak[free] > LEAST_LEAK).all():
            return self._swept()
        values: Floats = np.where(self.fixed, self.ends, 0.0)
        best, radius, since = values, np.inf, 0
        rounds = max(MAX_IMPROVED // max(self.rows.size, 1), FEWEST_IMPROVED)
        for _ in range(min(rounds, MOST_IMPROVED)):
            found, chances = self.expect(values)
            after = np.where(self.fixed, self.ends, self._chosen(found))
            away = float((np.abs(after - values)[free] / leak[free]).max(initial=0.0))
            since += 1
            if away < radius:
                best, radius, since = after, away, 0
            if radius <= CLOSE or since > MOST_IDLE:
                break
            values = self._followed(after, found, chances)
        bound = np.where(self.fixed, self.ends, best + (radius if self.worst else -radius))
        if radius <= CLOSE:
            return bound
        # Where choices and chances work against each other, improving both at once may go round.
        tighter = np.minimum if self.worst else np.maximum
        return np.asarray(tighter(bound, self._swept()))

    def _leak(self) -> Floats:
        """Return what goes elsewhere at least from each state, whatever is chosen, shape (n,)."""
        groups = self.process.groups[:-1]
        if self.query.choosing == "recorded":
            return np.asarray(np.add.reduceat(self.mix * self.away, groups))
        return np.asarray(np.minimum.reduceat(self.away, groups))

    def _swept(self) -> Floats:
        """Return what the induction tends to from the safe side; each step of it is a bound."""
        start = self.ends.copy()
        if self.worst:
            source = self.process.owner[self.rows]
            size = self.process.size
            graph = sparse.csr_matrix(
                (np.ones(source.size), (source, self.columns)), shape=(size, size)
            )
            risky = np.zeros(size, dtype=bool)
            risky[self.process.owner[self.away > 0]] = True
            danger = (self.fixed & (self.ends > 0)) | (~self.fixed & risky)
            passing = sparse.csr_matrix(sparse.diags((~self.fixed).astype(float)) @ graph)
            start[~self.fixed & backward_reachable(passing, danger)] = 1.0
        values: Floats = start
        for _ in range(min(MAX_SWEEPS, MAX_WORK // max(self.rows.size, 1) + 1)):
            following = self.step(values)
            if np.abs(following - values).max(initial=0.0) <= SETTLED:
                return following
            values = following
        self.settled = False
        return values

    def _followed(self, values: Floats, found: Floats, chances: Floats) -> Floats:
        """Return about the value of the choices and chances that are best now, kept for ever."""
        owner, n = self.process.owner, self.process.size
        if self.query.choosing == "recorded":
            weight = self.mix
        else:
            picked = first_of(self.process, found == self._chosen(found)[owner])
            weight = np.zeros(found.size)
            weight[picked[picked >= 0]] = 1.0
        kept = (weight[self.rows] > 0) & ~self.fixed[owner[self.rows]]
        matrix = sparse.csr_matrix(
            ((chances * weight[self.rows])[kept], (owner[self.rows[kept]], self.columns[kept])),
            shape=(n, n),
        )
        lost = np.bincount(owner, self.away * weight, minlength=n) * self.worst
        right = np.where(self.fixed, self.ends, lost)
        before = np.inf
        for _ in range(MAX_STEPS):
            following: Floats = matrix @ values + right
            moved = float(np.abs(following - values).max(initial=0.0))
            values = following
            if moved <= TIGHT or moved > SLOW * before:
                break
            before = moved
        if moved > TIGHT:
            rest = right + matrix @ values - values
            values = values + gmres(lambda x: x - matrix @ x, rest, TIGHT)
        return values


def _notes(
    counted: CountedProcess, query: Query, lower: Floats, upper: Floats, values: Floats
) -> tuple[str, ...]:
    """Say how far the bounds can be trusted, and whether they tell anything."""
    level = f"{counted.confidence:.0%}"
    notes = [
        f"the bounds are sound: they hold together for all states and actions, at {level}, for "
        "choices among the actions that were observed"
        if not counted.grown
        else "the bounds are not sound: the states were learned from the traces that are counted; "
        "count traces that did not grow them"
    ]
    notes += counted.origin
    if counted.counted.unseen.any():
        notes.append(
            f"nothing was seen done in {plural(int(counted.counted.unseen.sum()), 'state')}: "
            "anything may follow there"
        )
    moving = query.through & ~query.targets & counted.counted.acted[counted.counted.groups[:-1]]
    wide = (upper - lower)[moving] >= WIDE
    if wide.any():
        notes.append(
            f"the bounds are vacuous (wider than {WIDE}) in {wide.mean():.0%} of the states: take "
            "a shorter horizon, or more data"
        )
    beyond = float(np.maximum(lower - values, values - upper).max(initial=0.0))
    if beyond > BEYOND:
        notes.append(
            f"smoothing puts the estimate outside of what the counts allow, by up to {beyond:.3g}: "
            "the bounds are widened to it"
        )
    return tuple(notes)
