"""What /diagnostics says about the node, from plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forewarn.monitoring.policy import Level
from monitor_node.inputs import Input, Inputs
from monitor_node.runtime import Runtime
from monitor_node.status import Severity, Status


def node_status(state: str, problem: str, twins: int) -> Status:
    """Report the life cycle, and other nodes of the same name.

    Parameters
    ----------
    state : str
        Present state of the life cycle.
    problem : str
        Why the last transition failed; empty if it did not.
    twins : int
        Other nodes with this node's full name.
    """
    values = {"state": state, "nodes of the same name": twins}
    errors = [problem] if problem else []
    if twins:
        errors.append(f"{twins} more of this name: their topics and services are mixed up")
    if errors:
        return Status("node", Severity.ERROR, "; ".join(errors), values)
    if state != "active":
        return Status("node", Severity.WARN, f"{state}: nothing is monitored", values)
    return Status("node", Severity.OK, state, values)


def statuses(runtime: Runtime, period: float) -> Iterator[Status]:
    """Report on everything that runs.

    Parameters
    ----------
    runtime : Runtime
        The active part.
    period : float
        Seconds between ticks.
    """
    yield _model_status(runtime)
    yield _timing_status(runtime, period)
    for each in runtime.inputs.inputs:
        yield _input_status(runtime, each)
    yield _signal_status(runtime)
    if runtime.record_path is not None or runtime.record_problem:
        yield _record_status(runtime)
    yield from _risk_statuses(runtime)


def _model_status(runtime: Runtime) -> Status:
    monitor = runtime.watch.monitor
    if monitor.model is None:
        return Status("model", Severity.WARN, "no model: there are verdicts, and no risk", {})
    values = {"digest": monitor.model.digest, "states": len(monitor.model.states)}
    values |= {f"note {i}": note for i, note in enumerate(monitor.notes, 1)}
    told, bounds = "loaded", runtime.bounds
    if bounds is not None and bounds.status and not monitor.bounded:
        told = f"loaded; {bounds.status}"
        if bounds.failed:
            return Status("model", Severity.WARN, told, values)
    return Status("model", Severity.OK, told, values)


def _timing_status(runtime: Runtime, period: float) -> Status:
    pacer, timing = runtime.pacer, runtime.timing
    overruns, late, step = timing.read()
    values = {
        "period (ms)": f"{period * 1e3:g}",
        "ticks": timing.ticks,
        "overruns": timing.overruns,
        "messages too late for their tick": pacer.late,
        "clock jumps": pacer.jumps,
        "worst lateness since last report (ms)": f"{late:.3f}",
        "worst computing time since last report (ms)": f"{step:.3f}",
    }
    if not pacer.started:
        return Status("timing", Severity.WARN, "waiting for the clock", values)
    if overruns:
        return Status("timing", Severity.WARN, f"{overruns} ticks were evaluated late", values)
    return Status("timing", Severity.OK, "on time", values)


def _input_status(runtime: Runtime, each: Input) -> Status:
    stale = _stale(runtime)
    affected = {
        name: age
        for name, age in stale.items()
        if runtime.watch.spec.signals[name].topic == each.topic
    }
    failures = runtime.failures[each.topic]
    values: dict[str, Any] = {
        "topic": each.name,
        "type": each.type,
        "QoS": each.quality,
        "publishers": len(each.publishers),
        "messages": each.received,
        "undecodable": failures,
    }
    name = f"input {each.topic}"
    problems = list(each.problems())
    if problems:
        return Status(name, Severity.ERROR, "; ".join(problems), values)
    if failures and each.topic in _failing(runtime):
        reason = f"the newest message cannot be read: {runtime.reasons[each.topic]}"
        return Status(name, Severity.ERROR, reason, values)
    waiting = Severity.WARN if _starting(runtime, each) else Severity.ERROR
    if not each.publishers:
        return Status(name, waiting, "nobody publishes it", values)
    if affected:
        ages = ", ".join(f"{name} {age}" for name, age in affected.items())
        return Status(name, waiting, f"stale: {ages}", values)
    return Status(name, Severity.OK, "in time", values)


def _starting(runtime: Runtime, each: Input) -> bool:
    """Tell whether nothing has come for the good reason that it had no time to."""
    last, spec = runtime.pacer.last, runtime.watch.spec
    waited = 0.0 if last is None else (last - runtime.pacer.first) / spec.rate
    return not each.received and waited < spec.startup


def _stale(runtime: Runtime) -> dict[str, str]:
    if runtime.latest is None:
        return {}
    period = 1.0 / runtime.watch.spec.rate
    return {
        each.name: "never came" if each.age is None else f"{each.age * period:g} s old"
        for each in runtime.latest.verdict.stale
    }


def _failing(runtime: Runtime) -> set[str]:
    """Return the topics whose newest message was unreadable, and is not too old anyway."""
    if runtime.latest is None:
        return set()
    tick, stale = runtime.latest.verdict.tick, _stale(runtime)
    sources = runtime.watch.monitor.abstraction.sources
    return {
        source.topic
        for source, age in zip(sources, runtime.watch.session.feed.ages(tick), strict=True)
        if source.topic in runtime.failed and source.name not in stale
        if age is not None and runtime.failed[source.topic] >= tick - age
    }


def _signal_status(runtime: Runtime) -> Status:
    failures = {
        where: count
        for where, count in runtime.failures.items()
        if where not in runtime.watch.spec.topics
    }
    values: dict[str, Any] = {f"{where} failed": count for where, count in failures.items()}
    counters = runtime.watch.session.feed.counters
    values |= {"out of order": counters.out_of_order, "unexpected": counters.unexpected}
    values |= {f"note {i}": n for i, n in enumerate(runtime.watch.session.feed.notes, 1)}
    values |= _stale(runtime)
    if runtime.latest is None:
        return Status("signals", Severity.WARN, "no tick has been evaluated yet", values)
    now = {f.where: f.reason for f in runtime.latest.verdict.failures if f.where in failures}
    if now:
        text = "; ".join(f"{where}: {reason}" for where, reason in now.items())
        return Status("signals", Severity.WARN, text, values)
    unknown = _stale(runtime)
    if unknown:
        return Status("signals", Severity.WARN, f"unknown: {', '.join(unknown)}", values)
    return Status("signals", Severity.OK, "all known", values)


def _record_status(runtime: Runtime) -> Status:
    if runtime.record_problem:
        return Status("record", Severity.ERROR, runtime.record_problem, {})
    return Status("record", Severity.OK, "writing", {"file": runtime.record_path})


def _risk_statuses(runtime: Runtime) -> Iterator[Status]:
    if runtime.latest is None:
        return
    acting = runtime.watch.spec.mode == "act"
    for row in runtime.latest.rows:
        level = Level(row.level)
        values = {
            "probability": row.probability,
            "level": level.name,
            "violations": row.violations,
            "state": row.state,
            "muted": row.muted,
        }
        # A warning asks for no change of motion, and an observer for nothing at all: neither may
        # take a mode away, which is what Autoware's graph would do.
        severity = Severity.ERROR if acting and level is Level.ACT else Severity.OK
        text = f"{level.name}{'' if acting else ' (only observing)'}" if level else "no alert"
        yield Status(f"risk {row.property}", severity, text, values)


__all__ = ["Inputs", "node_status", "statuses"]
