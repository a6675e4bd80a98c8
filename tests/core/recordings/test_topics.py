"""Topics that cannot be decoded are named; the others stay readable."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcap.writer import Writer

from forewarn.errors import RecordingError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.registry import open_recording

FLOAT = ("std_msgs/msg/Float64", "ros2msg", "float64 data\n")
SERVICE = (
    "example_interfaces/srv/AddTwoInts_Event",
    "ros2msg",
    "=" * 80 + "\nSRV: example_interfaces/srv/AddTwoInts\nint64 a\nint64 b\n",
)


def write(path: Path, channels, payload: bytes) -> Path:
    """Write one message on each channel: topic, (type, encoding, definition), serialization."""
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        for time_ns, (topic, (name, encoding, definition), serialization) in enumerate(channels):
            schema = writer.register_schema(name, encoding, definition.encode())
            channel = writer.register_channel(topic, serialization, schema if name else 0)
            writer.add_message(channel, time_ns, payload, time_ns)
        writer.finish()
    return path


@pytest.fixture
def payload(bags) -> bytes:
    return bags.cdr("/speed", 2.5)


def speed_of(recording) -> float:
    """Return the value of the message on /speed."""
    info = recording.topics["/speed"]
    assert info.error is None
    extract = compile_extractor(info.message_type, [parse_expression("data")])
    (sample,) = recording.read(["/speed"])
    return extract(sample.data)[0]


@pytest.mark.parametrize(
    ("schema", "serialization", "message"),
    [
        (SERVICE, "cdr", "definition of example_interfaces/srv/AddTwoInts_Event"),
        (("a/msg/B", "ros2msg", "float64"), "cdr", "definition of a/msg/B"),
        (("a/msg/B", "ros2msg", "missing_pkg/Thing thing"), "cdr", "missing_pkg"),
        (("a/msg/B", "protobuf", "message B {}"), "cdr", "protobuf"),
        (("a/msg/B", "jsonschema", "{}"), "json", "no JSON Schema of an object with properties"),
        (("a/msg/B", "cddl", "{}"), "cbor", "'cbor' (accepted: cdr or ros1 or json or protobuf)"),
        (("no_such_pkg/msg/Thing", "", ""), "cdr", "holds no definition of no_such_pkg/msg/Thing"),
        (("", "", ""), "cdr", "holds no definition"),
        (("B", "ros2msg", "float64 x"), "cdr", "'B' is not a message type"),
        (("a/B", "ros1msg", "float64"), "ros1", "definition of a/B in the recording cannot"),
    ],
)
def test_a_topic_that_cannot_be_decoded_is_listed_with_the_reason(
    tmp_path, payload, schema, serialization, message
):
    channels = [("/odd", schema, serialization), ("/speed", FLOAT, "cdr")]
    with open_recording(write(tmp_path / "x.mcap", channels, payload)) as recording:
        odd = recording.topics["/odd"]
        assert odd.message_type is None
        assert message in odd.error
        assert (odd.name, odd.count) == ("/odd", 1)
        assert speed_of(recording) == 2.5


def test_a_topic_without_usable_definition_still_yields_its_payload(tmp_path, payload):
    channels = [("/event", SERVICE, "cdr")]
    with open_recording(write(tmp_path / "x.mcap", channels, payload)) as recording:
        assert [sample.data for sample in recording.read(["/event"])] == [payload]
        assert [sample.data for sample in recording.read()] == [payload]


def test_a_definition_that_the_recording_lacks_is_taken_from_the_installation(tmp_path, payload):
    channels = [("/speed", ("std_msgs/msg/Float64", "", ""), "cdr")]
    with open_recording(write(tmp_path / "x.mcap", channels, payload)) as recording:
        assert speed_of(recording) == 2.5
        assert recording.warnings == [
            "topic /speed: the recording holds no definition of std_msgs/msg/Float64; "
            "the installed one is used"
        ]


def test_a_topic_of_two_types_is_refused_by_name_and_left_out_of_the_rest(tmp_path, payload):
    other = ("std_msgs/msg/Int64", "ros2msg", "int64 data\n")
    channels = [("/x", FLOAT, "cdr"), ("/speed", FLOAT, "cdr"), ("/x", other, "cdr")]
    with open_recording(write(tmp_path / "x.mcap", channels, payload)) as recording:
        problem = (
            "it is recorded with 2 types: std_msgs/msg/Float64 (1 message), "
            "std_msgs/msg/Int64 (1 message) (accepted: one type for each topic)"
        )
        assert recording.topics["/x"].error == problem
        assert recording.topics["/x"].count == 2
        assert [sample.topic for sample in recording.read()] == ["/speed"]
        assert recording.warnings == [f"topic /x is left out: {problem}"]
        with pytest.raises(RecordingError, match=r"x.mcap: topic /x: it is recorded with 2 types"):
            recording.read(["/x"])


def test_a_definition_that_changes_between_split_files_names_both(tmp_path, payload):
    for number, text in enumerate(
        ["float64 data\n", "# twice as long\nfloat64 data\nfloat64 more\n"]
    ):
        write(tmp_path / f"x_{number}.mcap", [("/x", (*FLOAT[:2], text), "cdr")], payload)
    with open_recording(tmp_path) as recording:
        error = recording.topics["/x"].error
    assert "two definitions of std_msgs/msg/Float64, in x_0.mcap and in x_1.mcap" in error
    assert "read the files one by one" in error


def test_the_same_definition_in_other_words_is_one(tmp_path, payload):
    commented = (FLOAT[0], FLOAT[1], "# metres\nfloat64   data  # of distance\n")
    channels = [("/x", FLOAT, "cdr"), ("/x", commented, "cdr")]
    with open_recording(write(tmp_path / "x.mcap", channels, payload)) as recording:
        assert recording.topics["/x"].error is None
        assert len(list(recording.read(["/x"]))) == 2


def test_several_publishers_of_one_topic_are_one_topic(tmp_path, payload):
    channels = [("/x", FLOAT, "cdr")] * 3
    with open_recording(write(tmp_path / "x.mcap", channels, payload)) as recording:
        assert list(recording.topics) == ["/x"]
        assert recording.topics["/x"].count == 3
        assert [sample.time_ns for sample in recording.read(["/x"])] == [0, 1, 2]


def test_ros1_messages_in_mcap_become_cdr(bags, tmp_path):
    name, message = bags.message_object(bags.store1, "/odom", 4.5)
    definition, _ = bags.store1.generate_msgdef(name)
    payload = bytes(bags.store1.serialize_ros1(message, name))
    schema = ("nav_msgs/Odometry", "ros1msg", definition)
    path = write(tmp_path / "x.mcap", [("/odom", schema, "ros1")], payload)
    with open_recording(path) as recording:
        assert bags.read(recording) == [(0, "/odom", bags.cdr("/odom", 4.5))]
        assert recording.topics["/odom"].msgtype == "nav_msgs/msg/Odometry"
