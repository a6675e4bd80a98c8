"""What the monitor says of a way out: of its own stop and this tick, and while all is known."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.assessment.record_replay import ReplayedTick
from forewarn.config.actuators import Ways
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.monitoring.build import CompiledSpec, compile_spec
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.sources import account

WHEN = "behind > 0.5"
GATE = "twist: {input: /a, output: /b, max_speed: 1, max_turn: 1%s}"
TEXT = """\
rate: 10
startup_grace: 0
mode: %s
signals:
  near: {timeout: 0.25}
  behind: {timeout: 0.25}
  beside: {timeout: 0.25}
  auto: {timeout: 0.25}
active_when: auto
predicates: {close: near < 1}
properties:
  keep:
    {formula: always(not close), intervention: %s, hold: 0, enter: 1, exit: 1,
     breach_clear_time: 0}
  other:
    {formula: always(not close), intervention: WARN, hold: 0, enter: 1, exit: 1,
     breach_clear_time: 0}
actuators: {%s}
"""
BESIDE = "beside > 0.3"
BACK = f'reverse: {{when: "{WHEN}", speed: 0.1}}'
ESCAPE = f", escape: {{{BACK}}}"
BOTH = f', escape: {{{BACK}, turn: {{when: "{BESIDE}", speed: 0.3}}}}'
ROUND = f', escape: {{{BACK}, turn: {{when: "true", speed: 0.3}}}}'


@lru_cache
def compiled(mode: str, action: str, section: str) -> CompiledSpec:
    text = TEXT % (mode, action, GATE % section)
    return compile_spec(parse_spec(parse_document(text, Path("m.yaml"))))


def watching(
    mode: str = "act", action: str = "EMERGENCY_STOP", section: str = ESCAPE
) -> LiveSession:
    return LiveSession(compiled(mode, action, section), None, {})


def feed(watch: LiveSession, tick: int, **values: Any) -> TickResult:
    watch.accept(
        "", tick * 100_000_000, {"near": 0.5, "behind": 2.0, "beside": 2.0, "auto": True, **values}
    )
    return watch.tick(tick)


def escapes(result: TickResult) -> bool:
    return result.request is not None and bool(result.request.escape)


def said(result: TickResult) -> str:
    assert result.request is not None
    return result.request.evidence[-1]


def test_a_stop_says_that_its_way_out_is_clear_or_why_not() -> None:
    watch = watching()
    first = feed(watch, 0)
    assert not escapes(first)
    assert said(first) == "no way out: the tick before is missing"
    clear = feed(watch, 1)
    assert escapes(clear)
    assert said(clear) == f"may back away: {WHEN}"
    closed = feed(watch, 2, behind=0.2)
    assert not escapes(closed)
    assert said(closed) == f"may not back away: {WHEN} is false"
    assert escapes(feed(watch, 3))
    watch.accept("", 600_000_000, {"near": 0.5, "auto": True})
    assert said(watch.tick(4)) == f"may back away: {WHEN}"  # still fresh enough
    for tick in (5, 6):
        late = watch.tick(tick)
    assert said(late) == "may not back away: behind is unknown"


def test_each_way_has_its_own_expression() -> None:
    watch = watching(section=BOTH)
    feed(watch, 0)
    for tick, (behind, beside, told) in enumerate(
        [
            (2.0, 2.0, ["may back away: behind > 0.5", "may turn in place: beside > 0.3"]),
            (
                0.2,
                2.0,
                ["may not back away: behind > 0.5 is false", f"may turn in place: {BESIDE}"],
            ),
            (2.0, 0.2, [f"may back away: {WHEN}", "may not turn in place: beside > 0.3 is false"]),
        ],
        1,
    ):
        request = feed(watch, tick, behind=behind, beside=beside).request
        assert request is not None
        assert request.escape == Ways(reverse=behind > 0.5, turn=beside > 0.3)
        assert [*request.evidence[-2:]] == told


def test_a_round_robot_may_turn_whatever_is_behind_it_but_not_in_an_unknown_state() -> None:
    watch = watching(section=ROUND)
    feed(watch, 0)
    request = feed(watch, 1, behind=0.1).request
    assert request is not None and request.escape == Ways(turn=True)
    assert request.evidence[-1] == "may turn in place: true"
    assert not escapes(feed(watch, 3))
    watch.accept("", 700_000_000, {"behind": 2.0, "auto": True})
    late = [watch.tick(tick) for tick in (4, 5, 6, 7)][-1]
    assert not escapes(late)


def test_a_gap_a_mute_and_a_jump_of_the_clock_close_it() -> None:
    watch = watching()
    feed(watch, 0)
    assert escapes(feed(watch, 1))
    assert said(feed(watch, 3)) == "no way out: the tick before is missing"
    assert escapes(feed(watch, 4))
    watch.mute(["other"], 0.15)
    assert said(feed(watch, 5)) == "no way out: other is muted"
    assert escapes(feed(watch, 6))
    watch.restart(7)
    assert not escapes(feed(watch, 7))


@pytest.mark.parametrize(
    ("mode", "action", "section"),
    [
        ("observe", "EMERGENCY_STOP", ESCAPE),
        ("act", "WARN", ESCAPE),
        ("act", "REPLAN", ESCAPE),
        ("act", "PULL_OVER", ESCAPE),
        ("act", "EMERGENCY_STOP", ""),
    ],
)
def test_nothing_else_has_a_way_out(mode: str, action: str, section: str) -> None:
    watch = watching(mode, action, section)
    assert not any(escapes(feed(watch, tick)) for tick in range(5))


def test_a_replay_tells_a_way_out_that_is_another_one() -> None:
    watch = watching()
    feed(watch, 0)
    result = feed(watch, 1)
    other = "escape: {'reverse': False, 'turn': False}, "
    other += "replayed {'reverse': True, 'turn': False}"
    for then, lines in ((Ways(reverse=True), []), (Ways(), [other])):
        told = ReplayedTick(result, result.rows, result.verdict.time_ns, escape=then)
        assert list(told.differences()) == lines


def test_the_sentence_for_people_says_what_the_robot_may_do() -> None:
    watch = watching(section=BOTH)
    feed(watch, 0)
    for tick, (behind, beside, may) in enumerate(
        [(2.0, 2.0, "back away or turn in place"), (2.0, 0.1, "back away"), (0.1, 0.1, "")], 1
    ):
        request = feed(watch, tick, behind=behind, beside=beside).request
        assert request is not None
        said = account(request, "", (), "", watch.monitor.clock)
        assert said.endswith(f"a robot that stands may {may}, slowly") == bool(may)
        assert ("may" in said) == bool(may)


SAYS = ("no way out: ", "may ")
values = st.none() | st.sampled_from([0.2, 0.9, 2.0])
sent = {
    "near": values,
    "behind": values,
    "beside": values,
    "auto": st.sampled_from([None, True, False]),
}
events = st.lists(
    st.tuples(
        st.fixed_dictionaries(sent),
        st.sampled_from([1, 1, 1, 1, 1, 2, 5]),
        st.sampled_from(["", "", "", "", "", "mute", "release", "restart", "reset"]),
    ),
    min_size=1,
    max_size=40,
)


@given(events)
def test_it_is_clear_only_at_a_tick_of_which_all_is_known(sequence: list) -> None:
    """An oracle of its own: last samples, their ages, and what an operator did."""
    watch, plain = watching(section=BOTH), watching(section="")
    last: dict[str, tuple[int, Any]] = {}
    tick, muted_until, before = 0, -1, None
    for told, ahead, what in sequence:
        tick += ahead
        given = {name: value for name, value in told.items() if value is not None}
        for one in (watch, plain):
            if what == "mute":
                one.mute(["other"], 0.3)
            elif what == "release":
                one.release([])
            elif what == "reset":
                one.reset([])
            elif what == "restart":
                one.restart(tick)
            one.accept("", tick * 100_000_000, given)
        if what == "mute" and before is not None:
            muted_until = before + 2  # a mute counts from the last tick
        if what == "restart":
            last = {}
        last |= {name: (tick, value) for name, value in given.items()}
        fresh = {name: value for name, (at, value) in last.items() if tick - at <= 2}
        result, same = watch.tick(tick), plain.tick(tick)
        if escapes(result):
            assert result.request is not None
            assert result.request.active and result.request.action == "EMERGENCY_STOP"
            clear = result.request.escape
            assert not clear.reverse or fresh["behind"] > 0.5
            assert not clear.turn or fresh["beside"] > 0.3
            assert fresh["near"] < 1 and fresh["auto"] is True
            assert before == tick - 1 and what != "restart"
            assert muted_until < tick
        # Nothing else of what is said depends on it.
        assert repr(result.rows) == repr(same.rows)
        if result.request is not None:
            told = tuple(one for one in result.request.evidence if not one.startswith(SAYS))
            same_but = result.request._replace(escape=Ways(), evidence=told)
            assert repr(same_but) == repr(same.request)
        before = tick
