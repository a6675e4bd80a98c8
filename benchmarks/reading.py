"""How fast recordings are read, against the bare loop over `rosbags`' reader.

Writes ten minutes of a robot's topics in every format, then times the loop ``for message in
reader.messages()`` and the loop over `forewarn.recordings`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from benchmarks._harness import Cell, Table, run, take_turns
from forewarn.recordings.registry import open_recording

STORES = {1: get_typestore(Stores.ROS1_NOETIC), 2: get_typestore(Stores.ROS2_HUMBLE)}
RATES = {"/odom": 50.0, "/objects": 10.0, "/light": 10.0, "/path": 5.0}


def topic_messages(version: int) -> dict[str, tuple[str, Any]]:
    """Return a message for each topic: odometry, 20 objects, a light, a path of 50 poses."""
    types = STORES[version].types
    stamp = types["builtin_interfaces/msg/Time"](1, 2)
    header = types["std_msgs/msg/Header"](*([7] if version == 1 else []), stamp, "map")
    point, vector = types["geometry_msgs/msg/Point"], types["geometry_msgs/msg/Vector3"]
    pose = types["geometry_msgs/msg/Pose"](
        point(1.0, 2.0, 0.0), types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    )
    twist = types["geometry_msgs/msg/Twist"](vector(5.0, 0.0, 0.0), vector(0.0, 0.0, 0.1))
    posed = types["geometry_msgs/msg/PoseStamped"](header, pose)
    box = types["geometry_msgs/msg/PolygonStamped"](
        header,
        types["geometry_msgs/msg/Polygon"](
            [types["geometry_msgs/msg/Point32"](1.0, 2.0, 3.0)] * 80
        ),
    )
    odometry = types["nav_msgs/msg/Odometry"](
        header,
        "base_link",
        types["geometry_msgs/msg/PoseWithCovariance"](pose, np.zeros(36)),
        types["geometry_msgs/msg/TwistWithCovariance"](twist, np.zeros(36)),
    )
    return {
        "/odom": ("nav_msgs/msg/Odometry", odometry),
        "/objects": ("geometry_msgs/msg/PolygonStamped", box),
        "/light": ("std_msgs/msg/Float64", types["std_msgs/msg/Float64"](2.0)),
        "/path": ("nav_msgs/msg/Path", types["nav_msgs/msg/Path"](header, [posed] * 50)),
    }


def schedule(seconds: float) -> list[tuple[int, str]]:
    """Return time and topic of all messages, in the order of time."""
    return sorted(
        (round(number / rate * 1e9), topic)
        for topic, rate in RATES.items()
        for number in range(int(seconds * rate))
    )


def write(path: Path, version: int, seconds: float, prepare: Callable[[Any], None]) -> Path:
    """Write a bag of `seconds` with rosbags' writer."""
    store = STORES[version]
    serialize = store.serialize_ros1 if version == 1 else store.serialize_cdr
    writer: Any = Writer1(path) if version == 1 else None
    if writer is None:
        plugin = StoragePlugin.SQLITE3 if path.name == "sqlite3" else StoragePlugin.MCAP
        writer = Writer(path, version=9, storage_plugin=plugin)
    prepare(writer)
    with writer:
        ready = {
            topic: (writer.add_connection(topic, name, typestore=store), serialize(message, name))
            for topic, (name, message) in topic_messages(version).items()
        }
        for time_ns, topic in schedule(seconds):
            writer.write(ready[topic][0], time_ns, ready[topic][1])
    return path


def write_all(folder: Path, seconds: float) -> Iterator[tuple[str, Path]]:
    """Write one bag of every format."""

    def compress(mode: CompressionMode) -> Callable[[Any], None]:
        return lambda writer: writer.set_compression(mode, CompressionFormat.ZSTD)

    plain = compress(CompressionMode.NONE)
    yield (
        "MCAP, zstd chunks",
        write(folder / "chunks", 2, seconds, compress(CompressionMode.STORAGE)),
    )
    yield "MCAP, not compressed", write(folder / "mcap", 2, seconds, plain)
    yield (
        "MCAP, zstd messages",
        write(folder / "messages", 2, seconds, compress(CompressionMode.MESSAGE)),
    )
    yield "SQLite", write(folder / "sqlite3", 2, seconds, plain)
    yield "ROS 1, raw against CDR", write(folder / "ros1.bag", 1, seconds, lambda _: None)


def count(messages: Iterable[object]) -> int:
    """Return how many messages there are."""
    return sum(1 for _ in messages)


def compare(form: str, path: Path, topics: list[str] | None, turns: int) -> tuple[Cell, ...]:
    """Time both loops over one bag."""
    with AnyReader([path]) as reader, open_recording(path) as recording:
        chosen = [
            connection
            for connection in reader.connections
            if topics is None or connection.topic in topics
        ]
        theirs, ours = take_turns(
            lambda: count(reader.messages(chosen)),
            lambda: count(recording.read(topics)),
            turns=turns,
        )
        if ours.result != theirs.result:
            raise SystemExit(f"{form}: {ours.result} messages, rosbags finds {theirs.result}")
    return (
        form,
        "all" if topics is None else ", ".join(topics),
        theirs.result / theirs.seconds,
        ours.result / ours.seconds,
        theirs.seconds / ours.seconds,
    )


def measure(seconds: float = 600.0, turns: int = 7) -> list[Table]:
    """Measure bags of so many seconds in all formats."""
    with TemporaryDirectory() as folder:
        rows = [
            compare(form, path, topics, turns)
            for form, path in write_all(Path(folder), seconds)
            for topics in (None, ["/light"])
        ]
    columns = ("Format", "Topics", "rosbags, messages/s", "Forewarn, messages/s", "Ratio")
    return [Table(columns, rows)]


if __name__ == "__main__":
    sys.exit(run(measure))
