"""ROS 1 bags become CDR; rosbags' own decoding of ROS 1 messages is the oracle."""

from __future__ import annotations

import struct

import pytest
from rosbags.rosbag1 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from forewarn.errors import RecordingError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.registry import open_recording

COMPRESSIONS = ["none", "bz2", "lz4"]


def test_the_sequence_number_of_headers_does_not_shift_what_follows(bags, tmp_path):
    path = bags.write1(tmp_path / "x.bag", bags.drive(3))
    with open_recording(path) as recording:
        info = recording.topics["/odom"]
        names = ["header.stamp.sec", "header.frame_id", "twist.twist.linear.x"]
        extract = compile_extractor(info.message_type, [parse_expression(name) for name in names])
        values = [extract(sample.data) for sample in recording.read(["/odom"])]
    assert values == [[3, "map", 0.0], [3, "map", 1.0], [3, "map", 2.0]]


def test_a_recorded_robot_reads_as_rosbags_decodes_it(shared_data):
    path = shared_data / "bags" / "robot_localization_test2.bag"
    store = get_typestore(Stores.EMPTY)
    theirs = []
    with Reader(path) as reader:
        for connection in reader.connections:
            types = get_types_from_msg(connection.msgdef.data, connection.msgtype)
            store.register({k: v for k, v in types.items() if k not in store.fielddefs})
        for connection, time_ns, data in reader.messages():
            message = store.deserialize_ros1(data, connection.msgtype)
            stamp = message.header.stamp
            value = (
                message.angular_velocity.z
                if connection.topic == "/imu/data"
                else message.twist.twist.linear.x
            )
            theirs.append((time_ns, connection.topic, stamp.sec, stamp.nanosec, value))
    with open_recording(path) as recording:
        extractors = {
            topic: compile_extractor(
                recording.topics[topic].message_type,
                [parse_expression(e) for e in ("header.stamp.sec", "header.stamp.nanosec", value)],
            )
            for topic, value in (
                ("/imu/data", "angular_velocity.z"),
                ("/jackal_velocity_controller/odom", "twist.twist.linear.x"),
            )
        }
        ours = [
            (sample.time_ns, sample.topic, *extractors[sample.topic](sample.data))
            for sample in recording.read()
        ]
        assert recording.warnings == []
        assert recording.duration == pytest.approx(61.2, abs=0.1)
    assert len(ours) == 6121
    assert [our[0] for our in ours] == sorted(their[0] for their in theirs)
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_bag_cut_anywhere_yields_a_prefix_or_says_that_there_is_nothing(
    bags, tmp_path, compression
):
    messages = bags.drive(30)
    whole = bags.write1(tmp_path / "whole.bag", messages, compression).read_bytes()
    cut = tmp_path / "cut.bag"
    lengths = []
    for length in range(13, len(whole), 499):
        cut.write_bytes(whole[:length])
        try:
            with open_recording(cut) as recording:
                found = bags.read(recording)
                assert recording.warnings
        except RecordingError as error:
            assert str(cut) in str(error)
            found = []
        assert found == bags.expected(messages)[: len(found)]
        lengths.append(len(found))
    assert lengths[-1] == 60


def without_index(path):
    """Return a bag as its recorder leaves it when it is killed."""
    content = bytearray(path.read_bytes())
    place = content.index(b"index_pos=") + len(b"index_pos=")
    content[place : place + 8] = bytes(8)
    return content


def test_a_bag_that_was_never_closed_is_read_from_its_chunks(bags, tmp_path):
    path = bags.write1(tmp_path / "x.bag", bags.drive())
    path.write_bytes(without_index(path))
    with open_recording(path) as recording:
        assert bags.read(recording) == bags.expected(bags.drive())
        assert bags.read(recording, ["/limit"]) == [
            item for item in bags.expected(bags.drive()) if item[1] == "/limit"
        ]
        assert "its recorder did not close it" in recording.warnings[0]
        assert recording.topics["/odom"].count == 60


FIELDS = [
    "op", "conn", "time", "topic", "type", "md5sum", "message_definition", "compression", "size",
    "index_pos", "conn_count", "chunk_count", "chunk_pos", "start_time", "end_time", "ver", "count",
]  # fmt: skip


def _fields(content):
    """Return where the fields of a bag's uncompressed records are: the place of their size."""
    places = []
    for name in FIELDS:
        mark = f"{name}=".encode()
        place = content.find(mark)
        while place >= 0:
            if 0 < struct.unpack_from("<I", content, place - 4)[0] - len(mark) < 4000:
                places.append((place - 4, name))
            place = content.find(mark, place + 1)
    return places


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_any_one_field_of_any_record_may_be_missing_or_have_another_size(
    bags, tmp_path, compression, indexed
):
    messages = bags.drive(3)
    path = bags.write1(tmp_path / "x.bag", messages, compression)
    whole = bytearray(path.read_bytes()) if indexed else without_index(path)
    places = _fields(bytes(whole))
    assert {name for _, name in places} >= {"op", "conn", "topic", "type", "compression", "size"}
    assert ("time" in {name for _, name in places}) == (compression == "none")
    want = bags.expected(messages)
    for place, name in places:
        for at, bits in ((place, 1), (place, 2), (place + 4, 128), (place + 4 + len(name), 1)):
            damaged = whole.copy()
            damaged[at] ^= bits
            path.write_bytes(damaged)
            try:
                with open_recording(path) as recording:
                    found = bags.read(recording)
                    missing = len(want) - len(found)
                    assert [item for item in want if item in found] == found, (name, at, bits)
                    assert not missing or recording.warnings, (name, at, bits)
            except RecordingError as error:
                assert str(path) in str(error)


@pytest.mark.parametrize(
    ("record", "name", "lost"),
    [
        (b"\x02", b"conn", 1),
        (b"\x02", b"time", 1),
        (b"\x02", b"op", 1),
        (b"\x07", b"conn", 0),
        (b"\x07", b"topic", 0),
        (b"\x07", b"op", 0),
    ],
)
def test_a_record_without_a_field_is_counted_and_costs_only_itself(
    bags, tmp_path, record, name, lost
):
    messages = bags.drive(3)
    path = bags.write1(tmp_path / "x.bag", messages)
    content = without_index(path)
    op = content.index(b"op=" + record)
    content[content.index(name + b"=", op)] ^= 128
    path.write_bytes(content)
    with open_recording(path) as recording:
        found = bags.read(recording)
        assert len(found) == len(messages) - lost
        assert recording.warnings[1:] == [
            "1 record of messages or connections cannot be used: "
            "fields are missing or have the wrong size"
        ]


def test_messages_whose_connection_is_lost_everywhere_are_counted(bags, tmp_path):
    path = bags.write1(tmp_path / "x.bag", bags.drive(3))
    content = without_index(path)
    assert content.count(b"topic=/odom") == 4  # header and data, in the chunk and after it
    path.write_bytes(content.replace(b"topic=/odom", b"tropic/odom"))
    with open_recording(path) as recording:
        assert [sample[1] for sample in bags.read(recording)] == ["/limit"] * 3
        assert recording.count == 3
        assert recording.warnings[1:] == [
            "2 records of messages or connections cannot be used: "
            "fields are missing or have the wrong size",
            "3 messages of no known connection left out",
        ]


def test_messages_of_the_wrong_layout_are_left_out_and_counted(bags, tmp_path):
    path = bags.write1(tmp_path / "x.bag", bags.drive(4))
    content = path.read_bytes()
    longer = struct.pack("<I", 3) + b"map"
    assert content.count(longer) == 4
    path.write_bytes(content.replace(longer, struct.pack("<I", 4000) + b"map", 1))
    with open_recording(path) as recording:
        assert len(bags.read(recording)) == 7
        (warning,) = recording.warnings
        assert warning.startswith("topic /odom: 1 message could not be converted and is left out: ")


def test_an_older_version_is_refused(tmp_path):
    path = tmp_path / "x.bag"
    path.write_bytes(b"#ROSBAG V1.2\n" + bytes(100))
    with pytest.raises(RecordingError, match=r"is a ROS 1 bag of version 1.2 \(accepted: a ROS 1"):
        open_recording(path)
