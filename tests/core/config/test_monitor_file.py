from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.config.file import load_spec, parse_spec
from forewarn.config.sections import Thresholds
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError
from forewarn.logic.specification import compile_spec

GOOD = """
rate: 10
signals:
  speed: {topic: /odom, type: nav_msgs/msg/Odometry, value: twist.twist.linear.x, timeout: 0.5}
  light: {topic: /light, type: std_msgs/msg/UInt8, value: data, timeout: never}
predicates:
  moving: speed > 0.5
terminal:
  crashed: light == 9
properties:
  stop:
    formula: always(moving implies eventually[0:2](not moving))
    thresholds: {warn: 0.2, act: 0.6, release: 0.1}
"""


def spec_of(text: str):
    return parse_spec(parse_document(text, Path("m.yaml")))


def test_relative_topics_lie_in_a_namespace_and_models_stay_valid() -> None:
    frame = "  at: {frame: {of: base_link, in: map, topic: tf}, value: translation.x}\n"
    text = GOOD.replace("signals:\n", f"signals:\n{frame}")
    absolute, relative = (compile_spec(spec_of(t)) for t in (
        text.replace("topic: tf", "topic: /tf"), text.replace("topic: /", "topic: ")
    ))  # fmt: skip
    assert relative.spec == absolute.spec
    robot = parse_spec(parse_document(text.replace("topic: /", "topic: "), Path("m.yaml")), "/r1")
    assert robot.topics.keys() == {"/r1/odom", "/r1/light", "/r1/tf", "/tf_static"}
    digests = {c.abstraction.digest for c in (absolute, relative, compile_spec(robot))}
    assert len(digests) == 1
    with pytest.raises(ConfigError, match="own namespace") as caught:
        spec_of(GOOD.replace("/light", "~/light"))
    assert caught.value.key.endswith("signals.light")


def test_a_good_file_gives_defaults_and_typed_values() -> None:
    spec = spec_of(GOOD)
    assert spec.signals["light"].timeout == float("inf")
    assert spec.topics == {"/odom": "nav_msgs/msg/Odometry", "/light": "std_msgs/msg/UInt8"}
    assert spec.properties["stop"].enter == 2
    assert spec.mode == "observe"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("rate: 10", "rate: 0", ["line 2", "rate", "0", "greater than 0"]),
        ("rate: 10", "rate: fast", ["rate", "'fast'"]),
        ("rate: 10", "", ["rate", "missing"]),
        ("timeout: 0.5", "timeout: -1", ["signals.speed.timeout", "-1"]),
        ("timeout: 0.5", "time_out: 1", ["signals.speed.time_out", "unknown key", "timeout"]),
        ("act: 0.6", "act: 1.6", ["properties.stop.thresholds.act", "1.6"]),
        ("act: 0.6", "act: 0.1", ["properties.stop.thresholds", "release"]),
        ("release: 0.1", "release: .nan", ["thresholds.release", "nan"]),
        ("release: 0.1", "release: 0", ["stop.thresholds", "release 0 must be above 0"]),
        ("  stop:\n", "  stop:\n    intervention: LIMIT_SPEED\n", ["LIMIT_SPEED needs speed_l"]),
        ("type: std_msgs/msg/UInt8,", "", ["signals.light", "topic and type"]),
        ("std_msgs/msg/UInt8", "UInt8", ["signals.light", "'UInt8'"]),
        ("moving: speed", "moving: sped", ["predicates.moving", "'sped'", "speed, light"]),
        ("moving: speed > 0.5", "moving: open('x')", ["predicates.moving", "open"]),
        ("moving: speed > 0.5", "moving: speed.__class__", ["predicates.moving", "__class__"]),
        ("moving: speed > 0.5", "moving: __import__('os')", ["predicates.moving"]),
        ("moving: speed > 0.5", "moving: speed >", ["predicates.moving"]),
        ("moving: speed > 0.5", "min: speed > 0.5", ["predicates.min", "function"]),
        ("moving: speed > 0.5", "always: speed > 0.5", ["predicates.always", "formula language"]),
        ("moving: speed > 0.5", "speed: speed > 0.5", ["predicates.speed", "signals"]),
        ("always(moving implies", "always(moving implis", ["properties.stop.formula"]),
        ("(not moving))", "(not stopped))", ["properties.stop.formula", "'stopped'", "moving"]),
        ("  stop:\n", "  stop it:\n", ["properties.stop it", "letters"]),
        ("  stop:\n", "  on:\n", ["'on'", "quotes"]),
        ("predicates:", "predicates: {a: b}\npredicates:", ["'predicates'", "twice"]),
        ("rate: 10", "rate: [10", ["no valid YAML", "line"]),
        ("rate: 10", "rate: 1.0e+309", ["line 2", "1.0e+309 is too large", "1.8e308"]),
        ("rate: 10", "rate: 010", ["line 2", "010 in another base", "base ten"]),
        ("rate: 10", "rate: 1:30", ["line 2", "1:30 in another base"]),
        ("timeout: 0.5", "timeout: 0b11", ["0b11 in another base"]),
        ("rate: 10", "rate: 1e309", ["line 2", "1e309 is too large"]),
        ("rate: 10", "rate: 1.0e-9", ["rate", "1e-09", "greater than or equal to 0.001"]),
        ("timeout: 0.5", "timeout: 1.0e+308", ["signals.speed.timeout", "1e+308", "or never"]),
        ("  stop:\n", "  stop:\n    horizon: 1.0e+308\n", ["stop.horizon", "or unbounded"]),
        ("  stop:\n", "  stop:\n    hold: 1.0e+308\n", ["stop.hold", "1e+308", "1000000000"]),
        ("  stop:\n", "  stop:\n    enter: 1" + "0" * 90 + "\n", ["stop.enter", "1000000000"]),
        ("[0:2]", "[0:1e308]", ["properties.stop.formula", "column", "too large"]),
        ("[0:2]", "[0:1e17]", ["properties.stop.formula", "1e+18 steps", "10000000"]),
        ("rate: 10", "\trate: 10", ["no valid YAML: a tab", "spaces", "line 2"]),
    ],
)
def test_an_error_names_file_key_value_and_what_is_accepted(
    before: str, after: str, expected: list[str]
) -> None:
    assert before in GOOD
    with pytest.raises(ConfigError) as caught:
        compile_spec(spec_of(GOOD.replace(before, after, 1)))
    for part in ["m.yaml", *expected]:
        assert part in str(caught.value)


def test_all_findings_come_at_once() -> None:
    text = GOOD.replace("rate: 10", "rate: -1").replace("act: 0.6", "act: 2")
    with pytest.raises(ConfigError) as caught:
        spec_of(text)
    assert "rate" in str(caught.value)
    assert "thresholds.act" in str(caught.value)


@pytest.mark.parametrize("key", ["float", "int", "str", "tuple[0]", "nullable[x]"])
def test_an_unknown_key_may_be_called_like_a_type(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spec_of(f"{GOOD}'{key}': 1\n")
    assert key in str(caught.value)
    assert "unknown key" in str(caught.value)


def test_an_unknown_key_is_told_the_keys_of_its_own_section() -> None:
    with pytest.raises(
        ConfigError,
        match=r"0\]\.forbid\.too: unknown key; did you mean .to.\? \(accepted: from, to\)",
    ):
        spec_of(f"{GOOD}constraints: [{{forbid: {{from: a, to: b, too: c}}}}]\n")
    named_alike = GOOD.replace("  stop:", "  thresholds:\n    act: 1")
    with pytest.raises(ConfigError, match=r"s\.act: unknown key \(accepted: formula, horizon, "):
        spec_of(named_alike)


@pytest.mark.parametrize("text", ["", "- 1\n- 2\n", "just text", "a: 1\n---\nb: 2\n"])
def test_what_is_no_single_mapping_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        spec_of(text)


def test_hostile_yaml_is_refused_quickly(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    with pytest.raises(ConfigError, match="too large"):
        spec_of(bomb)
    with pytest.raises(ConfigError, match=r"nested too deeply|too large"):
        spec_of("a: " + "[" * 5000)
    with pytest.raises(ConfigError):
        spec_of("a: !!python/object/apply:os.system ['true']")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (1 << 21))
    with pytest.raises(ConfigError, match="too large"):
        load_spec(large)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_spec(binary)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_spec(tmp_path / "absent.yaml")


def test_signals_that_depend_on_each_other_are_refused() -> None:
    text = GOOD.replace("predicates:", "  a: {value: b + 1}\n  b: {value: a + 1}\npredicates:")
    with pytest.raises(ConfigError, match="depend on each other"):
        compile_spec(spec_of(text))


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, (0.3, 0.5, 0.2)), ({"act": 0.2}, (0.2, 0.2, 0.1)), ({"act": 0.9}, (0.3, 0.9, 0.2)),
     ({"act": 0.25, "warn": 0.1}, (0.1, 0.25, 0.125)),
     ({"act": 0.3, "release": 0.25}, (0.3, 0.3, 0.25))],
)  # fmt: skip
def test_thresholds_that_nobody_gave_fit_those_that_were(
    given: dict[str, float], expected: tuple[float, float, float]
) -> None:
    found = Thresholds.model_validate(given)
    assert (found.warn, found.act, found.release) == expected
    assert found == Thresholds.model_validate(found.model_dump())


def test_thresholds_can_change_and_are_checked() -> None:
    spec = spec_of(GOOD)
    changed = spec.with_thresholds("stop", {"act": 0.9, "enter": 4})
    assert changed.properties["stop"].thresholds.act == 0.9
    assert changed.properties["stop"].enter == 4
    for values in ({"act": 2.0}, {"act": 0.05}, {"nonsense": 1}, {"enter": 0}, {"release": 0.0}):
        with pytest.raises(ConfigError, match=r"properties\.stop"):
            spec.with_thresholds("stop", values)
    with pytest.raises(ConfigError, match="no such property"):
        spec.with_thresholds("halt", {"act": 0.9})


def test_the_digest_covers_the_abstraction_and_nothing_else() -> None:
    base = compile_spec(spec_of(GOOD)).abstraction.digest
    for before, after in (
        ("act: 0.6", "act: 0.7"),
        ("eventually[0:2]", "eventually[0:3]"),
        ("speed > 0.5", "0.5 < (speed)"),
    ):
        same = compile_spec(spec_of(GOOD.replace(before, after))).abstraction.digest
        assert (same == base) == (before != "speed > 0.5"), before
    for before, after in (
        ("rate: 10", "rate: 20"),
        ("speed > 0.5", "speed > 0.6"),
        ("timeout: 0.5", "timeout: 0.7"),
        ("/odom", "/odometry"),
        ("moving:", "driving: speed > 3\n  moving:"),
    ):
        other = compile_spec(spec_of(GOOD.replace(before, after, 1))).abstraction.digest
        assert other != base, before


def test_an_inline_comparison_finds_its_predicate_or_becomes_one() -> None:
    text = GOOD.replace("(not moving)", "(speed <= 0.5)")
    same = compile_spec(spec_of(text))
    assert same.abstraction.vocabulary.predicates == ("moving",)
    assert same.automata[0].countdown == 20
    text = GOOD.replace("(not moving)", "(speed < 0.25)")
    assert compile_spec(spec_of(text)).abstraction.vocabulary.predicates == (
        "moving",
        "speed < 0.25",
    )


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ("{of: base_link}", "frame.in.*missing"),
        ("{of: /base_link, in: map}", "frame.of.*no slash before them: base_link"),
        ("{of: map, in: map}", "in itself"),
        ("{of: base_link, in: map, static: /tf}", "each has its own"),
        ("{of: base_link, in: map}, topic: /x, type: a/B", "frame has its own topic"),
        ("{of: base_link, in: map}, where: x > 1", "where chooses among messages"),
    ],
)
def test_a_frame_that_is_none_is_refused(frame: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        spec_of(
            GOOD.replace("signals:", f"signals:\n  x: {{frame: {frame}, value: translation.x}}")
        )


def test_poses_are_read_from_their_topics_and_part_of_what_a_model_counts() -> None:
    def with_pose(frame: str) -> str:
        text = GOOD.replace("signals:", f"signals:\n  x: {{frame: {frame}, value: translation.x}}")
        return text.replace("predicates:", "predicates:\n  far: x > 1")

    spec = spec_of(with_pose("{of: base_link, in: map, topic: /robot/tf}"))
    assert spec.topics["/robot/tf"] == spec.topics["/tf_static"] == "tf2_msgs/msg/TFMessage"
    assert spec.optional_topics == {"/tf_static"}
    frames = ("{of: base_link, in: map}", "{of: base_link, in: odom}", "{of: arm, in: map}")
    digests = {compile_spec(spec_of(with_pose(one))).abstraction.digest for one in frames}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("more", "key", "mine"),
    [
        ("topic: /odom, type: nav_msgs/msg/Path, value: x", "type", "nav_msgs/msg/Path"),
        ("channel: /odom, message: a.Pose, value: x", "message", "a.Pose"),
        (
            "frame: {of: base_link, in: map, static: /odom}, value: translation.x",
            "frame",
            "tf2_msgs/msg/TFMessage",
        ),
    ],
)
def test_a_topic_has_one_type(more: str, key: str, mine: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spec_of(GOOD.replace("predicates:", f"  far: {{{more}}}\npredicates:"))
    assert str(caught.value) == (
        f"m.yaml: line 6: signals.far.{key}: /odom is {mine} here, and nav_msgs/msg/Odometry in "
        "signals.speed (accepted: one type for a topic)"
    )
    spelt = "topic: /odom, type: nav_msgs/Odometry, value: pose.pose.position.x"
    spec_of(GOOD.replace("predicates:", f"  far: {{{spelt}}}\npredicates:"))


def test_a_condition_for_messages_is_part_of_what_a_model_counts() -> None:
    def with_wheel(more: str) -> str:
        wheel = f"{{topic: /j, type: sensor_msgs/msg/JointState, value: 'velocity[0]'{more}}}"
        text = GOOD.replace("signals:", f"signals:\n  wheel: {wheel}")
        return text.replace("predicates:", "predicates:\n  turns: wheel > 1")

    digests = {
        compile_spec(spec_of(with_wheel(more))).abstraction.digest
        for more in ("", ", where: len(name) > 1", ", where: len(name) > 2")
    }
    assert len(digests) == 3
    with pytest.raises(ConfigError, match=r"signals.wheel.*where chooses among messages"):
        spec_of(GOOD.replace("signals:", "signals:\n  wheel: {where: x > 1}"))
    with pytest.raises(ConfigError, match=r"signals.wheel.where"):
        compile_spec(spec_of(with_wheel(", where: a b")))
