"""What an operator may do between two ticks; drafts; and how a tick is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forewarn.config import parse_spec
from forewarn.errors import ConfigError, ModelError
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models import CountModel
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.policy import Level
from forewarn.monitoring.rows import RiskRow, same_bits
from forewarn.monitoring.watch import Watch
from forewarn.yamlfile import parse_document

TEXT = """
rate: 10
startup: 0
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


def learned(seed: int = 1, rate: float = 10.0) -> CountModel:
    rng = np.random.default_rng(seed)
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    state = 0
    for tick in range(3000):
        if rng.random() < 0.2:
            state = int(rng.choice([0, 1, 2]))
        counter.add(tick, state)
    counter.end_recording()
    return build_model(counter, rate=rate, digest=COMPILED.abstraction.digest)


@pytest.fixture
def watch() -> Watch:
    return Watch(COMPILED, learned(), {})


def tell(watch: Watch, tick: int, near: float = 1.0, slow: float = 0.0) -> None:
    watch.accept("", watch.session.grid.time_ns(tick), {"near": near, "slow": slow})


def ticks(
    watch: Watch, first: int, last: int, near: float = 1.0, slow: float = 0.0
) -> list[RiskRow]:
    rows = []
    for tick in range(first, last):
        tell(watch, tick, near, slow)
        rows.append(watch.tick(tick).rows[0])
    return rows


def test_a_draft_changes_nothing_until_it_is_committed(watch: Watch) -> None:
    ticks(watch, 0, 2)
    tell(watch, 2)
    first = watch.draft(2)
    again = watch.draft(2)
    assert same_bits(tuple(first.outcome.rows), tuple(again.outcome.rows))
    assert watch.session.state.tick == 1
    watch.commit(again)
    assert watch.session.state.tick == 2


def test_a_draft_that_something_arrived_after_is_replaced(watch: Watch) -> None:
    other = Watch(COMPILED, learned(), {})
    for each in (watch, other):
        ticks(each, 0, 2)
    tell(watch, 2)
    watch.draft(2)
    tell(watch, 2, slow=1.0)
    tell(other, 2)
    tell(other, 2, slow=1.0)
    now, then = watch.tick(2).rows, other.tick(2).rows
    assert all(same_bits(tuple(a), tuple(b)) for a, b in zip(now, then, strict=True))


def test_violations_are_counted_and_reset_by_name(watch: Watch) -> None:
    rows = ticks(watch, 0, 6)
    assert [row.violations for row in rows] == [0, 0, 0, 1, 1, 1]
    assert watch.reset(["apart"]) == ("apart",)
    assert watch.violations == [1, 0]
    assert watch.reset([]) == ("stop", "apart")
    assert watch.violations == [0, 0]
    row = ticks(watch, 6, 7)[0]
    assert row.automaton_state_names == rows[0].automaton_state_names
    assert row.stale_signals == ()


def test_release_ends_alerts_and_names_them(watch: Watch) -> None:
    assert ticks(watch, 0, 3)[-1].level == Level.ACT
    assert watch.release([]) == ("stop",)
    assert watch.release(["stop"]) == ()
    assert ticks(watch, 3, 4)[0].level == Level.ACT, "the figure asks for it anew"


def test_a_mute_lasts_as_long_as_it_was_asked_for(watch: Watch) -> None:
    ticks(watch, 0, 2)
    watch.mute(["stop"], 0.3)
    rows = ticks(watch, 2, 6)
    assert [row.muted for row in rows] == [True, True, False, False]
    assert [bool(row.level) for row in rows] == [False, False, True, True]
    watch.mute([], math.inf)
    assert set(watch.muted) == {"stop", "apart"}
    watch.restart()
    assert set(watch.muted) == {"stop", "apart"}, "until further notice outlives a jump"
    watch.mute(["stop"], 0.0)
    assert set(watch.muted) == {"apart"}


@pytest.mark.parametrize("duration", [-1.0, math.nan])
def test_a_mute_of_no_duration_is_refused(watch: Watch, duration: float) -> None:
    with pytest.raises(ConfigError, match="duration"):
        watch.mute([], duration)
    assert not watch.muted


@pytest.mark.parametrize("command", ["reset", "release"])
def test_unknown_names_are_refused(watch: Watch, command: str) -> None:
    with pytest.raises(ConfigError, match=r"'stopp' is no property .*stop, apart"):
        getattr(watch, command)(["stopp"])


def test_a_policy_is_changed_whole_or_not_at_all(watch: Watch) -> None:
    with pytest.raises(ConfigError, match="release"):
        watch.set_policy("stop", {"warn": 0.01, "act": 0.05})
    assert watch.spec.properties["stop"].thresholds.act == 0.5
    watch.set_policy("stop", {"act": 0.9, "exit": 3})
    assert watch.spec.properties["stop"].thresholds.act == 0.9
    assert watch.spec.properties["stop"].exit == 3


def test_another_model_keeps_thresholds_and_automata(watch: Watch) -> None:
    ticks(watch, 0, 3)
    before = watch.session.state
    watch.set_policy("stop", {"act": 0.9})
    digest = watch.monitor.model.digest  # type: ignore[union-attr]
    watch.use(watch.build(learned(seed=2)))
    assert watch.monitor.model.digest != digest  # type: ignore[union-attr]
    assert watch.spec.properties["stop"].thresholds.act == 0.9
    assert watch.session.state == before


def test_a_model_of_another_rate_is_refused(watch: Watch) -> None:
    with pytest.raises(ModelError, match="20 Hz"):
        watch.build(learned(rate=20.0))


def test_an_intervention_is_withdrawn_once(watch: Watch) -> None:
    ticks(watch, 0, 3)
    request = watch.withdraw("the clock jumped")
    assert request is not None
    assert (request.action, request.active, request.id) == ("NONE", False, 1)
    assert watch.withdraw("again") is None


def test_a_restart_forgets_samples_and_counts(watch: Watch) -> None:
    ticks(watch, 0, 6)
    watch.restart()
    assert watch.violations == [0, 0]
    row = watch.tick(100).rows[0]
    assert row.stale_signals == ("near", "slow")
    assert row.stale_ages == (math.inf, math.inf)


def test_how_unknown_values_are_written(watch: Watch) -> None:
    ticks(watch, 0, 1, near=1.0, slow=1.0)
    row = watch.tick(3).rows[0]
    assert row.state_key == "1?"
    assert row.state == "p & q?"
    assert row.stale_signals == ("slow",)
    assert row.stale_ages == pytest.approx((0.3,))
    watch.accept("", watch.session.grid.time_ns(4), {"end": math.nan})
    row = watch.tick(4).rows[0]
    assert row.state_key == "1?!?"
    assert row.state == "p & q? & over?"
    watch.accept("", watch.session.grid.time_ns(5), {"end": 1.0})
    row = watch.tick(5).rows[0]
    assert (row.state_key, row.state) == ("!over", "over")


def test_bits_are_compared_and_not_values() -> None:
    assert same_bits(math.nan, -math.nan)
    assert not same_bits(0.0, -0.0)
    assert not same_bits(0.1, math.nextafter(0.1, 1.0))
    assert same_bits((1.0, "a", (2,)), (1.0, "a", (2,)))
    assert not same_bits((1.0,), (1.0, 2.0))
