"""What is asked for lasts while `hold_while` is true or unknown, and for no other reason longer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ConfigErrors
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.checkpoint import recall, remember
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.risk_rows import same_bits
from forewarn.monitoring.session import Session, run
from forewarn.recordings.interface import Sample
from forewarn.states.condition import Condition

EXIT, HOLD, TICK_NS = 2, 3, 100_000_000
TEXT = f"""
rate: 10
startup_grace: 0
mode: act
bounds: {{kind: none}}
signals:
  near: {{timeout: never}}
  line: {{timeout: 0.05}}
  before: {{value: line > 0}}
predicates: {{p: near}}
properties:
  stop:
    formula: always(not p)
    horizon: 1.0
    thresholds: {{warn: 0.2, act: 0.5, release: 0.25}}
    enter: 1
    exit: {EXIT}
    hold: {HOLD / 10}
    breach_clear_time: 0
    hold_while: "before and line < 9"
"""
PLAIN = TEXT.replace('    hold_while: "before and line < 9"\n', "")
OBSERVING = TEXT.replace("mode: act", "mode: observe")


def compiled(text: str) -> Any:
    return compile_spec(parse_spec(parse_document(text, Path("m.yaml"))))


COMPILED, WITHOUT, QUIET = map(compiled, (TEXT, PLAIN, OBSERVING))


def learned() -> Any:
    """Learn a world in which the property is broken now and then."""
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    for tick in range(600):
        counter.add(tick, (tick // 20) % 5 == 4)
    counter.end_recording()
    return build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)


MODEL = learned()
MONITOR, BARE, OBSERVER = (build_monitor(one, MODEL) for one in (COMPILED, WITHOUT, QUIET))
Readings = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.0, 1.0]), st.sampled_from([5.0, 5.0, -1.0, 20.0, math.nan])
    ),
    max_size=40,
)


def watch(monitor: Any = MONITOR, of: Any = COMPILED) -> LiveSession:
    found = LiveSession(of, None, {})
    found.use(monitor)
    return found


def feed(one: LiveSession, tick: int, near: float, line: float) -> TickResult:
    one.accept("", tick * TICK_NS, {"near": near, "line": line})
    return one.tick(tick)


def held(line: float) -> bool:
    """Tell whether the condition is not known to be false; an oracle of its own."""
    return line != line or 0 < line < 9


@given(Readings)
@settings(deadline=None)
def test_an_alert_ends_after_exit_ticks_that_are_calm_and_not_held(readings: Any) -> None:
    one, acting, lasted, calm = watch(), False, 0, 0
    for tick, (near, line) in enumerate(readings, 1):
        row = feed(one, tick, near, line).rows[0]
        low = row.probability < 0.25
        if acting:
            lasted, calm = lasted + 1, calm + 1 if low and not held(line) else 0
            over = calm >= EXIT and lasted >= HOLD
            assert (row.level < 2) == (over and row.probability < 0.5)
        else:
            assert (row.level == 2) == (row.probability >= 0.5)
        if not acting or row.level < 2:
            lasted = calm = 0
        acting = row.level == 2


@given(Readings)
@settings(deadline=None)
def test_nothing_changes_where_nobody_acts_and_no_risk_changes_where_somebody_does(
    readings: Any,
) -> None:
    acting, bare, observer = watch(), watch(BARE, WITHOUT), watch(OBSERVER, QUIET)
    for tick, (near, line) in enumerate(readings, 1):
        mine, theirs, seen = (feed(one, tick, near, line) for one in (acting, bare, observer))
        assert same_bits(seen.verdict, theirs.verdict)
        assert seen.rows[0].level == theirs.rows[0].level <= mine.rows[0].level
        assert same_bits(mine.rows[0].probability, theirs.rows[0].probability)


@given(Readings, st.integers(0, 40))
@settings(deadline=None)
def test_live_offline_and_after_a_restart_it_decides_alike(readings: Any, stop: int) -> None:
    live = watch()
    results = [feed(live, tick, *one) for tick, one in enumerate(readings, 1)]
    session = Session(MONITOR, {})
    samples = [
        Sample(tick * TICK_NS, "", {"near": near, "line": line})
        for tick, (near, line) in enumerate(readings, 1)
    ]
    offline = list(run(session, samples, TICK_NS, len(readings) * TICK_NS)) if readings else []
    assert same_bits(offline, [result.verdict for result in results])
    before, after = watch(), watch()
    for tick, one in enumerate(readings[:stop], 1):
        feed(before, tick, *one)
    if 0 < stop < len(readings):
        recall(after, json.loads(json.dumps(remember(before))), stop + 1)
        for tick, one in enumerate(readings[stop:], stop + 1):
            assert feed(after, tick, *one).rows[0].level == results[tick - 1].rows[0].level


def test_the_evidence_says_so_and_a_person_ends_it() -> None:
    one = watch()
    said = [feed(one, tick, near, 5.0).request for tick, near in enumerate([0.0, 1.0, *[0.0] * 9])]
    assert said[0] is None and all(told is not None and told.active for told in said[1:])
    fact = "stop is held while before and line < 9; it is true"
    assert all(told is not None and fact in told.evidence for told in said[1:])
    unknown = feed(one, 11, 0.0, math.nan).request
    assert unknown is not None and "9; before, line is unknown" in unknown.evidence[-1]
    one.release([])
    released = feed(one, 12, 0.0, 5.0).request
    assert released is not None and not released.active
    assert feed(one, 13, 0.0, 5.0).request is None


def test_it_is_asked_once_a_tick_at_which_a_property_acts(monkeypatch: Any) -> None:
    asked, truth = list[Any](), Condition.truth
    monkeypatch.setattr(
        Condition, "truth", lambda self, values: asked.append(1) or truth(self, values)
    )
    one, lines, times = watch(), [5.0, 5.0, -1.0, 5.0, *[-1.0] * 4], []
    for tick, line in enumerate(lines):
        before = len(asked)
        feed(one, tick, float(tick == 1), line)
        times.append(len(asked) - before)
    assert times == [0, 1, 1, 1, 1, 1, 0, 0]  # the last of them ends the alert


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("before and lime < 9", ["no signal 'lime'", "line"]),
        ("p", ["no signal 'p'"]),
        ("line <", ["line <"]),
        ("sin(line) > 0", ["'sin(line) > 0' may differ in a last bit", "sqrt"]),
    ],
)
def test_what_cannot_be_decided_everywhere_is_refused(text: str, expected: list[str]) -> None:
    with pytest.raises((ConfigError, ConfigErrors)) as caught:
        compiled(TEXT.replace("before and line < 9", text))
    for part in ["m.yaml", "properties.stop.hold_while", *expected]:
        assert part in str(caught.value)


def test_it_does_not_change_while_running() -> None:
    with pytest.raises(ConfigError, match="hold_while cannot change while running"):
        watch().set_policy("stop", {"hold_while": "before"})
    watch().set_policy("stop", {"hold": 0.1})
