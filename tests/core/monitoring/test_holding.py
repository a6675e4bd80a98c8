"""An intervention ends by its rules, by a person, and by nothing else, whatever happens to it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.actions import SEVERITY
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import LiveSession

ACT, RELEASE, EXIT, HOLD = 0.5, 0.25, 2, 4
TEXT = f"""
rate: 10
startup_grace: 0.3
mode: act
bounds: {{kind: none}}
signals: {{near: {{timeout: 0.2}}, slow: {{timeout: never}}}}
predicates: {{p: near, q: slow}}
properties:
  stop:
    formula: always(p implies eventually[0:0.3](q))
    horizon: 1.0
    thresholds: {{warn: 0.2, act: {ACT}, release: {RELEASE}}}
    enter: 1
    exit: {EXIT}
    hold: {HOLD / 10}
    out_of_model_timeout: 3600
    intervention: LIMIT_SPEED
    speed_limit: 1.0
    escalation: [{{after: 0.3, action: COMFORTABLE_STOP}}, {{after: 0.6, action: EMERGENCY_STOP}}]
  aside:
    formula: always(not (p and q))
    horizon: 1.0
    thresholds: {{warn: 0.3, act: 0.6, release: 0.3}}
    enter: 1
    exit: 2
    hold: 0
    out_of_model_timeout: 3600
    intervention: PULL_OVER
"""

UNLEARNED = """
rate: 10
startup_grace: 0
mode: act
signals: {near: {timeout: 0.2}}
predicates: {p: near}
properties:
  clear:
    {formula: always(not p), horizon: 1, enter: 1, exit: 2, hold: 0, breach_clear_time: 0,
     intervention: EMERGENCY_STOP}
"""


def compiled(text: str) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(text)))


COMPILED = compiled(TEXT)
IGNORING = compiled(TEXT.replace("timeout: 0.2", "timeout: 0.2, stale: ignore"))
IMPATIENT = compiled(TEXT.replace("out_of_model_timeout: 3600", "out_of_model_timeout: 0.5"))


def learned(compiled: CompiledSpec, leave: int) -> CountModel:
    """Learn from a walk through the states 0, 1 and 2 that stays for a while in each."""
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick in range(600):
        counter.add(tick, (tick // leave) % 3)
    counter.end_recording()
    return build_model(counter, rate=10.0, digest=compiled.abstraction.digest)


MONITORS = {
    one: [build_monitor(compiled, learned(compiled, leave)) for leave in (2, 5, 9)]
    for one, compiled in (("worst", COMPILED), ("ignore", IGNORING))
}
Values = st.sampled_from([0.0, 1.0, math.nan, None])


def chain(lasted: int) -> str:
    """Return what an alert asks for once it has lasted so many ticks."""
    return ("LIMIT_SPEED", "COMFORTABLE_STOP", "EMERGENCY_STOP")[(lasted >= 3) + (lasted >= 6)]


class Beside:
    """Beside the monitor: how long it has asked, how long it was calm, who has let it go.

    Attributes
    ----------
    act : float
        The threshold of `stop` that is in force.
    lasted, slack : int
        Ticks since what is asked for began; it may have been heard again so many ticks before.
    quiet : int
        Ticks for which it is still muted.
    """

    def __init__(self, stale: str, number: int) -> None:
        self.monitors = MONITORS[stale]
        self.watch = LiveSession(IGNORING if stale == "ignore" else COMPILED, None, {})
        self.watch.use(self.monitors[number])
        self.act = ACT
        self.tick, self.ticked = 1_000, False
        self.asked = ""
        self.lasted = self.slack = self.calm = self.quiet = 0
        self.let_go = self.again = False

    def step(self, near: float | None, slow: float | None, missed: int) -> None:
        self.tick += missed
        given = {"near": near, "slow": slow}
        known = {name: value for name, value in given.items() if value is not None}
        self.watch.accept("", self.watch.clock.time_ns(self.tick), known)
        result = self.watch.tick(self.tick)
        self.tick += 1
        (row, other), request = result.rows, result.request
        asked = request.action if request is not None and request.active else ""
        least = "PULL_OVER" if other.level == 2 else "WARN"
        if row.level < 2:
            assert other.level < 2 or asked == least
            asked = ""
        self.quiet -= missed if self.ticked else 0
        assert row.muted == (self.quiet > 0)
        self.quiet, self.ticked = max(self.quiet - 1, 0), True
        self.lasted += missed + 1
        self.calm = self.calm + 1 if row.probability < RELEASE else 0
        if self.asked and not self.let_go:
            if not asked:
                assert self.calm >= EXIT
                assert self.lasted >= HOLD or self.again  # it had begun before it was heard again
            else:
                due = chain(self.lasted), chain(self.lasted + self.slack)
                assert asked in {max(one, least, key=SEVERITY.index) for one in due}
        elif asked and not self.let_go:
            assert not row.probability < self.act
        if not self.asked or self.let_go:
            self.lasted, self.slack = 0, missed if self.let_go else 0
            self.again = self.let_go
        self.asked, self.let_go = asked, row.muted

    def do(self, what: str, number: int) -> None:
        if what == "jump":
            self.tick, self.calm, self.ticked = number, 0, False
            self.watch.restart(number)
        elif what == "mute":
            self.watch.mute([], 0.3)
            self.quiet = 2 if self.ticked else 3  # it counts from the last tick, or the next first
        elif what == "unmute":  # to be heard again ends nothing
            self.watch.mute([], 0.0)
            self.quiet = 0
        elif what == "release":
            self.watch.release([])
        elif what == "reset":
            self.watch.reset([])
        elif what == "load":
            self.watch.use(self.monitors[number % len(self.monitors)])
        else:
            self.act = (ACT, 0.9)[number % 2]
            self.watch.set_policy("stop", {"act": self.act})
        self.let_go |= what in ("mute", "release", "reset")


# One list, and no state machine: that leaves out some rules in each of its runs, and in 40 of them
# no clock jumped during an alert.
WHAT = ["jump", "jump", "mute", "unmute", "release", "reset", "load", "change"]
Steps = st.lists(
    st.tuples(Values, Values, st.sampled_from([0, 0, 0, 2]), st.integers(1, 5)), max_size=4
)
# Something that happens while an alert is about to end is rare among arbitrary steps.
Nearly = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(
    lambda calm: [(0.0, 1.0, 0, calm[0]), (1.0, 0.0, 0, 6), (0.0, 1.0, 0, calm[1])]
)
Whats = st.lists(st.sampled_from(WHAT), min_size=1, max_size=3)
Events = st.tuples(st.one_of(Steps, Nearly), Whats, st.integers(0, 10_000))


@given(
    st.sampled_from(["worst", "ignore"]),
    st.integers(0, 2),
    st.lists(Events, min_size=1, max_size=8),
)
def test_an_intervention_ends_by_its_rules_or_a_person(
    stale: str, number: int, events: Any
) -> None:
    beside = Beside(stale, number)
    for steps, whats, place in events:
        for near, slow, missed, times in steps:
            for _ in range(times):
                beside.step(near, slow, missed)
        for what in whats:
            beside.do(what, place)


@given(st.integers(9, 20), st.integers(0, 10_000), st.booleans())
@settings(max_examples=examples(30), deadline=None)
def test_what_was_never_seen_acts_again_after_a_jump(
    ticks: int, first: int, released: bool
) -> None:
    watch = LiveSession(IMPATIENT, None, {})
    watch.use(build_monitor(IMPATIENT, learned(IMPATIENT, 5)))
    levels = []
    for tick in range(1_000, 1_000 + ticks):
        watch.accept("", watch.clock.time_ns(tick), {"near": 1.0, "slow": 1.0})
        levels.append(watch.tick(tick).rows[0].level)
    assert levels[:5] == [2] * 5 and levels[-1] == 1, "its time is over"
    if released:
        watch.release([])
    watch.restart(first)
    # Nothing has come yet: whether the state is known again nobody can say.
    assert watch.tick(first).rows[0].level == (0 if released else 2)


@pytest.mark.parametrize("stale", ["worst", "hold", "ignore"])
@pytest.mark.parametrize("jumps", [False, True])
def test_without_a_model_nobody_is_let_go_because_a_sensor_is_silent(
    stale: str, jumps: bool
) -> None:
    """An emergency stop for what had been seen ended with the last message about it."""
    watch = LiveSession(compiled(UNLEARNED.replace("0.2", f"0.2, stale: {stale}")), None, {})

    def asked(tick: int, near: float | None) -> tuple[str, str]:
        if near is not None:
            watch.accept("", watch.clock.time_ns(tick), {"near": near})
        request = watch.tick(tick).request
        return ("", "") if request is None else (request.action, request.reason)

    assert asked(1_000, 1.0)[0] == "EMERGENCY_STOP"
    if jumps:
        watch.restart(1_001)
    for tick in range(1_001, 1_020):
        action, reason = asked(tick, None)
        assert action == "EMERGENCY_STOP"
        if jumps:  # what was open before is forgotten, but not the alert
            assert "no risk is known" in reason and "the alert holds until it may end" in reason
        else:
            assert "the rule is broken; the alert lasts until the breach has cleared" in reason
    assert asked(1_020, 0.0)[0] == "EMERGENCY_STOP"
    assert asked(1_021, 0.0)[0] == "NONE"
    assert asked(1_022, None)[0] == "", "and a sensor that is silent begins nothing"
    assert asked(1_030, None)[0] == ""
