"""Groups of recordings: from a table, the path, the recording itself, or when it began."""

from __future__ import annotations

import json
import pickle
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from mcap.writer import Writer

from forewarn.errors import InputError, RecordingError
from forewarn.recordings.groups import PERIODS, grouping
from forewarn.recordings.registry import open_recording

NAMES = st.text("abcXYZ019-_.=", min_size=1, max_size=8).filter(lambda name: {*name} != {"."})


def trace(path: Path, start: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"t": start + i, "speed": 1.0}) + "\n" for i in range(3)))
    return path


def group(path: Path, keys: str, source: str | None = None) -> str:
    found = pickle.loads(pickle.dumps(grouping(keys, source)))
    with open_recording(path) as recording:
        return str(found.of(recording))


@given(robot=NAMES, software=NAMES, run=NAMES)
def test_a_pattern_reads_what_stands_in_its_places(
    tmp_path_factory: pytest.TempPathFactory, robot: str, software: str, run: str
) -> None:
    path = trace(tmp_path_factory.mktemp("f") / "bags" / robot / software / f"{run}.jsonl")
    found = group(path, "robot,software", "bags/{robot}/{software}/*")
    assert found == f"robot={robot}, software={software}"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_names_recordings_by_name_path_or_pattern(tmp_path: Path, separator: str) -> None:
    table = tmp_path / "fleet.csv"
    text = (
        "recording, robot, site\n"
        "one.jsonl, r1, north\n"
        "a/two.jsonl, r2, north\n"
        f"{tmp_path}/b/two.jsonl, r3, south\n"
        "c/*.jsonl, r4, south\n"
    )
    table.write_text(text.replace(",", separator))
    told = {
        name: group(trace(tmp_path / name), "robot", str(table))
        for name in ("one.jsonl", "a/two.jsonl", "b/two.jsonl", "c/any.jsonl")
    }
    assert list(told.values()) == ["robot=r1", "robot=r2", "robot=r3", "robot=r4"]
    with pytest.raises(RecordingError, match="has no value here"):
        group(trace(tmp_path / "d" / "other.jsonl"), "robot", str(table))


def test_two_lines_that_disagree_are_an_error(tmp_path: Path) -> None:
    table = tmp_path / "fleet.csv"
    table.write_text("recording,robot\n*.jsonl,r1\none.jsonl,r2\n")
    with pytest.raises(RecordingError, match="robot: has two values, 'r1' and 'r2'"):
        group(trace(tmp_path / "one.jsonl"), "robot", str(table))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("robot,site\nr1,north\n", "the columns are"),
        ("recording,robot,robot\na,b,c\n", "the columns are"),
        ("recording,robot\na.mcap\n", "line 2 has another number of cells"),
        ("recording,robot\na.mcap,r1,more\n", "line 2 has another number of cells"),
    ],
)
def test_a_wrong_table_is_an_error(tmp_path: Path, text: str, told: str) -> None:
    table = tmp_path / "fleet.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=told):
        grouping("robot", str(table))


@pytest.mark.parametrize("keys", ["", "robot,", "robot,robot", "a b"])
def test_keys_are_distinct_names(keys: str) -> None:
    with pytest.raises(InputError, match="--group-by"):
        grouping(keys)


def test_a_pattern_that_does_not_match_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="does not match the pattern of paths"):
        group(trace(tmp_path / "one.jsonl"), "robot", "other/{robot}/*")
    with pytest.raises(InputError, match="redefinition of group name"):
        grouping("robot", "{robot}/{robot}")


@given(
    time=st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)), key=st.sampled_from([*PERIODS])
)
def test_periods_are_those_of_the_calendar(
    tmp_path_factory: pytest.TempPathFactory, time: datetime, key: str
) -> None:
    moment = time.replace(microsecond=0, tzinfo=timezone.utc)
    path = trace(tmp_path_factory.mktemp("f") / "one.jsonl", moment.timestamp())
    year, week, _ = moment.isocalendar()
    date = moment.date().isoformat()
    expected = {"day": date, "month": date[:7], "week": f"{year}-W{week:02}"}[key]
    assert group(path, key) == f"{key}={expected}"


def test_a_recording_tells_what_its_metadata_say(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("std_msgs/msg/Float64", "ros2msg", b"float64 data")
        channel = writer.register_channel("/speed", "cdr", schema)
        writer.add_message(channel, 1, b"\0\1\0\0" + bytes(8), 1)
        writer.add_metadata("vehicle", {"robot": "r7", "software": "2.1"})
        writer.finish()
    assert group(path, "software,robot") == "software=2.1, robot=r7"
    with pytest.raises(RecordingError, match="site: has no value here"):
        group(path, "site")


def test_a_bag_tells_what_custom_data_say(bags: Any, tmp_path: Path) -> None:
    folder = bags.write(tmp_path / "bag", bags.drive())
    path = folder / "metadata.yaml"
    document = yaml.safe_load(path.read_text())
    document["rosbag2_bagfile_information"]["custom_data"] = {"robot": "r7"}
    path.write_text(yaml.safe_dump(document))
    assert group(folder, "robot") == "robot=r7"
