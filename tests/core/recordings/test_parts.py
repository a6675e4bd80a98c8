"""A part of a recording holds what a recorder would have written then."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_world import MONITOR, write_bag

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import RecordingError
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.recordings.parts import Part, divided, file_of, moment
from forewarn.recordings.registry import find_recordings, open_recording
from forewarn.recordings.writing import RecordingWriter

SECONDS = st.decimals(0, 40, places=2).map(str)


@pytest.fixture(scope="module")
def bag(corridor_run: Any) -> Path:
    return corridor_run.held_out  # type: ignore[no-any-return]


@given(begin=st.none() | SECONDS, end=st.none() | SECONDS)
def test_it_has_the_messages_between_its_moments(
    bag: Path, begin: str | None, end: str | None
) -> None:
    with open_recording(bag) as whole:
        samples = [(s.time_ns, s.topic, bytes(s.data)) for s in whole.read()]
        first, last, digest = whole.start_ns, whole.end_ns, whole.digest()
    low = first + round(float(begin or 0) * 1e9)
    high = last if end is None else min(first + round(float(end) * 1e9), last)
    address = Part(begin, end).of(bag)
    if low > high:
        with pytest.raises(RecordingError, match="nothing was recorded then"):
            open_recording(address)
        return
    with open_recording(address) as part:
        found = [(s.time_ns, s.topic, bytes(s.data)) for s in part.read()]
        assert found == [sample for sample in samples if low <= sample[0] <= high]
        assert (part.start_ns, part.end_ns) == (low, high)
        assert (part.digest() == digest) == (begin is None and end is None)


@given(time=st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)), hours=st.integers(-12, 12))
def test_times_are_told_in_any_zone(time: datetime, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    told = moment(time.replace(tzinfo=timezone.utc).astimezone(zone).isoformat())
    assert told == time.isoformat() + "Z"
    assert moment(told) == told


def test_a_time_is_where_the_seconds_are(bag: Path) -> None:
    with open_recording(bag) as whole:
        start = datetime.fromtimestamp(whole.start_ns // 10**9, timezone.utc)
        assert whole.start_ns % 10**9 == 0
    times = [f"{start + timedelta(seconds=s):%Y-%m-%dT%H:%M:%S}Z" for s in (3, 7)]
    with (
        open_recording(Part(*times).of(bag)) as one,
        open_recording(Part("3", "7").of(bag)) as other,
    ):
        assert [s.time_ns for s in one.read()] == [s.time_ns for s in other.read()]
        assert one.digest() == other.digest()


@pytest.mark.parametrize(
    "text", ["", "x", "-3", "10:15", "2026-13-01T00:00:00", "1e3", "2026-03-01"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        moment(text)


@pytest.mark.parametrize("rest", ["x..", "..-1", "1..2..3"])
def test_an_address_that_is_none_says_what_is(bag: Path, rest: str) -> None:
    with pytest.raises(RecordingError, match="is no part of a recording"):
        open_recording(bag.with_name(f"{bag.name}::{rest}"))


def test_runs_and_folders_have_parts_too(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text("".join(f'{{"t": {t}, "run": "{t % 2}", "x": {t}}}\n' for t in range(10)))
    runs = find_recordings(trace, "run")
    with open_recording(Part("2", "6").of(runs[1])) as part:
        assert [sample.data["x"] for sample in part.read()] == [3, 5, 7]  # type: ignore[index]
    assert divided(trace) is None
    assert Part(None, None).of(trace) == trace
    odd = tmp_path / "a::1..2"
    odd.write_text(trace.read_text())
    with open_recording(odd) as whole:
        assert whole.count == 10


def test_static_transforms_from_before_stand_at_its_beginning(tmp_path: Path) -> None:
    kind = ("std_msgs/msg/Float64", "float64 data\n")
    with RecordingWriter(tmp_path / "x.mcap") as writer:
        for second in range(10):
            data = b"\0\1\0\0" + struct.pack("<d", second)
            topic = "/robot/tf_static" if second in (0, 2, 6) else "/x"
            writer.write(topic, *kind, second * 10**9, data)
    with open_recording(Part("4", "7").of(tmp_path / "x.mcap")) as part:
        found = [(s.time_ns // 10**9, s.topic, s.data[4:]) for s in part.read()]
    packed = [struct.pack("<d", value) for value in (0, 2, 4, 5, 6, 7)]
    assert [data for _, _, data in found] == packed
    assert [time for time, _, _ in found] == [4, 4, 4, 5, 6, 7]


def test_what_a_robot_published_reads_as_without_its_namespace(tmp_path: Path) -> None:
    whole = write_bag(tmp_path / "fleet.mcap", 1, 10.0)
    address = whole.with_name("fleet.mcap::namespace=world")
    learned = []
    for path, text in ((whole, MONITOR), (address, MONITOR.replace("/world/", ""))):
        spec = parse_spec(parse_document(text))
        learned.append(learn([path], spec, compile_spec(spec).abstraction).model)
    assert learned[0].states == learned[1].states
    assert (learned[0].counts != learned[1].counts).nnz == 0
    with pytest.raises(RecordingError, match="not in the recording") as caught:
        learn([whole], spec, compile_spec(spec).abstraction)
    assert caught.value.accepted.endswith(f"; or {address}")
    with open_recording(whole) as all_of_it, open_recording(address) as robot:
        assert [*robot.topics] == ["/odometry", "/distance"]
        assert all_of_it.digest() != robot.digest()
        renamed = [s._replace(topic=s.topic.removeprefix("/world")) for s in all_of_it.read()]
        assert [*robot.read()] == renamed
        assert {s.topic for s in robot.read(["/distance", "/none"])} == {"/distance"}
    part = Part("2", "3").of(address)
    assert file_of(part) == whole
    with open_recording(part) as robot:
        assert robot.duration == pytest.approx(1.0, abs=0.1)
    with pytest.raises(RecordingError, match="namespace /hall") as caught:
        open_recording(whole.with_name("fleet.mcap::namespace=hall"))
    assert caught.value.accepted == "/world"
