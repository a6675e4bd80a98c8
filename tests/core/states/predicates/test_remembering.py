"""Expressions that remember, against what they say of all moments of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, FieldError
from forewarn.expressions.functions.memory import MOST_MOMENTS
from forewarn.expressions.syntax import parse_expression
from forewarn.learning.observing import observe
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.messages.definitions import message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import LiveSession
from forewarn.recordings.registry import open_recording
from forewarn.signals.snapshots import Snapshot
from forewarn.states.abstraction import Abstraction, Past
from forewarn.states.kind_check import find_misuse

RATE = 4.0
TEXT = """
rate: 4
signals:
  x: {timeout: 0.1}
  lamp: {timeout: 0.1}
  before: {value: previous(x)}
  closing: {value: "rate(x, 0.75)"}
  top: {value: "highest(x, 0.75)"}
  low: {value: "lowest(x, 0.75)"}
  average: {value: "mean_over(x, 0.75)"}
  dwell: {value: for_how_long(lamp > 0.5 or x > 5)}
  ago: {value: since(lamp > 0.5 or x > 5)}
  nested: {value: "highest(rate(x, 0.25), 0.5) + previous(previous(x))"}
predicates:
  lit: lamp > 0.5
  late: for_how_long(lit and x > 0) >= 0.5
terminal: {over: x > 90}
properties:
  calm: {formula: always(not late), horizon: 1}
"""
NAMES = ("before", "closing", "top", "low", "average", "dwell", "ago", "nested")
WINDOW = 3


def compiled_from(text: str) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(text)))


COMPILED = compiled_from(TEXT)
ABSTRACTION = COMPILED.abstraction
Row = tuple[float | None, float | None]


def watched(abstraction: Abstraction, rows: Sequence[tuple[int, Row]]) -> list[dict[str, Any]]:
    past, found = None, []
    for tick, row in rows:
        seen = abstraction.observe(Snapshot(tick, row), past)
        past = seen.past
        named = dict(zip(abstraction.signals, seen.values, strict=True))
        found.append({**named, "late": abstraction.vocabulary.truth("late", seen.observation)})
    return found


def kleene_or(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if one is None or other is None else False


def expected(run: Sequence[Row]) -> dict[str, Any]:
    """Say what the last moment of a run gives, from all of its moments at once."""
    xs = [x for x, _ in run]
    lit = [None if on is None else on > 0.5 for _, on in run]
    cond = [kleene_or(on, None if x is None else x > 5) for on, x in zip(lit, xs, strict=True)]
    window = xs[-1 - WINDOW :]
    whole = None not in window

    def rate(values: Sequence[Any], back: int) -> float | None:
        used = values[-1 - back :]
        if len(used) < 2 or used[0] is None or used[-1] is None:
            return None
        return (used[-1] - used[0]) / ((len(used) - 1) / RATE)

    def dwell(held: Sequence[bool | None]) -> float | None:
        for back, value in enumerate(reversed(held)):
            if value is None:
                return None
            if not value:
                return max(back - 1, 0) / RATE
        return (len(held) - 1) / RATE

    def ago(held: Sequence[bool | None]) -> float | None:
        for back, value in enumerate(reversed(held)):
            if value is None:
                return None
            if value:
                return back / RATE
        return math.inf

    rates = [rate(xs[: i + 1], 1) for i in range(len(xs))][-3:]
    sure = all(r is not None for r in rates) and len(xs) > 2 and xs[-3] is not None
    late = [kleene_or(None if on is None else not on, None if x is None else x <= 0)
            for on, x in zip(lit, xs, strict=True)]  # fmt: skip
    lasted = dwell([None if value is None else not value for value in late])
    return {
        "before": xs[-2] if len(xs) > 1 else None,
        "closing": rate(xs, WINDOW),
        "top": max(window) if whole else None,
        "low": min(window) if whole else None,
        "average": float(sum(map(Fraction, window)) / len(window)) if whole else None,
        "dwell": dwell(cond),
        "ago": ago(cond),
        "nested": max(rates) + xs[-3] if sure else None,  # type: ignore[type-var, operator]
        "late": None if lasted is None else lasted >= 0.5,
    }


values = st.one_of(st.none(), st.floats(-10, 10), st.sampled_from([0.1, 0.2, 6.0, 1e16, 99.0]))
rows = st.lists(st.tuples(values, st.sampled_from([None, 0.0, 1.0])), min_size=1, max_size=25)


@given(rows)
def test_each_function_is_what_all_moments_of_the_run_say(run: list[Row]) -> None:
    found = watched(ABSTRACTION, list(enumerate(run)))
    start = 0
    for i, (x, _) in enumerate(run):
        want = expected(run[start : i + 1])
        assert {name: found[i][name] for name in NAMES} == {n: want[n] for n in NAMES}
        if x is not None and x <= 90:
            assert found[i]["late"] == want["late"]
        if x is None:
            break  # the label may have held: what follows is another test
        if x > 90:
            start = i + 1


@example([(99.0, None), (0.0, None)], 1, 1)
@given(rows, st.integers(1, 24), st.integers(1, 9))
def test_what_came_before_a_gap_is_unknown(run: list[Row], at: int, gap: int) -> None:
    """It is as if each moment that was missed, and all before it, had shown nothing.

    This is so after a label that has ended the run, too: the next one may have begun unseen.
    """
    at = min(at, len(run))
    after = [(at + gap + i, row) for i, row in enumerate(run[at:])]
    found = watched(ABSTRACTION, [*enumerate(run[:at]), *after])
    empty: list[Row] = [(None, None)] * (at + gap)
    for i, (x, _) in enumerate(run[at:]):
        want = expected([*empty, *run[at : at + i + 1]])
        assert {name: found[at + i][name] for name in NAMES} == {n: want[n] for n in NAMES}
        if x is None or x > 90:
            break


def test_a_label_that_may_have_held_leaves_all_before_it_unknown() -> None:
    found = watched(ABSTRACTION, list(enumerate([(1.0, 1.0), (2.0, 1.0), (None, 1.0), (3.0, 1.0)])))
    assert [found[1][name] for name in ("before", "top", "dwell")] == [1.0, 2.0, 0.25]
    assert all(found[3][name] is None for name in NAMES if name not in ("dwell", "ago"))
    assert found[3]["dwell"] is None
    assert found[3]["ago"] == 0.0


@given(rows, st.integers(0, 24))
def test_a_checkpoint_goes_on_with_the_same_bits(run: list[Row], at: int) -> None:
    past: Past | None = None
    kept: Past | None = None
    for tick, row in enumerate(run):
        seen = ABSTRACTION.observe(Snapshot(tick, row), past)
        if kept is not None:
            again = ABSTRACTION.observe(Snapshot(tick, row), kept)
            assert (again.values, again.past) == (seen.values, seen.past)
            kept = again.past
        past = seen.past
        if tick == at:
            kept = ABSTRACTION.parse_past(json.loads(json.dumps(past)))
            assert kept == past


@pytest.mark.parametrize("cells", [[[1]], [["a"]] * 11, [[0]] * 11, 3])
def test_a_damaged_checkpoint_is_refused(cells: Any) -> None:
    past = ABSTRACTION.observe(Snapshot(0, (1.0, 1.0)), None).past
    with pytest.raises((ValueError, TypeError)):
        ABSTRACTION.parse_past([0, list(past.alone), cells])


def test_learning_replay_and_the_session_see_the_same(tmp_path: Path) -> None:
    lines = [(i / 4, (i * 7919 % 13) - 4.0, i % 5 > 1) for i in range(60)]
    trace = tmp_path / "trace.jsonl"
    text = "".join(json.dumps({"t": t, "x": x, "lamp": float(on)}) + "\n" for t, x, on in lines)
    trace.write_text(text)
    monitor = build_monitor(COMPILED, None)
    watch = LiveSession(COMPILED, None, {})
    live = []
    for tick, (t, x, on) in enumerate(lines):
        watch.accept("", round(t * 1e9), {"x": x, "lamp": float(on)})
        live.append(watch.tick(tick).verdict)
    with open_recording(trace) as recording:
        learned = list(observe(recording, COMPILED.spec, ABSTRACTION))
        run = replay(Replaying(monitor, keep_signals=True), recording)
    assert [seen.values for _, seen, _, _ in learned] == [verdict.values for verdict in live]
    assert [seen.observation for _, seen, _, _ in learned] == [v.observation for v in live]
    names = ABSTRACTION.signals
    top = next(s for s in run.signals if s.name == "top")
    assert top.values.tolist() == [v.values[names.index("top")] for v in live]
    assert not any(verdict.failures for verdict in live)


STEPS = TEXT.replace("rate: 4", "clock: steps").replace("0.75", "3").replace("0.25", "1")
STEPS = (
    STEPS.replace("timeout: 0.1", "timeout: 1")
    .replace("0.5) +", "2) +")
    .replace(">= 0.5}", ">= 2}")
)


def test_with_steps_as_the_clock_windows_and_durations_are_steps() -> None:
    steps = compiled_from(STEPS.replace(">= 0.5\n", ">= 2\n")).abstraction
    run = [(float(i * i % 7), float(i % 4 > 0)) for i in range(20)]
    one = watched(ABSTRACTION, list(enumerate(run)))
    other = watched(steps, list(enumerate(run)))
    for ticks, found in zip(one, other, strict=True):
        for name in ("before", "top", "low", "average", "late"):
            assert ticks[name] == found[name]
        for name, factor in (("dwell", RATE), ("ago", RATE), ("closing", 1 / RATE)):
            assert found[name] == (None if ticks[name] is None else ticks[name] * factor)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("rate(x, 0.75)", "rate(x, 0)"), "'0' is no window of rate()"),
        (("rate(x, 0.75)", "rate(x, 0.1)"), "accepted: a number of s from 0.25 to 250"),
        (("rate(x, 0.75)", "rate(x, 251)"), "'251' is no window"),
        (("rate(x, 0.75)", "rate(x, lamp)"), "'lamp' is no window of rate()"),
        (("rate(x, 0.75)", "rate(x)"), "rate() is given 1 arguments"),
        (("rate(x, 0.75)", "rate(y, 0.75)"), "signals.closing.value: column 1: 'y' in rate"),
        (("previous(x)}", "previous(lit)}"), "'lit' in previous(lit) is no signal"),
        (("previous(x)}", "previous(lit)}"), "before: ago, average, before, closing, dwell, lamp"),
        (("for_how_long(lit and", "for_how_long(late and"), "predicates.late: unknown name 'late'"),
        (("{value: previous(x)}", "{value: previous(before)}"), "depend on each other"),
        (
            ("{value: previous(x)}", "{value: '[previous(e) for e in (x, lamp)]'}"),
            "'e' in previous(e) is no signal but one element of many",
        ),
    ],
)  # fmt: skip
def test_what_nobody_can_follow_over_time_is_refused(change: tuple[str, str], said: str) -> None:
    assert change[0] in TEXT
    with pytest.raises(ConfigError) as error:
        compiled_from(TEXT.replace(*change))
    assert said in str(error.value)


def test_whole_steps_are_wanted() -> None:
    with pytest.raises(ConfigError, match=r"a whole number of steps from 1 to 1000"):
        compiled_from(STEPS.replace("rate(x, 3)", "rate(x, 1.5)"))


def test_the_value_of_a_topic_remembers_nothing() -> None:
    mtype = message_type("x/msg/X", "float64 speed\n", "ros2msg")
    with pytest.raises(
        FieldError, match="in the value of a topic: some messages are never decoded"
    ):
        compile_extractor(mtype, [parse_expression("rate(speed, 1)")])


def test_a_number_is_wanted_and_text_is_told() -> None:
    abstraction = compiled_from(TEXT.replace("terminal: {over: x > 90}", "")).abstraction
    past = None
    for tick, row in enumerate([("fast", 1.0), ("slow", 1.0)]):
        seen = abstraction.observe(Snapshot(tick, row), past)
        past = seen.past
    reasons = {failure.where: failure.reason for failure in seen.failures}
    assert reasons["rate(x, 0.75)"] == "rate() needs a number, not text"
    values = dict(zip(abstraction.signals, seen.values, strict=True))
    assert (values["before"], values["closing"]) == ("fast", None)


def test_kinds_are_told_from_types() -> None:
    text = TEXT.replace("x: {timeout: 0.1}", "x: {topic: /a, type: x/msg/X, value: name}")
    mtype = message_type("x/msg/X", "string name\n", "ros2msg")
    text = text.replace("lit: lamp > 0.5", "lit: rate(x, 0.5) > 0.5")
    found = list(find_misuse(compiled_from(text).abstraction, {"/a": mtype}))
    told = {(one.place, one.name): str(one.error) for one in found}
    assert "rate() of text, in 'rate(x, 0.75)'" in told["signals", "closing"]
    assert "rate() of text, in 'rate(x, 0.5)'" in told["predicates", "lit"]


def test_the_conditions_of_a_tree_remember() -> None:
    states = """
states:
  kind: tree
  tree:
    if: rate(x, 0.25) > 2
    then: rising
    else: {if: for_how_long(lamp > 0.5) > 0.5, then: long, else: other}
"""
    spec = parse_spec(parse_document(TEXT + states))
    abstraction = compile_spec(spec).abstraction
    past, found = None, []
    for tick, row in enumerate([(0.0, 0.0), (9.0, 1.0), (9.0, 1.0), (9.0, 1.0), (9.0, 1.0)]):
        seen = abstraction.observe(Snapshot(tick, row), past)
        past = seen.past
        found.append(abstraction.vocabulary.observed_name(seen.observation))
    assert [name.split(" & ")[0] for name in found[1:]] == ["rising", "other", "other", "long"]


def test_the_digest_knows_the_window_and_what_it_reads() -> None:
    digests = {
        compiled_from(text).abstraction.digest
        for text in (
            TEXT,
            TEXT.replace("for_how_long(lit and x > 0)", "for_how_long(lit and x > 1)"),
            TEXT.replace("lit: lamp > 0.5", "lit: lamp > 0.6"),
            TEXT.replace("late: for_how_long(lit and x > 0)", "late: since(lit and x > 0)"),
        )
    }
    assert len(digests) == 4


def test_the_longest_window_costs_no_more_than_it_holds() -> None:
    text = TEXT.replace("0.75", str(MOST_MOMENTS / RATE))
    past = None
    abstraction = compiled_from(text).abstraction
    for tick in range(2 * MOST_MOMENTS):
        seen = abstraction.observe(Snapshot(tick, (float(-tick), 1.0)), past)
        past = seen.past
    values = dict(zip(abstraction.signals, seen.values, strict=True))
    assert values["top"] - values["low"] == MOST_MOMENTS
    assert values["closing"] == -RATE
    assert max(len(part) for cell in past.cells for part in cell if isinstance(part, tuple)) == (
        MOST_MOMENTS + 1
    )
