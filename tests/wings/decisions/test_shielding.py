"""The shield beside an intervention: what it recommends, and when it says that it cannot."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest
from decision_processes import compiled, learned
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.assessment.lines import verdict_line
from forewarn.config.actions import ACTIONS, SEVERITY
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import CheckingError, ConfigError
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.carried import tables_of, with_tables
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.live_session import LiveSession
from forewarn.signals.clock_kinds import Grid
from forewarn.wings.decisions.model_process import process_of_model
from forewarn.wings.decisions.shield import ShieldTable, shield_table

TEXT = """
rate: 10
startup_grace: 0
mode: act
bounds: {kind: none, confidence: 0.9}
signals: {near: {timeout: never}, wet: {timeout: 0.2}, end: {timeout: never, default: 0.0}}
predicates: {p: near, q: wet}
terminal: {crash: end == 1, home: end == 2}
shield: {failure: crash, success: home, at_least: 0.4, horizon: 2.0}
properties:
  apart:
    formula: always(not crash)
    horizon: 0.5
    thresholds: {warn: 0.05, act: 0.1, release: 0.02}
    enter: 1
    exit: 1
    hold: 0
    intervention: REPLAN
"""
COMPILED = compiled(TEXT)
CRASH, HOME = -1, -2
# In state 3 nothing is seen done.
CHANCES = {
    0: {"go": {HOME: 0.6}, "wait": {HOME: 0.1}},
    1: {
        "go": {CRASH: 0.5, HOME: 0.4},
        "turn": {CRASH: 0.1, HOME: 0.5},
        "wait": {CRASH: 0.02},
        "COMFORTABLE_STOP": {CRASH: 0.2},
    },
    2: {"go": {CRASH: 0.7, HOME: 0.1}, "wait": {CRASH: 0.6}},
}
MODEL = learned(COMPILED, CHANCES, 900, seed=5)


def asked(watch: LiveSession, tick: int, near: float, wet: float | None) -> Intervention:
    values = {"near": near, **({} if wet is None else {"wet": wet})}
    watch.accept("", watch.clock.time_ns(tick), values)
    request = watch.tick(tick).request
    assert request is not None
    return request


@lru_cache
def table() -> ShieldTable:
    bounds = process_of_model(MODEL, confidence=0.9)
    codes = np.array(bounds.counted.states)
    return shield_table(bounds, codes == CRASH, codes == HOME, 0.4, 20)


def test_the_request_carries_the_safest_action_that_reaches_success_and_all_others():
    request = asked(LiveSession(COMPILED, MODEL, {}), 0, 1, 0)
    assert request.action == "REPLAN"
    decision = table().decisions.get(1)
    assert decision is not None and request.recommendation == decision.action
    names = [one.action for one in request.alternatives]
    assert names == [one.action for one in decision.alternatives] and names[0] == decision.action
    assert set(names) == {"go", "turn", "wait", "COMFORTABLE_STOP"}
    for told, risk in zip(request.alternatives, decision.alternatives, strict=True):
        assert told[1] == risk.visits > 100 / 2
        assert told[2:5] == risk.failure and told[5:8] == risk.success
        assert told.failure_lower <= told.failure <= told.failure_upper
        assert told.feasible == (told.success >= 0.4)
    safest = min((one for one in request.alternatives if one.feasible), key=lambda one: one.failure)
    assert request.recommendation == safest.action
    assert f"{request.recommendation!r} was seen" in request.recommendation_reason
    assert "within 2 s" in request.recommendation_reason


def test_where_nothing_is_known_nothing_is_recommended_and_the_request_stays():
    watch = LiveSession(COMPILED, MODEL, {})
    request = asked(watch, 0, 1, 1)
    assert (request.recommendation, request.alternatives) == ("", ())
    assert "nothing was seen done in 'p & q'" in request.recommendation_reason
    watch = LiveSession(COMPILED, MODEL, {})
    asked(watch, 0, 1, 0)
    found = [asked(watch, tick, 1, None) for tick in range(1, 5)][-1]
    assert (found.recommendation, found.alternatives) == ("", ())
    assert "the state is not known" in found.recommendation_reason
    plain = compiled(TEXT.replace("shield:", "# shield:"))
    for near, wet in ((1, 0), (1, 1)):
        ours = asked(LiveSession(COMPILED, MODEL, {}), 0, near, wet)
        theirs = asked(LiveSession(plain, MODEL, {}), 0, near, wet)
        assert ours[:9] == theirs[:9] and theirs[9:] == ("", "", (), (False, False))


@settings(deadline=None)
@given(st.sampled_from(SEVERITY), st.sampled_from([0, 1, 2]))
def test_nothing_that_is_recommended_is_less_than_what_is_asked_for(action, state):
    advice = table().advise(state, "it", Grid(10.0), action)
    suits = [
        one.action
        for one in advice.alternatives
        if (
            SEVERITY.index(one.action) >= SEVERITY.index(action)
            if one.action in ACTIONS
            else ACTIONS[action].effect not in ("limit", "stop")
        )
    ]
    assert bool(advice.action) == bool(suits)
    assert not advice.action or advice.action in suits
    if not suits:
        assert f"nothing as strong as {action} was seen" in advice.reason
    assert len(advice.alternatives) == len(CHANCES[state])


def test_if_nothing_reaches_success_the_safest_is_named_and_that_is_said():
    strict = compiled(TEXT.replace("0.4", "0.999"))
    request = asked(LiveSession(strict, MODEL, {}), 0, 0, 1)
    assert not any(one.feasible for one in request.alternatives)
    safest = min(request.alternatives, key=lambda one: one.failure)
    assert request.recommendation == safest.action
    assert "nothing reaches success with 0.999" in request.recommendation_reason


def test_lines_of_a_replay_say_it_too():
    watch = LiveSession(COMPILED, MODEL, {})
    request = asked(watch, 0, 1, 0)
    watch.accept("", watch.clock.time_ns(1), {"near": 1, "wet": 0})
    told = json.loads(verdict_line(watch.tick(1).verdict, watch.monitor))["shield"]
    assert told["action"] == request.recommendation
    assert [one["action"] for one in told["alternatives"]] == [
        one.action for one in request.alternatives
    ]


def test_a_record_carries_what_was_solved():
    monitor = build_monitor(COMPILED, MODEL)
    assert monitor.shield is not None
    tables = {name: np.nextafter(array, 2.0) for name, array in tables_of(monitor).items()}
    tables["shield.order"] = tables_of(monitor)["shield.order"]
    tables["shield.decisions"] = tables_of(monitor)["shield.decisions"]
    changed, difference = with_tables(monitor, tables)
    assert 0 < difference < 1e-12 and changed.shield is not None
    again = tables_of(changed)
    assert all(np.array_equal(again[name], tables[name], equal_nan=True) for name in tables)
    same, _ = with_tables(monitor, tables_of(monitor))
    assert same.shield is not None and same.shield.decisions == monitor.shield.decisions


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("success: home", "success: hom"), [r"shield\.success", "'hom' is not known", "home"]),
        (("failure: crash", "failure: crash |"), [r"shield\.failure"]),
        (("success: home", "success: crash"), ["shield: the state 'crash' is failure and success"]),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_key(change, words):
    changed = compiled(TEXT.replace(*change))
    with pytest.raises(CheckingError, match=".*".join(words)):
        LiveSession(changed, MODEL, {})
    if "shield: the state" not in words[0]:
        with pytest.raises(CheckingError, match=words[0]):
            LiveSession(changed, None, {})


def test_it_needs_actions_and_says_so_without_a_model():
    with pytest.raises(CheckingError, match="shield: the model counts no actions"):
        LiveSession(COMPILED, learned(COMPILED, CHANCES, 900, actions=False), {})
    watch = LiveSession(COMPILED, None, {})
    assert "shield: without a model nothing is recommended" in watch.monitor.notes
    with pytest.raises(ConfigError, match=r"shield\.at_least"):
        parse_spec(parse_document(TEXT.replace("0.4", "1.4")))
