"""Tables in CSV: names from the header, types from the cells, and what is refused."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path
from typing import Any

import pytest

from forewarn.errors import RecordingError
from forewarn.recordings.registry import find_recordings, open_recording


def read(path: Path) -> list[tuple[int, dict[str, Any]]]:
    with open_recording(path) as recording:
        return [(s.time_ns, s.data) for s in recording.read()]  # type: ignore[misc]


def test_cells_are_numbers_truth_values_and_texts(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["t", "speed", "braking", "mode"])
        writer.writerow([0.5, 1.25, True, "auto, fast"])
        writer.writerow([1.0, "", "FALSE", ""])
        writer.writerow([1.5, "nan", "", "1_000"])
    rows = read(path)
    assert rows[:2] == [
        (500_000_000, {"speed": 1.25, "braking": True, "mode": "auto, fast"}),
        (1_000_000_000, {"braking": False}),
    ]
    assert math.isnan(rows[2][1]["speed"])
    assert rows[2][1]["mode"] == "1_000"
    with open_recording(path) as recording:
        assert recording.signals == ("speed", "braking", "mode")
    assert find_recordings(tmp_path) == [path]


def test_nanoseconds_order_marks_and_compression(tmp_path: Path) -> None:
    path = tmp_path / "run.csv.gz"
    text = "\ufefft_ns, x\n1700000000000000002,2\n1700000000000000001,1\n"
    path.write_bytes(gzip.compress(text.encode()))
    assert read(path) == [(1700000000000000001, {"x": 1.0}), (1700000000000000002, {"x": 2.0})]


def test_a_table_without_times_is_one_step_a_row(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("x\n1\n2\n")
    with open_recording(path) as recording:
        assert not recording.timed
    assert [time for time, _ in read(path)] == [0, 1_000_000_000]


@pytest.mark.parametrize("rest", ["3", "3,", "3,1,", '3,1,"on'])
def test_a_last_row_that_is_cut_short_is_left_out_with_a_warning(rest: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("t,x,y,mode\n1,2,3,off\n2,2,3,off\n" + rest)
    with open_recording(path) as recording:
        assert [sample.time_ns for sample in recording.read()] == [10**9, 2 * 10**9]
        assert recording.warnings == ["line 4 is cut short; it is left out"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t,x,x\n", r"run\.csv:1: 'x': stands twice"),
        ("t,,x\n", r"run\.csv:1: column 2 has no name"),
        ("t,x\n0,1\n1,2,3\n", r"run\.csv:3: has 3 cells for 2 columns"),
        ("t,x\nnoon,1\n", r"run\.csv:2: t: 'noon' is no time"),
        ("t,x\n-1,1\n", r"run\.csv:2: t: -1\.0 is no time"),
        ("t,x\n0,1\n,2\n", r"run\.csv:3: has no time"),
        ("t_ns,x\n1.5,1\n", r"run\.csv:2: .*1\.5"),
        ('t,x\n0,"1\n', r"run\.csv:2: unexpected end"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text(text)
    with pytest.raises(RecordingError, match=said) as caught:
        open_recording(path)
    assert "accepted: a header such as t,speed,mode" in str(caught.value)


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_cells_are_parted_by_what_the_header_has(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    rows = [["t", "speed", "a;b"], ["0", "1.5", 'x;y\tz,"']]
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    assert read(path) == [(0, {"speed": 1.5, "a;b": 'x;y\tz,"'})]


def test_a_decimal_comma_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("t;x\n0;1,5\n")
    with pytest.raises(RecordingError, match=r"run\.csv:2: 'x': 1,5 has a decimal comma"):
        open_recording(path)
