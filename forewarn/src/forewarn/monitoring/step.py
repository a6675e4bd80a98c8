"""The monitor: a pure step from snapshot to verdict (DESIGN: sections 1 and 3).

The step has no clock, no input or output and no logging. The node, replay and learning all call
it, and so all get the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.monitoring.belief import MAX_BLIND, Filter, beginning, follow
from forewarn.monitoring.branches import advance
from forewarn.monitoring.policy import RESTING, waits
from forewarn.monitoring.property_step import PropertyState, TickInputs, inactive, is_steady, judge
from forewarn.monitoring.verdict import PropertyVerdict, Verdict
from forewarn.signals.snapshots import Failure, Snapshot, identical, singly
from forewarn.states.condition import clear_ways

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.monitoring.advice import Shield
    from forewarn.monitoring.run_anomaly import Detector, RunState
    from forewarn.monitoring.tables import CompiledProperty, LoadedModel
    from forewarn.signals.clock import Clock
    from forewarn.states.abstraction import Abstraction, Past
    from forewarn.states.condition import Condition

MAX_GAP = 10_000


class MonitorState(NamedTuple):
    """All that a monitor remembers from one tick to the next."""

    tick: int | None  # The last tick; None before the first
    first: int  # The first tick since activation or reset
    seen: bool  # Some tick since then was fully known
    properties: tuple[PropertyState, ...]  # In the order of the monitor file
    past: Past | None  # What the last tick leaves to the next one
    # The run, as far as it was watched for anomalies; None before its first tick
    run: RunState | None = None


@dataclass(frozen=True)
class Monitor:
    """Compiled properties over one abstraction."""

    spec: MonitorSpec
    abstraction: Abstraction
    properties: tuple[CompiledProperty, ...]
    model: LoadedModel | None  # The learned states; without a model there are verdicts and no risk
    notes: tuple[str, ...] = ()  # What the user should know about properties and tables
    remarks: tuple[str, ...] = ()  # What risks and their bounds are made of, which warns of nothing
    detector: Detector | None = None
    shield: Shield | None = None
    filter: Filter | None = None

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Notes and remarks."""
        return (*self.notes, *self.remarks)

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
        return self.spec.startup_grace * self.clock.rate

    @cached_property
    def clear_ways(self) -> Mapping[str, Condition]:
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
        asked = self.spec.observation_error is not None or compiled.spec.risk_measure == "expected"
        return PropertyState((initial,), False, RESTING, beginning(initial) if asked else ())

    def step(self, state: MonitorState, snapshot: Snapshot) -> tuple[MonitorState, Verdict]:
        """Advance by one tick.

        `state`: the state that the step before returned. Every tick that was missed since counts as
        a tick at which nothing is known.
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
            row = self.model.index.get(observation.state)
        action, reason = self._done(snapshot, values)
        if reason:
            failed += (Failure("action", reason),)
        moment = TickInputs(
            snapshot.tick, observation, row, action, values, snapshot.suspended, waiting, missed
        )
        states, verdicts = self._judged(state.properties, moment)
        run, anomaly = state.run, None
        if self.detector is not None:
            run, anomaly = self.detector.enter(run, snapshot.tick, observation, action, values)
        return (
            MonitorState(snapshot.tick, first, seen, states, past, run),
            Verdict(
                snapshot.tick,
                time_ns,
                observation,
                verdicts,
                snapshot.stale,
                snapshot.failures + failed,
                values,
                anomaly,
            ),
        )

    def through(
        self, state: MonitorState, snapshot: Snapshot
    ) -> Iterator[tuple[MonitorState, Verdict]]:
        """Advance by a tick and by those that repeat it: once for all, when nothing changes more.

        `state` and what is yielded are those of `step`; see `Verdict.repeats`.
        """
        for one, left in singly(snapshot, self.clock):
            before, (state, verdict) = state, self.step(state, one)
            if left and self._rests(before, state):
                assert state.past is not None
                last = state._replace(tick=one.tick + left, past=state.past.after(left))
                yield last, verdict._replace(repeats=left)
                return
            yield state, verdict

    def _rests(self, before: MonitorState, after: MonitorState) -> bool:
        """Tell whether all ticks that show the same as the last one come to the same."""
        past, tick = after.past, after.tick
        if self.detector is not None or past is None or not past.same_but_for_time(before.past):
            return False
        assert tick is not None
        starts = not after.seen and tick - after.first < self.startup
        policies = zip(self.properties, after.properties, strict=True)
        if starts or any(waits(one.rules, state.policy, tick) for one, state in policies):
            return False
        return identical(before.properties, after.properties)

    def _done(self, snapshot: Snapshot, values: Sequence[Any]) -> tuple[str | None, str]:
        """Return what is being done, if it is used, and why it is unknown."""
        if not self.asks_what_is_done:
            return None, ""
        if self.abstraction.action is None:
            return snapshot.action, ""
        return self.abstraction.done(values)

    def _judged(
        self, properties: tuple[PropertyState, ...], moment: TickInputs
    ) -> tuple[tuple[PropertyState, ...], tuple[PropertyVerdict, ...]]:
        """Advance all properties by a tick; what a steady one came to before is looked up."""
        observation, row = moment.observation, moment.row
        active = observation.active is not False
        known_row = row is not None or self.model is None
        plain = active and known_row and not moment.waiting and not moment.missed
        code = observation.state if plain else None
        states, verdicts = [], []
        for compiled, before in zip(self.properties, properties, strict=True):
            key = row, code, before
            known = None if code is None else compiled.steady.get(key)
            if known is None:
                if active:
                    known = judge(compiled, before, moment, self.model, self.filter)
                else:
                    known = inactive(compiled, self.fresh(compiled), moment)
                if code is not None and is_steady(compiled, before, known[0]):
                    compiled.remember(key, known)
            after, verdict = known
            states.append(after)
            verdicts.append(verdict)
        return tuple(states), tuple(verdicts)

    def broken_by(self, state: MonitorState, values: Sequence[Any]) -> tuple[str, ...]:
        """Return the names of the properties that the next moment violates for certain.

        The state of the monitor does not change.

        `values`: what is known of the source signals then, in slot order; None where unknown.
        """
        abstraction, tick = self.abstraction, (state.tick or 0) + 1
        alone = abstraction.unseen
        if abstraction.memories or any(value is not None for value in values):
            known, _, _ = abstraction.complete(values, abstraction.cells(state.past, tick))
            alone = abstraction.evaluate(known)
        observation = abstraction.following(state.past, tick, alone)
        if observation.active is False:
            return ()
        return tuple(
            compiled.name
            for compiled, before in zip(self.properties, state.properties, strict=True)
            if compiled.after(before.branches, before.latched, observation).violation
        )

    def _miss(self, state: MonitorState, ticks: int) -> tuple[MonitorState, frozenset[str]]:
        """Let every automaton take steps about which nothing is known.

        `state`: where it may be then.
        `missed`: properties that may have been violated meanwhile.
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
