"""Each format of recordings passes the same tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from apollo_records import CHASSIS, POSE, Written, chassis, record_bytes
from bags import Message, cdr, write_bag, write_bag1
from hypothesis import given
from hypothesis import strategies as st
from mcap.writer import CompressionType, Writer

from apollo_bridge.layouts import own_class, own_pool
from forewarn.recordings.interface import Recording, Sample
from forewarn.recordings.registry import open_recording
from forewarn.testing.readers import DAMAGED, START, ReaderContract, Row


class Rosbag2Contract(ReaderContract):
    """A folder of rosbag2."""

    storage, compression = "mcap", "none"

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        return write_bag(
            folder / "bag", [Message(*row) for row in rows], self.storage, self.compression
        )

    def data_file(self, path: Path) -> Path:
        (file,) = (file for file in path.iterdir() if file.name != "metadata.yaml")
        return file

    def test_messages_leave_as_cdr(self, tmp_path: Path, rows: list[Row]) -> None:
        with open_recording(self.write(tmp_path, rows)) as recording:
            found = [bytes(sample.data) for sample in recording.read()]
        assert found == [cdr(topic, value) for _, topic, value in rows]


class TestMcap(Rosbag2Contract):
    """MCAP as rosbags writes it."""


class TestMcapByChunk(Rosbag2Contract):
    """Compressed chunk by chunk."""

    compression = "chunk"

    @DAMAGED
    @given(text=st.text(alphabet="abc:{}[]-'\"\n \t&*!|>0123", max_size=200))
    def test_any_metadata_file(self, small: tuple[str, bytes], tmp_path: Path, text: str) -> None:
        (tmp_path / "x.mcap").write_bytes(small[1])
        for before in ("", "rosbag2_bagfile_information:\n  relative_file_paths: [x.mcap]\n"):
            (tmp_path / "metadata.yaml").write_text(before + text)
            self.exhaust(tmp_path)


class TestMcapByMessage(Rosbag2Contract):
    """Compressed message by message."""

    compression = "message"


class TestMcapByFile(Rosbag2Contract):
    """Compressed as a whole."""

    compression = "file"


class TestMcapPackedByHand(Rosbag2Contract):
    """A file that ``zstd`` has packed."""

    compression = "file"

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        (file,) = super().write(folder, rows).glob("*.zstd")
        return file.rename(file.with_suffix(".zst"))

    def data_file(self, path: Path) -> Path:
        return path


class TestMcapOfJson(ReaderContract):
    """Messages in JSON with a JSON Schema, as Foxglove writes them."""

    fields: ClassVar[dict[str, tuple[str, str]]] = {
        "/pose": ("foxglove.Pose", "position.x"),
        "/limit": ("foxglove.Limit", "value"),
    }
    schemas: ClassVar[dict[str, str]] = {
        "/pose": '{"properties": {"position": {"properties": {"x": {"type": "number"}}}}}',
        "/limit": '{"properties": {"value": {"type": "number"}}}',
    }

    def schema(self, topic: str) -> tuple[str, bytes]:
        return "jsonschema", self.schemas[topic].encode()

    def message(self, topic: str, value: float) -> tuple[str, bytes]:
        made = {"position": {"x": value}} if topic == "/pose" else {"value": value}
        return "json", json.dumps(made).encode()

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        path = folder / "x.mcap"
        with path.open("wb") as file:
            writer = Writer(file, compression=CompressionType.NONE)
            writer.start()
            channels = {}
            for topic, (name, _) in self.fields.items():
                kind = writer.register_schema(name, *self.schema(topic))
                channels[topic] = writer.register_channel(topic, self.message(topic, 0.0)[0], kind)
            for time_ns, topic, value in rows:
                data = self.message(topic, value)[1]
                writer.add_message(channels[topic], time_ns, data, time_ns)
            writer.finish()
        return path


class TestMcapOfProtobuf(TestMcapOfJson):
    """Messages in protobuf; those of Apollo serve, for their descriptors are at hand."""

    fields: ClassVar[dict[str, tuple[str, str]]] = {
        "/chassis": ("apollo.canbus.Chassis", "speed_mps"),
        "/pose": ("apollo.localization.LocalizationEstimate", "measurement_time"),
    }

    def schema(self, topic: str) -> tuple[str, bytes]:
        return "protobuf", own_pool().definition()

    def message(self, topic: str, value: float) -> tuple[str, bytes]:
        name, field = self.fields[topic]
        return "protobuf", own_class(name)(**{field: value}).SerializeToString()


class TestSqlite(Rosbag2Contract):
    """SQLite, which sorts by itself."""

    storage = "sqlite3"
    sorts, keeps_order = True, False


class TestSqliteByMessage(TestSqlite):
    """Compressed message by message."""

    compression = "message"


class TestSqliteByFile(TestSqlite):
    """Compressed as a whole."""

    compression = "file"


class TestRos1(Rosbag2Contract):
    """A bag of ROS 1, whose messages become CDR, and whose chunks have an index by time."""

    sorts = True

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        return write_bag1(folder / "x.bag", [Message(*row) for row in rows], self.compression)

    def data_file(self, path: Path) -> Path:
        return path


class TestRos1Bz2(TestRos1):
    """Compressed with bz2."""

    compression = "bz2"


class TestRos1Lz4(TestRos1):
    """Compressed with lz4."""

    compression = "lz4"


class TestTrace(ReaderContract):
    """JSON lines, which have no topics: each line holds named values."""

    knows_its_end = False

    fields: ClassVar[dict[str, tuple[str, str]]] = {
        "": ("", "value"),
        " ": ("", "value"),
    }  # two of them, so that rows have the same count

    @pytest.fixture
    def rows(self) -> list[Row]:
        return [(START + number * 50_000_000 // 3, "", float(number)) for number in range(80)]

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        path = folder / "x.jsonl"
        lines = [json.dumps({"t_ns": time_ns, "value": value}) for time_ns, _, value in rows]
        path.write_text("\n".join([*lines, ""]) if lines else "\n")
        return path

    def values(self, recording: Recording, samples: Iterable[Sample]) -> list[Row]:
        return [(s.time_ns, s.topic, s.data["value"]) for s in samples]  # type: ignore[call-overload, index]

    def test_topics_have_a_type_a_count_and_what_decodes_them(
        self, tmp_path: Path, rows: list[Row]
    ) -> None:
        with open_recording(self.write(tmp_path, rows)) as recording:
            assert dict(recording.topics) == {}

    def test_only_what_is_asked_for_is_read(self, tmp_path: Path, rows: list[Row]) -> None:
        with open_recording(self.write(tmp_path, rows)) as recording:
            assert self.values(recording, recording.read(["/any"])) == rows, "topics do not matter"

    test_a_topic_that_is_not_there_is_told_and_the_others_are_read = (
        test_only_what_is_asked_for_is_read
    )


class TestAgents(TestTrace):
    """Runs of agents: every fourth row is what is known after the last of three calls."""

    @pytest.fixture
    def rows(self) -> list[Row]:
        return [(number * 1_000_000_000, "", float(number)) for number in range(80)]

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        path = folder / "x.jsonl"
        lines = []
        for first in range(0, len(rows), 4):
            *calls, (*_, label) = rows[first : first + 4]
            steps = [{"action": "set", "args": {"value": value}} for *_, value in calls]
            lines.append(json.dumps({"steps": steps, "value": label}))
        path.write_text("\n".join([*lines, ""]) if lines else "\n")
        return path

    def values(self, recording: Recording, samples: Iterable[Sample]) -> list[Row]:
        found = []
        for time_ns, topic, data in samples:
            assert isinstance(data, dict)
            value = data["value"] if data["action"] is None else data["arguments"][0]
            found.append((time_ns, topic, float(value)))
        return found

    test_messages_come_in_the_order_of_time_whatever_the_order_in_the_file = None  # no times


class TestAgentsInOneList(TestAgents):
    """The same as one JSON list."""

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        path = super().write(folder, rows)
        lines = path.read_text().split("\n")[:-1] if rows else []
        if lines:
            path.write_text("[" + ",\n".join(lines) + "]")
        return path


class TestApollo(ReaderContract):
    """A record of Cyber RT."""

    fields: ClassVar[dict[str, tuple[str, str]]] = {
        CHASSIS: ("apollo.canbus.Chassis", "speed_mps"),
        POSE: ("apollo.localization.LocalizationEstimate", "measurement_time"),
    }

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        pose = own_class("apollo.localization.LocalizationEstimate")
        written = [
            Written(
                time_ns,
                topic,
                chassis(value) if topic == CHASSIS else pose(measurement_time=value),
            )
            for time_ns, topic, value in rows
        ]
        path = folder / "x.record"
        chunks = [written[k : k + 20] for k in range(0, len(written), 20)]
        path.write_bytes(record_bytes(chunks))
        return path
