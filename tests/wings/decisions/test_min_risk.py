"""A policy on what cannot be avoided: the least risk over all ways to choose, live."""

from __future__ import annotations

import math

import numpy as np
import pytest
from decision_processes import compiled, learned

from forewarn.errors import CheckingError, ConfigError
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.carried import tables_of, with_tables
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import RiskRow, same_bits
from forewarn.wings.decisions.action_risk import least_risk
from forewarn.wings.decisions.model_process import process_of_model

TEXT = """
rate: 10
startup_grace: 0
bounds: {kind: none, confidence: 0.9}
signals: {near: {timeout: never}, wet: {timeout: 0.2}, end: {timeout: never, default: 0.0}}
predicates: {p: near, q: wet}
terminal: {crash: end == 1}
properties:
  apart:
    formula: always(not crash)
    horizon: 0.5
    risk_measure: min_risk
    out_of_model: act
    thresholds: {warn: 0.2, act: 0.5, release: 0.1}
    enter: 1
    exit: 1
    hold: 0
"""
COMPILED = compiled(TEXT)
CRASH = -1


# Near and dry, braking helps; near and wet, nothing does; in state 3 nothing is seen done.
CHANCES = {
    0: {"go": {}, "brake": {}},
    1: {"go": {CRASH: 0.9}, "brake": {CRASH: 0.02}},
    2: {"go": {CRASH: 0.8}, "brake": {CRASH: 0.8}},
}
MODEL = learned(COMPILED, CHANCES, 600)


def row(watch: LiveSession, tick: int, near: float, wet: float | None, end: float = 0.0) -> RiskRow:
    values = {"near": near, "end": end, **({} if wet is None else {"wet": wet})}
    watch.accept("", watch.clock.time_ns(tick), values)
    return watch.tick(tick).rows[0]


def test_it_alerts_where_no_action_helps_and_not_where_one_does():
    watch = LiveSession(COMPILED, MODEL, {})
    (automaton,) = COMPILED.automata
    table = least_risk(MODEL, process_of_model(MODEL, confidence=0.9), automaton, 5)
    q = automaton.initial
    rows = [row(watch, 0, 0, 0), row(watch, 1, 1, 0), row(watch, 2, 0, 1)]
    for found, state in zip(rows, (0, 1, 2), strict=True):
        at = MODEL.index[state], q
        told = (found.min_risk, found.min_risk_lower, found.min_risk_upper)
        assert told == (table.values[at], table.lower[at], table.upper[at])
        assert 0 <= found.min_risk_lower <= found.min_risk <= found.min_risk_upper <= 1
    assert rows[1].probability > 0.3 > 0.2 > rows[1].min_risk, (
        "the recorded mix is risky, braking not"
    )
    assert [found.level for found in rows] == [Level.NONE, Level.NONE, Level.ACT]
    assert rows[2].min_risk > 0.5 and rows[2].risk_measure == 2


def test_what_is_unknown_counts_with_the_worst_that_is_possible():
    watch = LiveSession(COMPILED, MODEL, {})
    row(watch, 0, 0, 1)
    found = [row(watch, tick, 0, None) for tick in range(1, 5)][-1]
    assert found.stale_signals == ("wet",)
    both = LiveSession(COMPILED, MODEL, {})
    dry, wet = row(both, 0, 0, 0), row(both, 1, 0, 1)
    assert found.min_risk == max(dry.min_risk, wet.min_risk)
    assert found.min_risk_lower == min(dry.min_risk_lower, wet.min_risk_lower)
    assert found.min_risk_upper == max(dry.min_risk_upper, wet.min_risk_upper)


def test_where_nothing_was_seen_done_the_answer_to_unknown_states_holds():
    watch = LiveSession(COMPILED, MODEL, {})
    result = row(watch, 0, 1, 1)
    assert result.in_model and math.isnan(result.min_risk)
    assert (result.min_risk_lower, result.min_risk_upper) == (0.0, 1.0)
    assert result.level == Level.ACT
    request = watch.tick(1).request
    assert request is not None and "nothing was seen done in this state" in request.reason


def test_a_violation_is_certain_and_other_properties_have_no_least_risk():
    watch = LiveSession(COMPILED, MODEL, {})
    assert row(watch, 0, 0, 0, end=1.0).min_risk == 1.0
    plain = compiled(TEXT.replace("risk_measure: min_risk", "risk_measure: risk"))
    told = row(LiveSession(plain, MODEL, {}), 0, 0, 0)
    assert all(
        math.isnan(value) for value in (told.min_risk, told.min_risk_lower, told.min_risk_upper)
    )


def test_a_model_without_actions_is_refused_with_the_key():
    with pytest.raises(
        CheckingError, match=r"properties\.apart\.risk_measure: the model counts no act"
    ):
        LiveSession(COMPILED, learned(COMPILED, CHANCES, 600, actions=False), {})
    assert row(LiveSession(COMPILED, None, {}), 0, 0, 0).level == Level.NONE, (
        "without a model no risk"
    )


def test_it_cannot_be_switched_on_while_running():
    plain = compiled(TEXT.replace("risk_measure: min_risk", "risk_measure: risk"))
    watch = LiveSession(plain, MODEL, {})
    with pytest.raises(
        ConfigError, match="risk_measure: min_risk is computed before the first tick"
    ):
        watch.set_policy("apart", {"risk_measure": "min_risk"})
    other = LiveSession(COMPILED, MODEL, {})
    other.set_policy("apart", {"act": 0.99})
    assert row(other, 0, 0, 1).level == Level.WARN


def test_tables_of_a_record_hold_it():
    monitor = build_monitor(COMPILED, MODEL)
    tables = {name: np.nextafter(array, 2.0) for name, array in tables_of(monitor).items()}
    assert {"apart.least.values", "apart.least.lower", "apart.least.upper"} <= tables.keys()
    changed, difference = with_tables(monitor, tables)
    assert 0 < difference < 1e-12
    least = changed.properties[0].least
    assert least is not None and same_bits(
        tuple(least.values.ravel().tolist()), tuple(tables["apart.least.values"].ravel().tolist())
    )
