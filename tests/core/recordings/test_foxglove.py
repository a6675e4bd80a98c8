"""MCAP files with messages in JSON or protobuf, as Foxglove's tools write them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st
from mcap.writer import Writer

from apollo_bridge.messages import Pool
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import DecodeError, FieldError
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.learning.observing import observe
from forewarn.logic.specification import compile_spec
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.foreign import json_type
from forewarn.recordings.registry import open_recording

NAME = "foxglove.PoseInFrame"
VECTOR = {"type": "object", "properties": {axis: {"type": "number"} for axis in "xyz"}}
TIME = {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
LEVEL = {"oneOf": [{"title": "UNKNOWN", "const": 0}, {"title": "DEBUG", "const": 1}]}
SCHEMA = {
    "title": NAME,
    "type": "object",
    "properties": {
        "timestamp": TIME,
        "frame_id": {"type": "string"},
        "pose": {"type": "object", "properties": {"position": VECTOR}},
        "valid": {"type": "boolean"},
        "level": LEVEL,
        "points": {"type": "array", "items": VECTOR},
        "ranges": {"type": "array", "items": {"type": "number"}},
        "whatever": {},
    },
}
MONITOR = """
rate: 10
signals:
  x: {channel: /pose, message: foxglove.PoseInFrame, value: pose.position.x, timeout: 1.0}
predicates: {far: x > 2}
properties: {near: {formula: always(not far), horizon: 1.0}}
"""


def descriptors() -> list[descriptor_pb2.FileDescriptorProto]:
    time = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(time)
    own = descriptor_pb2.FileDescriptorProto(
        name="pose.proto", package="foxglove", syntax="proto3", dependency=[time.name]
    )
    parts = {
        "Vector3": [(axis, 1, "") for axis in "xyz"],
        "Pose": [("position", 11, ".foxglove.Vector3")],
        "PoseInFrame": [
            ("timestamp", 11, ".google.protobuf.Timestamp"),
            ("frame_id", 9, ""),
            ("pose", 11, ".foxglove.Pose"),
        ],
    }
    for name, fields in parts.items():
        message = own.message_type.add(name=name)
        for number, (field, kind, type_name) in enumerate(fields, 1):
            message.field.add(
                name=field, number=number, type=kind, type_name=type_name or None, label=1
            )
    return [time, own]


def in_json(x: float) -> bytes:
    return json.dumps({"frame_id": "map", "pose": {"position": {"x": x}}}).encode()


def in_protobuf(x: float) -> bytes:
    message = Pool(descriptors()).message_class(NAME)(frame_id="map")
    message.pose.position.x = x
    return bytes(message.SerializeToString())


def write(path: Path, encoding: str, schema: bytes | None = None) -> Path:
    """Write ten poses, one each 100 ms, 0 m to 4.5 m away."""
    if schema is None:
        whole = descriptor_pb2.FileDescriptorSet(file=descriptors()).SerializeToString()
        schema = json.dumps(SCHEMA).encode() if encoding == "json" else whole
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        kind = writer.register_schema(
            NAME, "jsonschema" if encoding == "json" else "protobuf", schema
        )
        channel = writer.register_channel("/pose", encoding, kind)
        for number in range(10):
            made = (in_json if encoding == "json" else in_protobuf)(number / 2)
            time_ns = (10 + number) * 100_000_000
            writer.add_message(channel, time_ns, made, time_ns)
        writer.finish()
    return path


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_a_monitor_reads_it_by_channel_and_message(tmp_path: Path, encoding: str) -> None:
    spec = parse_spec(parse_document(MONITOR))
    abstraction = compile_spec(spec).abstraction
    with open_recording(write(tmp_path / "x.mcap", encoding)) as recording:
        assert recording.topics["/pose"].msgtype == NAME
        ticks = list(observe(recording, spec, abstraction))
    assert [tick.snapshot.values[0] for tick in ticks] == [number / 2 for number in range(10)]


@pytest.mark.parametrize(
    ("encoding", "schema", "problem"),
    [
        ("json", b"", "holds no schema of foxglove.PoseInFrame"),
        ("json", b"{", "cannot be used"),
        ("json", b"[]", "no JSON Schema of an object with properties"),
        ("json", b"[" * 100_000, "cannot be used"),
        ("protobuf", b"\xff\xff", "no FileDescriptorSet"),
        ("protobuf", b"\n\x00", "do not define foxglove.PoseInFrame"),
    ],
)
def test_a_schema_that_is_none_is_named(
    tmp_path: Path, encoding: str, schema: bytes, problem: str
) -> None:
    with open_recording(write(tmp_path / "x.mcap", encoding, schema)) as recording:
        assert problem in str(recording.topics["/pose"].error)


@pytest.mark.parametrize(
    ("source", "message", "expected"),
    [
        ("pose.position.x", {"pose": {"position": {"x": 3}}}, 3),
        ("pose.position.x", {"pose": None}, None),
        ("pose.position.x", {"pose": {"position": {"x": "3"}}}, None),
        ("pose.position.x", {"pose": {"position": {"x": True}}}, None),
        ("frame_id == 'map'", {"frame_id": "map"}, True),
        ("level", {"level": 1}, 1),
        ("valid", {"valid": 1}, None),
        ("has(pose)", {}, False),
        ("has(frame_id)", {"frame_id": ""}, True),
        ("max(p.y for p in points)", {"points": [{"y": 1.5}, {"y": 4.0}]}, 4.0),
        ("min(ranges)", {"ranges": [3, 1.5]}, 1.5),
        ("min(ranges)", {"ranges": None}, None),
        ("timestamp.sec + timestamp.nsec * 1e-9", {"timestamp": {"sec": 1, "nsec": 5e8}}, 1.5),
    ],
)
def test_fields_in_json(source: str, message: Mapping[str, Any], expected: Any) -> None:
    extract = compile_extractor(json_type(NAME, json.dumps(SCHEMA)), [parse_expression(source)])
    (found,) = extract(json.dumps(message).encode())
    assert (found is None or found != found or isinstance(found, Unknown)) == (expected is None)
    assert expected is None or found == expected


def test_a_field_that_the_schema_lacks_or_does_not_explain_is_an_error() -> None:
    for source in ("pose.place", "whatever"):
        with pytest.raises(FieldError, match=r"timestamp|position"):
            compile_extractor(json_type(NAME, json.dumps(SCHEMA)), [parse_expression(source)])


@given(st.binary(max_size=30) | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_what_is_no_object_is_refused(data: bytes | str) -> None:
    mtype = json_type(NAME, json.dumps(SCHEMA))
    extract = compile_extractor(mtype, [parse_expression("pose.position.x")])
    with pytest.raises(DecodeError, match=r"are no foxglove\.PoseInFrame"):
        extract(data.encode() if isinstance(data, str) else data)


@pytest.mark.parametrize(
    ("ranges", "least"),
    [
        ('[3, 2.5, "-Infinity"]', 0.0),
        ("[3, -Infinity]", 0.0),
        ('["NaN", null, NaN]', math.nan),
        ("[]", math.nan),
        ('["Infinity"]', math.inf),
        ("[0.0, 4]", 0.0),
        ('[4, "near"]', 4.0),
    ],
)
def test_a_scan_in_json_fails_closed(ranges: str, least: float) -> None:
    mtype = json_type("foxglove.LaserScan", json.dumps(SCHEMA))
    made = compile_extractor(mtype, [parse_expression("nearest_beam(ranges, 0, inf)")])
    (found,) = made(f'{{"ranges": {ranges}}}'.encode())
    assert (math.nan if isinstance(found, Unknown) else found) == pytest.approx(least, nan_ok=True)
    assert made.notes == ()
    filtered = parse_expression("min((r for r in ranges if isfinite(r)), default=inf)")
    (told,) = compile_extractor(mtype, [filtered]).notes
    assert "leaves readings out" in told
    assert "write nearest_beam(ranges, 0, inf)" in told
