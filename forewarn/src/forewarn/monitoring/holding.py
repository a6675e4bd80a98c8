"""Why an intervention goes on although its risk may be low: `hold_while` of the monitor file."""

from __future__ import annotations

from forewarn.monitoring.policy import Level
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import Verdict


def hold_facts(monitor: Monitor, verdict: Verdict) -> tuple[str, ...]:
    """Return a sentence about each property that acts and is held at a tick."""
    facts = []
    for compiled, prop in zip(monitor.properties, verdict.properties, strict=True):
        condition = compiled.hold_while
        if condition is None or prop.level != Level.ACT:
            continue
        holds, why = condition.truth(verdict.values)
        if holds is not False:
            facts.append(f"{prop.name} is held while {condition.text}; {why or 'it is true'}")
    return tuple(facts)
