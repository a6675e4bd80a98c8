"""Recordings that are wrong, broken or odd: what can be read is read, and the rest is said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader

from forewarn.recordings.registry import open_recording
from forewarn.recordings.writing import RecordingWriter


def test_a_recording_cut_short_is_read_as_far_as_it_goes_and_said_to_be(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path
) -> None:
    bag = tmp_path / "cut.mcap"
    whole = corridor_run.held_out.read_bytes()
    bag.write_bytes(whole[: len(whole) // 2])
    result = forewarn("learn", bag, "-c", corridor_run.config, "-o", tmp_path / "m.json", "--json")
    assert result.code == 0
    (recording,) = json.loads(result.out)["recordings"]
    assert recording["warnings"]
    assert "cut.mcap" in result.err
    assert 100 < recording["ticks"] < 500


def rewritten(source: Path, target: Path, change: Callable[[int, Any], Any]) -> Path:
    """Copy a recording message by message; `change` gives (time, data), or None to leave out."""
    with open_recording(source) as recording, RecordingWriter(target) as writer:
        definitions = {
            topic: info.message_type.typestore.generate_msgdef(info.msgtype, ros_version=2)[0]
            for topic, info in recording.topics.items()
            if info.message_type is not None
        }
        for number, sample in enumerate(recording.read()):
            changed = change(number, sample)
            if changed is not None:
                name = recording.topics[sample.topic].msgtype
                writer.write(sample.topic, name, definitions[sample.topic], *changed)
    return target


def test_messages_of_the_wrong_layout_are_counted_and_named(
    forewarn: Callable[..., Any], corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    def shorten(number: int, sample: Any) -> Any:
        broken = sample.topic == "/odom" and number % 50 == 0
        return sample.time_ns, bytes(sample.data)[:30] if broken else sample.data

    bag = rewritten(corridor_run.held_out, tmp_path / "odd.mcap", shorten)
    result = forewarn("replay", bag, "-c", corridor_run.config, "-m", corridor_model)
    assert result.code in (0, 1)
    assert "messages without the layout of the type" in result.err
    assert "/odom" in result.err
    assert "nav_msgs/msg/Odometry" in result.err


def test_a_gap_in_a_recording_makes_signals_stale_and_breaks_no_transition(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path
) -> None:
    def drop(number: int, sample: Any) -> Any:
        seconds = sample.time_ns / 1e9 - 1_700_000_000
        return None if 20 < seconds < 30 else (sample.time_ns, sample.data)

    bag = rewritten(corridor_run.held_out, tmp_path / "gap.mcap", drop)
    result = forewarn("learn", bag, "-c", corridor_run.config, "-o", tmp_path / "m.json", "--json")
    assert result.code == 0
    (recording,) = json.loads(result.out)["recordings"]
    # 10 s without messages; the last values are good for 0.5 s more.
    assert recording["unknown"] == pytest.approx(95, abs=3)
    assert recording["stale"]["speed"] == pytest.approx(95, abs=3)
    assert "signals without a value" in result.err


def series(folder: Path, times: list[float]) -> tuple[Path, Path]:
    """Write a trace of a speed at some times, and a monitor file for it."""
    bag, config = folder / "trace.jsonl", folder / "trace.yaml"
    bag.write_text("".join(json.dumps({"t": time, "speed": 1.0}) + "\n" for time in times))
    config.write_text(
        "version: 1\nrate: 10\nsignals: {speed: {}}\n"
        "predicates: {fast: speed > 0.3}\nproperties: {p: {formula: always(fast)}}\n"
    )
    return bag, config


def test_time_that_goes_backwards_is_sorted_and_said(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    times = [i / 10 for i in range(100)]
    times[50], times[20] = times[20], times[50]
    bag, config = series(tmp_path, times)
    result = forewarn("learn", bag, "-c", config, "-o", tmp_path / "m.json")
    assert result.code == 0
    assert "backwards" in result.err


def test_a_time_far_from_all_others_is_refused_with_the_name_of_its_file(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    model = tmp_path / "m.json"
    bag, config = series(tmp_path, [i / 10 for i in range(100)])
    assert forewarn("learn", bag, "-c", config, "-o", model).code == 0
    bag, config = series(tmp_path, [*(i / 10 for i in range(100)), 1.7e9])
    for arguments in (["learn", "-o", tmp_path / "n.json"], ["replay", "-m", model]):
        command, *options = arguments
        result = forewarn(command, bag, "-c", config, *options)
        assert result.code == 2
        assert str(bag) in result.err
        assert "of two clocks: up to 10 s simulated time or time since a start" in result.err
        assert "gaps of up to 30 days" in result.err
    checked = forewarn("validate", config, "--bag", bag)
    assert checked.code == 2
    assert "its times are of two clocks" in checked.out + checked.err


def test_a_damaged_chunk_is_named_by_every_command_that_reads_it(
    forewarn: Callable[..., Any], corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    bag = tmp_path / "damaged.mcap"
    data = bytearray(corridor_run.held_out.read_bytes())
    with corridor_run.held_out.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    chunk = summary.chunk_indexes[len(summary.chunk_indexes) // 2]
    middle = chunk.chunk_start_offset + chunk.chunk_length // 2
    data[middle : middle + 40] = bytes(40)
    bag.write_bytes(data)
    told = f"the chunk at byte {chunk.chunk_start_offset} is damaged"
    for command, *options in (
        ["replay", bag, "-c", corridor_run.config, "-m", corridor_model, "--exit-zero"],
        ["learn", bag, "-c", corridor_run.config, "-o", tmp_path / "m.json"],
        ["validate", corridor_run.config, "--bag", bag],
    ):
        result = forewarn(command, *options)
        assert told in " ".join((result.out + result.err).split()), command


def test_nan_is_unknown_and_inf_a_value(forewarn: Callable[..., Any], tmp_path: Path) -> None:
    values = [1.0, math.nan, math.inf, 1.0, math.inf, 1.0]
    bag = tmp_path / "trace.jsonl"
    bag.write_text("".join(f"{json.dumps({'t': i / 10, 'd': v})}\n" for i, v in enumerate(values)))
    config = tmp_path / "trace.yaml"
    config.write_text(
        "version: 1\nrate: 10\nsignals: {d: {}}\npredicates: {near: d < 5}\n"
        "properties: {p: {formula: always(near)}}\n"
    )
    result = forewarn("learn", bag, "-c", config, "-o", tmp_path / "m.json", "--json")
    (recording,) = json.loads(result.out)["recordings"]
    assert recording["unknown"] == 1
    model = json.loads(forewarn("inspect", tmp_path / "m.json", "--json").out)
    visits = {state["name"]: state["successors"] for state in model["states"]}
    assert visits == {"(none)": {"1": 2}, "near": {"0": 1}}


def test_a_definition_that_rosbags_cannot_parse_spoils_only_its_topic(
    forewarn: Callable[..., Any],
    corridor_run: Any,
    tmp_path: Path,
    edited: Callable[[str, str], Path],
) -> None:
    bag = tmp_path / "service.mcap"
    text = "service_msgs/ServiceEventInfo info\nodd/srv/Do_Request[<=1] request\n"
    with open_recording(corridor_run.held_out) as source, RecordingWriter(bag) as writer:
        writer.write(
            "/do/_service_event", "odd/srv/Do_Event", text, 1_700_000_000 * 10**9, b"\0" * 8
        )
        for sample in source.read():
            info = source.topics[sample.topic]
            assert info.message_type is not None
            store = info.message_type.typestore
            definition = store.generate_msgdef(info.msgtype, ros_version=2)[0]
            writer.write(sample.topic, info.msgtype, definition, sample.time_ns, sample.data)
    assert forewarn("learn", bag, "-c", corridor_run.config, "-o", tmp_path / "m.json").code == 0
    assert forewarn("init", bag, "-o", tmp_path / "new.yaml").code == 0
    assert "/do/_service_event" in (tmp_path / "new.yaml").read_text()
    asked = edited("topic: /bumper, type: std_msgs/msg/Bool",
                   "topic: /do/_service_event, type: odd/msg/Do_Event")  # fmt: skip
    result = forewarn("learn", bag, "-c", asked, "-o", tmp_path / "n.json")
    assert result.code == 2
    assert "/do/_service_event" in result.err


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((0, 10, 609), None),
        ((0, 10, 1000, 1010), "nothing arrives for 990 s: the ticks in between are unknown"),
        ((0, 1000, 4000), "nothing arrives for 3,000 s at the longest, in 2 gaps: the ticks"),
    ],
)
def test_a_long_time_without_a_message_is_named(
    forewarn: Callable[..., Any], tmp_path: Path, times: tuple[int, ...], said: str | None
) -> None:
    config, run = tmp_path / "monitor.yaml", tmp_path / "run.jsonl"
    config.write_text(
        "rate: 0.1\nsignals: {speed: {timeout: 20}}\npredicates: {fast: speed > 1}\n"
        "properties: {no_fast: {formula: always(not fast), horizon: 20}}\n"
    )
    run.write_text("".join(f'{{"t": {time}, "speed": 0}}\n' for time in times))
    for command in (("replay",), ("learn", "-o", tmp_path / "model.json")):
        result = forewarn(command[0], run, "-c", config, *command[1:])
        assert result.code == 0
        told = " ".join(result.err.split())
        assert "nothing arrives" not in told if said is None else said in told
