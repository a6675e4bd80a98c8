"""The monitor: a pure step from snapshot to verdict (DESIGN: sections 1 and 3).

There is no clock, no input or output and no logging here. The same step runs in the node, in
replay and in learning, and so gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from forewarn.checking.labels import ENDED
from forewarn.config import MonitorSpec
from forewarn.monitoring.policy import RESTING, PolicyState, decide
from forewarn.monitoring.tables import CompiledProperty, LoadedModel
from forewarn.monitoring.verdict import PropertyVerdict, Status, Verdict
from forewarn.predicates import Abstraction, Observation, with_history
from forewarn.signals.feed import Failure, Snapshot
from forewarn.signals.grid import Grid

NAN = math.nan
NOTHING_KNOWN = Observation(None, 0, 0, -1, True)
MAX_GAP = 10_000


class PropertyState(NamedTuple):
    """Where one property stands.

    Attributes
    ----------
    automaton : tuple of int
        States the automaton may be in after the last tick.
    latched : bool
        A violation was counted and its condition has not cleared.
    policy : PolicyState
        Alert level and counters.
    """

    automaton: tuple[int, ...]
    latched: bool
    policy: PolicyState


class MonitorState(NamedTuple):
    """All that a monitor remembers from one tick to the next.

    Attributes
    ----------
    tick : int or None
        The last tick; None before the first.
    first : int
        The first tick since activation or reset.
    seen : bool
        Some tick since then was fully known.
    properties : tuple of PropertyState
        In the order of the monitor file.
    observation : Observation or None
        What the last tick gave by itself.
    """

    tick: int | None
    first: int
    seen: bool
    properties: tuple[PropertyState, ...]
    observation: Observation | None


class Risk(NamedTuple):
    """Risk of one property at one tick, before any policy."""

    probability: float
    lower: float
    upper: float
    in_model: bool


NO_RISK = Risk(NAN, NAN, NAN, True)
UNSEEN = Risk(NAN, 0.0, 1.0, False)
NOT_JUDGED = Risk(NAN, 0.0, 1.0, True)


@dataclass(frozen=True)
class Monitor:
    """Compiled properties over one abstraction.

    Attributes
    ----------
    spec : MonitorSpec
        The monitor file.
    abstraction : Abstraction
        Signals and predicates.
    properties : tuple of CompiledProperty
        In the order of the monitor file.
    model : LoadedModel or None
        The learned states; without a model there are verdicts and no risk.
    notes : tuple of str
        What the user should know about properties and tables.
    """

    spec: MonitorSpec
    abstraction: Abstraction
    properties: tuple[CompiledProperty, ...]
    model: LoadedModel | None
    notes: tuple[str, ...] = ()

    @property
    def bounded(self) -> bool:
        """Tell whether the tables have the bounds that the monitor file asks for."""
        tables = [each.table for each in self.properties]
        return self.spec.bounds.kind == "none" or all(
            table is None or table.kind != "none" for table in tables
        )

    @cached_property
    def grid(self) -> Grid:
        """Return the grid of ticks."""
        return Grid(self.spec.rate)

    def start(self) -> MonitorState:
        """Return the state before the first tick."""
        fresh = tuple(
            PropertyState((p.automaton.initial,), False, RESTING) for p in self.properties
        )
        return MonitorState(None, 0, False, fresh, None)

    def with_properties(self, properties: tuple[CompiledProperty, ...]) -> Monitor:
        """Return the monitor with other compiled properties: new thresholds, say."""
        return replace(self, properties=properties)

    def step(self, state: MonitorState, snapshot: Snapshot) -> tuple[MonitorState, Verdict]:
        """Advance by one tick.

        Parameters
        ----------
        state : MonitorState
            What the step before returned. If ticks were missed since, each of them counts as one
            about which nothing is known.
        snapshot : Snapshot
            All source signals at the tick.
        """
        values, failed = self.abstraction.complete(snapshot.values)
        current = self.abstraction.evaluate(values)
        if current.state is None or current.active is None or current.intervened is None:
            failed += self.abstraction.undecided(values, current)
        first = snapshot.tick if state.tick is None else state.first
        if state.tick is not None and snapshot.tick > state.tick + 1:
            state = self._miss(state, snapshot.tick - state.tick - 1)
        observation = with_history(self.abstraction, state.observation, current)
        seen = state.seen or observation.state is not None
        waiting = not seen and snapshot.tick - first < self.spec.startup * self.spec.rate
        row = None
        if self.model is not None and observation.state is not None:
            row = self.model.rows.get(observation.state)
        states, verdicts = [], []
        for compiled, before in zip(self.properties, state.properties, strict=True):
            after, verdict = self._property(compiled, before, observation, row, snapshot, waiting)
            states.append(after)
            verdicts.append(verdict)
        failures = snapshot.failures
        if failed:
            failures += tuple(map(_failure, failed))
        return (
            MonitorState(snapshot.tick, first, seen, tuple(states), current),
            Verdict(
                snapshot.tick,
                self.grid.time_ns(snapshot.tick),
                observation,
                tuple(verdicts),
                snapshot.stale,
                failures,
            ),
        )

    def _miss(self, state: MonitorState, ticks: int) -> MonitorState:
        """Let every automaton take steps about which nothing is known."""
        properties = []
        everything = (1 << len(self.abstraction.vocabulary.terminals)) - 1
        nothing = NOTHING_KNOWN._replace(open_terminals=everything)
        for compiled, before in zip(self.properties, state.properties, strict=True):
            classes = compiled.compatible_classes(
                nothing, len(self.abstraction.vocabulary.terminals)
            )
            automaton = before.automaton
            for _ in range(min(ticks, MAX_GAP)):
                after = compiled.successors(automaton, classes)
                if after == automaton:
                    break
                automaton = after
            properties.append(before._replace(automaton=automaton))
        return state._replace(properties=tuple(properties), observation=nothing)

    def _property(
        self,
        compiled: CompiledProperty,
        before: PropertyState,
        observation: Observation,
        row: int | None,
        snapshot: Snapshot,
        waiting: bool,
    ) -> tuple[PropertyState, PropertyVerdict]:
        if observation.active is False:
            after = PropertyState((compiled.automaton.initial,), False, RESTING)
            return after, _verdict(compiled, after, Status.INACTIVE, NO_RISK)
        code = observation.state
        if code is not None:
            classes = compiled.classes_of(code)
        else:
            classes = compiled.compatible_classes(
                observation, len(self.abstraction.vocabulary.terminals)
            )
        automaton, latched, status, violation, possible = advance(compiled, before, classes)
        if status is Status.VIOLATED:
            risk = Risk(1.0, 1.0, 1.0, True)
        elif compiled.values is None:
            risk = NO_RISK
        elif row is not None and len(automaton) == 1:
            risk = _look_up(compiled, row, automaton[0])
        elif code is not None:
            risk = UNSEEN if row is None else _worst(compiled, [row], automaton)
        elif snapshot.suspended:
            risk, status = NOT_JUDGED, Status.UNKNOWN
        else:
            risk = self._uncertain(compiled, before, observation)
        if waiting and status is not Status.VIOLATED:  # which no missing signal can bring about
            after = PropertyState(automaton, latched, before.policy)
            return after, _verdict(compiled, after, Status.UNKNOWN, risk, violation, possible)
        figure = risk.upper if compiled.spec.figure == "upper" else risk.probability
        if risk is NO_RISK:
            # Without a model only a violation raises an alert, so its end must release it.
            figure = 0.0
        elif risk is NOT_JUDGED:
            figure = NAN  # its upper bound of 1 must not alert either
        unseen = not risk.in_model
        policy = decide(compiled.rules, before.policy, snapshot.tick, figure, unseen=unseen)
        after = PropertyState(automaton, latched, policy)
        return after, _verdict(compiled, after, status, risk, violation, possible)

    def _uncertain(
        self, compiled: CompiledProperty, before: PropertyState, observation: Observation
    ) -> Risk:
        """Return the worst risk over all product states that agree with what is known."""
        assert self.model is not None and compiled.table is not None
        rows, complete = self.model.compatible(observation)
        if not rows.size:
            return UNSEEN
        classes = compiled.row_classes[rows]
        found = [
            np.where(
                classes == ENDED,
                compiled.automaton.initial,
                compiled.automaton.transitions[q, np.maximum(classes, 0)],
            )
            for q in ((compiled.automaton.initial,) if before.latched else before.automaton)
        ]
        columns = np.array(found)
        table = compiled.table
        values = table.values[rows, columns]
        if np.isnan(values).all():
            return UNSEEN
        lower, upper = NAN, NAN
        if table.lower is not None and table.upper is not None:
            lower = float(table.lower[rows, columns].min()) if complete else 0.0
            upper = float(table.upper[rows, columns].max()) if complete else 1.0
        return Risk(float(np.nanmax(values)), lower, upper, True)


def advance(
    compiled: CompiledProperty, before: PropertyState, classes: tuple[int, ...]
) -> tuple[tuple[int, ...], bool, Status, bool, bool]:
    """Advance the automaton of a property over the letter classes that are possible.

    Returns
    -------
    automaton : tuple of int
        States it may be in; after a violation it has started again.
    latched : bool
        The condition of a violation that was counted still lasts.
    status : Status
        VIOLATED, ENDED, CANNOT_BE_VIOLATED, SATISFIED_SO_FAR or UNKNOWN.
    violation : bool
        A violation happened at this tick.
    possible : bool
        Some of the states it may be in are violated.
    """
    initial, violated = compiled.automaton.initial, compiled.violated
    if classes == (ENDED,):
        return (initial,), False, Status.ENDED, False, False
    if len(classes) == 1 and len(before.automaton) == 1 and not before.latched:
        state = compiled.delta[before.automaton[0] * compiled.width + classes[0]]
        if state != violated:
            return (state,), False, compiled.certain[state], False, False
    start = compiled.successors((initial,), classes)
    if before.latched:
        if start == (violated,):
            return start, True, Status.VIOLATED, False, False
        after: tuple[int, ...] = start
    else:
        after = compiled.successors(before.automaton, classes)
        if after == (violated,):
            latched = start == (violated,)
            return start, latched, Status.VIOLATED, True, False
    possible = violated in after
    if possible and len(classes) == 1:
        after = tuple(q for q in after if q != violated)
    status = compiled.certain[after[0]] if len(after) == 1 else Status.SATISFIED_SO_FAR
    if possible and len(classes) > 1:
        status = Status.UNKNOWN
    return after, False, status, False, possible


def _look_up(compiled: CompiledProperty, row: int, automaton: int) -> Risk:
    assert compiled.values is not None and compiled.table is not None
    index = row * compiled.table.values.shape[1] + automaton
    value = compiled.values[index]
    if value != value:
        return UNSEEN
    if compiled.lower is None or compiled.upper is None:
        return Risk(value, NAN, NAN, True)
    return Risk(value, compiled.lower[index], compiled.upper[index], True)


def _worst(compiled: CompiledProperty, rows: list[int], automaton: tuple[int, ...]) -> Risk:
    found = [_look_up(compiled, row, q) for row in rows for q in automaton]
    known = [r.probability for r in found if r.in_model]
    if not known:
        return UNSEEN
    return Risk(
        max(known),
        float(np.min([r.lower for r in found])),
        float(np.max([r.upper for r in found])),
        True,
    )


def _failure(failed: tuple[str, str]) -> Failure:
    return Failure(*failed)


def _verdict(
    compiled: CompiledProperty,
    after: PropertyState,
    status: Status,
    risk: Risk,
    violation: bool = False,
    possible: bool = False,
) -> PropertyVerdict:
    return PropertyVerdict(
        compiled.name,
        status,
        violation,
        possible,
        risk.probability,
        risk.lower,
        risk.upper,
        risk.in_model,
        after.automaton,
        after.policy.level,
        after.policy.since,
    )
