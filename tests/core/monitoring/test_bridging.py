"""A monitor file divided between a bridge and the node: same states, same digest, exact ages."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from forewarn.config.file import MonitorSpec, load_spec
from forewarn.errors import DecodeError
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import installed_message_type
from forewarn.monitoring.bridging import divide
from forewarn.signals.snapshots import Aged
from forewarn.signals.sources import EXTERNAL_TYPE, ExternalSignals
from forewarn.states.inputs import open_feed

MONITOR = """\
version: 1
rate: 10
signals:
  speed: {channel: /chassis, message: demo.Chassis, value: speed, timeout: 0.5}
  pad: {channel: /pad, message: demo.Pad, value: action, timeout: never, default: 0}
  xs: {channel: /objects, message: demo.Objects, value: "[o.x for o in objects]", timeout: 0.3}
  nearest: {value: "min(xs, default=inf)"}
  ttc: {value: nearest / speed}
  limit: {topic: /limit, type: std_msgs/msg/Float64, value: data}
  over: {value: speed - limit}
  unused: {value: speed + 1}
predicates:
  fast: over > 0
  asked: pad > 0
bins:
  ttc: [1, 2]
properties:
  slow:
    formula: always(fast implies eventually[0:1](nearest > 5))
"""


@pytest.fixture
def spec(tmp_path: Path) -> MonitorSpec:
    path = tmp_path / "monitor.yaml"
    path.write_text(MONITOR)
    return load_spec(path)


def test_the_bridge_sends_what_the_node_needs_and_no_more(spec: MonitorSpec) -> None:
    found = divide(spec)
    assert found.sent == {"speed": 0.5, "pad": math.inf, "nearest": 0.3, "ttc": 0.3}
    assert found.sources["ttc"] == {"speed", "xs"}
    assert set(found.node.signals) == {"speed", "pad", "nearest", "ttc", "limit", "over"}
    assert found.node.topics == {"/limit": "std_msgs/msg/Float64"}
    assert not found.node.signals["ttc"].is_derived
    assert found.node.signals["over"].is_derived
    assert found.node.signals["pad"].default == 0


def test_models_of_the_file_are_models_of_the_node(spec: MonitorSpec) -> None:
    whole, node = compile_spec(spec).abstraction, compile_spec(divide(spec).node).abstraction
    assert node.digest == whole.digest
    assert node.vocabulary == whole.vocabulary
    other = spec.with_thresholds("slow", {"act": 0.9})
    assert compile_spec(divide(other).node).abstraction.digest == whole.digest
    renamed = spec.model_copy(update={"rate": 20.0})
    assert compile_spec(divide(renamed).node).abstraction.digest != whole.digest


def test_a_file_without_channels_stays_as_it_is(spec: MonitorSpec) -> None:
    node = divide(spec).node
    assert divide(node).node is node
    assert divide(node).sent == {}


def test_a_value_that_was_old_when_it_was_sent_is_stale_in_time(spec: MonitorSpec) -> None:
    abstraction = compile_spec(divide(spec).node).abstraction
    feed = open_feed(divide(spec).node, abstraction, {})
    slot = [source.name for source in abstraction.sources].index("speed")
    # Measured at 10.0 s, sent again and again: unknown from 10.6 s on (0.5 s are 5 ticks).
    values = []
    for tick in range(100, 108):
        feed.accept("/x", tick * 100_000_000, {"speed": Aged(7.0, (tick - 100) * 100_000_000)})
        values.append(feed.snapshot(tick).values[slot])
    assert values == [7.0] * 6 + [None] * 2


def test_ages_come_from_the_stamps_of_a_message(our_messages: None) -> None:
    mtype = installed_message_type(EXTERNAL_TYPE)
    types = mtype.typestore.types
    time = types["builtin_interfaces/msg/Time"]

    def message(stamps: list[tuple[int, int]]) -> bytes:
        import numpy as np

        header = types["std_msgs/msg/Header"](time(10, 500_000_000), "")
        return bytes(
            mtype.typestore.serialize_cdr(
                types[EXTERNAL_TYPE](
                    header, ["a", "b", "c"], np.array([1.0, 2.0, 3.0]), [time(*s) for s in stamps]
                ),
                EXTERNAL_TYPE,
            )
        )

    read = ExternalSignals(mtype)
    dated = read(message([(10, 500_000_000), (9, 0), (0, 0)]))
    assert dated == {"a": 1.0, "b": Aged(2.0, 1_500_000_000), "c": 3.0}
    assert read(message([])) == {"a": 1.0, "b": 2.0, "c": 3.0}
    with pytest.raises(DecodeError, match="3 names and 1 stamps"):
        read(message([(1, 0)]))


def test_the_node_has_what_a_danger_score_is_computed_from(tmp_path: Path) -> None:
    path = tmp_path / "monitor.yaml"
    path.write_text(
        f"{MONITOR}learned_score: {{ahead: {{for: slow, from: [unused, over, pad]}}}}\n"
    )
    whole = load_spec(path)
    node = divide(whole).node
    assert {"unused", "over", "pad"} <= set(node.signals)
    parts = compile_spec(whole).abstraction, compile_spec(node).abstraction
    assert parts[0].digest == parts[1].digest
    assert parts[1].scores[0][1].signals == ("unused", "over", "pad")


def test_what_is_computed_from_a_danger_score_stays_with_the_node(tmp_path: Path) -> None:
    path = tmp_path / "monitor.yaml"
    text = MONITOR.replace("  unused: {value: speed + 1}", "  double: {value: speed + ahead}")
    text = text.replace("  asked: pad > 0", "  asked: pad > 0\n  grave: double > 3")
    path.write_text(f"{text}learned_score: {{ahead: {{for: slow, from: [speed, pad]}}}}\n")
    node = divide(load_spec(path)).node
    assert node.signals["double"].is_derived
    assert compile_spec(node).abstraction.digest == compile_spec(load_spec(path)).abstraction.digest
