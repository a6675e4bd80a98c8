"""What the bridge sends: the node's numbers, each with the stamp that makes it expire in time."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.commander import Commander
from apollo_bridge.commands import WAYS
from apollo_bridge.derivation import Derivation
from apollo_bridge.layouts import own_class
from apollo_bridge.node import statuses
from apollo_bridge.relay import Memory, Relay
from apollo_bridge.tcp import TcpTransport
from apollo_bridge.transport import Arrival, Offer
from apollo_bridge.worker import Worker
from forewarn.config.file import load_spec
from forewarn_ros.status import Severity

CHASSIS, OBJECTS, PAD = "/chassis", "/objects", "/pad"


MONITOR = """\
version: 1
rate: 10
signals:
  speed: {channel: /chassis, message: apollo.canbus.Chassis, value: speed_mps, timeout: 0.5}
  asked: {channel: /pad, message: apollo.planning.PadMessage, value: action == STOP,
          timeout: never, default: false}
  xs: {channel: /objects, message: apollo.perception.PerceptionObstacles,
       value: "[o.position.x for o in perception_obstacle]", timeout: 0.3}
  gap: {value: "min(xs, default=inf) / speed"}
predicates:
  near: gap < 2
  commanded: asked
  fast: speed > 5
properties:
  apart: {formula: always(not near)}
"""
NOW = 1_700_000_000_000_000_000
MS = 1_000_000


@pytest.fixture
def derivation(tmp_path: Path) -> Derivation:
    path = tmp_path / "monitor.yaml"
    path.write_text(MONITOR)
    return Derivation(load_spec(path))


def chassis(speed: float, at: int) -> Arrival:
    return Arrival(
        CHASSIS, at, own_class("apollo.canbus.Chassis")(speed_mps=speed).SerializeToString()
    )


def objects(at: int, *xs: float) -> Arrival:
    message = own_class("apollo.perception.PerceptionObstacles")()
    for x in xs:
        message.perception_obstacle.add().position.x = x
    return Arrival(OBJECTS, at, message.SerializeToString())


def sent(derivation: Derivation, now: int) -> dict[str, tuple[float, int]]:
    return {s.name: (s.value, s.stamp_ns) for s in derivation.evaluate(now)}


def test_what_never_came_is_left_out(derivation: Derivation) -> None:
    assert derivation.evaluate(NOW) == []
    assert derivation.accept([chassis(4.0, NOW)])
    assert sent(derivation, NOW + MS) == {"speed": (4.0, NOW)}


def test_a_derived_value_expires_with_its_first_input(derivation: Derivation) -> None:
    derivation.accept([chassis(4.0, NOW), objects(NOW + 100 * MS, 12.0, 30.0)])
    found = sent(derivation, NOW + 150 * MS)
    assert found["speed"] == (4.0, NOW)
    # Objects are stale 300 ms after they came, the speed 500 ms: both at 400 and 500 ms. The node
    # drops `gap` 300 ms (the lesser timeout) after its stamp, that is when the objects are stale.
    assert found["gap"] == (3.0, NOW + 100 * MS)
    derivation.accept([objects(NOW + 400 * MS, 8.0)])
    # Now the speed goes first, at 500 ms: the stamp is 300 ms before that.
    assert sent(derivation, NOW + 410 * MS)["gap"] == (2.0, NOW + 200 * MS)


def test_what_is_stale_is_unknown(derivation: Derivation) -> None:
    derivation.accept([chassis(4.0, NOW), objects(NOW, 12.0)])
    found = sent(derivation, NOW + 400 * MS)
    assert found["speed"][0] == 4.0
    assert math.isnan(found["gap"][0])
    assert math.isnan(sent(derivation, NOW + 600 * MS)["speed"][0])


def test_a_signal_that_never_is_stale_has_the_stamp_of_sending(derivation: Derivation) -> None:
    pad = own_class("apollo.planning.PadMessage")(action=4)
    derivation.accept([Arrival(PAD, NOW, pad.SerializeToString())])
    later = NOW + 3_600_000 * MS
    assert sent(derivation, later)["asked"] == (1.0, later)


def test_the_publishers_layout_replaces_our_own(derivation: Derivation, apollo: Any) -> None:
    # This Apollo has the speed in another field.
    file = apollo.FileDescriptorProto(name="c.proto", package="apollo.canbus", syntax="proto2")
    message = file.message_type.add(name="Chassis")
    message.field.add(name="speed_mps", number=99, type=1, label=1)
    descriptors = apollo.own_class("apollo.cyber.proto.ProtoDesc")(desc=file.SerializeToString())
    offer = Offer(CHASSIS, "apollo.canbus.Chassis", descriptors.SerializeToString())
    derivation.offer(offer)
    derivation.accept([Arrival(CHASSIS, NOW, b"\x99\x06" + b"\0\0\0\0\0\0\x08\x40")])
    assert sent(derivation, NOW)["speed"][0] == 3.0
    assert derivation.problems == {}


def test_a_layout_that_does_not_fit_is_a_problem_of_its_channel_only(
    derivation: Derivation, apollo: Any
) -> None:
    file = apollo.FileDescriptorProto(name="c.proto", package="apollo.canbus", syntax="proto2")
    file.message_type.add(name="Chassis").field.add(name="velocity", number=1, type=1, label=1)
    descriptors = apollo.own_class("apollo.cyber.proto.ProtoDesc")(desc=file.SerializeToString())
    derivation.offer(Offer(CHASSIS, "apollo.canbus.Chassis", descriptors.SerializeToString()))
    assert "no field 'speed_mps'" in derivation.problems[CHASSIS]
    pad = own_class("apollo.planning.PadMessage")(action=4)
    derivation.accept([Arrival(PAD, NOW, pad.SerializeToString())])
    assert sent(derivation, NOW)["asked"][0] == 1.0


def test_another_message_on_the_channel_is_a_problem(derivation: Derivation) -> None:
    derivation.offer(Offer(CHASSIS, "apollo.control.ControlCommand", b""))
    assert "carries apollo.control.ControlCommand" in derivation.problems[CHASSIS]


def test_damaged_messages_are_unknown_and_told(derivation: Derivation) -> None:
    derivation.accept([Arrival(CHASSIS, NOW, b"\xff\xff\xff")])
    assert math.isnan(sent(derivation, NOW)["speed"][0])
    assert "are no apollo.canbus.Chassis" in derivation.failures[CHASSIS]


def test_a_channel_whose_messages_cannot_be_read_is_not_in_order(derivation: Derivation) -> None:
    def state(now: int) -> tuple[int, str]:
        found = statuses(Worker(TcpTransport(), derivation, lambda *_: None, 50.0), relay, now)
        status = next(item for item in found if item.name == CHASSIS)
        return status.level, status.message

    relay = Relay(Commander(WAYS["pad"]), Memory(None), False, logging.getLogger())
    derivation.accept([chassis(3.0, NOW)])
    derivation.evaluate(NOW)
    assert state(NOW) == (Severity.OK, "messages arrive")
    derivation.accept([Arrival(CHASSIS, NOW + 50 * MS, b"\xff\xff")])
    derivation.evaluate(NOW + 50 * MS)
    level, text = state(NOW + 60 * MS)
    assert level == Severity.WARN
    assert "its messages cannot be read: 2 bytes are no apollo.canbus.Chassis" in text
    derivation.accept([chassis(3.0, NOW + 100 * MS)])
    derivation.evaluate(NOW + 100 * MS)
    assert state(NOW + 100 * MS) == (Severity.OK, "messages arrive")
