"""The section `actuators`: what a planner would misunderstand is refused, by key and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.config.file import MonitorSpec, parse_spec
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


WAY = "{when: speed < 1, speed: %s}"


def escape(section: str) -> str:
    """Return actuators with a gate that has this section `escape`."""
    gate = "input: /a, output: /b, max_speed: 0.5, max_turn: 0.8"
    return f"{{twist: {{{gate}, escape: {{{section}}}}}}}"


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
        (escape(""), ["twist.escape", "neither reverse nor turn"]),
        (escape("time: 5"), ["twist.escape", "neither reverse nor turn"]),
        (escape("reverse: {when: speed < 1}"), ["escape.reverse.speed", "missing"]),
        (escape("turn: {speed: 0.1}"), ["escape.turn.when", "missing"]),
        (
            escape("when: speed < 1, reverse: 0.1, turn: 0.3"),
            [
                "actuators.twist.escape: each way has its own 'when' and 'speed' (accepted: ",
                'reverse: {when: "speed < 1", speed: 0.1}, turn: {when: "speed < 1", speed: 0.3})',
            ],
        ),
        (
            escape("when: speed < 1"),
            ["each way has its own", '(accepted: reverse: {when: "speed < 1", speed: 0.1})'],
        ),
        (escape("turn: 0.3"), ['(accepted: turn: {when: "...", speed: 0.3})']),
        (
            escape("revers: {when: speed < 1, speed: 0.1}"),
            ["escape.revers", "unknown key", "reverse"],
        ),
        (escape(f"reverse: {WAY % '0.1, far: 1'}"), ["reverse.far", "unknown key", "when, speed"]),
        (escape(f"reverse: {WAY % '-0.1'}"), ["escape.reverse.speed", "-0.1"]),
        (escape(f"reverse: {WAY % '0'}"), ["escape.reverse.speed", "0", "greater than 0"]),
        (escape(f"reverse: {WAY % '1.5'}"), ["escape.reverse.speed", "1.5", "equal to 1"]),
        (escape(f"reverse: {WAY % '.nan'}"), ["escape.reverse.speed", "nan"]),
        (
            escape(f"reverse: {WAY % '0.6'}"),
            ["escape.reverse.speed is 0.6", "max_speed, 0.5"],
        ),
        (escape(f"turn: {WAY % '0.9'}"), ["escape.turn.speed is 0.9", "max_turn, 0.8"]),
        (escape(f"turn: {WAY % '0.1'}, time: .inf"), ["escape.time", "inf"]),
        (escape(f"turn: {WAY % '0.1'}, time: 0"), ["escape.time", "0"]),
        (escape(f"turn: {WAY % '0.1'}, time: 0.1"), ["escape.time is 0.1", "at least 0.33"]),
        (escape(f"reverse: {WAY % '0.1'}, distance: .inf"), ["escape.distance", "inf"]),
        (escape(f"reverse: {WAY % '0.1'}, distance: never"), ["escape.distance", "never"]),
        (escape(f"reverse: {WAY % '0.1'}, distance: 9"), ["escape.distance", "9"]),
        (escape(f"reverse: {WAY % '0.1'}, distance: 0.01"), ["distance is 0.01", "0.033"]),
        (escape(f"turn: {WAY % '0.1'}, renewed_after: 0"), ["renewed_after", "0"]),
    ],
)
def test_a_section_that_makes_no_sense_is_refused(section: str, expected: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        spec_of(f"mode: act\nactuators: {section}")
    for part in ["m.yaml", *expected]:
        assert part in str(caught.value)


def test_a_way_out_has_limits_without_being_asked() -> None:
    both = f"reverse: {WAY % '0.1'}, turn: {WAY % '0.3'}"
    spec = spec_of(f"actuators: {escape(both)}")
    assert spec.escape is not None
    assert spec.escape.conditions == {"reverse": "speed < 1", "turn": "speed < 1"}
    assert (spec.escape.distance, spec.escape.time, spec.escape.renewed_after) == (0.5, 10.0, 5.0)
    assert spec_of(f"actuators: {{twist: {{input: /a, {GATE}}}}}").escape is None
    assert spec_of("").escape is None


def test_steps_have_no_way_out() -> None:
    text = HEAD.replace("rate: 10", "clock: steps\nstep: /odom").replace(
        "timeout: 0.5", "timeout: 5"
    )
    gate = escape(f"turn: {WAY % '0.1'}").replace("input:", "monitor_timeout: 1, input:")
    text = text.replace("horizon: 1.0", "horizon: 5")
    with pytest.raises(ConfigError, match=r"actuators.twist.escape: the clock is steps"):
        parse_spec(parse_document(f"{text}startup_grace: 0\nactuators: {gate}\n", Path("m.yaml")))
