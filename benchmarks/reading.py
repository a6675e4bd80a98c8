"""How fast recordings are read, against the bare loop over `rosbags`' reader.

Writes ten minutes of a robot's topics in every format, then times, best of several turns, the
loop ``for message in reader.messages()`` and the loop over `forewarn.recordings`. Run it with
``python benchmarks/reading.py``; ``--json`` prints the figures for machines.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from forewarn.recordings import open_recording

STORES = {1: get_typestore(Stores.ROS1_NOETIC), 2: get_typestore(Stores.ROS2_HUMBLE)}
RATES = {"/odom": 50.0, "/objects": 10.0, "/light": 10.0, "/path": 5.0}


class Figure(NamedTuple):
    """Messages a second, for one format and choice of topics."""

    form: str
    topics: str
    messages: int
    rosbags: float
    forewarn: float
    opening: float

    @property
    def ratio(self) -> float:
        """How many times the rate of the bare loop."""
        return self.forewarn / self.rosbags


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


def best_rates(
    loops: Sequence[Callable[[], Iterable[object]]], turns: int
) -> tuple[list[float], list[int]]:
    """Return messages a second of each loop's fastest turn, and what each counts.

    The loops take turns, so that whatever else the machine does slows all of them.
    """
    fastest = [float("inf")] * len(loops)
    counts = [0] * len(loops)
    for _ in range(turns):
        for number, loop in enumerate(loops):
            begin = time.perf_counter()
            counts[number] = sum(1 for _ in loop())
            fastest[number] = min(fastest[number], time.perf_counter() - begin)
    return [count / seconds for count, seconds in zip(counts, fastest, strict=True)], counts


def measure(form: str, path: Path, topics: list[str] | None, turns: int) -> Figure:
    """Time both loops over one bag."""
    with AnyReader([path]) as reader, open_recording(path) as recording:
        chosen = [each for each in reader.connections if topics is None or each.topic in topics]
        (theirs, ours), (expected, count) = best_rates(
            [lambda: reader.messages(chosen), lambda: recording.read(topics)], turns
        )
        if count != expected:
            raise SystemExit(f"{form}: {count} messages, rosbags finds {expected}")
    begin = time.perf_counter()
    open_recording(path).close()
    opening = time.perf_counter() - begin
    return Figure(
        form, "all" if topics is None else ", ".join(topics), count, theirs, ours, opening
    )


def run(seconds: float, turns: int) -> list[Figure]:
    """Measure all formats."""
    figures = []
    with TemporaryDirectory() as folder:
        for form, path in write_all(Path(folder), seconds):
            figures.append(measure(form, path, None, turns))
            figures.append(measure(form, path, ["/light"], turns))
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="length of the bags")
    parser.add_argument("--turns", type=int, default=7, help="the best of how many turns counts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = run(options.seconds, options.turns)
    if options.json:
        print(json.dumps([{**each._asdict(), "ratio": each.ratio} for each in figures], indent=2))
        return
    print(f"{'format':24} {'topics':8} {'messages':>8} {'rosbags/s':>11} {'forewarn/s':>11} ratio")
    for each in figures:
        print(
            f"{each.form:24} {each.topics:8} {each.messages:8} {each.rosbags:11,.0f} "
            f"{each.forewarn:11,.0f} {each.ratio:5.2f}"
        )


if __name__ == "__main__":
    main()
