"""What the monitor has found, as diagnostics: anomalous runs, plans, risks."""

from __future__ import annotations

from collections.abc import Iterator

from forewarn.monitoring.policy import Level
from forewarn.monitoring.run_anomaly import RunVerdict, in_words, too_long_in_words
from forewarn.states.inputs import SAFE, verdicts
from forewarn_ros.status import Severity, Status
from monitor_node.runtime import Runtime


def findings(runtime: Runtime) -> Iterator[Status]:
    """Report on the run, on plans, and on the risk of each property."""
    if runtime.watch.monitor.detector is not None:
        yield _anomaly_status(runtime)
    yield from _plan_statuses(runtime)
    yield from _risk_statuses(runtime)
    yield _alert_status(runtime)


def _alert_status(runtime: Runtime) -> Status:
    """Report alerts until they are acknowledged; those that are over take no mode away."""
    unacknowledged, kept = runtime.alerts.unacknowledged, runtime.alerts
    values: dict[str, object] = {
        "kept": len(kept.all),
        "unacknowledged": len(unacknowledged),
        "forgotten": kept.forgotten,
    }
    values |= {f"alert {alert.id}": alert.reason for alert in unacknowledged}
    if not unacknowledged:
        return Status("alerts", Severity.OK, "all acknowledged", values)
    names = ", ".join(f"{alert.id} {alert.name}" for alert in unacknowledged[-5:])
    text = f"{len(unacknowledged)} unacknowledged: {names}"
    return Status("alerts", Severity.OK, text, values)


def _anomaly_status(runtime: Runtime) -> Status:
    row = None if runtime.latest is None else runtime.latest.verdict.anomaly
    detector = runtime.watch.monitor.detector
    longest = None if detector is None else detector.longest_normal
    if row is None:
        return Status("anomaly", Severity.OK, "no tick has been evaluated yet", {})
    values = {
        "run": row.run,
        "transitions": row.transitions,
        "p-value": row.p_value,
        "promised false alarm rate": row.false_alarm_rate,
        "moments of the longest normal run": longest or "",
        "surprise of the last step": row.step.surprise,
    }
    strange = row.verdict == RunVerdict.ANOMALOUS
    # The risk was learned from normal runs, so that it may not hold for this one. An observer
    # takes no mode away.
    acting = runtime.watch.spec.mode == "act"
    severity = Severity.WARN if strange and acting else Severity.OK
    only = " (only observing)" if strange and not acting else ""
    text = f"{in_words(row)}{only}"
    if longest and row.transitions > longest:
        text += f"; it has {too_long_in_words(longest)}"
    return Status("anomaly", severity, text, values)


def _plan_statuses(runtime: Runtime) -> Iterator[Status]:
    """Report on the newest plan of each signal: one that is not known to be safe is an error."""
    if runtime.latest is None:
        return
    spec, names = runtime.watch.spec, runtime.watch.monitor.abstraction.signals
    for name, finding in verdicts(spec, names, runtime.latest.verdict.values).items():
        broken, acting = finding not in (None, SAFE), spec.mode == "act"
        text = "no plan" if finding is None else str(finding) or "the plan is safe"
        only = " (only observing)" if broken and not acting else ""
        severity = Severity.ERROR if broken and acting else Severity.OK
        yield Status(f"plan {name}", severity, f"{text}{only}", {})


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
        if row.muted:
            text = "muted"
        yield Status(f"risk {row.property}", severity, text, values)
