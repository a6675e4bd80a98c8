"""Frames in one JSON document are read by their structure, whatever the file is called."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from others_data import DATA

from forewarn.errors import RecordingError
from forewarn.recordings.registry import find_recordings, open_recording

FRAMES = [
    {"timestamp": 5.0, "velocity": [1.0, 0.5], "pose": {"x": 1, "at": {"y": None}}, "objects": []},
    {"timestamp": 5.1, "velocity": [0.9, 0.5], "pose": {"x": 2, "at": {"y": 7.5}},
     "objects": [{"id": 1, "size": {"l": 4.0}}, {"id": 2, "size": {"l": 5.0}, "more": 1}]},
]  # fmt: skip


def write(path: Path, document: Any, **how: Any) -> Path:
    text = json.dumps(document, **how).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["run.json", "run.json.gz", "nameless"])
@pytest.mark.parametrize("how", [{}, {"indent": 2}])
@pytest.mark.parametrize("document", [{"map": "hall", "rows": FRAMES}, FRAMES])
def test_each_frame_is_a_line_with_its_objects_opened_up(
    tmp_path: Path, name: str, how: dict[str, Any], document: Any
) -> None:
    with open_recording(write(tmp_path / name, document, **how)) as recording:
        first, second = recording.read()
        assert (recording.kind, recording.count) == ("frames in JSON", 2)
    assert (first.time_ns, second.time_ns) == (5_000_000_000, 5_100_000_000)
    assert isinstance(first.data, dict) and isinstance(second.data, dict)
    assert first.data["pose_at_y"] != first.data["pose_at_y"]  # null is unknown
    assert second.data == {
        "velocity": [0.9, 0.5],
        "pose_x": 2,
        "pose_at_y": 7.5,
        "objects_id": [1, 2],
        "objects_size_l": [4.0, 5.0],
    }


@pytest.mark.parametrize(
    ("key", "times", "seconds", "unit"),
    [
        ("t", [0, 100], 100.0, ""),
        ("time", [3, 4], 1.0, "seconds"),
        ("time", [3.0, 4.0], 1.0, ""),
        ("timestamp", [306419, 306849], 0.43, "milliseconds"),
        ("stamp", [7_000_000, 7_100_000], 0.1, "microseconds"),
        ("timestamp", [10**18, 10**18 + 10**8], 0.1, "nanoseconds"),
        ("time_ns", [5, 10], 5e-9, ""),
    ],
)
def test_whole_times_are_in_the_unit_that_their_rhythm_says(
    tmp_path: Path, key: str, times: list[int], seconds: float, unit: str
) -> None:
    frames = [{key: time, "speed": 1.0} for time in times]
    with open_recording(write(tmp_path / "run.json", frames)) as recording:
        assert recording.duration == pytest.approx(seconds)
        assert recording.warnings == ([f"times ({key}) are taken for {unit}"] if unit else [])


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ({"timestamp": -1.0}, "no time"),
        ({"timestamp": 1.0, "a": {"b": 1}, "a_b": 2}, "two values"),
        ({"timestamp": 1.0, "a": [[[[[[[[[[1]]]]]]]]]]}, "too deeply"),
    ],
)
def test_a_wrong_frame_is_named_by_its_place(
    tmp_path: Path, frame: dict[str, Any], problem: str
) -> None:
    path = write(tmp_path / "run.json", {"frames": [{"timestamp": 0.5}, frame]})
    with pytest.raises(RecordingError, match=problem) as caught:
        open_recording(path)
    assert "frames[1]" in str(caught.value) and "run.json" in str(caught.value)


def test_objects_that_no_list_of_values_can_stand_for_are_left_out(tmp_path: Path) -> None:
    frames = [{"t": 1.0, "a": [1, {"b": 1}], "c": [[{"d": 1}]], "e": 2}]
    with open_recording(write(tmp_path / "run.json", frames)) as recording:
        [sample] = recording.read()
        assert [warning.partition(":")[0] for warning in recording.warnings] == ["a", "c"]
    assert sample.data == {"e": 2}


@pytest.mark.parametrize(
    "document",
    [
        {"frames": []},
        {"frames": [{"speed": 1.0}]},
        {"frames": [{"t": 1.0}, {"speed": 1.0}]},
        {"one": [{"t": 1.0}], "two": [{"t": 1.0}]},
        {"frames": [{"t": True}]},
        {"frames": [[1.0, 2.0]]},
    ],
)
def test_what_holds_no_frames_is_none(tmp_path: Path, document: Any) -> None:
    with pytest.raises(RecordingError):
        open_recording(write(tmp_path / "run.json", document, indent=1))


def test_other_traces_stay_what_they_are(tmp_path: Path) -> None:
    line = tmp_path / "one.jsonl"
    line.write_text('{"t": 1.0, "speeds": [1, 2]}\n', encoding="utf-8")
    run = write(tmp_path / "run.json", [{"task": "pay", "steps": [{"action": "pay", "args": {}}]}])
    assert [open_recording(path).kind for path in (line, run)] == ["trace", "runs of agents"]


def test_recorded_robots_and_simulators_are_read() -> None:
    robot, drive = DATA / "robots" / "sequor", DATA / "apollo" / "lawbreaker_run.json"
    if not robot.is_dir() or not drive.exists():
        pytest.skip("the shared data are not here")
    paths = find_recordings(robot)
    with open_recording(paths[0]) as recording:
        sample = next(iter(recording.read()))
    assert len(paths) == len(list(robot.glob("*.json*")))
    with (gzip.open if paths[0].suffix == ".gz" else open)(paths[0]) as file:
        first = json.load(file)["frames"][0]
    assert sample.data["scan"] == first["scan"]  # type: ignore[index]
    with open_recording(drive) as recording:
        assert recording.count == len(json.loads(drive.read_text())["trace"])
        assert "ego_pose_position_x" in recording.signals  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["cut.json", "cut.json.gz"])
def test_a_document_that_is_cut_short_is_not_passed_over_in_a_folder(
    tmp_path: Path, name: str
) -> None:
    text = json.dumps({"frames": [{"t": i / 10, "speed": 1.0 + i} for i in range(200)]}).encode()
    (tmp_path / "whole.json").write_bytes(text)
    (tmp_path / "places.json").write_text("[1, 2]")
    data = gzip.compress(text) if name.endswith(".gz") else text
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    found = find_recordings(tmp_path)
    assert sorted(path.name for path in found) == sorted([name, "whole.json"])
    with pytest.raises(RecordingError, match="cut short"), open_recording(tmp_path / name):
        pass
