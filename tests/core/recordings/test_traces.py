"""Traces of JSON lines."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest
import zstandard
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.errors import RecordingError
from forewarn.recordings.registry import open_recording
from forewarn.recordings.traces import JsonTrace


def trace(tmp_path: Path, *lines: str, name: str = "x.jsonl", end: str = "\n") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def test_each_line_is_a_sample_of_named_values(tmp_path):
    path = trace(
        tmp_path,
        '{"t": 0, "speed": 1.5, "braking": false}',
        "",
        '{"t": 0.1, "mode": "auto", "distances": [1, 2.5]}',
    )
    with open_recording(path) as recording:
        assert [tuple(sample) for sample in recording.read()] == [
            (0, "", {"speed": 1.5, "braking": False}),
            (100_000_000, "", {"mode": "auto", "distances": [1, 2.5]}),
        ]
        assert recording.kind == "trace"
        assert (recording.start_ns, recording.end_ns, recording.count) == (0, 100_000_000, 2)
        assert recording.duration == 0.1
        assert dict(recording.topics) == {}
        assert recording.warnings == []
        assert recording.size == path.stat().st_size
        assert isinstance(recording, JsonTrace)
        assert recording.signals == ("speed", "braking", "mode", "distances")


def test_whole_nanoseconds_are_exact(tmp_path):
    path = trace(tmp_path, '{"t_ns": 1700000000123456789, "a": 1}')
    with open_recording(path) as recording:
        assert next(recording.read()).time_ns == 1_700_000_000_123_456_789


def test_null_and_nan_are_unknown_and_infinity_is_a_value(tmp_path):
    path = trace(tmp_path, '{"t": 1, "a": null, "b": NaN, "c": -Infinity, "d": [null, 1]}')
    with open_recording(path) as recording:
        values = next(recording.read()).data
    assert math.isnan(values["a"])
    assert math.isnan(values["b"])
    assert values["c"] == -math.inf
    assert math.isnan(values["d"][0])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_traces_read_as_plain_ones(tmp_path, suffix):
    path = trace(tmp_path, *(json.dumps({"t": n / 10, "a": n}) for n in range(3000)))
    packed = tmp_path / f"y.jsonl{suffix}"
    pack = gzip.compress if suffix == ".gz" else zstandard.compress
    packed.write_bytes(pack(path.read_bytes()))
    with open_recording(path) as plain, open_recording(packed) as recording:
        assert list(recording.read()) == list(plain.read())
        assert recording.warnings == []


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_trace_that_is_cut_yields_its_beginning(tmp_path, suffix):
    lines = [json.dumps({"t": n, "a": hash((n, "x"))}) for n in range(20_000)]
    packed = tmp_path / f"x.jsonl{suffix}"
    pack = gzip.compress if suffix == ".gz" else zstandard.compress
    content = pack("\n".join(lines).encode())
    packed.write_bytes(content[: len(content) // 2])
    with open_recording(packed) as recording:
        times = [sample.time_ns for sample in recording.read()]
        assert times == [n * 10**9 for n in range(len(times))]
        assert 0 < len(times) < 20_000
        assert any("cut short" in warning for warning in recording.warnings)


def test_the_last_line_of_a_killed_writer_is_left_out_and_reported(tmp_path):
    path = trace(tmp_path, '{"t": 1, "a": 1}', '{"t": 2, "a"', end="")
    with open_recording(path) as recording:
        assert [sample.time_ns for sample in recording.read()] == [10**9]
        assert recording.warnings == ["line 2 is cut short; it is left out"]


def test_times_that_go_back_are_reported_and_put_in_order(tmp_path):
    path = trace(tmp_path, '{"t": 5, "a": 1}', '{"t": 2, "a": 2}', '{"t": 5, "a": 3}')
    with open_recording(path) as recording:
        assert [sample.data["a"] for sample in recording.read()] == [2, 1, 3]
        assert recording.warnings == [
            "times go backwards, by up to 3 s; lines are read in the order of time"
        ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1, 2]", "is [1, 2], no object"),
        ('{"a": 1}', "has no time (key t)"),
        ('{"t": 1, "t_ns": 1}', "has both t and t_ns"),
        ('{"t": "now"}', "t: 'now' is no time"),
        ('{"t": true}', "t: True is no time"),
        ('{"t": -1}', "t: -1 is no time"),
        ('{"t": NaN}', "t: nan is no time"),
        ('{"t": Infinity}', "t: inf is no time"),
        ('{"t": 1e300}', "t: 1e+300 lies beyond the year 2262"),
        ('{"t": 1' + "0" * 400 + "}", "lies beyond the year 2262"),
        ('{"t_ns": 1.5}', "t_ns: 1.5 is no whole number"),
        ('{"t": 1, "a": {"b": 1}}', "a: is an object"),
        ('{"t": 1, "Ego": {"x": 1, "y": 2}}', "are read with `trajectories`"),
        ('{"t": 1, "a": [{"b": 1}]}', "a: holds an object"),
        ('{"t": 1, "a": 1, "a": 2}', "a: stands twice on the line"),
        ('{"t": 1, "a": 1' + "0" * 400 + "}", "is too large"),
        ('{"t": 1, "a": [[-1' + "0" * 400 + "]]}", "is too large"),
        ('{"t": 1, "a": }', "Expecting value"),
        ('{"t": 1, "a": ' + "[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path, line, problem):
    path = trace(tmp_path, '{"t": 1}', line, '{"t": 3}')
    with pytest.raises(RecordingError) as caught:
        open_recording(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert problem in str(caught.value)
    assert '(accepted: a line like {"t": 12.3, "speed": 1.2})' in str(caught.value)


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"t": 1}\n{"t": 2, "a": "\xff"}\n')
    with pytest.raises(RecordingError, match=r"x.jsonl:\d: is no UTF-8 text"):
        open_recording(path)


scalars = st.one_of(
    st.floats(allow_nan=False), st.integers(-(10**20), 10**20), st.booleans(), st.text()
)
names = st.text(min_size=1).filter(lambda each: each not in ("t", "t_ns"))
tables = st.dictionaries(names, scalars | st.lists(scalars, max_size=4), max_size=5)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(tables, min_size=1, max_size=4))
def test_what_json_writes_is_what_comes_back(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("trace") / "x.jsonl"
    lines = [json.dumps({"t": n / 8, **value}) for n, value in enumerate(values)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    with open_recording(path) as recording:
        assert [sample.data for sample in recording.read()] == values
