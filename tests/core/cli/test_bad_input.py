"""Wrong input of every kind: exit code 2, and a message that says where, what and what else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.recordings.writing import RecordingWriter

BAD_FILES = [
    # what is wrong, old text, new text, what the message names
    ("no YAML", "version: 1", "version: [1", ["line 2"]),
    ("empty", None, "", ["empty"]),
    ("a list", None, "- 1\n- 2\n", ["list", "mapping"]),
    ("two keys", "rate: 10", "rate: 10\nrate: 20", ["rate", "twice"]),
    ("unknown key", "rate: 10", "rate: 10\nspeed: 3", ["speed", "unknown key", "signals"]),
    (
        "unknown key below",
        "timeout: 0.5}",
        "timeot: 0.5}",
        ["signals.speed.timeot", "did you mean 'timeout'?"],
    ),
    (
        "text for a number",
        "rate: 10",
        "rate: fast",
        ["rate", "'fast': input should be a valid number\n"],
    ),
    ("Boolean for a number", "rate: 10", "rate: true", ["rate", "True", "number"]),
    ("negative rate", "rate: 10", "rate: -1", ["rate", "-1"]),
    ("rate of NaN", "rate: 10", "rate: .nan", ["rate", "nan"]),
    ("infinite timeout", "timeout: 0.5}", "timeout: .nan}", ["signals.speed.timeout", "nan"]),
    ("threshold above one", "act: 0.4", "act: 1.4", ["thresholds.act", "1.4"]),
    ("release above act", "release: 0.1", "release: 0.5", ["release 0.5", "act 0.4"]),
    (
        "no such action",
        "enter: 1",
        "intervention: JUMP",
        ["intervention", "JUMP", "COMFORTABLE_STOP"],
    ),
    (
        "unknown signal",
        "fast: speed > 0.3",
        "fast: sped > 0.3",
        ["predicates.fast", "'sped'", "speed, nearest, bumper"],
    ),
    (
        "unknown predicate",
        "(not fast)",
        "(not fsat)",
        ["slow_down.formula", "'fsat'; did you mean 'fast'?"],
    ),
    (
        "a call",
        "fast: speed > 0.3",
        "fast: open('x') > 0.3",
        ["predicates.fast", "open", "accepted"],
    ),
    (
        "an import",
        "fast: speed > 0.3",
        "fast: __import__('os') > 1",
        ["predicates.fast", "accepted"],
    ),
    (
        "a dunder",
        "fast: speed > 0.3",
        "fast: speed.__class__ > 1",
        ["predicates.fast", "__class__"],
    ),
    (
        "a lambda",
        "fast: speed > 0.3",
        'fast: "(lambda x: x)(speed) > 1"',
        ["predicates.fast", "accepted"],
    ),
    ("expression cut short", "fast: speed > 0.3", "fast: speed >", ["predicates.fast", "column"]),
    (
        "operator misspelt",
        "eventually[0:0.8]",
        "eventualy[0:0.8]",
        ["properties.slow_down.formula", "column 26", "'eventually'"],
    ),
    ("bound upside down", "[0:0.8]", "[2:0.8]", ["properties.slow_down.formula", "column"]),
    ("formula cut short", "(not fast))", "(not fast)", ["slow_down.formula", "never closed"]),
    ("bins that fall", "[0.6, 1.0, 1.6]", "[1.6, 1.0]", ["bins.nearest", "rising"]),
    ("a type that is none", "type: std_msgs/msg/Bool", "type: Bool", ["signals.bumper", "'Bool'"]),
    (
        "a cycle",
        "bumper: {topic",
        "a: {value: b}\n  b: {value: a}\n  bumper: {topic",
        ["signals.a", "depend"],
    ),
    ("a list for a number", "rate: 10", "rate: [10]", ["line", "rate", "[10]", "number"]),
    ("nothing for text", "fast: speed > 0.3", "fast:", ["predicates.fast", "null", "string"]),
]
READ_ALIKE = ("no YAML", "unknown key", "release above act", "unknown signal", "unknown predicate")
"""One mistake of each step in which a file is read; all commands read it by the same ones."""


@pytest.mark.parametrize(
    ("command", "old", "new", "named"),
    [
        pytest.param(command, *case, id=f"{command}: {what}")
        for what, *case in BAD_FILES
        for command in ("validate", "learn", "replay")
        if command == "validate" or what in READ_ALIKE
    ],
)
def test_monitor_file(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    tmp_path: Path,
    command: str,
    old: str | None,
    new: str,
    named: list[str],
    edited: Callable[[str, str], Path],
) -> None:
    path = tmp_path / "monitor.yaml"
    if old is None:
        path.write_text(new)
    else:
        path = edited(old, new)
    arguments: dict[str, list[object]] = {
        "validate": [path],
        "learn": [corridor_run.held_out, "-c", path, "-o", tmp_path / "m.json"],
        "replay": [corridor_run.held_out, "-c", path],
    }
    result = forewarn(command, *arguments[command])
    assert result.code == 2
    assert "monitor.yaml" in result.text
    for text in named:
        assert text in result.text
    assert not (tmp_path / "m.json").exists()


def test_all_mistakes_of_a_file_are_listed_at_once(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    tmp_path: Path,
    edited: Callable[[str, str], Path],
) -> None:
    path = edited("fast: speed > 0.3", "fast: sped > 0.3\n  slow: spd < 1")
    result = forewarn("validate", path)
    assert "'sped'" in result.out
    assert "'spd'" in result.out
    assert "2 errors" in result.out


@pytest.mark.parametrize("missing", ["monitor.yaml", "bag.mcap", "model.json"])
def test_a_file_that_is_not_there(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    corridor_model: Path,
    tmp_path: Path,
    missing: str,
) -> None:
    files: dict[str, object] = {
        "monitor.yaml": corridor_run.config,
        "bag.mcap": corridor_run.held_out,
        "model.json": corridor_model,
    }
    files[missing] = tmp_path / missing
    result = forewarn(
        "replay", files["bag.mcap"], "-c", files["monitor.yaml"], "-m", files["model.json"]
    )
    assert result.code == 2
    assert str(tmp_path / missing) in result.err


def commands(bag: Path, config: Path, out: Path) -> list[list[object]]:
    return [["learn", bag, "-c", config, "-o", out], ["replay", bag, "-c", config],
            ["report", bag, "-c", config, "-o", out]]  # fmt: skip


def refused(
    forewarn: Callable[..., Any], bag: Path, config: Path, out: Path, named: list[str]
) -> None:
    for arguments in commands(bag, config, out):
        result = forewarn(*arguments)
        assert result.code == 2, arguments
        for text in named:
            assert text in result.err
        assert not out.exists()


def test_a_topic_that_never_appears(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    tmp_path: Path,
    edited: Callable[[str, str], Path],
) -> None:
    path = edited("topic: /odom", "topic: /odometry")
    named = ["/odometry", "held.mcap", "/odom"]
    refused(forewarn, corridor_run.held_out, path, tmp_path / "out", named)
    result = forewarn("validate", path, "--bag", corridor_run.held_out)
    assert result.code == 2
    assert "signals.speed.topic: the topic /odometry is not in" in result.out
    allowed = forewarn("replay", corridor_run.held_out, "-c", path, "--allow-missing")
    assert allowed.code in (0, 1)
    assert "speed on 601" in allowed.err


def test_a_type_that_does_not_match(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    tmp_path: Path,
    edited: Callable[[str, str], Path],
) -> None:
    path = edited("type: std_msgs/msg/Bool", "type: std_msgs/msg/Float64")
    named = ["/bumper", "std_msgs/msg/Bool", "std_msgs/msg/Float64", "held.mcap"]
    refused(forewarn, corridor_run.held_out, path, tmp_path / "out", named)
    result = forewarn("validate", path, "--bag", corridor_run.held_out)
    assert result.code == 2
    assert "signals.bumper.type" in result.out
    # It is there, and other than the monitor file says: nobody goes on without it.
    for arguments in commands(corridor_run.held_out, path, tmp_path / "out"):
        result = forewarn(*arguments, "--allow-missing")
        assert (result.code, result.out) == (2, "")
        assert "std_msgs/msg/Float64, as the monitor file says" in result.err


def test_a_field_that_does_not_exist(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    tmp_path: Path,
    edited: Callable[[str, str], Path],
) -> None:
    path = edited("twist.twist.linear.x", "twist.twist.linar.x")
    named = ["signals.speed.value", "linar", "linear, angular"]
    refused(forewarn, corridor_run.held_out, path, tmp_path / "out", named)
    for arguments in (["validate", path], ["validate", path, "--bag", corridor_run.held_out]):
        result = forewarn(*arguments)
        assert result.code == 2
        assert "signals.speed.value" in result.out
        assert "'linear'" in result.out


def test_a_predicate_that_compares_a_number_with_text_is_named(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    tmp_path: Path,
    edited: Callable[[str, str], Path],
) -> None:
    path = edited("fast: speed > 0.3", "fast: speed > 'a lot'")
    model = tmp_path / "m.json"
    result = forewarn("learn", corridor_run.held_out, "-c", path, "-o", model)
    assert result.code == 2
    assert "predicates.fast" in result.err
    assert "'a lot'" in result.err
    assert "speed is a number" in result.err
    assert not model.exists()


def test_a_recording_without_messages(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path
) -> None:
    bag = tmp_path / "none.mcap"
    RecordingWriter(bag).close()
    refused(forewarn, bag, corridor_run.config, tmp_path / "out", ["none.mcap", "empty"])
    assert forewarn("init", bag, "-o", tmp_path / "new.yaml").code == 2
    assert forewarn("validate", corridor_run.config, "--bag", bag).code == 2


@pytest.mark.parametrize("content", [b"", b"something else entirely, of some length", b"\x00" * 99])
def test_a_file_that_is_no_recording(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path, content: bytes
) -> None:
    bag = tmp_path / "odd.bin"
    bag.write_bytes(content)
    refused(forewarn, bag, corridor_run.config, tmp_path / "out", ["odd.bin"])
    assert forewarn("init", bag, "-o", tmp_path / "new.yaml").code == 2


def test_an_output_that_cannot_be_written(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path
) -> None:
    nowhere = tmp_path / "no" / "such" / "folder"
    bag, config = corridor_run.held_out, corridor_run.config
    for arguments in (
        ["learn", bag, "-c", config, "-o", nowhere / "m.json"],
        ["report", bag, "-c", config, "-o", nowhere / "r.html"],
        ["replay", bag, "-c", config, "--verdicts", nowhere / "v.jsonl"],
        ["init", bag, "-o", nowhere / "n.yaml"],
    ):
        result = forewarn(*arguments)
        assert result.code == 2
        assert str(nowhere) in result.err
