"""A rule that is broken for certain asks for something, with and without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from forewarn.assessment.episodes import AlertRule, find_episodes, scored_run
from forewarn.assessment.history import History
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.policy import Level

TEXT = """
rate: 10
startup_grace: 0
mode: act
bounds: {kind: none}
signals: {near: {timeout: 0.2}, moving: {timeout: never}, hit: {timeout: never}}
predicates: {p: near, q: moving}
terminal: {collision: hit}
properties:
  rule: {formula: "FORMULA", horizon: 1.0, OPTIONS}
"""
INVARIANT, RESPONSE = "always(not p)", "always(p implies eventually[0:0.5](not q))"
LABEL = "always(not collision)"


def compiled(formula: str, options: str = "exit: 5") -> CompiledSpec:
    text = TEXT.replace("FORMULA", formula).replace("OPTIONS", options)
    return compile_spec(parse_spec(parse_document(text)))


def watches(compiled: CompiledSpec) -> list[LiveSession]:
    """Return one without a model, and one whose model takes every violation for unlikely."""
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick in range(4000):
        counter.add(tick, (0, 2, 0, 2, 0, 2, 1, 3)[tick // 50 % 8] if tick % 50 else 0)
    counter.end_recording()
    model = build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    learned = LiveSession(compiled, None, {})
    learned.use(build_monitor(compiled, model))
    return [LiveSession(compiled, None, {}), learned]


def levels(watch: LiveSession, facts: str) -> tuple[list[int], History]:
    """Walk through one character a tick: p, q, B both, C a collision, ? nothing of p."""
    history, found = History(watch.monitor), []
    for tick, fact in enumerate(facts):
        values = {"moving": float(fact in "qB"), "hit": float(fact == "C")}
        if fact != "?":
            values["near"] = float(fact in "pB")
        watch.accept("", watch.clock.time_ns(tick), values)
        result = watch.tick(tick)
        found.append(result.rows[0].level)
        history.add(result.verdict)
    return found, history


def acting(found: Sequence[int]) -> list[int]:
    return [tick for tick, level in enumerate(found) if level == Level.ACT]


def test_a_breach_that_goes_on_alerts_after_enter_ticks_until_it_has_cleared() -> None:
    # The response is violated at tick 15, and again every five ticks; it is met at tick 50.
    for formula, first in ((INVARIANT, 11), (RESPONSE, 16)):
        for watch in watches(compiled(formula, "enter: 2, hold: 0.2, exit: 3")):
            facts = "." * 10 + "B" * 40 + "." * 40
            found, _ = levels(watch, facts)
            on = [tick for tick in acting(found) if first <= tick]
            assert on[0] == first
            assert set(range(first, 50)) <= set(on), "it lasts as long as the breach"
            end = on[-1] + 1
            assert end == (52 if formula == RESPONSE else 59), "exit, and the time to clear"


def test_a_flicker_of_a_sensor_stops_nobody() -> None:
    for watch in watches(compiled(INVARIANT, "enter: 3, thresholds: {act: 0.999}")):
        found, _ = levels(watch, "." * 5 + "p" + "." * 4 + "p" + "." * 4 + "pp" + "." * 20)
        assert not acting(found)
        assert watch.memory.violations == [1]


def test_what_cannot_be_counted_twice_asks_at_once() -> None:
    for watch in watches(compiled(LABEL, "enter: 5")):
        assert acting(levels(watch, "...CCC" + "." * 30)[0])[:2] == [3, 4]
    # A pulse of the trigger: its obligation is violated when there is no trigger any more.
    for watch in watches(compiled(RESPONSE, "enter: 5, thresholds: {act: 0.999}")):
        assert acting(levels(watch, "..B" + "q" * 30)[0])[0] == 7


def test_what_goes_blind_in_a_breach_does_not_count_as_kept() -> None:
    for watch in watches(compiled(INVARIANT, "enter: 2, hold: 0")):
        found, _ = levels(watch, "..p" + "?" * 20 + "." * 30)
        assert set(range(3, 23)) <= set(acting(found))
        assert not found[-1]


@pytest.mark.parametrize("hold", ["", 'hold_while: "moving or near"'])
@pytest.mark.parametrize("formula", [INVARIANT, RESPONSE, LABEL])
def test_live_replay_and_tune_have_the_same_alerts(formula: str, hold: str) -> None:
    facts = "..p" + "q" * 12 + "B" * 20 + "..pp?" + "q" * 9 + "p?.?CC" + "." * 9 + "Bq" * 9
    spec = compiled(formula, ", ".join(filter(None, ("enter: 2, exit: 3", hold))))
    for watch in watches(spec):
        found, history = levels(watch, facts)
        section = watch.spec.properties["rule"]
        (track,) = history.tracks()
        assert track.level.tolist() == found
        act = np.array([section.thresholds.act])
        episodes = find_episodes([scored_run(track)], act, AlertRule.of(section))
        on = [t for a, b in zip(episodes.start, episodes.end, strict=True) for t in range(a, b)]
        assert on == acting(found)
        assert on, "the case says something"
