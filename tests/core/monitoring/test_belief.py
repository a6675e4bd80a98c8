"""The expected risk as a figure: what alerts, what restarts, what a belief holds and keeps."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ConfigErrors, RecordingError
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel, Smoothing
from forewarn.monitoring.belief import MAX_BLIND, follow
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.checkpoint import recall, remember
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import RiskRow, same_bits
from forewarn.signals.snapshots import Snapshot

TEXT = """
rate: 10
startup_grace: 0
bounds: {kind: none}
signals: {near: {timeout: 0.2}, wet: {timeout: 0.2}}
predicates: {p: near, q: wet}
observation_error: {p: 0.05}
properties:
  apart:
    formula: always(p implies eventually[0:0.2](q))
    horizon: 1.0
    risk_measure: expected
    thresholds: {warn: 0.45, act: 0.5, release: 0.2}
    enter: 1
    exit: 1
    hold: 0
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))
EXACT = compile_spec(parse_spec(parse_document(TEXT.replace("{p: 0.05}", "{}"))))
HISTORY = compile_spec(parse_spec(parse_document(TEXT.replace("rate:", "history: 2\nrate:", 1))))


def learned(alpha: str = "sparse") -> CountModel:
    """Count: far and dry (0) mostly; near (1) lasts and is mostly followed by near and wet (3)."""
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    rng, state = np.random.default_rng(2), 0
    rows = {0: [0.97, 0.03, 0.0, 0.0], 1: [0.0, 0.9, 0.0, 0.1], 3: [0.5, 0.0, 0.0, 0.5]}
    for tick in range(5000):
        counter.add(tick, state)
        state = int(rng.choice(4, p=rows[state]))
    counter.end_recording()
    digest = COMPILED.abstraction.digest
    return build_model(counter, rate=10.0, digest=digest, smoothing=Smoothing(alpha))


MODEL = learned()


def row(watch: LiveSession, tick: int, near: float | None, wet: float | None = 0.0) -> RiskRow:
    values = {k: v for k, v in (("near", near), ("wet", wet)) if v is not None}
    watch.accept("", watch.clock.time_ns(tick), values)
    return watch.tick(tick).rows[0]


def test_one_wrong_reading_alerts_the_estimate_and_not_the_expected_risk():
    watch = LiveSession(COMPILED, MODEL, {})
    for tick in range(20):
        calm = row(watch, tick, 0.0)
    odd = row(watch, 20, 1.0)
    assert odd.probability > 0.5 > odd.expected > calm.expected
    assert odd.level == Level.NONE
    assert row(watch, 21, 0.0).expected < 0.3, "it was a wrong reading"
    rows = [row(watch, tick, 1.0) for tick in (22, 23, 24)]
    assert rows[-1].level == Level.ACT and rows[-1].expected > 0.5, "three of them are none"
    assert rows[-1].risk_measure == 3


def test_where_all_is_known_it_is_the_estimate():
    watch = LiveSession(EXACT, MODEL, {})
    for tick, (near, wet) in enumerate([(0, 0), (1, 0), (1, 1), (0, 0), (1, 0)]):
        found = row(watch, tick, near, wet)
        assert same_bits(found.expected, found.probability)
        assert (found.expected_left_out, found.expected_restarted) == (0.0, False)


def test_a_state_that_was_never_seen_is_one_read_wrongly_or_unseen():
    """Far and wet was never seen: with noise it is near and wet."""
    noisy, exact = LiveSession(COMPILED, MODEL, {}), LiveSession(EXACT, MODEL, {})
    for watch in (noisy, exact):
        row(watch, 0, 1.0)
    told, blind = row(noisy, 1, 0.0, 1.0), row(exact, 1, 0.0, 1.0)
    assert not told.in_model and told.expected < 0.3 and told.level == Level.NONE
    assert math.isnan(blind.expected) and blind.level == Level.ACT
    assert "never seen" in exact.tick(2).request.reason
    after = row(exact, 3, 0.0)
    assert after.expected < 0.3 and not after.expected_restarted


def test_what_cannot_be_restarts_the_belief_and_says_so():
    """Without smoothing nothing leads from far (0) to near and wet (3) in one step."""
    watch = LiveSession(COMPILED, learned("none"), {})
    for tick in range(3):
        assert not row(watch, tick, 0.0).expected_restarted
    found = row(watch, 3, 1.0, 1.0)
    assert not found.expected_restarted, "it may have been near all the time"
    text = TEXT.replace("{p: 0.05}", "{}")
    certain = LiveSession(compile_spec(parse_spec(parse_document(text))), learned("none"), {})
    row(certain, 0, 1.0)
    row(certain, 1, None, None)
    row(certain, 4, None, None)  # whether it is near and since when is not known any more
    assert math.isfinite(row(certain, 7, 1.0, 0.0).expected)
    assert len(certain.memory.state.properties[0].belief) > 1, "since when is not known"
    told = row(certain, 8, 0.0, 0.0)
    assert told.expected_restarted and told.expected == 1.0, "by then it is too late in any case"


def test_a_belief_holds_the_most_probable_states_and_says_what_is_left_out():
    monitor = build_monitor(COMPILED, MODEL)
    (compiled,) = monitor.properties
    belief = monitor.fresh(compiled).belief
    nothing = COMPILED.abstraction.vocabulary.nothing_known
    for _ in range(4):
        belief, whole = follow(monitor.filter, compiled, belief, nothing)
    assert len(belief) > 2 and whole.left_out == 0.0
    before = belief
    after, _ = follow(monitor.filter, compiled, before, nothing)
    kept, small = follow(replace(monitor.filter, limit=2), compiled, before, nothing)
    greatest = sorted(after, key=lambda entry: -entry[2])[:2]
    assert {entry[:2] for entry in kept} == {entry[:2] for entry in greatest}
    assert small.left_out == pytest.approx(1.0 - sum(p for *_, p in greatest))
    assert sum(p for *_, p in kept) == pytest.approx(1.0)
    assert small.probability == follow(monitor.filter, compiled, before, nothing)[1].probability


def test_a_long_gap_costs_no_more_than_a_short_one():
    monitor = build_monitor(COMPILED, MODEL)
    state, _ = monitor.step(monitor.start(), Snapshot(0, (0.0, 0.0)))
    after = [
        monitor.step(state, Snapshot(gap + 1, (0.0, 0.0)))[0].properties[0].belief
        for gap in (MAX_BLIND, MAX_BLIND + 1, 9_000_000)
    ]
    assert after[0] == after[1] == after[2]


def test_a_memory_keeps_the_belief_to_the_last_bit():
    watch = LiveSession(COMPILED, MODEL, {})
    for tick, near in enumerate([0.0, 1.0, 0.0, 1.0]):
        row(watch, tick, near)
    memory = json.loads(json.dumps(remember(watch), allow_nan=False))
    other = LiveSession(COMPILED, MODEL, {})
    recall(other, memory, 4)
    assert other.memory.state.properties == watch.memory.state.properties
    assert same_bits(row(watch, 4, 1.0), row(other, 4, 1.0))
    memory["properties"][0][3][0][2] = 2.0
    with pytest.raises(RecordingError, match="do not add up to 1"):
        recall(LiveSession(COMPILED, MODEL, {}), memory, 4)


def test_a_reading_is_not_counted_twice_where_a_state_remembers_it():
    counter = TransitionCounter(HISTORY.abstraction.vocabulary)
    for tick, code in enumerate([0b0000, 0b0001, 0b0101, 0b0100] * 500):
        counter.add(tick, code)
    counter.end_recording()
    digest = HISTORY.abstraction.digest
    model = build_model(counter, rate=10.0, digest=digest, smoothing=Smoothing("none"))
    monitor = build_monitor(HISTORY, model)
    state = monitor.start()
    for tick in range(2):
        state, _ = monitor.step(state, Snapshot(tick, (0.0, 0.0)))
    found = {code: p for code, _, p in state.properties[0].belief}
    # Bayes over two readings of "far" in a cycle far, near, near, far of four equal parts: each
    # of the four ways to have been where it is weighs what its two readings weigh.
    weights = {0b0000: 0.95 * 0.95, 0b0001: 0.05 * 0.95, 0b0101: 0.05**2, 0b0100: 0.95 * 0.05}
    total = sum(weights.values())
    assert found == pytest.approx({k: w / total for k, w in weights.items()}, rel=0.005)


def test_expected_is_asked_for_in_the_file_only():
    plain = TEXT.replace("observation_error: {p: 0.05}\n", "").replace(
        "risk_measure: expected", "risk_measure: risk"
    )
    watch = LiveSession(compile_spec(parse_spec(parse_document(plain))), MODEL, {})
    assert math.isnan(row(watch, 0, 0.0).expected)
    with pytest.raises(ConfigError, match="followed from the first tick on"):
        watch.set_policy("apart", {"risk_measure": "expected"})
    asked = LiveSession(
        compile_spec(parse_spec(parse_document(TEXT.replace("expected", "risk")))), MODEL, {}
    )
    asked.set_policy("apart", {"risk_measure": "expected"})
    assert row(asked, 0, 0.0).risk_measure == 3


@pytest.mark.parametrize(
    ("noise", "told"),
    [
        ("{r: 0.1}", r"observation_error\.r: 'r': no predicate \(accepted: p, q"),
        ("{p: 0.6}", r"less than or equal to 0\.5"),
        ("{crash: 0.1}", "terminal labels are not read wrongly"),
    ],
)
def test_noise_names_predicates(noise: str, told: str):
    text = TEXT.replace("{p: 0.05}", noise).replace(
        "observation_error", "terminal: {crash: near > 2}\nobservation_error", 1
    )
    with pytest.raises(ConfigErrors, match=told):
        compile_spec(parse_spec(parse_document(text)))


def test_noise_of_a_signal_of_bins_is_that_of_each_cut():
    text = TEXT.replace(
        "observation_error: {p: 0.05}", "bins: {wet: [1, 2]}\nobservation_error: {wet: 0.1, p: 0}"
    )
    compiled = compile_spec(parse_spec(parse_document(text)))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick in range(10):
        counter.add(tick, 0)
    model = build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    filter_ = build_monitor(compiled, model).filter
    names = compiled.abstraction.vocabulary.predicates
    assert {names[number]: p for number, p in filter_.observation_error} == {
        "wet<1": 0.1,
        "wet<2": 0.1,
    }


def test_each_moment_that_was_seen_counts_once_before_anything_is_read():
    """Three recordings: a first moment has no transition that leads to it, a last one none on."""
    counter, courses = TransitionCounter(COMPILED.abstraction.vocabulary), [[0, 1, 3], [1, 1], [3]]
    for course in courses:
        for tick, state in enumerate(course):
            counter.add(tick, state)
        counter.end_recording()
    digest = COMPILED.abstraction.digest
    model = build_model(counter, rate=10.0, digest=digest, smoothing=Smoothing("none"))
    belief = build_monitor(COMPILED, model).filter
    assert belief is not None
    moments = [state for course in courses for state in course]
    seen = dict(zip(model.states, belief.seen, strict=True))
    assert {k: v for k, v in seen.items() if v} == {s: moments.count(s) for s in set(moments)}
