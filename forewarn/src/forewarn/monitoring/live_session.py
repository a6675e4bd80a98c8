"""A session with commands of an operator and requests to the planner.

`LiveSession` is the node without clock, middleware and threads. A record (`record.py`) of its
inputs gives the same bits when another `LiveSession` reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from forewarn.errors import ConfigError, DecodeError
from forewarn.monitoring.build import CompiledSpec, build_monitor, build_without_bounds
from forewarn.monitoring.evaluate import (
    EscalationChains,
    EvaluatedTick,
    Memory,
    Muted,
    TickResult,
    evaluate,
)
from forewarn.monitoring.intervention import Intervention, withdraw
from forewarn.monitoring.policy import Level, carried_over, compile_rules, release
from forewarn.monitoring.session import Inputs
from forewarn.signals.sources import ExternalSignals

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.config.sections import PropertySpec
    from forewarn.messages.definitions import MessageType
    from forewarn.models.counts import CountModel
    from forewarn.monitoring.property_step import PropertyState
    from forewarn.monitoring.run_anomaly import Detector
    from forewarn.monitoring.step import Monitor
    from forewarn.signals.clock import Payload
    from forewarn.signals.feed import Reader
    from forewarn.states.interface import Observed


class LiveSession(Inputs):
    """Inputs with operator commands; all that is remembered beside samples is its `memory`.

    `external`: topic of the signals that are supplied by name, if it has a definition.
    `bounds`: False leaves the bounds of the risk out, which take nearly all of the time that the
    tables take: a monitor from `build`, which has them, may follow.
    `detector`: what tells runs that are unlike normal ones; it stays whatever model follows.

    Raises ModelError if the model belongs to another monitor file.
    Raises FieldError if an expression reads a field that its message does not have.
    """

    def __init__(
        self,
        compiled: CompiledSpec,
        model: CountModel | None,
        message_types: Mapping[str, MessageType],
        external: str = "",
        *,
        bounds: bool = True,
        detector: Detector | None = None,
        readers: Mapping[str, Reader] | None = None,
    ) -> None:
        self.compiled = compiled
        self._external = external
        mtype = message_types.get(external)
        self._read_external = None if mtype is None else ExternalSignals(mtype)
        monitor = (build_monitor if bounds else build_without_bounds)(compiled, model)
        super().__init__(replace(monitor, detector=detector), message_types, readers)
        self.memory = Memory.blank(self.monitor)
        self.unreadable: dict[str, str] = {}
        self._chains = EscalationChains.of(self.monitor)

    @property
    def spec(self) -> MonitorSpec:
        """The monitor file, with the thresholds in force."""
        return self.monitor.spec

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the properties, in the order of the monitor file."""
        return tuple(self.compiled.spec.properties)

    def accept(self, topic: str, time_ns: int, payload: Payload) -> None:
        """Take one payload that arrived at `time_ns`."""
        if topic == self._external and self._read_external is not None:
            assert not isinstance(payload, Mapping)
            try:
                payload = self._read_external(payload)
            except DecodeError as error:
                self.unreadable[topic] = str(error)
                self.feed.counters.undecodable += 1
                return
        super().accept(topic, time_ns, payload)

    def tick(self, tick: int) -> TickResult:
        """Evaluate one tick; it must lie after the last one."""
        return self.commit(self.evaluate(tick))

    def evaluate(self, tick: int) -> EvaluatedTick:
        """Evaluate one tick and remember nothing of it, but for samples that have been decoded.

        A node may do so shortly before the tick is due. If nothing more arrives for the tick, the
        evaluated tick holds; otherwise another one replaces it.
        """
        return evaluate(self.monitor, self._chains, self.memory, self.feed.snapshot(tick))

    def commit(self, evaluated: EvaluatedTick) -> TickResult:
        """Remember an evaluated tick: the newest one, with no command since it was evaluated."""
        self.memory = evaluated.memory
        return evaluated.result

    def withdraw(self, reason: str) -> Intervention | None:
        """End the present intervention, if there is one, and return what tells the planner."""
        advisor = self.memory.advisor
        if not advisor.asking:
            return None
        self.memory = self.memory._replace(advisor=advisor._replace(asking=False))
        return withdraw(advisor, reason)

    def restart(self, first: int) -> None:
        """Forget all samples, obligations and counts: ticks begin, or the clock has jumped.

        What was seen does not tell any more, and nothing has been seen yet that would end an alert.
        So alerts and the intervention go on, and end by their rules. A mute lasts for what is left
        of its time, on the new clock.
        """
        before = self.memory.state
        # Before the first tick by a clock, that tick decides what counts as before.
        shift = first - (before.first if before.tick is None else before.tick + 1)
        mutes = self.memory.mutes.restarted(self._now(), shift)
        self.feed.reset()
        fresh = self.monitor.start()
        held = tuple(
            prop._replace(policy=carried_over(compiled.rules, was.policy, shift))
            for compiled, prop, was in zip(
                self.monitor.properties, fresh.properties, before.properties, strict=True
            )
        )
        state = fresh._replace(first=first, properties=held)
        self.memory = Memory.blank(self.monitor)._replace(
            state=state, advisor=self.memory.advisor, mutes=mutes
        )

    def end(self) -> None:
        """Forget all but mutes: the next tick belongs to another activation."""
        advisor = self.memory.advisor._replace(asking=False)
        mutes = self.memory.mutes.restarted(self._now())
        self.feed.reset()
        self.memory = Memory.blank(self.monitor)._replace(advisor=advisor, mutes=mutes)

    def _now(self) -> int | None:
        """Return where the last moment lies in the time of people; None before the first."""
        tick = self.memory.state.tick
        if tick is None:
            return None
        return self.clock.wall(tick, self.feed.moments.stamp_ns(tick))

    @property
    def decided(self) -> Observed | None:
        """What the last tick gave by itself; None if the type of processor has no part in it."""
        past = self.memory.state.past
        return past.alone if past is not None and self.monitor.abstraction.by_platform else None

    def silenced(self) -> tuple[Muted, ...]:
        """Return the mutes that last, in the order of the monitor file."""
        left = self.memory.mutes.left(self._now() or 0)
        rate, reasons = self.clock.wall_rate, self.memory.mutes.reasons()
        return tuple(
            Muted(name, left[name] / rate, reasons[name]) for name in self.names if name in left
        )

    def durations(self) -> dict[str, float]:
        """Return the seconds that mutes last from the first tick on; before that tick."""
        rate = self.clock.wall_rate
        mutes = self.memory.mutes
        waiting = {name: left / rate for name, left in mutes.waiting.items()}
        return {**mutes.ends, **waiting}

    def reset(self, names: Iterable[str]) -> tuple[str, ...]:
        """Set the automata, alerts and counts of some properties (none named: all) back.

        Raises ConfigError if a name is unknown.
        """
        chosen = self._choose(names)
        counts = zip(self.names, self.memory.violations, strict=True)
        violations = [0 if name in chosen else count for name, count in counts]
        self.memory = self.memory._replace(violations=violations)
        fresh = {prop.name: self.monitor.fresh(prop) for prop in self.monitor.properties}
        self._replace({name: fresh[name] for name in chosen})
        if set(chosen) == set(self.names):  # another episode
            state = self.memory.state._replace(run=None)
            self.memory = self.memory._replace(state=state)
        return chosen

    def release(self, names: Iterable[str]) -> tuple[str, ...]:
        """End the alerts of some properties (none named: all) by hand; return those that had one.

        They alert again as soon as their figures ask for it; a state unknown to the model asks for
        nothing more while it lasts.
        """
        chosen = self._choose(names)
        states = dict(zip(self.names, self.memory.state.properties, strict=True))
        alerting = tuple(name for name in chosen if states[name].policy.level != Level.NONE)
        self._replace(
            {name: states[name]._replace(policy=release(states[name].policy)) for name in alerting}
        )
        return alerting

    def mute(self, names: Iterable[str], duration: float, reason: str = "") -> tuple[str, ...]:
        """Silence the alerts of some properties (none named: all); return which.

        `duration`: seconds from the last tick, or from the first if there was none; infinite until
        further notice, 0 ends a mute.

        Raises ConfigError if a name is unknown, or the duration negative or no number.
        """
        chosen = self._choose(names)
        if not duration >= 0:
            raise ConfigError(
                f"{duration:g} s", key="duration", accepted="0 and more seconds; inf; 0 unmutes"
            )
        now, tick, mutes = self._now(), self.memory.state.tick, self.memory.mutes
        length = duration * self.clock.wall_rate
        for name in chosen:
            mutes = mutes.with_mute(name, length, reason, now, tick)
        self.memory = self.memory._replace(mutes=mutes)
        return chosen

    def set_policy(self, name: str, values: Mapping[str, object]) -> None:
        """Change thresholds of a property between two ticks.

        Raises ConfigError if a value is out of range; then nothing has changed.
        """
        self.swap(with_policies(self.monitor, {name: values}))
        self._chains = EscalationChains.of(self.monitor)

    def build(self, model: CountModel) -> Monitor:
        """Return a monitor with another model, to be handed to `use`; may take a while."""
        return build_monitor(self.compiled, model)

    def use(self, monitor: Monitor) -> None:
        """Go on with a monitor from `build`; the thresholds in force stay."""
        for name, section in self.spec.properties.items():
            monitor = with_section(monitor, name, section)
        self.swap(replace(monitor, detector=self.monitor.detector))

    def _choose(self, names: Iterable[str]) -> tuple[str, ...]:
        chosen = tuple(names) or self.names
        for name in chosen:
            if name not in self.names:
                raise ConfigError(
                    f"{name!r} is no property", key="properties", accepted=", ".join(self.names)
                )
        return chosen

    def _replace(self, changed: Mapping[str, PropertyState]) -> None:
        state = self.memory.state
        properties = tuple(
            changed.get(name, before)
            for name, before in zip(self.names, state.properties, strict=True)
        )
        self.memory = self.memory._replace(state=state._replace(properties=properties))

    @property
    def muted(self) -> Collection[str]:
        """Properties whose alerts are silenced."""
        return self.memory.mutes.names


def with_section(monitor: Monitor, name: str, section: PropertySpec) -> Monitor:
    """Return the monitor with another policy for one property; tables and automata stay.

    Raises ConfigError if the section changes formula or horizon, which the tables depend on.
    """
    changed = []
    for compiled in monitor.properties:
        if compiled.name == name:
            before = compiled.spec
            if (section.formula, section.horizon) != (before.formula, before.horizon):
                raise ConfigError(
                    "formula and horizon cannot change while running", key=f"properties.{name}"
                )
            if section.risk_measure == "min_risk" and before.risk_measure != "min_risk":
                raise ConfigError(
                    "min_risk is computed before the first tick, for properties whose risk_measure "
                    "it is in the monitor file",
                    key=f"properties.{name}.risk_measure",
                    accepted="risk or upper; or min_risk in the file",
                )
            if section.risk_measure == "expected" and not monitor.fresh(compiled).belief:
                raise ConfigError(
                    "expected is followed from the first tick on, for properties whose "
                    "risk_measure it is in the monitor file, or for all where it has "
                    "observation_error",
                    key=f"properties.{name}.risk_measure",
                    accepted="risk or upper; or expected in the file, or observation_error: {}",
                )
            for key in ("risk_of", "hold_while"):
                if getattr(section, key) != getattr(before, key):
                    raise ConfigError(
                        f"{key} cannot change while running", key=f"properties.{name}.{key}"
                    )
            rules = compile_rules(section, monitor.clock)
            compiled = replace(compiled, spec=section, rules=rules)
        changed.append(compiled)
    spec = monitor.spec.model_copy(
        update={"properties": {**monitor.spec.properties, name: section}}
    )
    return replace(monitor, spec=spec, properties=tuple(changed))


def with_policies(monitor: Monitor, changes: Mapping[str, Mapping[str, object]]) -> Monitor:
    """Return `monitor` with other thresholds, by property.

    Raises ConfigError if a value is out of range.
    """
    for name, values in changes.items():
        section = monitor.spec.with_thresholds(name, values).properties[name]
        monitor = with_section(monitor, name, section)
    return monitor
