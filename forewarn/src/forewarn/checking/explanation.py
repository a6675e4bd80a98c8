"""When and how a violation comes: expected time, likely ways, and what would lower the risk."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import (
    backward_induction,
    check_arguments,
    entered_states,
    first_violations,
)
from forewarn.checking.response.bounded import MAX_HISTORY, first_passage, layers_after_answers
from forewarn.checking.response.operators import (
    Countdown,
    as_layers,
    countdown,
    is_countdown,
    waiting_powers,
)

if TYPE_CHECKING:
    from forewarn.checking.interface import RiskTable
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats
    from forewarn.states.interface import StateSpace

MAX_EXPANSIONS = 300
MAX_DEPTH = 1000
MAX_CELLS = 1 << 20
MAX_DWELL = 20_000
NEGLIGIBLE = 1e-12


class Way(NamedTuple):
    """One way to the violation: the states passed, however long each is stayed in.

    `states`: indices of the chain's states, from the present one to where the property is violated.
    """

    states: tuple[int, ...]
    probability: float  # probability to take this way to a violation within the horizon
    share: float  # the same as a share of the risk
    steps: float  # expected number of steps to the violation on this way


def likely_ways(
    chain: Chain,
    automaton: Automaton,
    classes: NDArray[np.int64],
    table: RiskTable,
    state: int,
    automaton_state: int,
    number: int = 3,
) -> list[Way]:
    """Return the most likely ways from a product state to the violation, likeliest first.

    Ways are extended state by state in the order of the probability to violate by any of their
    continuations, which the risk tables give. The first `number` that are complete are the
    likeliest. Where likelihood is spread over so many ways that 300 extensions do not complete
    them, the rest are found by following the likeliest continuation to its end: ways with their
    true probability, though likelier ones may exist.
    """
    risk = float(table.values[state, automaton_state])
    if not risk > 0 or automaton_state == automaton.violated:
        return []
    search = _Search(chain, automaton, classes, table)
    found = [
        Way(states, mass, mass / risk, steps)
        for states, mass, steps in search.ways(state, automaton_state, number)
    ]
    return sorted(found, key=lambda way: -way.probability)


class _Entry(NamedTuple):
    """A sequence of states in the queue, ordered by the first two fields.

    `complete`: expected steps if the violation comes in its last state; None if it may go on.
    """

    bound: float  # minus the probability to violate by it, or by any way that begins with it
    number: int
    states: tuple[int, ...]
    complete: float | None
    before: Floats  # occupancy of the state before the last, or of the first on arrival, (times, m)
    weight: float = 1.0  # probability to go from the state before to the last one


class _Search:
    """Best-first search over sequences of states."""

    def __init__(
        self, chain: Chain, automaton: Automaton, classes: NDArray[np.int64], table: RiskTable
    ) -> None:
        self.chain = chain
        self.violated = automaton.violated or 0
        self.entered = entered_states(automaton, classes)
        self.ended = (classes == ENDED) | ~chain.live
        self.gone = classes == ENDED
        self.horizon = table.horizon
        cells = table.values.size * ((table.horizon or 0) + 1)
        self.tables: Floats = np.nan_to_num(table.values, nan=0.0)[None]
        if table.horizon is not None and cells <= MAX_CELLS:
            induction = backward_induction(chain, automaton, classes, table.horizon)
            # Row t: what the risk is once t of the steps have passed.
            self.tables = np.array(list(induction))[::-1]

    def ways(
        self, state: int, start: int, number: int
    ) -> Iterator[tuple[tuple[int, ...], float, float]]:
        """Yield sequences of states with their probability and expected steps, best first."""
        arrival: Floats = np.zeros((self._times(), self.tables.shape[2]))
        arrival[0, start] = 1.0
        order = count()
        queue = [_Entry(-1.0, next(order), (state,), None, arrival)]
        found = 0
        for turn in count():
            if not queue or found == number:
                return
            entry = heapq.heappop(queue)
            if entry.complete is not None:
                found += 1
                yield entry.states, -entry.bound, entry.complete
                continue
            # Where likelihood is spread over too many ways, follow the likeliest continuations.
            straight = turn >= MAX_EXPANSIONS
            for following in self._expand(entry, order, straight):
                if straight:
                    found += 1
                    yield following.states, -following.bound, following.complete or 0.0
                else:
                    heapq.heappush(queue, following)

    def _expand(self, entry: _Entry, order: Iterator[int], straight: bool) -> list[_Entry]:
        """Return the entry's end, if it can end here, and its extensions by one state.

        With `straight`, only the best extension is followed, and all the way to an end.
        """
        results: list[_Entry] = []
        for _ in range(MAX_DEPTH):
            arrived = self._arrive(entry)
            stay, mass, steps = self._dwell(entry.states[-1], arrived)
            ways = list(self._extensions(entry.states[-1], stay))
            best = max(ways, key=lambda way: way[2], default=(0, 0.0, 0.0))
            if mass > 0:
                results.append(_Entry(-mass, next(order), entry.states, steps, arrived))
            if not straight:
                for following, weight, most in ways:
                    longer = (*entry.states, following)
                    results.append(_Entry(-most, next(order), longer, None, stay, weight))
                return results
            if mass >= best[2]:
                return results[-1:]
            longer = (*entry.states, best[0])
            entry = _Entry(-best[2], next(order), longer, None, stay, best[1])
        return results[-1:]

    def _times(self) -> int:
        return 1 if self.horizon is None else self.horizon + 1

    def _dwell(self, state: int, arrived: Floats) -> tuple[Floats, float, float]:
        """Return how often each automaton state is met in `state`, by time, and what violates.

        The automaton reads the state again each step. Returns the occupancy (times, m) without
        violations, their probability, and the expected step at which they happen.
        """
        following = self.entered[state]
        again = 0.0 if self.ended[state] else float(self.chain.row(state)[state])
        occupancy = arrived.copy()
        if self.horizon is None:
            return self._dwell_for_ever(occupancy, following, again)
        for t in range(1, len(occupancy)):
            before = occupancy[t - 1].copy()
            before[self.violated] = 0.0
            occupancy[t] += again * np.bincount(following, before, minlength=before.size)
        hits = occupancy[:, self.violated].copy()
        occupancy[:, self.violated] = 0.0
        mass = float(hits.sum())
        steps = float(hits @ np.arange(len(hits))) / mass if mass > 0 else 0.0
        return occupancy, mass, steps

    def _dwell_for_ever(
        self, occupancy: Floats, following: NDArray[np.int64], again: float
    ) -> tuple[Floats, float, float]:
        present = occupancy[0].copy()
        total: Floats = np.zeros_like(present)
        mass = 0.0
        for _ in range(MAX_DWELL):
            mass += present[self.violated]
            present[self.violated] = 0.0
            total += present
            present = again * np.bincount(following, present, minlength=present.size)
            if present.sum() <= NEGLIGIBLE:
                break
        return total[None], float(mass), float("nan")

    def _extensions(self, state: int, stay: Floats) -> Iterator[tuple[int, float, float]]:
        """Yield next states, the probability to go there, and that to violate by going there."""
        if self.ended[state]:
            return
        row = self.chain.row(state)
        row[state] = 0.0
        row[self.gone] = 0.0
        leaving = stay if self.horizon is None else stay[:-1]
        following = np.flatnonzero(row)
        entered = self.entered[following]
        if len(self.tables) == 1:
            risk = self.tables[0][following[:, None], entered]
            most = row[following] * (risk @ leaving.sum(axis=0))
        else:
            most = np.zeros(following.size)
            for t in np.flatnonzero(leaving.any(axis=1)):
                most += self.tables[t + 1][following[:, None], entered] @ leaving[t]
            most *= row[following]
        for k in np.flatnonzero(most > NEGLIGIBLE):
            yield int(following[k]), float(row[following[k]]), float(most[k])

    def _arrive(self, entry: _Entry) -> Floats:
        """Return with which probability each automaton state is entered, by time."""
        if len(entry.states) == 1:
            return entry.before
        leaving = entry.before if self.horizon is None else entry.before[:-1]
        arrival: Floats = np.zeros((self._times(), leaving.shape[1]))
        shift = 0 if self.horizon is None else 1
        targets = self.entered[entry.states[-1]]
        for q in np.flatnonzero(leaving.any(axis=0)):
            arrival[shift:, targets[q]] += entry.weight * leaving[:, q]
        return arrival


class PredicateEffect(NamedTuple):
    """What the risk would be if one predicate were different at the next tick."""

    predicate: str
    value: bool  # the value it would have
    risk: float
    change: float  # the same minus the risk if the state stays as it is; negative where it is lower


class KnownStates(Protocol):
    """The states of a model: their names, their codes, and the position of each code."""

    @property
    def vocabulary(self) -> StateSpace:
        """Names of predicates and terminal labels."""

    @property
    def states(self) -> tuple[int, ...]:
        """State codes in row order."""

    @property
    def index(self) -> Mapping[int, int]:
        """Row of each state code."""


def predicate_effects(
    model: KnownStates,
    automaton: Automaton,
    classes: NDArray[np.int64],
    table: RiskTable,
    state: int,
    automaton_state: int,
) -> list[PredicateEffect]:
    """Return how each predicate, changed alone at the next tick, would change the risk.

    The one that would lower it most comes first. Changes to states that the model does not know
    are left out.
    """
    code = model.states[state]
    entered = entered_states(automaton, classes)

    def risk(index: int) -> float:
        return float(table.values[index, entered[index, automaton_state]])

    staying = risk(state)
    effects: list[PredicateEffect] = []
    for name, other in model.vocabulary.neighbours(code):
        index = model.index.get(other)
        if index is None or np.isnan(risk(index)):
            continue
        effects.append(
            PredicateEffect(
                name, model.vocabulary.holds(name, other), risk(index), risk(index) - staying
            )
        )
    return sorted(effects, key=lambda effect: (effect.change, effect.predicate))


#: A countdown takes every step. Where there are more of them, a small product is looked at as it
#: is: it may stop as soon as its chain has mixed.
MANY_STEPS = 10_000
SMALL_PRODUCT = 20_000


def expected_steps(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int
) -> Floats:
    """Return ``E[T | T <= H]``, T the steps to the violation, for all product states, (n, m).

    0 where the property is violated already, NaN where it
    cannot be within the horizon.

    """
    check_arguments(chain, automaton, classes, horizon)
    layers = automaton.transitions.shape[0] - 2
    taken = max(horizon - layers, 1)
    long = taken > MANY_STEPS and chain.size * automaton.n_states <= SMALL_PRODUCT
    if is_countdown(automaton) and taken * chain.size <= MAX_HISTORY and not long:
        risk, summed = _countdown_sums(countdown(chain, classes, layers), horizon)
        later = np.maximum(horizon * risk - summed, 0.0)
    else:
        risk, later = first_violations(chain, automaton, classes, horizon)
    result = np.divide(later, risk, out=np.full(risk.shape, np.nan), where=risk > 0)
    result[chain.unseen] = np.nan
    if automaton.violated is not None:
        result[:, automaton.violated] = 0.0
    return np.asarray(result)


def _countdown_sums(problem: Countdown, horizon: int) -> tuple[Floats, Floats]:
    """Return the risk within the horizon, and the sum of the risks within less, (n, L + 2)."""
    n, layers = problem.size, problem.layers
    powers = waiting_powers(problem, layers)
    waits = np.arange(1, layers + 1)[:, None]
    alone = np.where(waits <= horizon, powers[1:], 0.0)
    alone_sum = np.maximum(horizon - waits, 0) * powers[1:]
    violated = np.ones(n)
    if horizon <= layers:
        none = np.zeros(n)
        return as_layers(none, alone, violated), as_layers(none, alone_sum, horizon * violated)
    # Every step is needed, so no geometric rest: a precision of less than nothing.
    first = first_passage(problem, powers[-1], horizon - layers - 1, -1.0).first
    total = np.cumsum(first, axis=0)
    before = np.concatenate([np.zeros((1, n)), total[:-1]])
    risk = as_layers(total[-1], alone + layers_after_answers(problem, first), violated)
    later = alone_sum + layers_after_answers(problem, before)
    return risk, as_layers(total[:-1].sum(axis=0), later, horizon * violated)
