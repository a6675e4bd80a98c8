"""Verdicts as JSON lines: one object a tick, every float to its last bit."""

from __future__ import annotations

import json
from typing import Any

from forewarn.monitoring.evaluate import advised
from forewarn.monitoring.run_anomaly import AnomalyRow, RunVerdict
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import ExpectedFigure, PropertyVerdict, Verdict
from forewarn.signals.clock import NANOSECONDS
from forewarn.states.interface import StateSpace


def verdict_record(verdict: Verdict, vocabulary: StateSpace) -> dict[str, Any]:
    """Return a verdict as plain values.

    Floats are written as the shortest decimal that reads back to the same bits, which is what
    Python's `json` does; NaN, which JSON does not have, is None.
    """
    observation = verdict.observation
    return {
        "tick": verdict.tick,
        "time_ns": verdict.time_ns,
        "state": None if observation.state is None else vocabulary.key(observation.state),
        **vocabulary.details(observation),
        "active": observation.active,
        "properties": [_property_record(prop) for prop in verdict.properties],
        "stale": [
            {
                "name": stale_signal.name,
                "age": None if stale_signal.age is None else stale_signal.age / NANOSECONDS,
            }
            for stale_signal in verdict.stale
        ],
        "failures": [
            {"where": failure.where, "reason": failure.reason} for failure in verdict.failures
        ],
        **({} if verdict.anomaly is None else {"anomaly": anomaly_record(verdict.anomaly)}),
    }


def anomaly_record(row: AnomalyRow) -> dict[str, Any]:
    """Return what is said of the present run as plain values; NaN is None."""
    steps = {"step": row.step, "worst": row.worst}
    plain = {**row._asdict(), **{name: step._asdict() for name, step in steps.items()}}
    plain["verdict"] = RunVerdict(row.verdict).name
    found: dict[str, Any] = _without_nan(plain)
    return found


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return _number(value) if isinstance(value, float) else value


def _property_record(verdict: PropertyVerdict) -> dict[str, Any]:
    return {
        "name": verdict.name,
        "status": verdict.status.name,
        "violation": verdict.violation,
        "counted": verdict.counted,
        "possible_violation": verdict.possible_violation,
        "probability": _number(verdict.probability),
        "lower": _number(verdict.lower),
        "upper": _number(verdict.upper),
        "in_model": verdict.in_model,
        "automaton": list(verdict.automaton),
        "level": verdict.level.name,
        "alert_since": verdict.alert_since,
        **_expected_record(verdict.expected),
    }


def _expected_record(figure: ExpectedFigure) -> dict[str, Any]:
    if figure.left_out != figure.left_out:
        return {}
    return {
        "expected": _number(figure.probability),
        "expected_left_out": figure.left_out,
        "expected_restarted": figure.restarted,
    }


def _number(value: float) -> float | None:
    return None if value != value else float(value)


def verdict_line(verdict: Verdict, monitor: Monitor) -> str:
    """Return `verdict_record` as a line of JSON, with what the shield says, if there is one."""
    record = verdict_record(verdict, monitor.abstraction.vocabulary)
    advice = advised(monitor, verdict)
    if advice is not None:
        plain = {**advice._asdict(), "alternatives": [a._asdict() for a in advice.alternatives]}
        record["shield"] = _without_nan(plain)
    return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
