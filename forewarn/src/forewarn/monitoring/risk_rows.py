"""What is published about one tick: one row of plain values for each property.

The fields are those of forewarn_msgs/msg/Risk. A node copies them into messages, a record is
compared with them; both say the same because both come from here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.monitoring.policy import Level, RiskMeasure
from forewarn.monitoring.verdict import PropertyStatus, PropertyVerdict, Verdict
from forewarn.signals.clock import NANOSECONDS

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor
    from forewarn.monitoring.tables import CompiledProperty
    from forewarn.states.interface import Observed

UNKNOWN, INACTIVE, SATISFIED_SO_FAR, VIOLATED, CANNOT_BE_VIOLATED = range(5)
VERDICTS = {
    PropertyStatus.UNKNOWN: UNKNOWN,
    PropertyStatus.INACTIVE: INACTIVE,
    PropertyStatus.SATISFIED_SO_FAR: SATISFIED_SO_FAR,
    PropertyStatus.VIOLATED: VIOLATED,
    PropertyStatus.CANNOT_BE_VIOLATED: CANNOT_BE_VIOLATED,
    PropertyStatus.ENDED: CANNOT_BE_VIOLATED,  # the episode is over, and its obligations with it
}


class RiskRow(NamedTuple):
    """The fields of a Risk message and its details; see there for meanings and units."""

    property: str
    tick: int
    verdict: int
    possibly_violated: bool
    violations: int
    broken: bool
    probability: float
    lower: float
    upper: float
    bounds_kind: int
    bounds_confidence: float
    horizon: float
    threshold_warn: float
    threshold_act: float
    risk_measure: RiskMeasure
    level: int
    muted: bool
    state_key: str
    state: str
    automaton_states: tuple[int, ...]
    automaton_state_names: tuple[str, ...]
    in_model: bool
    stale_signals: tuple[str, ...]
    stale_ages: tuple[float, ...]
    expected_time_to_violation: float
    most_likely_path: tuple[str, ...]
    min_risk: float = math.nan
    min_risk_lower: float = math.nan
    min_risk_upper: float = math.nan
    expected: float = math.nan
    expected_left_out: float = math.nan
    expected_restarted: bool = False


def compared(row: RiskRow) -> float:
    """Return what is compared with the thresholds."""
    return row.risk_measure.chosen(row.probability, row.upper, row.min_risk, row.expected)


def never_seen(row: RiskRow) -> bool:
    """Tell whether the model knows no state that agrees with what is read, as the figure goes."""
    if row.risk_measure is RiskMeasure.EXPECTED:
        return row.expected != row.expected
    return not row.in_model


def risk_rows(
    monitor: Monitor, verdict: Verdict, violations: Sequence[int], muted: Collection[str]
) -> tuple[RiskRow, ...]:
    """Return one row for each property, in the order of the monitor file.

    `violations`: how many breaches of each property there were so far.
    """
    vocabulary = monitor.abstraction.vocabulary
    key = vocabulary.observed_key(verdict.observation)
    name = vocabulary.observed_name(verdict.observation)
    stale = tuple(stale_signal.name for stale_signal in verdict.stale)
    ages = tuple(
        math.inf if stale_signal.age is None else stale_signal.age / NANOSECONDS
        for stale_signal in verdict.stale
    )
    return tuple(
        _row(
            compiled,
            prop,
            verdict.tick,
            count,
            compiled.name in muted,
            key,
            name,
            stale,
            ages,
            *_ahead(monitor, compiled, prop, verdict.observation),
        )
        for compiled, prop, count in zip(
            monitor.properties, verdict.properties, violations, strict=True
        )
    )


def _row(
    compiled: CompiledProperty,
    verdict: PropertyVerdict,
    tick: int,
    violations: int,
    muted: bool,
    key: str,
    name: str,
    stale: tuple[str, ...],
    ages: tuple[float, ...],
    expected: float,
    path: tuple[str, ...],
) -> RiskRow:
    names = compiled.automaton.names
    announced = compiled.announced
    bounded = announced.bounds_kind
    # By place: 32 fields by their names would take a fifth of a tick.
    return RiskRow(
        compiled.name,
        tick,
        VERDICTS[verdict.status],
        verdict.possible_violation,
        violations,
        verdict.broken > 0,
        verdict.probability,
        verdict.lower if bounded else math.nan,
        verdict.upper if bounded else math.nan,
        *announced,
        int(Level.NONE if muted else verdict.level),
        muted,
        key,
        name,
        verdict.automaton,
        tuple([names[q] for q in verdict.automaton]),
        verdict.in_model,
        stale,
        ages,
        expected,
        path,
        *verdict.least,
        *verdict.expected,
    )


def _ahead(
    monitor: Monitor, compiled: CompiledProperty, verdict: PropertyVerdict, observation: Observed
) -> tuple[float, tuple[str, ...]]:
    """Return the expected time to a violation, and from WARN on the likely way there."""
    model, outlook = monitor.model, compiled.outlook
    certain = observation.state is not None and len(verdict.automaton) == 1
    if model is None or outlook is None or not certain or verdict.status is PropertyStatus.VIOLATED:
        return math.nan, ()
    assert observation.state is not None
    row = model.index.get(observation.state)
    if row is None:
        return math.nan, ()
    expected = outlook.expected(row, verdict.automaton[0]) / monitor.clock.rate
    if verdict.level == Level.NONE:
        return expected, ()
    rows = outlook.path(row, verdict.automaton[0]).rows
    return expected, tuple(model.vocabulary.name(model.states[visited]) for visited in rows)


def same_bits(one: Any, other: Any) -> bool:
    """Tell whether two field values are equal to the last bit; NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("<d", one) == struct.pack("<d", other) or (one != one and other != other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same_bits, one, other))
    return bool(one == other)
