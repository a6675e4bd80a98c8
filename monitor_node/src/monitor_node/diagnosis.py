"""What /diagnostics says about the node, from plain values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import RiskRow
from forewarn.signals.channels import note_of_faster_topics
from forewarn.signals.clock import NANOSECONDS
from forewarn_ros.status import Severity, Status
from monitor_node.inputs import Input
from monitor_node.run_diagnostics import findings
from monitor_node.runtime import Runtime

COUNTED_FOR = 5.0
"""Seconds after which a status reports how often messages come."""
DEFAULT_TIMEOUT = 1.0
"""Seconds for which a signal may have no number whose messages may stay away for ever."""


class Lasting:
    """Since when signals have no value, and whether time jumps since several publish it."""

    def __init__(self) -> None:
        # Tick at which a signal was first seen without a value, for those that have none
        self.unknown: Mapping[str, int] = {}
        self.quarrels = False  # The clock has jumped while it had several publishers
        self._first: int | None = None
        self._calm_jumps = 0

    def signals(self, first: int, tick: int, values: Iterable[tuple[str, Any]]) -> None:
        """Take in the values at `tick`, where ticks began at `first`."""
        before = self.unknown if first == self._first else {}
        self._first = first
        self.unknown = {name: before.get(name, tick) for name, value in values if value is None}

    def clocks(self, publishers: int, jumps: int) -> None:
        """Take in how many publish the simulated time, and how often it has jumped so far."""
        if publishers < 2:
            self._calm_jumps = jumps
        self.quarrels = jumps > self._calm_jumps


def node_status(state: str, problem: str, twins: int, advice: str = "") -> Status:
    """Report the life cycle, and other nodes of the same name.

    `twins`: other nodes with this node's full name.
    """
    values = {"state": state, "nodes of the same name": twins}
    errors = [problem] if problem else []
    if twins:
        errors.append(f"{twins} more of this name: their topics and services are mixed up")
    if errors:
        return Status("node", Severity.ERROR, "; ".join(errors), values)
    if state != "active":
        text = f"{state}: nothing is monitored" + (f" ({advice})" if advice else "")
        return Status("node", Severity.WARN, text, values)
    return Status("node", Severity.OK, state, values)


def mode_status(file: str, parameter: str) -> Status:
    """Report whether the monitor acts, and if only one of two places says so."""
    values = {"monitor file": file, "parameter": parameter}
    if file == parameter:
        return Status("mode", Severity.OK, file, values)
    text = "observe: the monitor file says mode: {}, the parameter mode says {}: only observing"
    text += " (to act, set the {} to act, too)"
    # Observing with a file that may act is how one tries it; to ask for act in vain is a mistake.
    level, other = Severity.WARN, "parameter"
    if parameter == "act":
        level, other = Severity.ERROR, "key `mode` of the monitor file"
    return Status("mode", level, text.format(file, parameter, other), values)


def statuses(
    runtime: Runtime,
    lasting: Lasting,
    shared: Collection[str] = (),
    clocks: tuple[str, ...] | None = None,
    failure: str = "",
) -> Iterator[Status]:
    """Report on everything that runs.

    `lasting`: what former reports have seen; takes in what this one sees.
    `clocks`: nodes that publish the simulated time; None by the system's clock.
    `failure`: why no ticks are evaluated; empty if they are.
    """
    if runtime.latest is not None and runtime.pacer.last is not None:
        names, values = runtime.watch.monitor.abstraction.signals, runtime.latest.verdict.values
        lasting.signals(runtime.pacer.first, runtime.pacer.last, zip(names, values, strict=True))
    numberless = _numberless(runtime, lasting.unknown)
    yield _model_status(runtime)
    yield _timing_status(runtime, runtime.pacer.clock.period, failure)
    if clocks is not None:
        lasting.clocks(len(clocks), runtime.pacer.jumps)
        yield _clock_status(runtime, clocks, quarrel=lasting.quarrels)
    for topic_input in runtime.inputs.inputs:
        yield _input_status(runtime, topic_input, numberless, shared)
    yield _signal_status(runtime, numberless)
    if runtime.recording.path is not None or runtime.recording.problem:
        yield _record_status(runtime)
    yield _mute_status(runtime)
    yield from findings(runtime)


def _model_status(runtime: Runtime) -> Status:
    monitor = runtime.watch.monitor
    if monitor.model is None:
        return Status("model", Severity.WARN, "no model: there are verdicts, and no risk", {})
    values = {"digest": monitor.model.digest, "states": len(monitor.model.states)}
    values |= {f"note {i}": note for i, note in enumerate(monitor.all_notes, 1)}
    text, bounds = "loaded", runtime.bounds
    if bounds is not None and bounds.status and not monitor.bounded:
        text = f"loaded; {bounds.status}"
        if bounds.failed:
            return Status("model", Severity.WARN, text, values)
    without = (row for row in _rows(runtime) if math.isnan(row.probability))
    strange = [row.property for row in without if not row.in_model]
    if strange:
        text += f"; it has never seen this state: no risk for {', '.join(strange)}"
        return Status("model", Severity.WARN, text, values)
    return Status("model", Severity.OK, text, values)


def _clock_status(runtime: Runtime, clocks: tuple[str, ...], *, quarrel: bool) -> Status:
    values = {"publishers": len(clocks), "jumps": runtime.pacer.jumps}
    if not clocks:
        waiting = Severity.ERROR if runtime.pacer.started else Severity.WARN
        return Status("clock", waiting, "no node publishes /clock: time stands", values)
    if len(clocks) > 1:
        text = f"{len(clocks)} publishers of /clock: {', '.join(clocks)}"
        if quarrel:
            text += "; time goes back and forth, and monitoring starts again each time"
            return Status("clock", Severity.ERROR, text, values)
        return Status("clock", Severity.WARN, text, values)
    return Status("clock", Severity.OK, f"/clock comes from {clocks[0]}", values)


def _timing_status(runtime: Runtime, period: float, failure: str) -> Status:
    pacer, timing = runtime.pacer, runtime.timing
    left_out, overruns, late, step = timing.read()
    values = {
        "period (ms)": f"{period * 1e3:g}",
        "ticks": timing.ticks,
        "overruns": timing.overruns,
        "ticks left out": timing.left_out,
        "messages too late for their tick": pacer.late,
        "arrivals of the player ignored": pacer.untimely,
        "clock jumps": pacer.jumps,
        "worst lateness since last report (ms)": f"{late:.3f}",
        "worst computing time since last report (ms)": f"{step:.3f}",
    }
    if not pacer.started:
        return Status("timing", Severity.WARN, "waiting for the clock", values)
    if failure:
        return Status("timing", Severity.ERROR, failure, values)
    if left_out:
        text = f"the monitor lags: {left_out} ticks were left out"
        return Status("timing", Severity.WARN, text, values)
    if overruns:
        return Status("timing", Severity.WARN, f"{overruns} ticks were evaluated late", values)
    return Status("timing", Severity.OK, "on time", values)


def _input_status(
    runtime: Runtime, topic_input: Input, numberless: Mapping[str, float], shared: Collection[str]
) -> Status:
    stale = _stale(runtime)
    affected = {
        name: age
        for name, age in stale.items()
        if runtime.watch.spec.signals[name].topic == topic_input.topic
    }
    failures = runtime.failures[topic_input.topic]
    values: dict[str, Any] = {
        "topic": topic_input.name,
        "type": topic_input.type,
        "QoS": topic_input.quality,
        "publishers": len(topic_input.publishers),
        "messages": topic_input.received,
        "undecodable": failures,
    }
    name = f"input {topic_input.topic}"
    problems = list(topic_input.problems())
    if problems:
        return Status(name, Severity.ERROR, "; ".join(problems), values)
    if failures and topic_input.topic in _failing(runtime):
        reason = f"the newest message cannot be read: {runtime.reasons[topic_input.topic]}"
        return Status(name, Severity.ERROR, reason, values)
    waiting = Severity.WARN if _starting(runtime, topic_input) else Severity.ERROR
    if not topic_input.publishers:
        return Status(name, waiting, "no node publishes it", values)
    if affected:
        ages = ", ".join(f"{name} {age}" for name, age in affected.items())
        return Status(name, waiting, f"stale: {ages}", values)
    silent = [
        f"{signal} for {runtime.pacer.clock.say(age, '.1f')}"
        for signal, age in numberless.items()
        if runtime.watch.spec.signals[signal].topic == topic_input.topic
        and _lasts(runtime, signal, age)
    ]
    if silent:
        text = f"messages come, but no number: {', '.join(silent)}"
        return Status(name, Severity.ERROR, text, values)
    if len(topic_input.publishers) > 1 and topic_input.topic not in shared:
        nodes = ", ".join(publisher.node for publisher in topic_input.publishers)
        text = f"{len(topic_input.publishers)} publishers, whose values alternate: {nodes}"
        return Status(name, Severity.WARN, text, values)
    return Status(name, Severity.OK, "in time", values)


def _numberless(runtime: Runtime, unknown: Mapping[str, int]) -> dict[str, float]:
    """Return the signals that are unknown and not too old, and for how many seconds.

    Of derived signals only those whose arguments all have a value: the others are not to blame.
    """
    tick, stale = runtime.pacer.last, _stale(runtime)
    if tick is None:
        return {}
    abstraction, clock = runtime.watch.monitor.abstraction, runtime.pacer.clock
    blamed = {source.name for source in abstraction.sources} | {
        derived.name
        for derived in abstraction.derived
        if derived.memory is None  # which knows nothing at first, and that is no fault
        and not any(abstraction.signals[slot] in unknown for slot in derived.arguments)
    }
    return {
        name: clock.duration(tick - since)
        for name, since in unknown.items()
        if name in blamed and name not in stale
    }


def _lasts(runtime: Runtime, signal: str, age: float) -> bool:
    """Tell whether a signal has had no number for longer than its messages may stay away."""
    timeout = runtime.watch.spec.signals[signal].timeout
    return age > (DEFAULT_TIMEOUT if timeout is None or math.isinf(timeout) else timeout)


def _starting(runtime: Runtime, topic_input: Input) -> bool:
    """Tell whether nothing has come for the good reason that it had no time to."""
    last, spec = runtime.pacer.last, runtime.watch.spec
    waited = 0.0 if last is None else runtime.pacer.clock.duration(last - runtime.pacer.first)
    return not topic_input.received and waited < spec.startup_grace


def _stale(runtime: Runtime) -> dict[str, str]:
    if runtime.latest is None:
        return {}
    return {
        stale_signal.name: "never came"
        if stale_signal.age is None
        else f"{runtime.pacer.clock.say(round(stale_signal.age / NANOSECONDS, 3))} old"
        for stale_signal in runtime.latest.verdict.stale
    }


def _failing(runtime: Runtime) -> set[str]:
    """Return the topics whose newest message was unreadable, and is not too old anyway."""
    if runtime.latest is None:
        return set()
    verdict, clock, stale = runtime.latest.verdict, runtime.pacer.clock, _stale(runtime)
    sources = runtime.watch.monitor.abstraction.sources
    return {
        source.topic
        for source, age in zip(sources, runtime.watch.feed.ages(verdict.tick), strict=True)
        if source.topic in runtime.failed and source.name not in stale
        if age is not None
        and runtime.failed[source.topic]
        >= clock.tick_at_or_after(clock.time_ns(verdict.tick) - age)
    }


def _signal_status(runtime: Runtime, numberless: Mapping[str, float]) -> Status:
    failures = {
        where: count
        for where, count in runtime.failures.items()
        if where not in runtime.watch.spec.topics
    }
    values: dict[str, Any] = {f"{where} failed": count for where, count in failures.items()}
    counters = runtime.watch.feed.counters
    values |= {"out of order": counters.out_of_order, "unexpected": counters.unexpected}
    values |= {f"note {i}": n for i, n in enumerate(runtime.watch.feed.notes, 1)}
    if note := note_of_faster_topics(runtime.watch.spec, _rates(runtime)):
        values["read in part"] = note
    values |= _stale(runtime)
    if runtime.latest is None:
        return Status("signals", Severity.WARN, "no tick has been evaluated yet", values)
    now = {f.where: f.reason for f in runtime.latest.verdict.failures if f.where in failures}
    if now:
        text = "; ".join(f"{where}: {reason}" for where, reason in now.items())
        return Status("signals", Severity.WARN, text, values)
    unknown = {
        **_stale(runtime),
        **{n: f"no number for {runtime.pacer.clock.say(a)}" for n, a in numberless.items()},
    }
    values |= unknown
    if unknown:
        level, signals = Severity.WARN, runtime.watch.spec.signals
        if any(
            signals[name].topic is None and _lasts(runtime, name, age)
            for name, age in numberless.items()
        ):  # no input can say so
            level = Severity.ERROR
        return Status("signals", level, f"unknown: {', '.join(unknown)}", values)
    return Status("signals", Severity.OK, "all known", values)


def _rates(runtime: Runtime) -> dict[str, float]:
    """Return how many messages of each topic have come in a second, after some seconds."""
    pacer = runtime.pacer
    seconds = 0.0 if pacer.last is None else pacer.clock.duration(pacer.last - pacer.first)
    inputs = runtime.inputs.inputs if seconds >= COUNTED_FOR else ()
    return {one.topic: one.received / seconds for one in inputs}


def _record_status(runtime: Runtime) -> Status:
    if runtime.recording.problem:
        return Status("record", Severity.ERROR, runtime.recording.problem, {})
    return Status("record", Severity.OK, "writing", {"file": runtime.recording.path})


def _rows(runtime: Runtime) -> tuple[RiskRow, ...]:
    return () if runtime.latest is None else runtime.latest.rows


def _mute_status(runtime: Runtime) -> Status:
    muted = runtime.watch.silenced()
    if not muted:
        return Status("mutes", Severity.OK, "nothing is muted", {})
    latest = runtime.latest
    verdicts = {} if latest is None else {prop.name: prop for prop in latest.verdict.properties}
    level, lines = Severity.WARN, []
    for name, left, reason in muted:
        verdict = verdicts.get(name)
        loud = verdict is not None and verdict.level is Level.ACT
        if loud and math.isinf(left):
            level = Severity.ERROR
        span = "without end" if math.isinf(left) else f"for {left:.0f} s more"
        risk = f", its risk is {verdict.probability:.2f} and would act" if loud and verdict else ""
        lines.append(f"{name} {span}{risk} ({reason or 'no reason given'})")
    return Status("mutes", level, f"muted: {'; '.join(lines)}", {"muted": len(muted)})
