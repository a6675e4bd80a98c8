"""Recordings: whatever happened to a file, samples and warnings or a RecordingError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st
from mutations import changed_bytes
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from forewarn.errors import RecordingError
from forewarn.recordings.registry import open_recording

KINDS = (
    "none.mcap", "storage.mcap", "message.mcap", "file.mcap.zstd", "none.db3", "message.db3",
    "file.db3.zstd", "none.bag", "bz2.bag", "lz4.bag", "trace.jsonl", "agents.jsonl",
    "chats.json",
)  # fmt: skip
TEXT, FLOAT = "std_msgs/msg/String", "std_msgs/msg/Float64"


def write(kind: str, folder: Path) -> bytes:
    """Return the bytes of a small recording of 12 messages on two topics."""
    if kind == "trace.jsonl":
        return b'{"t": 1, "a": 2.5}\n{"t": 2, "a": [1, "b"]}\n' * 20
    if kind == "agents.jsonl":
        return b'{"task": "a", "steps": [{"action": "b", "args": {"c": [1]}, "error": "d"}]}\n' * 9
    if kind == "chats.json":
        call = b'{"role": "a", "tool_calls": [{"id": "b", "function": {"name": "c"}}]}'
        return b'[{"traj": [%b, {"role": "tool", "tool_call_id": "b", "content": 1}]}]' % call
    mode, ending = kind.split(".")[:2]
    path = folder / kind.replace(".", "-")
    if ending == "bag":
        store = get_typestore(Stores.ROS1_NOETIC)
        path = path.with_suffix(".bag")
        one = Writer1(path)
        if mode != "none":
            one.set_compression(Writer1.CompressionFormat[mode.upper()])
        with one:
            _fill(one, store, store.serialize_ros1)
        return path.read_bytes()
    store = get_typestore(Stores.ROS2_HUMBLE)
    plugin = StoragePlugin.MCAP if ending == "mcap" else StoragePlugin.SQLITE3
    two = Writer(path, version=9, storage_plugin=plugin)
    two.set_compression(CompressionMode[mode.upper()], CompressionFormat.ZSTD)
    with two:
        _fill(two, store, store.serialize_cdr)
    return next(
        one_path for one_path in path.iterdir() if one_path.name != "metadata.yaml"
    ).read_bytes()


def _fill(writer, store, serialize) -> None:
    connections = {
        name: writer.add_connection(topic, name, typestore=store)
        for topic, name in (("/text", TEXT), ("/number", FLOAT))
    }
    for number in range(6):
        for name, value in ((TEXT, f"text {number}"), (FLOAT, number / 2)):
            payload = serialize(store.types[name](value), name)
            writer.write(connections[name], 1_000_000_000 + number * 50_000_000, payload)


@pytest.mark.parametrize("group", ["mcap", "db3", "bag", "jsonl", "json"])
def test_recordings(fuzz, tmp_path, group):
    kinds = [kind for kind in KINDS if group in kind.split(".")]
    originals = {kind: write(kind, tmp_path) for kind in kinds}

    def check(case: tuple[str, bytes]) -> None:
        kind, content = case
        path = tmp_path / kind
        path.write_bytes(content)
        try:
            with open_recording(path) as recording:
                for info in recording.topics.values():
                    assert (info.error is None) == (info.message_type is not None)
                latest = 0
                for sample in recording.read():
                    assert latest <= sample.time_ns < 1 << 63
                    latest = sample.time_ns
                recording.metadata()
                recording.attachments()
        except RecordingError as error:
            assert str(path) in str(error)
        finally:
            path.unlink()

    cases = st.one_of(
        *(
            st.tuples(st.just(kind), changed_bytes([original]))
            for kind, original in originals.items()
        )
    )
    fuzz(cases, check)
