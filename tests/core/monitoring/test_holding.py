"""An intervention ends by its rules, by a person, and by nothing else, whatever happens to it."""

from __future__ import annotations

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from forewarn.config import parse_spec
from forewarn.config.actions import SEVERITY
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models import CountModel
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.live_session import Watch
from forewarn.monitoring.step import Monitor

ACT, RELEASE, EXIT, HOLD = 0.5, 0.1, 2, 4
TEXT = f"""
rate: 10
startup: 0.3
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
    unseen_limit: 3600
    intervention: LIMIT_SPEED
    speed_limit: 1.0
    escalation: [{{after: 0.3, action: COMFORTABLE_STOP}}, {{after: 0.6, action: EMERGENCY_STOP}}]
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


def learned(leave: int) -> CountModel:
    """Learn from a walk through the states 0, 1 and 2 that stays for a while in each."""
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    for tick in range(600):
        counter.add(tick, (tick // leave) % 3)
    counter.end_recording()
    return build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)


MONITORS = [build_monitor(COMPILED, learned(leave)) for leave in (2, 5, 9)]
Values = st.sampled_from([0.0, 1.0, math.nan])


class Holding(RuleBasedStateMachine):
    """Beside the monitor: how long it has asked, how long it was calm, who has let it go."""

    @initialize(monitor=st.sampled_from(MONITORS))
    def begin(self, monitor: Monitor) -> None:
        self.watch = Watch(COMPILED, None, {})
        self.watch.use(monitor)
        self.tick = 1_000
        self.asked = ""
        self.lasted = self.calm = 0
        self.let_go = False

    @rule(near=st.none() | Values, slow=st.none() | Values, missed=st.sampled_from([0, 0, 0, 2]))
    def step(self, near: float | None, slow: float | None, missed: int) -> None:
        self.tick += missed
        given = {"near": near, "slow": slow}
        known = {name: value for name, value in given.items() if value is not None}
        self.watch.accept("", self.watch.session.clock.time_ns(self.tick), known)
        result = self.watch.tick(self.tick)
        self.tick += 1
        row, request = result.rows[0], result.request
        asked = request.action if request is not None and request.active else ""
        if row.level < 2:
            asked = ""
        self.lasted += missed + 1
        self.calm = self.calm + 1 if row.probability < RELEASE else 0
        if self.asked and not self.let_go:
            if not asked:
                assert self.calm >= EXIT and self.lasted >= HOLD
            else:
                assert SEVERITY.index(asked) >= SEVERITY.index(self.asked)
        elif asked and not self.asked:
            assert not row.probability < ACT
        if not self.asked or self.let_go:
            self.lasted = 0
        self.asked, self.let_go = asked, row.muted

    @rule(first=st.integers(0, 10_000))
    def jump(self, first: int) -> None:
        self.tick, self.calm = first, 0
        self.watch.restart(first)

    @rule(what=st.sampled_from(["mute", "unmute", "release", "reset"]))
    def command(self, what: str) -> None:
        if what == "release":
            self.watch.release([])
        elif what == "reset":
            self.watch.reset([])
        else:
            self.watch.mute([], 0.3 if what == "mute" else 0.0)
        self.let_go = True

    @rule(monitor=st.sampled_from(MONITORS))
    def load(self, monitor: Monitor) -> None:
        self.watch.use(monitor)

    @rule(act=st.sampled_from([ACT, 0.9]))
    def change(self, act: float) -> None:
        self.watch.set_policy("stop", {"act": act})


TestHolding = Holding.TestCase
TestHolding.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
