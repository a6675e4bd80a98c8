"""``forewarn convert``: what is in the MCAP file is what was in the recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from mcap.reader import make_reader

from apollo_bridge.messages import Pool
from forewarn.recordings.registry import open_recording


def test_a_record_keeps_its_messages_and_brings_their_descriptors(
    forewarn: Any, example_record: Path, tmp_path: Path
) -> None:
    path = tmp_path / "drive.mcap"
    result = forewarn("convert", example_record, "-o", path)
    assert result.returncode == 0, result.stderr
    with open_recording(example_record) as recording:
        wanted = [(s.time_ns, s.topic, bytes(s.data)) for s in recording.read()]
    found = []
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            assert schema is not None
            found.append((message.log_time, channel.topic, message.data))
            assert (schema.encoding, channel.message_encoding) == ("protobuf", "protobuf")
            files = descriptor_pb2.FileDescriptorSet.FromString(schema.data).file
            decoded = Pool(files).message_class(schema.name).FromString(message.data)
            assert decoded.ListFields()
    assert sorted(found) == sorted(wanted)


def test_dependencies_come_first_in_the_descriptors(
    forewarn: Any, example_record: Path, tmp_path: Path
) -> None:
    # Foxglove adds the files in their order.
    path = tmp_path / "drive.mcap"
    forewarn("convert", example_record, "-o", path, "-t", "/apollo/planning")
    with path.open("rb") as file:
        schema, channel, _ = next(iter(make_reader(file).iter_messages()))
    assert schema is not None and channel.topic == "/apollo/planning"
    seen: set[str] = set()
    for item in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
        assert set(item.dependency) <= seen
        seen.add(item.name)


def test_channels_without_descriptor_are_left_out_and_named(
    forewarn: Any, tmp_path: Path, apollo: Any
) -> None:
    source = tmp_path / "x.record"
    source.write_bytes(apollo.record_bytes([apollo.drive(3)], descriptors={apollo.CHASSIS: b""}))
    result = forewarn("convert", source, "-o", tmp_path / "x.mcap")
    assert result.returncode == 1
    assert "left out: /apollo/canbus/chassis: the record holds no descriptor" in result.stdout


def test_a_record_that_holds_nothing_yet_says_why(
    forewarn: Any, tmp_path: Path, apollo: Any
) -> None:
    # The recorder was killed amid the declaration of its first channel.
    source = tmp_path / "x.record"
    source.write_bytes(apollo.record_bytes([apollo.drive(3)], closed=False)[:2100])
    result = forewarn("convert", source, "-o", tmp_path / "x.mcap")
    assert result.returncode == 2
    assert "has no messages to convert" in result.stderr
    assert "into a section" in result.stderr and "was not closed" in result.stderr
    assert not (tmp_path / "x.mcap").exists()


def test_an_existing_file_is_kept(forewarn: Any, tmp_path: Path, apollo: Any) -> None:
    source, target = tmp_path / "x.record", tmp_path / "x.mcap"
    source.write_bytes(apollo.record_bytes([apollo.drive(3)]))
    target.write_text("mine")
    result = forewarn("convert", source, "-o", target)
    assert result.returncode == 2
    assert "exists already" in result.stderr
    assert target.read_text() == "mine"


def test_a_ros_1_bag_becomes_one_of_ros_2(forewarn: Any, shared_data: Path, tmp_path: Path) -> None:
    source, target = shared_data / "bags" / "rtamt4ros_example_bag.bag", tmp_path / "x.mcap"
    assert forewarn("convert", source, "-o", target).returncode == 0
    with open_recording(source) as old, open_recording(target) as new:
        assert {n: (i.msgtype, i.count) for n, i in old.topics.items() if i.count} == {
            n: (i.msgtype, i.count) for n, i in new.topics.items()
        }
        assert [(s.time_ns, s.topic, bytes(s.data)) for s in old.read()] == [
            (s.time_ns, s.topic, bytes(s.data)) for s in new.read()
        ]
