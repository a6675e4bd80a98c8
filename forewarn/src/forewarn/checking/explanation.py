"""Why is the risk what it is? Most likely ways to the violation, and what would lower it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.general import backward_induction, entered_states
from forewarn.checking.interface import RiskTable
from forewarn.checking.labels import ENDED
from forewarn.models.chain import Chain, Floats
from forewarn.models.counts import CountModel
from forewarn.properties.automaton import Automaton

MAX_EXPANSIONS = 2000
MAX_CELLS = 1 << 23
MAX_DWELL = 20_000
NEGLIGIBLE = 1e-12


class Way(NamedTuple):
    """One way to the violation: the states passed, however long each is stayed in.

    Attributes
    ----------
    states : tuple of int
        Indices of the chain's states, from the present one to where the property is violated.
    probability : float
        Probability to take this way to a violation within the horizon.
    share : float
        The same as a share of the risk.
    steps : float
        Expected number of steps to the violation on this way.
    """

    states: tuple[int, ...]
    probability: float
    share: float
    steps: float


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
    likeliest; fewer are returned if 2,000 extensions do not suffice.

    Parameters
    ----------
    chain : Chain
        The chain, n states.
    automaton : Automaton
        The property's monitor, m states.
    classes : ndarray of int, shape (n,)
        Letter class of each chain state.
    table : RiskTable
        Its risk table; tells the horizon.
    state, automaton_state : int
        The present product state.
    number : int
        How many ways to return.
    """
    risk = float(table.values[state, automaton_state])
    if not risk > 0 or automaton_state == automaton.violated:
        return []
    search = _Search(chain, automaton, classes, table)
    return [
        Way(states, mass, mass / risk, steps)
        for states, mass, steps in search.ways(state, automaton_state, number)
    ]


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
        # Entries: negative bound, tie-breaker, states, arrival; None once it is complete.
        queue: list[tuple[float, int, tuple[int, ...], Floats | None, float]] = [
            (-1.0, next(order), (state,), arrival, 0.0)
        ]
        found = 0
        for _ in range(MAX_EXPANSIONS):
            if not queue or found == number:
                return
            bound, _, states, arrived, steps = heapq.heappop(queue)
            if arrived is None:
                found += 1
                yield states, -bound, steps
                continue
            stay, mass, steps = self._dwell(states[-1], arrived)
            if mass > 0:
                heapq.heappush(queue, (-mass, next(order), states, None, steps))
            for following, part, most in self._extensions(states[-1], stay):
                heapq.heappush(queue, (-most, next(order), (*states, following), part, 0.0))

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

    def _extensions(self, state: int, stay: Floats) -> Iterator[tuple[int, Floats, float]]:
        """Yield next states with the arrival there, and the probability to violate from it."""
        if self.ended[state]:
            return
        row = self.chain.row(state)
        row[state] = 0.0
        row[self.gone] = 0.0
        leaving = stay if self.horizon is None else stay[:-1]
        if not leaving.any():
            return
        later = self.tables if len(self.tables) == 1 else self.tables[1:]
        for following in np.flatnonzero(row):
            after = later[:, following, self.entered[following]]
            if len(later) == 1:
                most = row[following] * float(leaving.sum(axis=0) @ after[0])
            else:
                most = row[following] * float((leaving * after).sum())
            if most <= NEGLIGIBLE:
                continue
            part = self._arrive(leaving, int(following), float(row[following]))
            yield int(following), part, most

    def _arrive(self, leaving: Floats, following: int, weight: float) -> Floats:
        arrival: Floats = np.zeros((self._times(), leaving.shape[1]))
        shift = 0 if self.horizon is None else 1
        targets = self.entered[following]
        for q in np.flatnonzero(leaving.any(axis=0)):
            arrival[shift:, targets[q]] += weight * leaving[:, q]
        return arrival


class PredicateEffect(NamedTuple):
    """What the risk would be if one predicate were different at the next tick.

    Attributes
    ----------
    predicate : str
        Its name.
    value : bool
        The value it would have.
    risk : float
        Risk then.
    change : float
        The same minus the risk if the state stays as it is; negative where it is lower.
    """

    predicate: str
    value: bool
    risk: float
    change: float


def predicate_effects(
    model: CountModel,
    automaton: Automaton,
    classes: NDArray[np.int64],
    table: RiskTable,
    state: int,
    automaton_state: int,
) -> list[PredicateEffect]:
    """Return how each predicate, changed alone at the next tick, would change the risk.

    The one that would lower it most comes first. Changes to states that the model does not know
    are left out.

    Parameters
    ----------
    model : CountModel
        Names and codes of the n states.
    automaton : Automaton
        The property's monitor, m states.
    classes : ndarray of int, shape (n,)
        Letter class of each chain state.
    table : RiskTable
        Its risk table.
    state, automaton_state : int
        The present product state.
    """
    code = model.states[state]
    if code < 0:
        return []
    entered = entered_states(automaton, classes)

    def risk(index: int) -> float:
        return float(table.values[index, entered[index, automaton_state]])

    staying = risk(state)
    effects: list[PredicateEffect] = []
    for bit, name in enumerate(model.vocabulary.predicates):
        index = model.index.get(code ^ (1 << bit))
        if index is None or np.isnan(risk(index)):
            continue
        effects.append(
            PredicateEffect(name, not code >> bit & 1, risk(index), risk(index) - staying)
        )
    return sorted(effects, key=lambda effect: (effect.change, effect.predicate))
