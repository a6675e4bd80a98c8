"""The monitor: a pure step from snapshot to verdict (DESIGN: sections 1 and 3).

The step has no clock, no input or output and no logging. The node, replay and learning all call
it, and so all get the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from forewarn.checking.shield import ShieldTable
from forewarn.config import MonitorSpec
from forewarn.monitoring.belief import MAX_BLIND, Belief, Filter, beginning, follow
from forewarn.monitoring.branches import Step, advance
from forewarn.monitoring.live_anomaly import Detector, RunState
from forewarn.monitoring.policy import RESTING, PolicyState, decide
from forewarn.monitoring.property_risk import (
    CERTAIN,
    NAN,
    NO_RISK,
    NOT_JUDGED,
    OVER,
    UNSEEN,
    Risk,
    by_scores,
    least_figure,
    look_up,
    risk_of_action,
    scored_risk,
    uncertain_risk,
)
from forewarn.monitoring.tables import CompiledProperty, LoadedModel
from forewarn.monitoring.verdict import (
    NO_EXPECTED,
    NO_LEAST,
    ExpectedFigure,
    LeastFigure,
    PropertyStatus,
    PropertyVerdict,
    Verdict,
)
from forewarn.signals.clock import Clock
from forewarn.signals.snapshots import Failure, Snapshot
from forewarn.states.abstraction import Abstraction, Past
from forewarn.states.fresh import FreshCondition, clear_ways
from forewarn.states.interface import Observed

MAX_GAP = 10_000
# A member of an enumeration costs more to look up than the comparison with it.
UNKNOWN, VIOLATED, ENDED = PropertyStatus.UNKNOWN, PropertyStatus.VIOLATED, PropertyStatus.ENDED


class PropertyState(NamedTuple):
    """The state of one property between two ticks.

    Attributes
    ----------
    branches : tuple of int
        Where the live automaton may be after the last tick.
    latched : bool
        A violation was counted and its condition may not have cleared.
    policy : PolicyState
        Alert level and counters.
    belief : Belief
        How probable each product state is; empty if nobody asks.
    """

    branches: tuple[int, ...]
    latched: bool
    policy: PolicyState
    belief: Belief = ()


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
    past : Past or None
        What the last tick leaves to the next one.
    run : RunState or None
        The run, as far as it was watched for anomalies; None before its first tick.
    """

    tick: int | None
    first: int
    seen: bool
    properties: tuple[PropertyState, ...]
    past: Past | None
    run: RunState | None = None


class Moment(NamedTuple):
    """What all properties read at one tick.

    Attributes
    ----------
    observation : Observed
        What is known of the state.
    row : int or None
        Its row in the tables, where the model has it.
    action : str or None
        What is being done, where it is known and somebody asks.
    values : sequence
        Values of all signals in slot order; None where unknown.
    suspended : bool
        Values are missing, and only of signals whose staleness is to be ignored.
    waiting : bool
        Nothing was fully known so far, and the time to start up is not over.
    """

    tick: int
    observation: Observed
    row: int | None
    action: str | None
    values: Sequence[Any]
    suspended: bool
    waiting: bool


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
    detector : Detector or None
        What tells runs that are unlike normal ones, if the monitor file asks for it.
    shield : ShieldTable or None
        What is safest in each state, if the monitor file asks for it and the model knows.
    filter : Filter or None
        What beliefs are computed with, if the monitor file asks for them and there is a model.
    """

    spec: MonitorSpec
    abstraction: Abstraction
    properties: tuple[CompiledProperty, ...]
    model: LoadedModel | None
    notes: tuple[str, ...] = ()
    detector: Detector | None = None
    shield: ShieldTable | None = None
    filter: Filter | None = None

    @property
    def bounded(self) -> bool:
        """Tell whether the tables have the bounds that the monitor file asks for."""
        tables = [prop.table for prop in self.properties]
        return self.spec.bounds.kind == "none" or all(
            table is None or table.kind != "none" for table in tables
        )

    @property
    def clock(self) -> Clock:
        """Return the clock: ticks at a rate, or steps."""
        return self.abstraction.clock

    @cached_property
    def startup(self) -> float:
        """Return the moments since the first within which missing signals raise no alert."""
        return self.spec.startup * self.clock.rate

    @cached_property
    def clear_ways(self) -> Mapping[str, FreshCondition]:
        """Return when a stopped robot may move, by ways, if the monitor file says so."""
        return clear_ways(self.spec, self.abstraction)

    @cached_property
    def asks_what_is_done(self) -> bool:
        """Tell whether the step wants the action that is in force."""
        return self.detector is not None or any(p.of_actions is not None for p in self.properties)

    def start(self) -> MonitorState:
        """Return the state before the first tick."""
        return MonitorState(None, 0, False, tuple(map(self.fresh, self.properties)), None)

    def fresh(self, compiled: CompiledProperty) -> PropertyState:
        """Return where a property stands before the first tick."""
        initial = compiled.automaton.initial
        asked = self.spec.noise is not None or compiled.spec.figure == "expected"
        return PropertyState((initial,), False, RESTING, beginning(initial) if asked else ())

    def with_properties(self, properties: tuple[CompiledProperty, ...]) -> Monitor:
        """Return the monitor with other compiled properties: new thresholds, say."""
        return replace(self, properties=properties)

    def step(self, state: MonitorState, snapshot: Snapshot) -> tuple[MonitorState, Verdict]:
        """Advance by one tick.

        Parameters
        ----------
        state : MonitorState
            The state that the step before returned. Every tick that was missed since counts as
            a tick at which nothing is known.
        snapshot : Snapshot
            All source signals at the tick.

        Returns
        -------
        state : MonitorState
            The state for the next step.
        verdict : Verdict
            The verdict at this tick.
        """
        first = snapshot.tick if state.tick is None else state.first
        missed: frozenset[str] = frozenset()
        if state.tick is not None and snapshot.tick > state.tick + 1:
            state, missed = self._miss(state, snapshot.tick - state.tick - 1)
        observation, past, values, failed = self.abstraction.observe(snapshot, state.past)
        seen = state.seen or observation.state is not None
        waiting = not seen and snapshot.tick - first < self.startup
        time_ns = snapshot.time_ns
        if time_ns is None:
            time_ns = self.clock.time_ns(snapshot.tick)
        row = None
        if self.model is not None and observation.state is not None:
            row = self.model.rows.get(observation.state)
        action = None
        if self.asks_what_is_done:
            action, reason = snapshot.action, ""
            if self.abstraction.action is not None:
                action, reason = self.abstraction.done(values)
            if reason:
                failed += (Failure("action", reason),)
        moment = Moment(
            snapshot.tick, observation, row, action, values, snapshot.suspended, waiting
        )
        states, verdicts = [], []
        code = None if waiting or row is None or observation.active is False else observation.state
        for compiled, before in zip(self.properties, state.properties, strict=True):
            key = row, code, before
            known = None if code is None else compiled.steady.get(key)
            if known is None:
                known = self._property(compiled, before, moment)
                if code is not None and _is_steady(compiled, before, known[0]):
                    compiled.remember(key, known)
            after, verdict = known
            if compiled.name in missed and not verdict.violation:
                verdict = verdict._replace(possible_violation=True)
            states.append(after)
            verdicts.append(verdict)
        run, anomaly = state.run, None
        if self.detector is not None:
            run, anomaly = self.detector.enter(run, snapshot.tick, observation, action)
        return (
            MonitorState(snapshot.tick, first, seen, tuple(states), past, run),
            Verdict(
                snapshot.tick,
                time_ns,
                observation,
                tuple(verdicts),
                snapshot.stale,
                snapshot.failures + failed,
                values,
                anomaly,
            ),
        )

    def broken_by(self, state: MonitorState, values: Sequence[Any]) -> tuple[str, ...]:
        """Return the names of the properties that the next moment violates for certain.

        The state of the monitor does not change.

        Parameters
        ----------
        state : MonitorState
            What the step before returned.
        values : sequence
            What is known of the source signals then, in slot order; None where unknown.
        """
        abstraction, tick = self.abstraction, (state.tick or 0) + 1
        known, _, _ = abstraction.complete(values, abstraction.cells(state.past, tick))
        observation = abstraction.following(state.past, tick, abstraction.evaluate(known))
        if observation.active is False:
            return ()
        return tuple(
            compiled.name
            for compiled, before in zip(self.properties, state.properties, strict=True)
            if compiled.after(before.branches, before.latched, observation).violation
        )

    def _miss(self, state: MonitorState, ticks: int) -> tuple[MonitorState, frozenset[str]]:
        """Let every automaton take steps about which nothing is known.

        Returns
        -------
        state : MonitorState
            Where it may be then.
        missed : frozenset of str
            Properties that may have been violated meanwhile.
        """
        properties, missed = [], set[str]()
        nothing = self.abstraction.vocabulary.nothing_known
        for compiled, before in zip(self.properties, state.properties, strict=True):
            letters = compiled.compatible_letters(nothing)
            for _ in range(min(ticks, MAX_GAP)):
                step = advance(compiled.live, before.branches, before.latched, letters)
                if step.possible or step.violation:
                    missed.add(compiled.name)
                after = before._replace(branches=step.branches, latched=step.latched)
                if after == before:
                    break
                before = after
            belief = before.belief
            if self.filter is not None and belief:
                for _ in range(min(ticks, MAX_BLIND)):
                    belief, _ = follow(self.filter, compiled, belief, nothing)
            properties.append(before._replace(belief=belief))
        return state._replace(properties=tuple(properties)), frozenset(missed)

    def _property(
        self,
        compiled: CompiledProperty,
        before: PropertyState,
        moment: Moment,
    ) -> tuple[PropertyState, PropertyVerdict]:
        tick, observation, row, action, values, suspended, waiting = moment
        if observation.active is False:
            start = (compiled.automaton.initial,)
            after = self.fresh(compiled)
            nothing = Step(start, start, False, PropertyStatus.INACTIVE, False, False)
            return after, _verdict(compiled, after, nothing, PropertyStatus.INACTIVE, NO_RISK)
        code = observation.state
        step = compiled.after(before.branches, before.latched, observation)
        branches, status = step.branches, step.status
        if status is VIOLATED:
            risk = CERTAIN
        elif compiled.values is None:
            risk = NO_RISK
        elif status is ENDED:
            risk = OVER
        elif row is not None and len(branches) == 1 and status is not UNKNOWN:
            if compiled.of_actions is not None:
                risk = risk_of_action(compiled.of_actions, row, branches[0], action)
            elif compiled.scored is not None and (odds := compiled.scored.odds(values)) is not None:
                risk = scored_risk(compiled.scored, row, branches[0], odds)
            else:
                risk = look_up(compiled, row, branches[0])
        elif code is None and suspended:
            risk, status = NOT_JUDGED, UNKNOWN
        else:
            table = compiled.table if compiled.of_actions is None else compiled.of_actions
            assert table is not None and self.model is not None
            odds = None if compiled.scored is None else compiled.scored.odds(values)
            if compiled.scored is not None and odds is not None:
                table = compiled.scored.table
            risk = uncertain_risk(
                self.model, compiled, before.branches, observation, row, table, odds
            )
        if risk is UNSEEN and compiled.scored is not None:
            risk = by_scores(compiled.scored, values)
        belief, expected = self._expected(compiled, before.belief, moment, risk)
        if waiting and status is not VIOLATED:  # which no missing signal can bring about
            after = PropertyState(branches, step.latched, before.policy, belief)
            return after, _verdict(compiled, after, step, UNKNOWN, risk, expected=expected)
        least = NO_LEAST
        if compiled.least is not None:
            least = least_figure(
                self.model, compiled, before.branches, observation, row, step, risk
            )
        figure = (risk.probability, risk.upper, least.probability, expected.probability)[
            compiled.announced.figure
        ]
        if risk is NO_RISK:
            # Without a model only a violation raises an alert, so its end must release it.
            figure = 0.0
        elif risk is NOT_JUDGED:
            figure = NAN  # its upper bound of 1 must not alert either
        # Where nothing was seen done, the least risk is as unknown as in a state never seen.
        known = figure == figure or risk is NOT_JUDGED
        unseen = not (risk.in_model and (compiled.spec.figure != "pmin" or known))
        if unseen and compiled.spec.figure == "upper":
            figure = NAN  # a bound of 1 tells nothing
        if compiled.spec.figure == "expected":
            # Readings that were never seen may still tell what is likely, if they may be wrong.
            unseen = not known
        policy = decide(compiled.rules, before.policy, tick, figure, unseen=unseen)
        after = PropertyState(branches, step.latched, policy, belief)
        return after, _verdict(compiled, after, step, status, risk, least, expected)

    def _expected(
        self,
        compiled: CompiledProperty,
        belief: Belief,
        moment: Moment,
        risk: Risk,
    ) -> tuple[Belief, ExpectedFigure]:
        """Return the belief about a property after a tick, and the mean risk over it."""
        if not belief:
            return belief, NO_EXPECTED
        expected = NO_EXPECTED._replace(left_out=0.0)
        if self.filter is not None and compiled.table is not None:
            odds = None if compiled.scored is None else compiled.scored.odds(moment.values)
            belief, expected = follow(
                self.filter, compiled, belief, moment.observation, moment.action, odds
            )
        if expected.probability != expected.probability and (risk is CERTAIN or risk is OVER):
            expected = expected._replace(probability=risk.probability)
        return belief, expected


def _is_steady(compiled: CompiledProperty, before: PropertyState, after: PropertyState) -> bool:
    """Tell whether a tick would be judged the same at any other time: no alert counts ticks."""
    # The policy returns what it was given only where it rests.
    return (
        after.policy is before.policy
        and compiled.scored is None
        and compiled.of_actions is None
        and not before.belief
    )


def _verdict(
    compiled: CompiledProperty,
    after: PropertyState,
    step: Step,
    status: PropertyStatus,
    risk: Risk,
    least: LeastFigure = NO_LEAST,
    expected: ExpectedFigure = NO_EXPECTED,
) -> PropertyVerdict:
    return PropertyVerdict(
        compiled.name,
        status,
        step.violation,
        step.possible,
        risk.probability,
        risk.lower,
        risk.upper,
        risk.in_model,
        step.automaton,
        after.policy.level,
        after.policy.since,
        least,
        expected,
    )
