"""Signals that read all messages of a tick."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigErrors, FieldError
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import message_type
from forewarn.signals.clock_kinds import Grid
from forewarn.signals.feed import Feed
from forewarn.signals.snapshots import singly
from forewarn.signals.sources import SourceSignal

TICK = 100_000_000  # 10 Hz
FLOAT = message_type("demo_msgs/msg/Number", "float64 data\n", "ros2msg")
TEXT = message_type("demo_msgs/msg/Text", "string data\nfloat64[] many\n", "ros2msg")
WAYS = ("last", "max", "min", "any", "count")
DAMAGED = b"\x00\x01\x00\x00"


def number(value: float) -> bytes:
    return DAMAGED + struct.pack("<d", value)


def sources(timeout_ns: int = 2 * TICK) -> tuple[SourceSignal, ...]:
    plain = SourceSignal("last", "/x", FLOAT.name, parse_expression("data"), timeout_ns, None)
    below = parse_expression("data < 5")
    return (
        *(replace(plain, name=way, within=way) for way in WAYS),
        *(replace(plain, name=f"low {way}", within=way, where=below) for way in WAYS),
    )


def feed(*signals: SourceSignal) -> Feed:
    return Feed(signals or sources(), {"/x": FLOAT}, Grid(10.0))


Arrival = tuple[int, float | None]
ARRIVALS = st.lists(
    st.tuples(
        st.integers(0, 12 * TICK) | st.integers(0, 12).map(lambda tick: tick * TICK),
        st.sampled_from([0.0, 1.0, 2.0, -3.0, 7.0, math.inf, math.nan, None]),
    ),
    max_size=40,
).map(lambda found: sorted(found, key=lambda one: one[0]))


def expected(way: str, tick: int, arrivals: Sequence[Arrival], *, low: bool) -> Any:
    """Work out the value of a signal from the words of the documentation."""
    meant = [
        (at, None if value is None or math.isnan(value) else value)
        for at, value in arrivals
        if not low or value is None or value < 5
    ]
    before = [(at, value) for at, value in meant if at <= tick * TICK]
    if not before or tick * TICK - before[-1][0] > 2 * TICK:
        return None
    now = [value for at, value in before if at > (tick - 1) * TICK]
    last = before[-1][1]
    if way == "last":
        return last
    if way == "count":
        return None if None in now else sum(value != 0 for value in now)
    now = now or [last]
    if way == "any":
        return True if any(now) else None if None in now else False
    return None if None in now else max(now) if way == "max" else min(now)


@given(ARRIVALS, st.sampled_from([1, 4, 256]))
def test_a_tick_takes_its_messages_together_live_and_in_recordings(
    arrivals: list[Arrival], block: int
) -> None:
    samples = [(at, "/x", DAMAGED if value is None else number(value)) for at, value in arrivals]
    live, found = feed(), []
    for tick in live.play(samples, 0, 20 * TICK):
        found.append(live.snapshot(tick))
        assert live.snapshot(tick).values == found[-1].values  # asked for once more
    for snapshot in found:
        wanted = [
            expected(way, snapshot.tick, arrivals, low=low) for low in (False, True) for way in WAYS
        ]
        assert list(snapshot.values) == wanted
    recorded = feed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forewarn.signals.feed.BLOCK", block)
        blocks = list(recorded.blocks(recorded.stretches(samples, 0, 20 * TICK)))
    at_once = [one for some in blocks for snapshot in some for one, _ in singly(snapshot, Grid(10))]
    assert list(map(repr, at_once)) == list(map(repr, found))


def test_a_tick_that_is_asked_for_early_goes_on_with_what_comes_for_it() -> None:
    inputs = feed()
    for at, value in ((1, 3.0), (2, 1.0)):
        inputs.accept("/x", at, number(value))
    assert inputs.snapshot(1).values[:5] == (1.0, 3.0, 1.0, True, 2)
    inputs.accept("/x", 3, number(0.0))
    assert inputs.snapshot(1).values[:5] == (0.0, 3.0, 0.0, True, 2)
    assert inputs.snapshot(2).values[:5] == (0.0, 0.0, 0.0, False, 0)


def test_messages_of_a_tick_that_was_left_out_are_no_part_of_the_next() -> None:
    values = []
    for early in (False, True):
        inputs = feed()
        inputs.accept("/x", TICK, number(3.0))
        if early:  # as a node does that lags afterwards
            inputs.snapshot(1)
        inputs.accept("/x", TICK + 1, number(1.0))
        values.append(inputs.snapshot(2).values)
    assert values[0] == values[1]
    assert values[0][:5] == (1.0, 1.0, 1.0, True, 1)


def test_what_is_read_of_too_many_messages_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.signals.channels.MOST_PENDING", 3)
    inputs = feed(*sources()[:2])
    for at in range(3):
        inputs.accept("/x", at, number(float(at)))
    assert inputs.snapshot(1).values == (2.0, 2.0)
    for at in range(5):
        inputs.accept("/x", TICK + 1 + at, number(float(at)))
    found = inputs.snapshot(2)
    assert found.values == (4.0, None)
    assert [failure.reason for failure in found.failures] == [
        "more than 3 messages came for a tick"
    ]
    inputs.accept("/x", 2 * TICK + 1, number(1.0))
    assert inputs.snapshot(3).values == (1.0, 1.0)


def test_only_signals_that_say_so_read_more_than_the_newest_message() -> None:
    inputs = feed(*sources()[:1])
    for at in range(9):
        inputs.accept("/x", at, number(1.0))
    inputs.snapshot(1)
    assert inputs.counters.decoded == 1
    inputs = feed(*sources()[1:2])
    for at in range(9):
        inputs.accept("/x", at, number(1.0))
    inputs.snapshot(1)
    assert inputs.counters.decoded == 9


@pytest.mark.parametrize(
    ("value", "told"),
    [("data", "within: max of text"), ("many", "within: max of an array of numbers")],
)
def test_only_numbers_and_conditions_are_taken_together(value: str, told: str) -> None:
    signal = SourceSignal("x", "/t", TEXT.name, parse_expression(value), TICK, None, within="max")
    with pytest.raises(FieldError, match=told) as caught:
        Feed((signal,), {"/t": TEXT}, Grid(10.0))
    assert caught.value.key == "signals.x.value"


FILE = """
rate: 10
signals:
  x: {SIGNAL}
  y: {topic: /y, type: std_msgs/msg/Float64, value: data}
predicates: {p: y > 1, q: x > 1}
properties: {rule: {formula: always(not p)}}
"""
TOPIC = "topic: /x, type: std_msgs/msg/Float64, value: data"


@pytest.mark.parametrize(
    "signal",
    [
        "value: y + 1, within: max",
        "timeout: 2, within: any",
        "channel: /x, message: demo.Number, value: x, within: max",
        "frame: {of: a, in: b}, value: translation.x, within: max",
        "topic: /x, type: std_msgs/msg/String, value: data, rules: r.yaml, within: any",
    ],
)
def test_it_belongs_to_a_signal_of_a_topic(signal: str) -> None:
    with pytest.raises(ConfigErrors, match="a signal with a topic, and to no plan"):
        parse_spec(parse_document(FILE.replace("SIGNAL", signal)))


def test_models_of_other_readings_do_not_fit() -> None:
    digests = {
        way: compile_spec(
            parse_spec(parse_document(FILE.replace("SIGNAL", TOPIC + way)))
        ).abstraction.digest
        for way in ("", ", within: last", ", within: max", ", within: min")
    }
    assert digests[""] == digests[", within: last"]
    assert len(set(digests.values())) == 3
