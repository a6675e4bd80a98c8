"""The evaluation of one moment: a pure function of the memory and a snapshot.

The memory knows the properties whose alerts are silenced: until when, by whom and why.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from forewarn.config.actions import ACTIONS, NO_ACTION
from forewarn.monitoring.advice import Advice
from forewarn.monitoring.composition import risk_facts, violation_facts
from forewarn.monitoring.escape import with_way_out
from forewarn.monitoring.intervention import (
    AdvisorState,
    EscalationStep,
    Intervention,
    advise,
    answers_of,
    out_of_model_answers,
)
from forewarn.monitoring.risk_rows import RiskRow, risk_rows
from forewarn.states.inputs import verdicts

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor, MonitorState
    from forewarn.monitoring.verdict import Verdict
    from forewarn.signals.snapshots import Snapshot


class Muted(NamedTuple):
    """A property whose alerts are silenced: for how many seconds more, by whom and why."""

    name: str
    left: float
    reason: str


class Mutes(NamedTuple):
    """All mutes of a session, by the name of the property; times are those of `Clock.wall`."""

    ends: Mapping[str, float]  # Where each mute ends; infinite for those without an end
    waiting: Mapping[str, int]  # Lengths of mutes that begin with the next first tick
    heard: Mapping[str, int]  # Tick at which a property was heard again after its last mute
    why: Mapping[str, str]  # Who muted a property, and why; may outlast the mute

    @property
    def names(self) -> Collection[str]:
        """Properties that are silenced."""
        return self.ends.keys() | self.waiting.keys()

    def reasons(self) -> dict[str, str]:
        """Return who muted each property that is silenced, and why."""
        return {name: self.why.get(name, "") for name in self.names}

    def left(self, now: int) -> dict[str, float]:
        """Return how long each mute lasts after the moment `now`."""
        return {name: end - 1 - now for name, end in self.ends.items()} | {**self.waiting}

    def at(self, tick: int, now: int) -> Mutes:
        """Return what is silenced at a tick, which is at the moment `now`."""
        if not (self.ends or self.waiting):
            return self
        ends = {**self.ends, **{name: now + left for name, left in self.waiting.items()}}
        lasting = {name: end for name, end in ends.items() if now < end}
        over = dict.fromkeys(ends.keys() - lasting.keys(), tick)
        return Mutes(lasting, {}, {**self.heard, **over}, self.why)

    def restarted(self, now: int | None, shift: int = 0) -> Mutes:
        """Return what is silenced on a new clock, whose ticks are greater by `shift`.

        Each mute lasts for what was left of it at `now`.
        """
        endless = {name: end for name, end in self.ends.items() if math.isinf(end)}
        heard = {name: tick + shift for name, tick in self.heard.items()}
        if now is None:
            return Mutes(endless, self.waiting, heard, self.why)
        left = {name: int(end) - 1 - now for name, end in self.ends.items() if name not in endless}
        return Mutes(endless, left, heard, self.why)

    def with_mute(
        self, name: str, length: float, reason: str, now: int | None, tick: int | None
    ) -> Mutes:
        """Return the mutes with one more, or with one less if its length is 0.

        `length`: from `now` on, or from the next first tick if that is None.
        `now`, `tick`: the last moment and tick.
        """
        ends = {other: end for other, end in self.ends.items() if other != name}
        waiting = {other: left for other, left in self.waiting.items() if other != name}
        heard = {**self.heard}
        if math.isinf(length):
            ends[name] = length
        elif length and now is None:
            waiting[name] = math.ceil(length - 1e-9)
        elif length and now is not None:
            ends[name] = now + math.ceil(length - 1e-9)
        elif name in self.names and tick is not None:
            heard[name] = tick + 1
        return Mutes(ends, waiting, heard, {**self.why, name: reason})


NO_MUTES = Mutes({}, {}, {}, {})


class TickResult(NamedTuple):
    """One tick: the verdict, what is published about it, and what the planner is asked to do."""

    verdict: Verdict
    rows: tuple[RiskRow, ...]
    request: Intervention | None


class EscalationChains(NamedTuple):
    """What each property asks for: its chain of escalation, and what it asks out of model."""

    answers: tuple[tuple[EscalationStep, ...], ...]
    out_of_model: Mapping[str, EscalationStep]

    @classmethod
    def of(cls, monitor: Monitor) -> EscalationChains:
        """Return those of the thresholds in force."""
        sections = monitor.spec.properties.values()
        answers = tuple(answers_of(section, monitor.clock) for section in sections)
        return cls(answers, out_of_model_answers(monitor.spec))


class Memory(NamedTuple):
    """All that is remembered from one moment to the next, but for samples."""

    state: MonitorState
    violations: Sequence[int]  # How many breaches of each property there were
    advisor: AdvisorState = AdvisorState()  # Whether an intervention is going on
    mutes: Mutes = NO_MUTES

    @classmethod
    def blank(cls, monitor: Monitor) -> Memory:
        """Return the memory before the first moment."""
        return cls(monitor.start(), [0] * len(monitor.properties))


class EvaluatedTick(NamedTuple):
    """A tick that has been evaluated: its result, and all that is to be remembered of it."""

    result: TickResult
    memory: Memory


def advised(monitor: Monitor, verdict: Verdict, asked: str = NO_ACTION) -> Advice | None:
    """Return what the shield says of the state while an intervention is asked for."""
    if monitor.shield is None:
        return None
    name = monitor.abstraction.vocabulary.observed_name(verdict.observation)
    observation = verdict.observation
    state = observation.state if observation.active is True else None
    return monitor.shield.advise(state, name, monitor.clock, asked)


def evaluate(
    monitor: Monitor, chains: EscalationChains, memory: Memory, snapshot: Snapshot
) -> EvaluatedTick:
    """Evaluate a moment."""
    state, verdict = monitor.step(memory.state, snapshot)
    violations = [
        count + prop.counted
        for count, prop in zip(memory.violations, verdict.properties, strict=True)
    ]
    tick, clock = snapshot.tick, monitor.clock
    mutes = memory.mutes.at(tick, clock.wall(tick, verdict.time_ns))
    rows = risk_rows(monitor, verdict, violations, mutes.ends)
    act = monitor.spec.mode == "act"
    # Nothing was asked for meanwhile: a chain of escalation begins after the mute.
    since = [
        max(prop.alert_since, mutes.heard.get(prop.name, prop.alert_since))
        for prop in verdict.properties
    ]
    advisor, request = advise(
        memory.advisor, rows, since, chains.answers, chains.out_of_model, act=act, clock=clock
    )
    if request is not None and request.action != NO_ACTION:
        advice = advised(monitor, verdict, request.action)
        request = request if advice is None else request.with_advice(advice)
        findings = verdicts(monitor.spec, monitor.abstraction.signals, verdict.values)
        facts = tuple(f"{name}: {text}" for name, text in findings.items() if text)
        facts += violation_facts(monitor, verdict, request.property)
        facts += risk_facts(monitor, verdict, request.property)
        facts += monitor.abstraction.scores_in_words(state.past, verdict.values)
        facts += tuple(prop.held for prop in verdict.properties if prop.held)
        request = request._replace(evidence=(*request.evidence, *facts))
        if monitor.clear_ways:
            before = memory.state.tick
            request = with_way_out(request, monitor.clear_ways, before, verdict, rows, mutes.names)
    if state.run is not None and request is not None and request.active:
        # What follows is not what normal runs do, and no surprise.
        shapes = ACTIONS[request.action].shapes
        state = state._replace(run=state.run.broken()) if shapes else state
    result = TickResult(verdict, rows, request)
    return EvaluatedTick(result, Memory(state, violations, advisor, mutes))
