"""Judgement of an agent's call before it is made.

A step of an agent's run is the moment before its call (`wings.agents.steps`). It is evaluated
like any other moment. If the call is not made, the step has not happened, and the memory stays as
it was. A look ahead follows: does the call violate a rule for certain, whatever it returns?
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.config.actions import ACTIONS, ASK, NO_ACTION, REPLAN, SEVERITY
from forewarn.errors import ConfigError, ConfigErrors, InputError, RecordingError
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.checkpoint import key, parse_properties, properties_data
from forewarn.monitoring.evaluate import EscalationChains, EvaluatedTick, Memory, advised, evaluate
from forewarn.monitoring.intervention import AdvisorState
from forewarn.monitoring.step import Monitor, MonitorState
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.sources import snapshot_of
from forewarn.wings.agents.steps import KNOWN_AFTERWARDS, Progress
from forewarn.wings.agents.unknowns import possibly_broken

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.counts import CountModel
    from forewarn.monitoring.risk_rows import RiskRow
    from forewarn.monitoring.verdict import Verdict
    from forewarn.wings.agents.calls import Call

INTERVENED = "intervened"
"""Signal that tells whether a call was imposed; for `intervened_when`."""
NOW = "this call breaks the rule"
MAYBE = "it is not known whether this breaks the rule"
WHATEVER = "this call breaks the rule, whatever it returns"
NOTHING: Mapping[str, Any] = MappingProxyType({})


class RuleState(NamedTuple):
    """Where a run stands between two calls.

    `progress`: what is known of it.
    `memory`: what is remembered.
    `owed`: properties that the next step breaks, whatever it is: the last call's doing, no other's.
    """

    progress: Progress
    memory: Memory
    owed: tuple[str, ...] = ()


class Objection(NamedTuple):
    """Why a property speaks against a call, and whether it is known to be violated."""

    reason: str
    certain: bool


class Judgement(NamedTuple):
    """What the rules say of a proposed call.

    `action`: what is asked for, of `config.actions`.
    `active`: it is to be done; False in `mode: observe`.
    `property`: the property that decided; empty if none did.
    `properties`: all that have something against the call.
    `certain`: the call breaks a rule for certain, whatever it returns.
    `unknown`: why it is not known of some rules whether the call breaks them; `on_unknown` of their
        properties says what becomes of it.
    `risk`: figure of the property that decided; NaN where there is none.
    `reason`: why, in one sentence.
    `evidence`: what that rests on.
    `recommendation`: the call that was safest in this state, as far as was seen: the monitor file's
        `shield`. Empty if there is none, or nothing is against the proposed call.
    `rows`: what is published about the step.
    `values`: the signals of the step.
    `after`: where the run stands if the call is made.
    """

    action: str
    active: bool
    property: str
    properties: tuple[str, ...]
    certain: bool
    unknown: tuple[str, ...]
    risk: float
    reason: str
    evidence: tuple[str, ...]
    recommendation: str
    rows: tuple[RiskRow, ...]
    values: Mapping[str, Any]
    after: RuleState


@dataclass(frozen=True)
class Judge:
    """Judges proposed calls by a monitor file; remembers nothing itself, and may be shared.

    `monitor`: the compiled monitor file with its tables.
    """

    monitor: Monitor

    @classmethod
    def of(cls, compiled: CompiledSpec, model: CountModel | None) -> Judge:
        """Return the judge of a monitor file.

        Raises ConfigError if the file is not for agents: another clock, topics, actions of
        vehicles; ModelError if the model belongs to another monitor file.
        """
        errors = list(_misfits(compiled.spec))
        if errors:
            raise ConfigErrors([error.located(file=compiled.spec.file) for error in errors])
        return cls(build_monitor(compiled, model))

    @cached_property
    def chains(self) -> EscalationChains:
        """What each property asks for."""
        return EscalationChains.of(self.monitor)

    @cached_property
    def _sources(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.monitor.abstraction.sources)

    @cached_property
    def _ahead(self) -> frozenset[str]:
        """Signals that the file reads and that a call determines, whatever comes of it."""
        known = frozenset(KNOWN_AFTERWARDS) & {*self._sources}
        return known if self.monitor.abstraction.decided_by(known) else frozenset()

    @cached_property
    def _takes_action(self) -> bool:
        """Whether what is done is the call, as in traces: the monitor file does not name it."""
        return self.monitor.abstraction.action is None and "action" not in self.monitor.spec.signals

    @cached_property
    def key(self) -> str:
        """Digest of all that gives what is remembered its meaning."""
        return key(self.monitor)

    def start(self) -> RuleState:
        """Return where a run stands before its first call."""
        return RuleState(Progress(), Memory.blank(self.monitor))

    def judge(
        self,
        standing: RuleState,
        run: str,
        call: Call,
        context: Mapping[str, Any] = NOTHING,
        *,
        imposed: bool = False,
    ) -> Judgement:
        """Say what the rules have against a call of a run, and where it leads.

        `standing`: where the run stands.
        `run`: its name.
        `context`: values of other signals that the monitor file names.
        `imposed`: the call is an intervention, and no idea of the agent's: the signal `intervened`.
        """
        signals = standing.progress.proposing(run, call)
        values = {**context, **signals, INTERVENED: imposed}
        evaluated = self._evaluate(standing, values)
        progress = standing.progress.made(call.action, signals["arguments"], args=signals["args"])
        owed = self._broken_after(progress, evaluated.memory, run)
        now = [n for n in violated(evaluated.result.verdict) if n not in standing.owed]
        broken = {**dict.fromkeys(owed, WHATEVER), **dict.fromkeys(now, NOW)}
        after = RuleState(progress, evaluated.memory, owed)
        unknown = self._unknown(standing, evaluated)
        return self.judgement(evaluated, broken, values, after, unknown)

    def close(
        self, standing: RuleState, run: str, context: Mapping[str, Any] = NOTHING
    ) -> Judgement:
        """Evaluate the step after the last call of a run, which proposes nothing."""
        values = {**context, **standing.progress.closing(run), INTERVENED: False}
        evaluated = self._evaluate(standing, values)
        broken = dict.fromkeys(violated(evaluated.result.verdict), "the rule is broken")
        progress = standing.progress._replace(step=standing.progress.step + 1)
        after = RuleState(progress, evaluated.memory)
        return self.judgement(evaluated, broken, values, after)

    def dump(self, standing: RuleState) -> dict[str, Any]:
        """Return where a run stands as plain data that goes through JSON."""
        return {
            "key": self.key,
            "known": _known(standing.progress),
            "past_args": list(standing.progress.past_args),
            "memory": self.dump_memory(standing),
        }

    def load(self, data: Mapping[str, Any]) -> RuleState:
        """Return what `dump` was given.

        Raises RecordingError if the data belong to another monitor file, or make no sense.
        """
        try:
            if data["key"] != self.key:
                raise RecordingError("the memory of the run belongs to other rules")
            step, task, calls, inputs, outputs, errors, failed = data["known"]
            given = tuple(None if texts is None else tuple(texts) for texts in inputs)
            known = (step, task, tuple(calls), given, tuple(outputs), errors, failed)
            progress = Progress(*known, tuple(data["past_args"]))
            return self.load_memory(progress, data["memory"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordingError(f"the memory of the run is damaged: {error}") from error

    def dump_memory(self, standing: RuleState) -> list[Any]:
        """Return what is remembered, without what is known, as plain data."""
        memory, owed = standing.memory, list(standing.owed)
        state = memory.state
        moment = [state.tick, state.first, state.seen, _plain(state.past)]
        counts = list(memory.violations)
        return [moment, properties_data(state), counts, list(memory.advisor), owed]

    def load_memory(self, progress: Progress, data: Sequence[Any]) -> RuleState:
        """Return where a run stands, from what is known and from what `dump_memory` gave.

        Raises RecordingError if the data make no sense.
        """
        try:
            (tick, first, seen, past), properties, violations, (episodes, asking), owed = data
            before = None if past is None else self.monitor.abstraction.parse_past(past)
            known = parse_properties(self.monitor, properties)
            state = MonitorState(tick, first, seen, known, before)
            memory = Memory(state, list(violations), AdvisorState(episodes, asking))
            return RuleState(progress, memory, tuple(owed))
        except (KeyError, TypeError, ValueError) as error:
            raise RecordingError(f"the memory of the run is damaged: {error}") from error

    def _evaluate(self, standing: RuleState, values: Mapping[str, Any]) -> EvaluatedTick:
        step = standing.progress.step
        sources = self.monitor.abstraction.sources
        action = values["action"] if self._takes_action else None
        snapshot = snapshot_of(sources, values, step, step * NANOSECONDS, action)
        return evaluate(self.monitor, self.chains, standing.memory, snapshot)

    def _unknown(self, standing: RuleState, evaluated: EvaluatedTick) -> dict[str, str]:
        before = standing.memory.state.tick
        gap = before is not None and standing.progress.step > before + 1
        return possibly_broken(self.monitor, evaluated.result.verdict, gap=gap)

    def _broken_after(self, progress: Progress, memory: Memory, run: str) -> tuple[str, ...]:
        """Return what is broken one step later for all that may be observed then."""
        known = progress.closing(run) if self._ahead else {}
        values = [known[name] if name in self._ahead else None for name in self._sources]
        return self.monitor.broken_by(memory.state, values)

    def judgement(
        self,
        evaluated: EvaluatedTick,
        broken: Mapping[str, str],
        values: Mapping[str, Any],
        after: RuleState,
        unknown: Mapping[str, str] = MappingProxyType({}),
    ) -> Judgement:
        """Return what speaks against a moment: what is asked for then, and what is broken.

        `broken`, `unknown`: properties that are violated for certain, and those that may be, with
            the reason.
        """
        request, rows = evaluated.result.request, evaluated.result.rows
        active = self.monitor.spec.mode == "act"
        asked = request is not None and request.action != NO_ACTION
        found = Judgement(
            request.action if request is not None else NO_ACTION,
            active and asked,
            request.property if request is not None and asked else "",
            request.properties if request is not None else (),
            bool(broken),
            tuple(f"{name}: {why}" for name, why in unknown.items()),
            request.risk if request is not None else max((r.probability for r in rows), default=0),
            request.reason if request is not None and asked else "",
            request.evidence if request is not None else (),
            "",
            rows,
            values,
            after,
        )
        objections = self._objections(broken, unknown)
        for name, objection in objections.items():
            # This is no matter of thresholds, nor of how often they were met.
            action = self._asked(name, objection)
            if SEVERITY.index(action) >= SEVERITY.index(found.action) or found.property == name:
                found = found._replace(
                    action=max(action, found.action, key=SEVERITY.index),
                    active=active,
                    property=name,
                    risk=1.0 if objection.certain else math.nan,
                    reason=f"{name}: {objection.reason}",
                    evidence=found.evidence or (f"state: {rows[0].state}",),
                )
        if not found.property:
            return found
        advice = advised(self.monitor, evaluated.result.verdict, found.action)
        return found._replace(
            evidence=(*found.evidence, *self._seen_done(evaluated, found, values)),
            recommendation="" if advice is None else advice.action,
            properties=tuple(dict.fromkeys((*found.properties, *objections))),
        )

    def _seen_done(
        self, evaluated: EvaluatedTick, found: Judgement, values: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return what the model knows of the call in this state, if the risk is that of calls."""
        (table,) = (p.of_actions for p in self.monitor.properties if p.name == found.property)
        verdict, model = evaluated.result.verdict, self.monitor.model
        if table is None or model is None or verdict.observation.state is None or found.certain:
            return ()
        action = values["action"]
        if self.monitor.abstraction.action is not None:
            action, _ = self.monitor.abstraction.done(verdict.values)
        row = model.index.get(verdict.observation.state, -1)
        place = table.done.get((row, action))
        if place is None:
            return ("the call was never seen in this state",) if action else ()
        (prop,) = (p for p in verdict.properties if p.name == found.property)
        figures = f"{prop.probability:.3g} ({prop.lower:.3g} to {prop.upper:.3g})"
        return (f"{action!r} was seen {table.visits[place]} times in this state: risk {figures}",)

    def _objections(
        self, broken: Mapping[str, str], unknown: Mapping[str, str]
    ) -> dict[str, Objection]:
        """Return what speaks against a moment; what is certain comes last, and decides."""
        sections = self.monitor.spec.properties
        found = {
            name: Objection(f"{MAYBE}: {why}", False)
            for name, why in unknown.items()
            if name not in broken and sections[name].on_unknown != "pass"
        }
        return found | {name: Objection(why, True) for name, why in broken.items()}

    def _asked(self, name: str, objection: Objection) -> str:
        """Return what a property asks for where it is, or may be, broken: no mere warning."""
        section = self.monitor.spec.properties[name]
        if not objection.certain and section.on_unknown == "ask":
            return ASK
        asked = section.intervention
        return REPLAN if ACTIONS[asked].agent in ("pass", "warn") else asked


def violated(verdict: Verdict) -> tuple[str, ...]:
    """Return the properties that a moment violates."""
    return tuple(prop.name for prop in verdict.properties if prop.violation)


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _known(progress: Progress) -> list[Any]:
    step, task, calls, inputs, outputs, errors, failed, _ = progress
    given = [None if texts is None else list(texts) for texts in inputs]
    return [step, task, list(calls), given, list(outputs), errors, failed]


def _misfits(spec: MonitorSpec) -> Iterator[InputError]:
    if spec.clock != "steps" or spec.step is not None:
        yield ConfigError(
            f"{spec.clock}: a guard's steps are calls",
            key="clock" if spec.clock != "steps" else "step",
            accepted="clock: steps, without step",
        )
    for name, signal in spec.signals.items():
        if signal.source is not None:
            yield ConfigError(
                f"reads {signal.source}: a guard hears no topics", key=f"signals.{name}"
            )
    able = ", ".join(name for name, action in ACTIONS.items() if action.askable and action.agent)
    for name, section in spec.properties.items():
        asked = {"intervention": section.intervention} | {
            f"escalation[{i}].action": step.action for i, step in enumerate(section.escalation)
        }
        for where, action in asked.items():
            if not ACTIONS[action].agent:
                yield ConfigError(
                    f"{action}: no agent can do it",
                    key=f"properties.{name}.{where}",
                    accepted=able,
                )
