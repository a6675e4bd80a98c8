"""What an operator may do between two ticks; drafts; and how a tick is told."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from forewarn.assessment.episodes import scored_run
from forewarn.assessment.history import History
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ModelError, RecordingError
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.checkpoint import asking, outdated, recall, remember
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.policy import RESTING, Level
from forewarn.monitoring.risk_rows import RiskRow, same_bits

TEXT = """
rate: 10
startup_grace: 0
mode: act
bounds: {kind: none}
signals: {near: {timeout: never}, slow: {timeout: 0.2}, end: {timeout: never, default: 0.0}}
predicates: {p: near, q: slow}
terminal: {over: end == 1}
properties:
  stop:
    formula: always(p implies eventually[0:0.3](q))
    horizon: 1.0
    thresholds: {warn: 0.2, act: 0.5, release: 0.1}
    enter: 1
    exit: 1
    hold: 0
    intervention: COMFORTABLE_STOP
  apart: {formula: always(not (p and q)), horizon: 1.0, enter: 1, exit: 1, hold: 0}
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


def learned(seed: int = 1, rate: float = 10.0, compiled: CompiledSpec = COMPILED) -> CountModel:
    rng = np.random.default_rng(seed)
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    state = 0
    for tick in range(3000):
        if rng.random() < 0.2:
            state = int(rng.choice([0, 1, 2]))
        counter.add(tick, state)
    counter.end_recording()
    return build_model(counter, rate=rate, digest=compiled.abstraction.digest)


@pytest.fixture
def watch() -> LiveSession:
    return LiveSession(COMPILED, learned(), {})


def tell(watch: LiveSession, tick: int, near: float = 1.0, slow: float = 0.0) -> None:
    watch.accept("", watch.clock.time_ns(tick), {"near": near, "slow": slow})


def ticks(
    watch: LiveSession, first: int, last: int, near: float = 1.0, slow: float = 0.0
) -> list[RiskRow]:
    rows = []
    for tick in range(first, last):
        tell(watch, tick, near, slow)
        rows.append(watch.tick(tick).rows[0])
    return rows


def test_a_draft_changes_nothing_until_it_is_committed(watch: LiveSession) -> None:
    ticks(watch, 0, 2)
    tell(watch, 2)
    first = watch.evaluate(2)
    again = watch.evaluate(2)
    assert same_bits(tuple(first.result.rows), tuple(again.result.rows))
    assert watch.memory.state.tick == 1
    watch.commit(again)
    assert watch.memory.state.tick == 2


def test_a_draft_that_something_arrived_after_is_replaced(watch: LiveSession) -> None:
    other = LiveSession(COMPILED, learned(), {})
    for item in (watch, other):
        ticks(item, 0, 2)
    tell(watch, 2)
    watch.evaluate(2)
    tell(watch, 2, slow=1.0)
    tell(other, 2)
    tell(other, 2, slow=1.0)
    now, then = watch.tick(2).rows, other.tick(2).rows
    assert all(same_bits(tuple(a), tuple(b)) for a, b in zip(now, then, strict=True))


def test_violations_are_counted_and_reset_by_name(watch: LiveSession) -> None:
    rows = ticks(watch, 0, 6)
    assert [row.violations for row in rows] == [0, 0, 0, 1, 1, 1]
    assert watch.reset(["apart"]) == ("apart",)
    assert watch.memory.violations == [1, 0]
    assert watch.reset([]) == ("stop", "apart")
    assert watch.memory.violations == [0, 0]
    row = ticks(watch, 6, 7)[0]
    assert row.automaton_state_names == rows[0].automaton_state_names
    assert row.stale_signals == ()


def test_release_ends_alerts_and_names_them(watch: LiveSession) -> None:
    assert ticks(watch, 0, 3)[-1].level == Level.ACT
    assert watch.release([]) == ("stop",)
    assert watch.release(["stop"]) == ()
    assert ticks(watch, 3, 4)[0].level == Level.ACT, "the figure asks for it anew"


def asked(watch: LiveSession, first: int, last: int, slow: float) -> list[tuple[str, float]]:
    """Return what is asked for, and for the limit, at ticks in the same state."""
    found = []
    for tick in range(first, last):
        tell(watch, tick, 1.0, slow)
        request = watch.tick(tick).request
        found.append(("", math.nan) if request is None else (request.action, request.speed_limit))
    return found


@pytest.mark.parametrize("known_again", [False, True])
def test_a_state_never_seen_stops_then_limits_until_it_is_known_or_released(
    known_again: bool,
) -> None:
    text = TEXT.replace("always(not (p and q))", "always(p)") + "actuators: {nav2: {}}\n"
    compiled = compile_spec(parse_spec(parse_document(text)))
    watch = LiveSession(compiled, learned(compiled=compiled), {})
    found = asked(watch, 100, 200, slow=1.0)  # p and q never held together
    assert {action for action, _ in found[:30]} == {"COMFORTABLE_STOP"}
    assert found[30:] == [("LIMIT_SPEED", 0.5)] * 70
    if known_again:
        assert asked(watch, 200, 202, slow=0.0)[-1][0] not in ("LIMIT_SPEED", "WARN")
    else:
        watch.release([])
        assert {action for action, _ in asked(watch, 200, 300, slow=1.0)} <= {"NONE", ""}


def test_a_mute_lasts_as_long_as_it_was_asked_for(watch: LiveSession) -> None:
    ticks(watch, 0, 2)
    watch.mute(["stop"], 0.3)
    rows = ticks(watch, 2, 6)
    assert [row.muted for row in rows] == [True, True, False, False]
    assert [bool(row.level) for row in rows] == [False, False, True, True]
    watch.mute([], math.inf)
    assert set(watch.muted) == {"stop", "apart"}
    watch.restart(6)
    assert set(watch.muted) == {"stop", "apart"}, "until further notice outlives a jump"
    watch.mute(["stop"], 0.0)
    assert set(watch.muted) == {"apart"}


def test_a_mute_before_the_first_tick_lasts_from_that_tick_on(watch: LiveSession) -> None:
    watch.mute(["stop"], 0.2)
    assert watch.muted == {"stop"}
    assert watch.durations() == {"stop": 0.2}
    assert [row.muted for row in ticks(watch, 1_000, 1_004)] == [True, True, False, False]
    assert not watch.muted


def test_a_mute_that_is_taken_back_before_the_first_tick_never_begins(watch: LiveSession) -> None:
    watch.mute([], 5.0)
    watch.mute(["stop"], 0.0)
    assert watch.muted == {"apart"}
    assert not ticks(watch, 10, 11)[0].muted


def test_a_mute_goes_on_for_the_rest_of_its_time_when_the_clock_jumps(watch: LiveSession) -> None:
    ticks(watch, 500, 502)
    watch.mute(["stop"], 0.7)  # 0.7 * 10 is a little more than 7
    assert [row.muted for row in ticks(watch, 502, 504)] == [True, True]
    for _ in range(2):  # it jumps again before anything was evaluated
        watch.restart(10)
    assert watch.durations() == {"stop": pytest.approx(0.4)}
    assert [row.muted for row in ticks(watch, 10, 16)] == [True] * 4 + [False] * 2


ESCALATING = TEXT.replace(
    "    intervention: COMFORTABLE_STOP\n",
    "    intervention: LIMIT_SPEED\n    speed_limit: 1.0\n"
    "    escalation: [{after: 0.3, action: EMERGENCY_STOP}]\n",
)


def actions(watch: LiveSession, first: int, last: int) -> list[str | None]:
    found: list[str | None] = []
    for tick in range(first, last):
        tell(watch, tick)
        request = watch.tick(tick).request
        found.append(None if request is None else request.action)
    return found


@pytest.mark.parametrize("ended", ["in time", "by hand"])
def test_what_was_muted_escalates_from_its_first_step(ended: str) -> None:
    compiled = compile_spec(parse_spec(parse_document(ESCALATING)))
    watch = LiveSession(compiled, learned(), {})
    asked = ["LIMIT_SPEED"] * 3 + ["EMERGENCY_STOP"] * 2
    assert actions(watch, 100, 105) == asked
    watch.mute([], 0.6 if ended == "in time" else math.inf)
    assert actions(watch, 105, 110) == ["NONE"] + [None] * 4
    if ended == "by hand":
        watch.mute([], 0.0)
    memory = json.loads(json.dumps(remember(watch)))
    assert actions(watch, 110, 115) == asked
    if ended == "by hand":
        other = LiveSession(compiled, learned(), {})
        recall(other, memory, 110)
        assert actions(other, 110, 115) == asked


@pytest.mark.parametrize(("mode", "step"), [("observe", "LIMIT_SPEED"), ("act", "EMERGENCY_STOP")])
def test_who_only_observed_leaves_no_escalation_to_a_life_that_acts(mode: str, step: str) -> None:
    compiled = [
        compile_spec(parse_spec(parse_document(ESCALATING.replace("mode: act", f"mode: {item}"))))
        for item in (mode, "act")
    ]
    before, after = (LiveSession(item, learned(), {}) for item in compiled)
    actions(before, 100, 110)
    recall(after, json.loads(json.dumps(remember(before))), 110)
    assert actions(after, 110, 111) == [step]


def test_a_mute_of_one_leaves_the_other_its_say(watch: LiveSession) -> None:
    watch.set_policy("apart", {"out_of_model": "ignore"})
    ticks(watch, 0, 3)
    watch.mute(["stop"], math.inf)
    tell(watch, 3, slow=1.0)
    request = watch.tick(3).request
    assert request is not None
    assert (request.action, request.property) == ("COMFORTABLE_STOP", "apart")
    assert request.properties == ("apart",)


UPPER = TEXT.replace(
    "    enter: 1\n    exit: 1\n", "    risk_measure: upper\n    enter: 1\n    exit: 1\n"
)
UPPER = UPPER.replace("{kind: none}", "{kind: credible, samples: 20}")
UPPER = UPPER.replace("{timeout: 0.2}", "{timeout: 0.2, stale: ignore}")


@pytest.mark.parametrize("before", [0.0, 1.0])
def test_what_is_not_judged_neither_begins_nor_ends_an_alert(before: float) -> None:
    compiled = compile_spec(parse_spec(parse_document(UPPER)))
    model = learned(compiled=compiled)
    watch = LiveSession(compiled, model, {})
    history = History(watch.monitor)
    watch.set_policy("stop", {"warn": 0.5})
    levels = []
    for tick in range(8):
        values = {"near": before, "slow": 0.0} if tick < 2 else {"near": before}
        watch.accept("", watch.clock.time_ns(tick), values)
        outcome = watch.tick(tick)
        history.add(outcome.verdict)
        levels.append(outcome.rows[0].level)
        if tick > 3:
            assert outcome.rows[0].stale_signals == ("slow",)
            assert outcome.rows[0].upper == 1.0
    assert levels == [2 * before] * 8
    score = scored_run(history.tracks()[0]).score
    assert np.isnan(score[4:]).all()
    assert not np.isnan(score[:4]).any()


def test_a_certain_violation_alerts_while_signals_have_not_come_yet() -> None:
    text = TEXT.replace("startup_grace: 0", "startup_grace: 5").replace("not (p and q)", "not p")
    compiled = compile_spec(parse_spec(parse_document(text)))
    watch = LiveSession(compiled, learned(), {})
    history = History(watch.monitor)
    found = []
    for tick in range(4):
        watch.accept("", watch.clock.time_ns(tick), {"near": float(tick > 1)})
        outcome = watch.tick(tick)
        history.add(outcome.verdict)
        found.append([row.level for row in outcome.rows])
    assert found == [[0, 0], [0, 0], [0, 2], [0, 2]]
    assert watch.memory.violations == [0, 1]
    score = scored_run(history.tracks()[1]).score
    assert np.isnan(score[:2]).all()
    assert score[2:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("duration", [-1.0, math.nan])
def test_a_mute_of_no_duration_is_refused(watch: LiveSession, duration: float) -> None:
    with pytest.raises(ConfigError, match="duration"):
        watch.mute([], duration)
    assert not watch.muted


@pytest.mark.parametrize("command", ["reset", "release"])
def test_unknown_names_are_refused(watch: LiveSession, command: str) -> None:
    with pytest.raises(ConfigError, match=r"'stopp' is no property .*stop, apart"):
        getattr(watch, command)(["stopp"])


def test_a_policy_is_changed_whole_or_not_at_all(watch: LiveSession) -> None:
    with pytest.raises(ConfigError, match="release"):
        watch.set_policy("stop", {"warn": 0.01, "act": 0.05})
    assert watch.spec.properties["stop"].thresholds.act == 0.5
    watch.set_policy("stop", {"act": 0.9, "exit": 3})
    assert watch.spec.properties["stop"].thresholds.act == 0.9
    assert watch.spec.properties["stop"].exit == 3


def test_another_model_keeps_thresholds_and_automata(watch: LiveSession) -> None:
    ticks(watch, 0, 3)
    before = watch.memory.state
    watch.set_policy("stop", {"act": 0.9})
    digest = watch.monitor.model.digest  # type: ignore[union-attr]
    watch.use(watch.build(learned(seed=2)))
    assert watch.monitor.model.digest != digest  # type: ignore[union-attr]
    assert watch.spec.properties["stop"].thresholds.act == 0.9
    assert watch.memory.state == before


def test_a_model_of_another_rate_is_refused(watch: LiveSession) -> None:
    with pytest.raises(ModelError, match="20 Hz"):
        watch.build(learned(rate=20.0))


def test_an_intervention_is_withdrawn_once(watch: LiveSession) -> None:
    ticks(watch, 0, 3)
    request = watch.withdraw("the clock jumped")
    assert request is not None
    assert (request.action, request.active, request.id) == ("NONE", False, 1)
    assert watch.withdraw("again") is None


def test_a_restart_forgets_samples_and_counts(watch: LiveSession) -> None:
    ticks(watch, 0, 6)
    watch.restart(100)
    assert watch.memory.violations == [0, 0]
    row = watch.tick(100).rows[0]
    assert row.stale_signals == ("near", "slow")
    assert row.stale_ages == (math.inf, math.inf)


@pytest.mark.parametrize("first", [[2], [500], [900_000, 7]])
def test_a_clock_that_jumps_takes_no_intervention_back(first: list[int]) -> None:
    text = ESCALATING.replace("    hold: 0\n", "    hold: 1.0\n", 1)
    text = text.replace("release: 0.1", "release: 0.4").replace(
        "startup_grace: 0", "startup_grace: 10"
    )
    watch = LiveSession(compile_spec(parse_spec(parse_document(text))), learned(), {})
    assert actions(watch, 10, 14)[-1] == "EMERGENCY_STOP"
    for tick in first:  # it may jump again before anything was evaluated
        watch.restart(tick)
    tick = first[-1]
    request = watch.tick(tick).request
    assert request is not None
    assert (request.action, request.active, request.id) == ("EMERGENCY_STOP", True, 1)
    levels = [row.level for row in ticks(watch, tick + 1, tick + 12, near=0.0)]
    # It has to last ten ticks: four before the jump, one that knew nothing, and five more.
    assert levels == [Level.ACT] * 5 + [Level.WARN] * 6


@pytest.mark.parametrize("first", [900_000, 7])
def test_a_memory_of_any_age_takes_no_intervention_back(first: int) -> None:
    text = ESCALATING.replace("    hold: 0\n", "    hold: 1.0\n", 1)
    text = text.replace("release: 0.1", "release: 0.4").replace(
        "startup_grace: 0", "startup_grace: 10"
    )
    compiled = compile_spec(parse_spec(parse_document(text)))
    before = LiveSession(compiled, learned(), {})
    assert actions(before, 10, 14)[-1] == "EMERGENCY_STOP"
    memory = json.loads(json.dumps(remember(before)))
    watch = LiveSession(compiled, learned(), {})
    with pytest.raises(RecordingError, match="ticks old"):
        recall(watch, memory, first, 60.0)
    held = outdated(watch, memory, asking(memory), first)
    recall(watch, json.loads(json.dumps(held, allow_nan=False)), first)
    request = watch.tick(first).request
    assert request is not None
    assert (request.action, request.active, request.id) == ("EMERGENCY_STOP", True, 1)
    levels = [row.level for row in ticks(watch, first + 1, first + 12, near=0.0)]
    assert levels == [Level.ACT] * 5 + [Level.WARN] * 6, "as after a jump of the clock"
    assert asking(memory)
    assert not asking({**memory, "mode": "observe"})
    assert not asking({**memory, "advisor": [1, False]})
    assert outdated(watch, memory, {}, first) is None


def test_an_old_memory_brings_no_alert_back_that_was_muted() -> None:
    before = LiveSession(COMPILED, learned(), {})
    ticks(before, 10, 14)
    before.mute(["stop"], 60.0)
    assert not asking(remember(before))
    nameless = {key: value for key, value in remember(before).items() if key != "names"}
    with pytest.raises(RecordingError, match="makes no sense"):
        asking(nameless)
    with pytest.raises(RecordingError, match="makes no sense"):
        asking({**remember(before), "properties": [1]})


def test_an_end_leaves_nothing_for_the_next_activation(watch: LiveSession) -> None:
    ticks(watch, 0, 4)
    watch.end()
    watch.restart(100)
    assert [prop.policy for prop in watch.memory.state.properties] == [RESTING, RESTING]
    assert not watch.memory.advisor.asking


def test_how_unknown_values_are_written(watch: LiveSession) -> None:
    ticks(watch, 0, 1, near=1.0, slow=1.0)
    row = watch.tick(3).rows[0]
    assert row.state_key == "1?"
    assert row.state == "p & q?"
    assert row.stale_signals == ("slow",)
    assert row.stale_ages == pytest.approx((0.3,))
    watch.accept("", watch.clock.time_ns(4), {"end": math.nan})
    row = watch.tick(4).rows[0]
    assert row.state_key == "1?!?"
    assert row.state == "p & q? & over?"
    watch.accept("", watch.clock.time_ns(5), {"end": 1.0})
    row = watch.tick(5).rows[0]
    assert (row.state_key, row.state) == ("!over", "over")


def test_bits_are_compared_and_not_values() -> None:
    assert same_bits(math.nan, -math.nan)
    assert not same_bits(0.0, -0.0)
    assert not same_bits(0.1, math.nextafter(0.1, 1.0))
    assert same_bits((1.0, "a", (2,)), (1.0, "a", (2,)))
    assert not same_bits((1.0,), (1.0, 2.0))
