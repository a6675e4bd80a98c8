"""A policy on the risk of what is being done, live."""

from __future__ import annotations

import pytest
from decision_processes import compiled, learned

from forewarn.errors import CheckingError, ConfigError
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.carried import tables_of, with_tables
from forewarn.monitoring.live_session import LiveSession, with_section
from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import RiskRow
from forewarn.wings.decisions.action_risk import risk_of_actions
from forewarn.wings.decisions.model_process import process_of_model

TEXT = """
rate: 10
startup_grace: 0
bounds: {kind: credible, confidence: 0.9}
signals: {near: {timeout: 0.2}, doing: {timeout: 0.2}, end: {timeout: never, default: 0.0}}
predicates: {p: near}
terminal: {crash: end == 1}
action: doing
properties:
  apart:
    formula: always(not crash)
    horizon: 0.5
    risk_of: action
    out_of_model: act
    thresholds: {warn: 0.2, act: 0.5, release: 0.1}
    enter: 1
    exit: 1
    hold: 0
"""
COMPILED = compiled(TEXT)
CRASH = -1


CHANCES = {
    0: {"go": {}, "brake": {}},
    1: {"go": {CRASH: 0.9}, "brake": {CRASH: 0.02}},  # going on when near ends badly
}
MODEL = learned(COMPILED, CHANCES, 400)
(AUTOMATON,) = COMPILED.automata
TABLE = risk_of_actions(MODEL, process_of_model(MODEL, confidence=0.9), AUTOMATON, 5)


def row(watch: LiveSession, tick: int, near: float | None, doing: str | None) -> RiskRow:
    values = {"near": near, "doing": doing}
    known = {name: value for name, value in values.items() if value is not None}
    watch.accept("", watch.clock.time_ns(tick), known)
    return watch.tick(tick).rows[0]


def test_it_alerts_on_what_is_done_and_not_on_what_others_did_in_the_state():
    watch = LiveSession(COMPILED, MODEL, {})
    rows = [row(watch, 0, 0, "go"), row(watch, 1, 1, "brake"), row(watch, 2, 1, "go")]
    for found, (state, action) in zip(rows, ((0, "go"), (1, "brake"), (1, "go")), strict=True):
        at = TABLE.done[MODEL.index[state], action], AUTOMATON.initial
        columns = (TABLE.done_values, TABLE.done_lower, TABLE.done_upper)
        assert (found.probability, found.lower, found.upper) == tuple(
            column[at] for column in columns
        )
        assert (found.bounds_kind, found.bounds_confidence) == (2, 0.9)
    assert [found.level for found in rows] == [Level.NONE, Level.NONE, Level.ACT]


def test_without_an_action_it_is_the_risk_of_the_state_and_of_an_unknown_state_the_worst():
    watch = LiveSession(COMPILED, MODEL, {})
    row(watch, 0, 1, "go")
    found = [row(watch, tick, 1, None) for tick in range(1, 5)][-1]
    assert found.probability == TABLE.values[MODEL.index[1], AUTOMATON.initial]
    unsure = [row(watch, tick, None, "brake") for tick in range(5, 9)][-1]
    assert unsure.stale_signals == ("near",)
    assert unsure.probability == found.probability


def test_what_was_never_done_in_the_state_is_unknown_to_the_model():
    found = row(LiveSession(COMPILED, MODEL, {}), 0, 0, "fly")
    assert not found.in_model
    assert (found.lower, found.upper, found.level) == (0.0, 1.0, Level.ACT)


def test_a_record_carries_its_tables():
    monitor = build_monitor(COMPILED, MODEL)
    tables = tables_of(monitor)
    other = {name: array / 2 for name, array in tables.items()}
    changed, difference = with_tables(monitor, other)
    assert difference > 0.1
    assert (changed.properties[0].of_actions.done_values == TABLE.done_values / 2).all()
    assert with_tables(monitor, tables)[1] == 0.0


def test_it_needs_actions_and_stays_while_running():
    with pytest.raises(CheckingError, match=r"apart.risk_of: the model counts no actions"):
        build_monitor(COMPILED, learned(COMPILED, CHANCES, 400, actions=False))
    monitor = build_monitor(COMPILED, MODEL)
    section = monitor.spec.properties["apart"]
    with pytest.raises(ConfigError, match="cannot change while running"):
        with_section(monitor, "apart", section.model_copy(update={"risk_of": "state"}))
