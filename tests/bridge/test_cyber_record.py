"""What cyber-record cannot do, and that it is answered.

The first half holds the faults of cyber-record 0.1.13 for which `apollo_bridge` has code of its
own: a test that fails there says that a fault was mended, and that code of ours can go.
"""

from __future__ import annotations

import importlib.util
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from mcap.reader import make_reader

from apollo_bridge import cyber_record_reader as underlying
from apollo_bridge.sections import RecordFile
from forewarn.recordings.registry import open_recording

if underlying.load() is None:
    pytest.skip("cyber-record cannot be imported with this protobuf", allow_module_level=True)

from cyber_record.mcap_adapter import record_to_mcap
from cyber_record.reader import Reader
from cyber_record.record import Record
from cyber_record.record_exception import RecordException


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.record"


# Faults of cyber-record


def test_fault_a_record_whose_recorder_was_killed_is_not_read(path: Path, apollo: Any) -> None:
    path.write_bytes(apollo.record_bytes([apollo.drive(10)], closed=False))
    with pytest.raises(RecordException):
        Record(str(path))
    assert list(Record(str(path), allow_unindexed=True).read_messages()) == []
    # Sections are found, but without the channels nothing is decoded.
    found = list(Record(str(path), allow_unindexed=True).read_messages_section_scan())
    assert [message for _, message, _ in found] == [None] * 10


def test_fault_a_record_that_was_cut_is_not_read(path: Path, apollo: Any) -> None:
    path.write_bytes(apollo.record_bytes([apollo.drive(10)])[:-100])
    with pytest.raises(RecordException):
        Record(str(path))


def test_fault_messages_are_not_sorted_within_a_chunk(path: Path, apollo: Any) -> None:
    messages = apollo.drive(20)
    random.Random(1).shuffle(messages)
    path.write_bytes(apollo.record_bytes([messages]))
    times = [time for _, _, time in Record(str(path)).read_messages()]
    assert times != sorted(times)
    with open_recording(path) as recording:
        assert [sample.time_ns for sample in recording.read()] == sorted(times)


def test_fault_a_channel_without_descriptor_gives_none(path: Path, apollo: Any) -> None:
    path.write_bytes(apollo.record_bytes([apollo.drive(3)], descriptors={apollo.CHASSIS: b""}))
    assert [message for _, message, _ in Record(str(path)).read_messages()] == [None] * 3


def test_fault_two_channels_share_a_pool(path: Path, apollo: Any) -> None:
    proto_desc = apollo.own_class("apollo.cyber.proto.ProtoDesc")
    reader = Reader(None)
    for field in ("alpha", "beta"):
        file = apollo.FileDescriptorProto(name="modules/shared.proto", package="demo")
        file.message_type.add(name=f"Of{field}")
        reader._add_dependency(proto_desc(desc=file.SerializeToString()))
    assert reader.desc_pool.FindMessageTypeByName("demo.Ofalpha")
    with pytest.raises(KeyError):
        reader.desc_pool.FindMessageTypeByName("demo.Ofbeta")


def damaged_size(apollo: Any) -> tuple[bytes, int]:
    """Return a record whose second chunk claims an absurd size, and where it begins."""
    messages = apollo.drive(20)
    data = apollo.record_bytes([messages[:10], messages[10:]])
    index = apollo.own_class("apollo.cyber.proto.Index")
    header = apollo.own_class("apollo.cyber.proto.Header")
    (size,) = struct.unpack_from("<q", data, 8)
    at = header.FromString(data[16 : 16 + size]).index_position
    (size,) = struct.unpack_from("<q", data, at + 8)
    entries = index.FromString(data[at + 16 : at + 16 + size]).indexes
    position = [entry.position for entry in entries if entry.type == 2][1]
    changed = bytearray(data)
    struct.pack_into("<q", changed, position + 8, 1 << 61)
    return bytes(changed), position


def test_fault_a_damaged_size_asks_for_more_memory_than_there_is(path: Path, apollo: Any) -> None:
    data, position = damaged_size(apollo)
    path.write_bytes(data)
    with pytest.raises((MemoryError, OverflowError)):
        Record(str(path))._reader.read_chunk_body(position)
    recording = RecordFile(path)
    assert recording.count == 20
    assert "the part before is read" in recording.warnings[-1]


def test_fault_foxglove_cannot_read_its_mcap(path: Path, tmp_path: Path, apollo: Any) -> None:
    path.write_bytes(apollo.record_bytes([apollo.drive(3)]))
    target = tmp_path / "x.mcap"
    record_to_mcap(str(path), str(target))
    with target.open("rb") as file:
        schema, _, _ = next(iter(make_reader(file).iter_messages()))
    assert schema is not None and schema.encoding == "protobuf"
    # A FileDescriptorSet is wanted; read as one, a ProtoDesc has no file with a name.
    files = descriptor_pb2.FileDescriptorSet.FromString(schema.data).file
    assert "canbus.proto" not in [one_file.name for one_file in files]


IMPORTS = {
    "Cyber's package, then ours": ("pycyber.proto.record_pb2", "cyber_record.record"),
    "ours, then Cyber's package": ("cyber_record.record", "pycyber.proto.record_pb2"),
}


@pytest.mark.parametrize("order", IMPORTS)
def test_fault_it_and_cybers_own_package_exclude_each_other(order: str) -> None:
    if importlib.util.find_spec("pycyber") is None:
        pytest.skip("pycyber, Cyber RT's wheel, exists for Python 3.10 on x86_64 only")
    code = "; ".join(f"import {name}" for name in IMPORTS[order])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "duplicate file name cyber/proto/record.proto" in done.stderr


# What is made of it


def test_whole_records_are_read_by_their_index(example_record: Path) -> None:
    load = underlying.load()
    assert load is not None
    with example_record.open("rb") as file:
        contents = load(file).contents()
    assert contents is not None
    assert sum(channel.message_number for channel in contents.channels) == 34
    assert len(contents.chunks) == 1
    assert all(chunk.start_ns <= chunk.end_ns for chunk in contents.chunks)


def test_an_index_that_does_not_fit_is_not_believed(path: Path, apollo: Any) -> None:
    load = underlying.load()
    assert load is not None
    messages = apollo.drive(20)
    whole = apollo.record_bytes([messages[:10], messages[10:]])
    header = apollo.own_class("apollo.cyber.proto.Header")
    (size,) = struct.unpack_from("<q", whole, 8)
    told = header.FromString(whole[16 : 16 + size])

    def with_header(**changes: Any) -> bytes:
        changed = header()
        changed.CopyFrom(told)
        for name, value in changes.items():
            setattr(changed, name, value)
        body = changed.SerializeToString()
        return struct.pack("<i4xq", 0, len(body)) + body.ljust(2048, b"\0") + whole[2064:]

    cases = {
        "whole": (whole, True),
        "cut": (whole[:-1], False),
        "trailing": (whole + b"x", False),
        "unclosed": (with_header(is_complete=False), False),
        "chunks": (with_header(chunk_number=3), False),
        "messages": (with_header(message_number=21), False),
        "elsewhere": (with_header(index_position=2064), False),
        "beyond": (with_header(index_position=1 << 40), False),
        "size": (damaged_size(apollo)[0], False),
    }
    for name, (data, believed) in cases.items():
        path.write_bytes(data)
        with path.open("rb") as file:
            assert (load(file).contents() is not None) is believed, name
        if name != "size":
            assert RecordFile(path).count == 20, name


def test_records_are_read_where_cybers_own_package_keeps_cyber_record_out(
    path: Path, apollo: Any
) -> None:
    if importlib.util.find_spec("pycyber") is None:
        pytest.skip("pycyber, Cyber RT's wheel, exists for Python 3.10 on x86_64 only")
    path.write_bytes(apollo.record_bytes([apollo.drive(7)]))
    code = (
        "import pycyber.proto.record_pb2; from forewarn.recordings.registry import open_recording; "
        f"print(sum(1 for _ in open_recording({str(path)!r}).read()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "7\n", done.stderr


def test_the_package_is_not_imported_before_a_record_is_read() -> None:
    code = "import apollo_bridge.records, sys; print('cyber_record' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_records_are_read_with_protobuf_in_pure_python(path: Path, apollo: Any) -> None:
    messages = apollo.drive(7)
    data = bytearray(apollo.record_bytes([messages[:4], messages[4:]]))
    data[-3:] = b"\xff" * 3  # the index is damaged
    path.write_bytes(data)
    code = (
        "from google.protobuf.internal import api_implementation; "
        "from forewarn.recordings.registry import open_recording; "
        f"found = open_recording({str(path)!r}); "
        "print(api_implementation.Type(), sum(1 for _ in found.read()))"
    )
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "python 7\n", done.stderr
