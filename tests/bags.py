"""Bags of ROS written into a test's own folder, with values that can be told apart."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
STORE1 = get_typestore(Stores.ROS1_NOETIC)

MODES = {
    "none": CompressionMode.NONE,
    "file": CompressionMode.FILE,
    "message": CompressionMode.MESSAGE,
    "chunk": CompressionMode.STORAGE,
}
PLUGINS = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


class Message(NamedTuple):
    """A message to record: its value is all that matters."""

    time_ns: int
    topic: str
    value: float


def message_object(store: Any, topic: str, value: float) -> tuple[str, Any]:
    """Return type name and message: /odom is an Odometry with speed `value`, others a Float64."""
    types = store.types
    if topic != "/odom":
        return "std_msgs/msg/Float64", types["std_msgs/msg/Float64"](value)
    stamp = types["builtin_interfaces/msg/Time"](3, 4)
    header = (
        types["std_msgs/msg/Header"](77, stamp, "map")
        if store is STORE1
        else types["std_msgs/msg/Header"](stamp, "map")
    )
    vector, point = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Point"]
    pose = types["geometry_msgs/msg/Pose"](
        point(1.0, 2.0, 3.0), types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    )
    twist = types["geometry_msgs/msg/Twist"](vector(value, 0.0, 0.0), vector(0.0, 0.0, 0.0))
    return "nav_msgs/msg/Odometry", types["nav_msgs/msg/Odometry"](
        header,
        "base_link",
        types["geometry_msgs/msg/PoseWithCovariance"](pose, np.arange(36.0)),
        types["geometry_msgs/msg/TwistWithCovariance"](twist, np.zeros(36)),
    )


def cdr(topic: str, value: float) -> bytes:
    """Return the message of `message_object` in CDR."""
    name, message = message_object(STORE, topic, value)
    return bytes(STORE.serialize_cdr(message, name))


def drive(count: int = 60, start_ns: int = 5_000_000_000) -> list[Message]:
    """Return messages on two topics; every tenth pair is simultaneous."""
    messages = []
    for number in range(count):
        time_ns = start_ns + number * 100_000_000
        messages.append(Message(time_ns, "/odom", float(number)))
        messages.append(Message(time_ns + (0 if number % 10 == 0 else 7), "/limit", number + 0.5))
    return messages


def write_bag(
    path: Path, messages: Iterable[Message], storage: str = "mcap", compression: str = "none"
) -> Path:
    """Write a rosbag2 folder with rosbags' own writer."""
    writer = Writer(path, version=9, storage_plugin=PLUGINS[storage])
    writer.set_compression(MODES[compression], CompressionFormat.ZSTD)
    _record(writer, STORE, STORE.serialize_cdr, messages)
    return path


def write_bag1(path: Path, messages: Iterable[Message], compression: str = "none") -> Path:
    """Write a ROS 1 bag with rosbags' own writer."""
    writer = Writer1(path)
    if compression != "none":
        writer.set_compression(Writer1.CompressionFormat[compression.upper()])
    _record(writer, STORE1, STORE1.serialize_ros1, messages)
    return path


def _record(writer: Any, store: Any, serialize: Any, messages: Iterable[Message]) -> None:
    with writer:
        connections: dict[str, Any] = {}
        for time_ns, topic, value in messages:
            name, message = message_object(store, topic, value)
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, name, typestore=store)
            writer.write(connections[topic], time_ns, serialize(message, name))


def expected(messages: Iterable[Message]) -> list[tuple[int, str, bytes]]:
    """Return what a reader has to yield: stable in time, messages in CDR."""
    return [
        (time_ns, topic, cdr(topic, value))
        for time_ns, topic, value in sorted(messages, key=lambda message: message.time_ns)
    ]


class Bags:
    """Builders and readers of bags."""

    Message = Message
    store = STORE
    store1 = STORE1
    cdr = staticmethod(cdr)
    drive = staticmethod(drive)
    expected = staticmethod(expected)
    message_object = staticmethod(message_object)
    write = staticmethod(write_bag)
    write1 = staticmethod(write_bag1)

    @staticmethod
    def read(recording: Any, topics: Any = None) -> list[tuple[int, str, bytes]]:
        """Return all samples with their payloads as bytes."""
        return [
            (sample.time_ns, sample.topic, bytes(sample.data)) for sample in recording.read(topics)
        ]
