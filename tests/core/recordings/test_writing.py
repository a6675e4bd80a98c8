"""What is written can be read, by us and by others, even when the writer is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader

from forewarn.errors import RecordingError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.registry import open_recording
from forewarn.recordings.writing import RecordingWriter

FLOAT = ("std_msgs/msg/Float64", "float64 data\n")


@given(
    st.lists(st.tuples(st.integers(0, 10**10), st.sampled_from("ab"), st.floats()), max_size=60),
    st.sampled_from([0.0, 0.5, 100.0]),
)
def test_what_was_written_comes_back_in_order(tmp_path_factory, bags, messages, flush_period):
    path = tmp_path_factory.mktemp("write") / "x.mcap"
    rows = [(time_ns, f"/{name}", bags.cdr("/x", value)) for time_ns, name, value in messages]
    with RecordingWriter(path, flush_period=flush_period) as writer:
        for time_ns, topic, data in rows:
            writer.write(topic, *FLOAT, time_ns, data)
    with open_recording(path) as recording:
        assert bags.read(recording) == sorted(rows, key=lambda row: row[0])


def test_rosbags_reads_what_was_written(bags, tmp_path):
    path = tmp_path / "x.mcap"
    definition, _ = bags.store.generate_msgdef("nav_msgs/msg/Odometry", ros_version=2)
    with RecordingWriter(path) as writer:
        for time_ns, topic, value in bags.drive(30):
            kind = ("nav_msgs/msg/Odometry", definition) if topic == "/odom" else FLOAT
            writer.write(topic, *kind, time_ns, bags.cdr(topic, value))
    with AnyReader([path]) as reader:
        speeds = [
            reader.deserialize(data, connection.msgtype).twist.twist.linear.x
            for connection, _, data in reader.messages()
            if connection.topic == "/odom"
        ]
    assert speeds == [float(n) for n in range(30)]


def test_texts_tables_and_files_travel_along(tmp_path):
    path = tmp_path / "x.mcap"
    with RecordingWriter(path) as writer:
        writer.write_metadata("forewarn", {"model": "abc", "rate": "10"})
        writer.attach("monitor.yaml", b"version: 1\n")
        writer.write_text("/forewarn/swap", 7, "table of größe 3")
    with open_recording(path) as recording:
        assert recording.metadata() == {"forewarn": {"model": "abc", "rate": "10"}}
        assert recording.attachments() == {"monitor.yaml": b"version: 1\n"}
        info = recording.topics["/forewarn/swap"]
        extract = compile_extractor(info.message_type, [parse_expression("data")])
        assert [extract(sample.data)[0] for sample in recording.read()] == ["table of größe 3"]


KILLED = """
import signal, sys
from forewarn.recordings.writing import RecordingWriter
writer = RecordingWriter(sys.argv[1], flush_period=1.0)
writer.attach("monitor.yaml", b"version: 1")
writer.write_metadata("forewarn", {"model": "abc"})
for number in range(1000):
    writer.write("/x", "std_msgs/msg/Float64", "float64 data", number * 10**8,
                 b"\\0\\1\\0\\0" + number.to_bytes(8, "little"))
print("written", flush=True)
signal.pause()
"""


def test_the_file_of_a_killed_process_lacks_at_most_the_last_flush_period(tmp_path):
    path = tmp_path / "x.mcap"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout.readline() == b"written\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with open_recording(path) as recording:
        samples = list(recording.read())
        assert [sample.time_ns for sample in samples] == [n * 10**8 for n in range(len(samples))]
        assert 990 <= len(samples) <= 1000
        assert "the recording is cut short (it has no closing mark)" in recording.warnings[0]
        assert recording.metadata() == {"forewarn": {"model": "abc"}}
        assert recording.attachments() == {"monitor.yaml": b"version: 1"}


def test_a_flush_makes_everything_readable_at_once(bags, tmp_path):
    path = tmp_path / "x.mcap"
    writer = RecordingWriter(path, flush_period=1000.0)
    writer.write("/x", *FLOAT, 5, bags.cdr("/x", 1.0))
    with open_recording(path) as recording:
        assert bags.read(recording) == []
        assert "cut short" in recording.warnings[0]
    writer.flush()
    with open_recording(path) as recording:
        assert bags.read(recording) == [(5, "/x", bags.cdr("/x", 1.0))]
    writer.close()
    writer.close()
    with open_recording(path) as recording:
        assert recording.warnings == []


def test_nothing_is_overwritten(tmp_path):
    path = tmp_path / "x.mcap"
    path.write_text("precious")
    with pytest.raises(RecordingError, match=r"x.mcap: exists already.*accepted: a new file"):
        RecordingWriter(path)
    assert path.read_text() == "precious"


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(RecordingError, match="cannot be written"):
        RecordingWriter(tmp_path / "lost" / "x.mcap")


@pytest.mark.parametrize("time_ns", [-1, 1 << 63])
def test_a_time_that_does_not_fit_is_refused(tmp_path, time_ns):
    with (
        RecordingWriter(tmp_path / "x.mcap") as writer,
        pytest.raises(RecordingError, match="log time"),
    ):
        writer.write("/x", *FLOAT, time_ns, b"\0\1\0\0")


def test_a_closed_writer_takes_no_more(tmp_path):
    writer = RecordingWriter(tmp_path / "x.mcap")
    writer.close()
    for act in (
        lambda: writer.write("/x", *FLOAT, 1, b"\0\1\0\0"),
        lambda: writer.write_metadata("x", {}),
        lambda: writer.attach("x", b""),
        writer.flush,
    ):
        with pytest.raises(RecordingError, match="is closed"):
            act()


def test_a_full_disk_is_reported(bags, tmp_path):
    writer = RecordingWriter(tmp_path / "x.mcap")
    writer._file.flush()
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), writer._file.fileno())
    writer.write("/x", *FLOAT, 1, bags.cdr("/x", 1.0))
    with pytest.raises(RecordingError, match=r"x.mcap: cannot be written \(No space left"):
        writer.flush()
    with pytest.raises(RecordingError, match="cannot be written"):
        writer.close()
