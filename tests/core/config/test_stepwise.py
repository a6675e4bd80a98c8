"""What a monitor file may say under ``clock: steps``."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.config.file import load_spec
from forewarn.config.sections import PropertySpec
from forewarn.config.stepwise import OF_PROPERTIES, durations
from forewarn.errors import ConfigError
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.bridging import divide

GOOD = """\
version: 1
clock: steps
signals:
  hot: {timeout: 4}
predicates:
  is_hot: hot > 0.5
properties:
  cool: {formula: "always(is_hot implies eventually[0:3](not is_hot))", horizon: 5, hold: 2}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(text)
    return path


def test_the_rate_is_steps_and_bounds_are_too(tmp_path: Path) -> None:
    compiled = compile_spec(load_spec(written(tmp_path, GOOD)))
    assert compiled.spec.rate == "steps"
    [automaton] = compiled.automata
    assert len(automaton.transitions) == 3 + 2  # idle, three steps to go, violated


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("hold: 2", "hold: 0.5", ["line 8", "properties.cool.hold", "0.5", "whole number of st"]),
        ("hold: 2", "hold: 2 s", ["properties.cool.hold", "'2 s'", "steps under clock: steps"]),
        ("horizon: 5", "horizon: 1.5", ["properties.cool.horizon", "1.5"]),
        ("horizon: 5", "horizon: 3 s", ["properties.cool.horizon", "'3 s'", "plain number"]),
        ("timeout: 4", "timeout: 0.3", ["line 4", "signals.hot.timeout", "0.3", "no seconds"]),
        ("timeout: 4", "timeout: 300 ms", ["signals.hot.timeout", "'300 ms'", "plain number"]),
        ("[0:3]", "[0:3 s]", ["properties.cool.formula", "3 s", "bounds in steps"]),
        ("[0:3]", "[0:1.5]", ["properties.cool.formula", "1.5 steps", "whole number"]),
        ("clock: steps", "clock: steps\nrate: 10", ["rate", "10", "no rate", "without rate"]),
        ("clock: steps", "clock: steps\nstartup_grace: 0.5", ["startup_grace", "0.5"]),
        (
            "clock: steps",
            "clock: steps\ntimestamp_source: header",
            ["timestamp_source", "header", "arrival"],
        ),
        ("clock: steps", "clock: steps\nsettle: 1", ["settle", "1"]),
        ("clock: steps", "clock: steps\nstep: /odom", ["step", "/odom", "no signal"]),
        ("clock: steps", "clock: steps\nlearning: {refresh: 2.5}", ["learning.refresh", "2.5"]),
        ("clock: steps", "rate: 10\nstep: /odom", ["step", "/odom", "clock: steps"]),
        ("clock: steps", "rate: 10\nepisode: id", ["episode", "'id'", "clock: steps"]),
        ("clock: steps", "rate: steps", ["rate", "ticks a second, or clock: steps"]),
        ("clock: steps", "clock: ticks", ["rate", "missing"]),
        ("clock: steps", "clock: hours", ["clock", "'hours'", "ticks", "steps"]),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, before: str, after: str, expected: list[str]
) -> None:
    assert before in GOOD
    path = written(tmp_path, GOOD.replace(before, after))
    with pytest.raises(ConfigError) as caught:
        compile_spec(load_spec(path))
    text = str(caught.value)
    assert str(path) in text
    for part in expected:
        assert part in text, text


def test_signals_from_topics_only_need_a_step(tmp_path: Path) -> None:
    topic = "{topic: /odom, type: nav_msgs/msg/Odometry, value: twist.twist.linear.x}"
    path = written(tmp_path, GOOD.replace("{timeout: 4}", topic))
    with pytest.raises(ConfigError, match=r"step: is missing.*/odom"):
        load_spec(path)
    path.write_text(path.read_text().replace("clock: steps", "clock: steps\nstep: /odom"))
    assert load_spec(path).step == "/odom"


def test_a_gate_needs_its_own_limit_of_silence(tmp_path: Path) -> None:
    gate = "input: /a, output: /b, max_speed: 1, max_turn: 1"
    text = GOOD.replace("clock: steps", f"clock: steps\nactuators: {{twist: {{{gate}}}}}")
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=r"actuators\.twist: monitor_timeout is missing"):
        load_spec(path)
    path.write_text(text.replace("input:", "monitor_timeout: 30, input:"))
    assert load_spec(path).actuators.twist is not None


def test_a_parameter_may_not_bring_seconds_in(tmp_path: Path) -> None:
    spec = load_spec(written(tmp_path, GOOD))
    assert spec.with_thresholds("cool", {"hold": 3}).properties["cool"].hold == 3
    with pytest.raises(ConfigError, match=r"properties\.cool\.hold.*0\.5"):
        spec.with_thresholds("cool", {"hold": 0.5})


def test_every_duration_of_the_logic_is_checked(tmp_path: Path) -> None:
    found = {path[-1] for path, _ in durations(load_spec(written(tmp_path, GOOD)))}
    assert found == {"startup_grace", "refresh", "timeout", *OF_PROPERTIES}
    # A number that may be a duration has to be known as one, or as something else.
    others = {"out_of_model_speed", "speed_limit", "enter", "exit"}
    numbers = {
        name
        for name, field in PropertySpec.model_fields.items()
        if field.annotation in (float, int) or "float" in str(field.annotation)
    }
    assert numbers == others | set(OF_PROPERTIES)


def test_a_bridge_makes_no_steps(tmp_path: Path) -> None:
    channel = "{channel: /apollo/chassis, message: apollo.canbus.Chassis, value: speed_mps}"
    path = written(tmp_path, GOOD.replace("{timeout: 4}", channel))
    path.write_text(path.read_text().replace("clock: steps", "clock: steps\nstep: /apollo/chassis"))
    with pytest.raises(ConfigError, match=r"clock: 'steps': a bridge"):
        divide(load_spec(path))
