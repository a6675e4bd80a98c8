"""Records: all that they hold comes out, in order, whatever state the file is in."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.messages import Pool
from apollo_bridge.records import CyberRecording
from forewarn.errors import RecordingError
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.registry import find_recordings, open_recording


def cyber_record() -> Any:
    try:
        from cyber_record import record
    except Exception as error:  # what protobuf raises differs from version to version
        pytest.skip(f"cyber-record cannot be imported with this protobuf: {error}")
    return record


def speeds(recording: Any, channel: str) -> list[float]:
    extract = compile_extractor(
        recording.topics[channel].message_type, [parse_expression("speed_mps")]
    )
    return [extract(sample.data)[0] for sample in recording.read([channel])]


def test_reads_a_record_of_apollo_like_cyber_record_does(example_record: Path) -> None:
    record = cyber_record()
    theirs = sorted(
        (time, topic, message.SerializeToString(deterministic=True))
        for topic, message, time in record.Record(str(example_record)).read_messages()
    )
    with open_recording(example_record) as recording:
        assert isinstance(recording, CyberRecording)
        samples = list(recording.read())
        times = [sample.time_ns for sample in samples]
        assert times == sorted(times)
        assert (recording.start_ns, recording.end_ns) == (times[0], times[-1])
        assert recording.count == len(samples) == len(theirs) == 34
        assert recording.warnings == []
        classes = {}
        for name, info in recording.topics.items():
            assert info.error is None and info.message_type is not None
            classes[name] = info.message_type.open
        ours = sorted(
            (
                s.time_ns,
                s.topic,
                classes[s.topic](s.data).message.SerializeToString(deterministic=True),
            )
            for s in samples
        )
    assert ours == theirs


@pytest.mark.parametrize("closed", [True, False])
def test_a_message_with_an_impossible_time_is_left_out_and_counted(
    tmp_path: Path, apollo: Any, closed: bool
) -> None:
    messages = apollo.drive(6)
    messages[3] = messages[3]._replace(time_ns=(1 << 63) + 5)
    path = tmp_path / "x.record"
    path.write_bytes(apollo.record_bytes([messages[:3], messages[3:]], closed=closed))
    with open_recording(path) as recording:
        assert speeds(recording, apollo.CHASSIS) == [0.0, 0.5, 1.0, 2.0, 2.5]
        assert recording.end_ns == messages[5].time_ns
        assert recording.warnings[-1].endswith(
            "is damaged: 1 message with a time beyond the year 2262, left out"
        )


def test_values_of_a_real_apollo(example_record: Path) -> None:
    expressions = [
        "len(trajectory_point)",
        "has(decision.main_decision.stop)",
        "estop.is_estop",
        "has(estop) or is_replan",
        "header.module_name",
        "trajectory_point[0].path_point.x",
    ]
    with open_recording(example_record) as recording:
        mtype = recording.topics["/apollo/planning"].message_type
        extract = compile_extractor(
            mtype, [parse_expression(expression) for expression in expressions]
        )
        (sample,) = recording.read(["/apollo/planning"])
        points, stop, estop, either, module, x = extract(sample.data)
        message = mtype.open(sample.data).message
    assert points == len(message.trajectory_point) > 0
    assert stop == message.decision.main_decision.HasField("stop")
    # The part `estop` was never set: it has no values, and a field of its own says so.
    assert not message.HasField("estop")
    assert math.isnan(estop) if isinstance(estop, float) else isinstance(estop, Unknown)
    assert either == message.is_replan
    assert module == "planning"
    assert x == message.trajectory_point[0].path_point.x


def test_a_record_that_cyber_record_wrote(tmp_path: Path, apollo: Any) -> None:
    record = cyber_record()
    path = tmp_path / "written.record"
    with record.Record(str(path), mode="w") as writer:
        for time_ns, channel, message in apollo.drive():
            writer.write(channel, message, time_ns)
    with open_recording(path) as recording:
        assert speeds(recording, apollo.CHASSIS) == [0.5 * k for k in range(40)]


def test_messages_come_in_time_order_across_chunks(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive(60)
    # Neighbouring chunks overlap in time, as those of a real recorder with many threads do.
    chunks = [messages[0:25] + messages[30:35], messages[25:30] + messages[35:60]]
    for chunk in chunks:
        random.Random(4).shuffle(chunk)
    path = tmp_path / "x.record"
    path.write_bytes(apollo.record_bytes(chunks))
    with open_recording(path) as recording:
        assert speeds(recording, apollo.CHASSIS) == [0.5 * k for k in range(60)]
        assert any("log times go backwards" in warning for warning in recording.warnings)


def test_an_unclosed_record_gives_what_it_holds_and_says_so(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive()
    path = tmp_path / "x.record"
    path.write_bytes(apollo.record_bytes([messages[:20], messages[20:]], closed=False))
    with open_recording(path) as recording:
        assert recording.count == 40
        assert recording.start_ns == messages[0].time_ns
        assert recording.end_ns == messages[-1].time_ns
        assert speeds(recording, apollo.CHASSIS) == [0.5 * k for k in range(40)]
        assert any("was not closed" in warning for warning in recording.warnings)


def test_every_cut_gives_a_prefix_of_the_messages(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive(12)
    whole = apollo.record_bytes([messages[:6], messages[6:]])
    path = tmp_path / "x.record"
    counts = []
    for length in range(2064, len(whole), 23):
        path.write_bytes(whole[:length])
        with open_recording(path) as recording:
            found = speeds(recording, apollo.CHASSIS) if recording.topics else []
            assert recording.warnings, length
            assert recording.count == len(found)
        assert found == [0.5 * k for k in range(len(found))]
        counts.append(len(found))
    assert counts == sorted(counts)
    assert {0, 3, 6, 9, 12} <= set(counts)


def test_damage_amid_a_chunk_is_told_and_the_rest_is_read(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive(20)
    data = bytearray(apollo.record_bytes([messages[:10], messages[10:]]))
    at = data.index(messages[4].message.SerializeToString())
    data[at - 20 : at - 2] = b"\xff" * 18
    path = tmp_path / "x.record"
    path.write_bytes(bytes(data))
    with open_recording(path) as recording:
        found = speeds(recording, apollo.CHASSIS)
        assert any("is damaged" in warning for warning in recording.warnings)
    assert found[-10:] == [0.5 * k for k in range(10, 20)]
    # Of the damaged chunk, all but the message that was hit is whole.
    assert found[:-10] == [0.5 * k for k in (0, 1, 2, 3, 5, 6, 7, 8, 9)]


def headers_of_bodies(data: bytes) -> list[int]:
    """Return where the chunks' bodies begin, their headers included."""
    found, at = [], 2064
    while at < len(data):
        kind, size = data[at], int.from_bytes(data[at + 8 : at + 16], "little")
        if kind == 2:
            found.append(at)
        at += 16 + size
    return found


@pytest.mark.parametrize(
    "damage", ["zeros", "a size too large", "a size too small", "one too many"]
)
@pytest.mark.parametrize("closed", [True, False])
def test_what_comes_after_damage_between_chunks_is_read(
    tmp_path: Path, apollo: Any, damage: str, closed: bool
) -> None:
    messages = apollo.drive(30)
    data = bytearray(
        apollo.record_bytes([messages[:10], messages[10:20], messages[20:]], closed=closed)
    )
    _, second, third = headers_of_bodies(data)
    if damage == "zeros":  # a hole in the file: the second chunk is gone, with its header
        data[second : third - 40] = bytes(third - 40 - second)
    elif damage == "a size too large":
        data[second + 8 : second + 16] = (1 << 40).to_bytes(8, "little")
    elif damage == "a size too small":
        data[second + 8 : second + 16] = (100).to_bytes(8, "little")
    else:
        data[second:second] = b"\xff" * 50
    path = tmp_path / "x.record"
    path.write_bytes(data)
    with open_recording(path) as recording:
        found = speeds(recording, apollo.CHASSIS)
        assert any("is damaged" in warning for warning in recording.warnings)
    assert found[:10] == [0.5 * k for k in range(10)]
    assert found[-10:] == [0.5 * k for k in range(20, 30)]
    assert (found[10:-10] == [0.5 * k for k in range(10, 20)]) is (
        damage in ("a size too large", "one too many")
    )


def test_records_that_were_joined_to_one_file_are_all_read(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive(20)
    parts = [apollo.record_bytes([messages[10:]]), apollo.record_bytes([messages[:10]])]
    path = tmp_path / "x.record"
    path.write_bytes(b"".join(parts))
    with open_recording(path) as recording:
        assert speeds(recording, apollo.CHASSIS) == [0.5 * k for k in range(20)]
        assert recording.count == 20
        assert recording.warnings == [
            f"another record begins at byte {len(parts[0])}: both are read"
        ]


def test_a_damaged_declaration_is_made_up_for_by_the_index(tmp_path: Path, apollo: Any) -> None:
    data = bytearray(apollo.record_bytes([apollo.drive(5)]))
    assert data[2064] == 4  # the section that declares the channel
    data[2064 + 16 : 2064 + 40] = b"\xff" * 24
    path = tmp_path / "x.record"
    path.write_bytes(bytes(data))
    with open_recording(path) as recording:
        assert speeds(recording, apollo.CHASSIS) == [0.5 * k for k in range(5)]


def test_a_damaged_name_of_a_channel_is_named_like_any_other(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive(4)
    data = apollo.record_bytes([messages], closed=False)
    at = data.rindex(b"/apollo/canbus/chassis")
    path = tmp_path / "x.record"
    path.write_bytes(data[: at + 3] + b"\xff" + data[at + 4 :])  # no UTF-8
    with open_recording(path) as recording:
        assert set(recording.topics) == {apollo.CHASSIS, "/ap\ufffdllo/canbus/chassis"}
        assert speeds(recording, apollo.CHASSIS) == [0.0, 0.5, 1.0]
        assert list(recording.read(["/none"])) == []
        assert "/none is not in the recording (its channels: " in recording.warnings[-1]


def test_no_damage_whatever_raises_anything_but_what_it_says(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive(30)
    whole = apollo.record_bytes([messages[:10], messages[10:20], messages[20:]])
    rng = random.Random(11)
    path = tmp_path / "x.record"
    counts = set()
    for _ in range(80):
        data = bytearray(whole)
        at = rng.randrange(2064, len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randrange(1, 60)]
        else:
            data[at : at + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
        path.write_bytes(data)
        with open_recording(path) as recording:
            counts.add(sum(1 for _ in recording.read()))
    # Damage costs the chunk whose section it hits and a message beside it at the most, or all that
    # is on a channel whose declaration it hits.
    assert max(counts) == 30 and len(counts) > 3
    assert min(counts - {0}) >= 30 - 10 - 1


def test_two_channels_with_different_files_of_one_name(tmp_path: Path, apollo: Any) -> None:
    # cyber_record 0.1.13 fails with a KeyError on such a file: one pool for all channels.
    apollo_desc = apollo.own_class("apollo.cyber.proto.ProtoDesc")
    descriptors, written = {}, []
    for number, field in ((3, "alpha"), (5, "beta")):
        file = apollo.FileDescriptorProto(
            name="modules/shared.proto", package="demo", syntax="proto2"
        )
        message = file.message_type.add(name=f"Of{field}")
        message.field.add(name=field, number=number, type=1, label=1)
        made = Pool([file]).message_class(f"demo.Of{field}")(**{field: 1.0 * number})
        descriptors[f"/{field}"] = apollo_desc(desc=file.SerializeToString()).SerializeToString()
        written.append(apollo.Written(10**18 + number, f"/{field}", made))
    path = tmp_path / "x.record"
    path.write_bytes(apollo.record_bytes([written], descriptors=descriptors))
    with open_recording(path) as recording:
        values = {}
        for field in ("alpha", "beta"):
            extract = compile_extractor(
                recording.topics[f"/{field}"].message_type, [parse_expression(field)]
            )
            values[field] = [extract(s.data) for s in recording.read([f"/{field}"])]
    assert values == {"alpha": [[3.0]], "beta": [[5.0]]}


def test_a_channel_without_descriptor_is_named(tmp_path: Path, apollo: Any) -> None:
    path = tmp_path / "x.record"
    path.write_bytes(apollo.record_bytes([apollo.drive(3)], descriptors={apollo.CHASSIS: b""}))
    with open_recording(path) as recording:
        assert recording.topics[apollo.CHASSIS].error == "the record holds no descriptor for it"
        assert list(recording.read()) == []
        assert "channel /apollo/canbus/chassis is left out" in recording.warnings[-1]
        with pytest.raises(RecordingError, match="/apollo/canbus/chassis: the record holds no"):
            list(recording.read([apollo.CHASSIS]))


def test_segments_are_one_recording(tmp_path: Path, apollo: Any) -> None:
    messages = apollo.drive(60)
    for number in range(3):
        # The last message of a segment is younger than the first of the next one.
        part = messages[number * 20 : number * 20 + 20]
        if number < 2:
            part = [*part[:-1], messages[number * 20 + 20]]
        if number > 0:
            part = [messages[number * 20 - 1], *part[1:]]
        (tmp_path / f"d.record.{number:05d}").write_bytes(apollo.record_bytes([part]))
    for name in (tmp_path, tmp_path / "d.record"):
        assert find_recordings(name) == [name]
        with open_recording(name) as recording:
            assert recording.count == 60
            assert speeds(recording, apollo.CHASSIS) == [0.5 * k for k in range(60)]
            assert recording.warnings == []
    (tmp_path / "d.record.00001").unlink()
    with open_recording(tmp_path) as recording:
        assert recording.warnings == ["segments are missing: 00001"]


def test_a_channel_that_changes_its_type_between_segments_is_told(
    tmp_path: Path, apollo: Any
) -> None:
    pose = apollo.own_class("apollo.localization.LocalizationEstimate")()
    later = [apollo.Written(2 * 10**18, apollo.CHASSIS, pose)]
    (tmp_path / "d.record.00000").write_bytes(apollo.record_bytes([apollo.drive(3)]))
    (tmp_path / "d.record.00001").write_bytes(apollo.record_bytes([later]))
    with open_recording(tmp_path) as recording:
        assert recording.topics[apollo.CHASSIS].msgtype == "apollo.canbus.Chassis"
        assert recording.warnings == [
            "/apollo/canbus/chassis is declared as apollo.canbus.Chassis and as "
            "apollo.localization.LocalizationEstimate by its segments; the first is taken"
        ]


@pytest.mark.parametrize("content", [b"", bytes(3000)])
def test_a_segment_that_holds_nothing_yet_does_not_take_the_others_with_it(
    tmp_path: Path, apollo: Any, content: bytes
) -> None:
    # The recorder, or the machine, died when it had just begun the next file.
    (tmp_path / "d.record.00000").write_bytes(apollo.record_bytes([apollo.drive(5)]))
    last = tmp_path / "d.record.00001"
    last.write_bytes(content)
    for name in (tmp_path, tmp_path / "d.record"):
        with open_recording(name) as recording:
            assert speeds(recording, apollo.CHASSIS) == [0.5 * k for k in range(5)]
            assert recording.warnings == [
                f"a segment is left out: {last}: is no record of Cyber RT"
            ]
    (tmp_path / "d.record.00000").write_bytes(content)
    with pytest.raises(RecordingError, match=r"d\.record\.00000: is no record of Cyber RT"):
        open_recording(tmp_path / "d.record")


def test_a_folder_of_several_recordings_joins_the_segments_of_each(
    tmp_path: Path, apollo: Any
) -> None:
    for name in ("a.record.00000", "a.record.00001", "b.record.00000", "c.record"):
        start = 10**18 + sum(name.encode()) * 10**9
        (tmp_path / name).write_bytes(apollo.record_bytes([apollo.drive(5, start)]))
    found = find_recordings(tmp_path)
    assert [item.name for item in found] == ["a.record", "b.record.00000", "c.record"]
    with open_recording(found[0]) as recording:
        assert recording.count == 10


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.record"
    path.write_bytes(b"not a record" * 300)
    with pytest.raises(RecordingError, match=r"no recording of a known format.*\.record files"):
        open_recording(path)
    with pytest.raises(RecordingError, match="does not exist"):
        open_recording(tmp_path / "absent.record")


def test_records_are_read_with_protobuf_in_pure_python(tmp_path: Path, apollo: Any) -> None:
    messages, path = apollo.drive(7), tmp_path / "x.record"
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
