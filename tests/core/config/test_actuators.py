"""The section `actuators`: what a planner would misunderstand is refused, by key and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.config import MonitorSpec, parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError

HEAD = """
rate: 10
signals:
  speed: {topic: /odom, type: nav_msgs/msg/Odometry, value: twist.twist.linear.x, timeout: 0.5}
predicates: {moving: speed > 0.5}
properties:
  stop:
    formula: always(not moving)
    horizon: 1.0
    thresholds: {warn: 0.2, act: 0.6, release: 0.1}
"""

GATE = "output: /b, max_speed: 2, max_turn: 2"


def spec_of(section: str) -> MonitorSpec:
    return parse_spec(parse_document(f"{HEAD}{section}\n", Path("m.yaml")))


def test_nothing_acts_unless_it_is_named() -> None:
    spec = spec_of("")
    assert (spec.actuators.autoware, spec.actuators.nav2, spec.actuators.twist) == (None,) * 3
    assert spec.mode == "observe"
    one = spec_of("mode: act\nactuators: {autoware: {}}")
    assert one.actuators.autoware is not None
    assert (one.actuators.nav2, one.actuators.twist, one.mode) == (None, None, "act")


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("{autowere: {}}", ["actuators.autowere", "unknown key", "autoware"]),
        ("{autoware: }", ["actuators", "autoware is empty", "autoware: {}"]),
        ("{autoware: {sender: api}}", ["actuators.autoware", "'api' is Autoware's own"]),
        ("{autoware: {sender: ''}}", ["actuators.autoware.sender"]),
        ("{autoware: {limit_topic: 'max velocity'}}", ["limit_topic", "'max velocity'"]),
        ("{autoware: {limit_topic: /a__b}}", ["limit_topic", "/a__b", "no ROS name"]),
        ("{autoware: {limit_topic: ''}}", ["limit_topic"]),
        ("{autoware: {mrm_for: [LIMIT_SPEED]}}", ["mrm_for", "LIMIT_SPEED", "EMERGENCY_STOP"]),
        ("{autoware: {confirm_timeout: 0}}", ["confirm_timeout", "0"]),
        ("{autoware: {confirm_timeout: .inf}}", ["confirm_timeout", "inf"]),
        ("{autoware: {comfortable: {deceleration: 1}}}", ["comfortable.jerk", "missing"]),
        (
            "{autoware: {comfortable: {deceleration: -1, jerk: 1}}}",
            ["comfortable.deceleration", "-1", "greater than 0"],
        ),
        ("{autoware: {emergency: {deceleration: .nan, jerk: 1}}}", ["emergency.deceleration"]),
        ("{nav2: {lock: /lock}}", ["actuators.nav2.lock", "unknown key", "lock_topic"]),
        ("{nav2: {emergency_stop: [lock]}}", ["actuators.nav2", "'lock' needs lock_topic"]),
        ("{nav2: {comfortable_stop: []}}", ["comfortable_stop"]),
        ("{nav2: {comfortable_stop: [brake]}}", ["comfortable_stop", "brake", "cancel"]),
        ("{nav2: {actions: []}}", ["actions"]),
        ("{nav2: {actions: [1go]}}", ["actions", "1go", "no ROS name"]),
        ("{twist: {}}", ["actuators.twist.input", "missing"]),
        ("{twist: {input: /a, output: /b, max_turn: 2}}", ["twist.max_speed", "missing"]),
        ("{twist: {input: /a, output: /b, max_speed: 2}}", ["twist.max_turn", "missing"]),
        (
            "{twist: {input: /a, output: /b, max_speed: 0, max_turn: 2}}",
            ["twist.max_speed", "0", "greater than 0"],
        ),
        (f"{{twist: {{input: /b, {GATE}}}}}", ["actuators.twist", "has to lie between"]),
        (f"{{twist: {{input: /a, {GATE}, gate: gate}}}}", ["twist.gate", "no full name of a node"]),
        (f"{{twist: {{input: /a, {GATE}, rate: 1}}}}", ["twist.rate", "1"]),
        (f"{{twist: {{input: /a, {GATE}, command_timeout: 61}}}}", ["command_timeout", "61"]),
        (
            f"{{twist: {{input: /a, {GATE}, emergency_deceleration: .inf}}}}",
            ["emergency_deceleration", "inf"],
        ),
        ("[autoware]", ["actuators"]),
    ],
)
def test_a_section_that_makes_no_sense_is_refused(section: str, expected: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        spec_of(f"mode: act\nactuators: {section}")
    for part in ["m.yaml", *expected]:
        assert part in str(caught.value)
