"""A segment of comma2k19 as rosbag2 files: what the car's bus said, on ROS 2 topics.

    python -m evaluation.real.comma DATA --output FOLDER

DATA is a segment (a folder with `processed_log`). Two bags are written, cut at `--cut` seconds:
`first` to learn from and `rest` to predict. Log times are those of the source, which count from
the phone's start, and begin at zero here.

| Topic | Type | Source |
|---|---|---|
| `/vehicle/speed` | `geometry_msgs/msg/TwistStamped` | speed on the bus, 83 Hz |
| `/vehicle/acceleration` | `geometry_msgs/msg/AccelStamped` | its change over the last 0.5 s |
| `/radar/tracks` | `visualization_msgs/msg/MarkerArray` | all tracks of one sweep, 20 Hz |
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
SPEED = ("/vehicle/speed", "geometry_msgs/msg/TwistStamped")
ACCELERATION = ("/vehicle/acceleration", "geometry_msgs/msg/AccelStamped")
TRACKS = ("/radar/tracks", "visualization_msgs/msg/MarkerArray")

SWEEP_GAP = 0.02
"""Seconds without a track that part two sweeps; the tracks of one come within 10 ms."""

SLOPE = 0.5

Floats = NDArray[np.float64]


class Segment(NamedTuple):
    """Times in seconds from the beginning, and what was measured at them.

    Columns of `radar` are distance ahead, to the left, and relative speed (m, m, m/s), then two
    that are empty, the track's number, and whether it is new.
    """

    speed_time: Floats
    speed: Floats
    radar_time: Floats
    radar: Floats


class Message(NamedTuple):
    """A serialized message and its log time."""

    time_ns: int
    topic: tuple[str, str]
    data: bytes


def load_segment(folder: Path) -> Segment:
    """Read a segment of comma2k19; raises FileNotFoundError if it is none."""
    bus = folder / "processed_log" / "CAN"
    if not bus.is_dir():
        raise FileNotFoundError(f"{folder} is no segment of comma2k19: it lacks processed_log/CAN")
    speed_time, radar_time = np.load(bus / "speed" / "t"), np.load(bus / "radar" / "t")
    start = min(speed_time[0], radar_time[0])
    return Segment(
        speed_time - start,
        np.load(bus / "speed" / "value")[:, 0],
        radar_time - start,
        np.load(bus / "radar" / "value"),
    )


def messages(segment: Segment) -> Iterator[Message]:
    """Yield all messages of a segment in the order of time."""
    yield from sorted([*_motion(segment), *_sweeps(segment)], key=lambda each: each.time_ns)


def _motion(segment: Segment) -> Iterator[Message]:
    times, speeds = segment.speed_time, segment.speed
    before = np.maximum(np.searchsorted(times, times - SLOPE), 0)
    spans = times - times[before]
    for row, time in enumerate(times):
        stamp = _ns(time)
        linear = _new("geometry_msgs/msg/Vector3", x=float(speeds[row]), y=0.0, z=0.0)
        twist = _new("geometry_msgs/msg/Twist", linear=linear, angular=_ZERO)
        yield _message(stamp, SPEED, header=_header(stamp), twist=twist)
        if spans[row] > SLOPE / 2:
            slope = float((speeds[row] - speeds[before[row]]) / spans[row])
            linear = _new("geometry_msgs/msg/Vector3", x=slope, y=0.0, z=0.0)
            accel = _new("geometry_msgs/msg/Accel", linear=linear, angular=_ZERO)
            yield _message(stamp, ACCELERATION, header=_header(stamp), accel=accel)


def _sweeps(segment: Segment) -> Iterator[Message]:
    cuts = np.flatnonzero(np.diff(segment.radar_time) > SWEEP_GAP) + 1
    for times, tracks in zip(
        np.split(segment.radar_time, cuts), np.split(segment.radar, cuts), strict=True
    ):
        stamp = _ns(times[-1])  # the sweep is known when its last track is
        yield _message(stamp, TRACKS, markers=[_marker(track, stamp) for track in tracks])


def _ns(time: float) -> int:
    return round(float(time) * 1e9)


def _new(name: str, **fields: Any) -> Any:
    return STORE.types[name](**fields)


_ZERO = _new("geometry_msgs/msg/Vector3", x=0.0, y=0.0, z=0.0)


def _message(stamp: int, topic: tuple[str, str], **fields: Any) -> Message:
    data = bytes(STORE.serialize_cdr(_new(topic[1], **fields), topic[1]))
    return Message(stamp, topic, data)


def _header(stamp: int) -> Any:
    time = _new("builtin_interfaces/msg/Time", sec=stamp // 10**9, nanosec=stamp % 10**9)
    return _new("std_msgs/msg/Header", stamp=time, frame_id="base_link")


def _point(x: float, y: float) -> Any:
    return _new("geometry_msgs/msg/Point", x=float(x), y=float(y), z=0.0)


def _marker(track: Floats, stamp: int) -> Any:
    """Return a track: points[0] is where it is, points[1] less points[0] its relative velocity."""
    upright = _new("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
    nothing = np.zeros(0, np.uint8)
    image = _new("sensor_msgs/msg/CompressedImage", header=_header(0), format="", data=nothing)
    return _new(
        TRACKS[1].replace("MarkerArray", "Marker"),
        header=_header(stamp),
        ns="radar",
        id=int(track[5]),
        type=1,  # CUBE
        action=0,  # ADD
        pose=_new(
            "geometry_msgs/msg/Pose", position=_point(track[0], track[1]), orientation=upright
        ),
        scale=_new("geometry_msgs/msg/Vector3", x=0.5, y=0.5, z=0.5),
        color=_new("std_msgs/msg/ColorRGBA", r=0.2, g=0.4, b=1.0, a=0.8),
        lifetime=_new("builtin_interfaces/msg/Duration", sec=0, nanosec=150_000_000),
        frame_locked=False,
        points=[_point(track[0], track[1]), _point(track[0] + track[2], track[1])],
        colors=[],
        texture_resource="",
        texture=image,
        uv_coordinates=[],
        text="",
        mesh_resource="",
        mesh_file=_new("visualization_msgs/msg/MeshFile", filename="", data=nothing),
        mesh_use_embedded_materials=False,
    )


def write_bags(data: Path, output: Path, cut: float) -> tuple[Path, Path]:
    """Write what came before `cut` seconds and what came from then on; return both bags."""
    first, rest = output / "first", output / "rest"
    everything = list(messages(load_segment(data)))
    output.mkdir(parents=True, exist_ok=True)
    for path, kept in (
        (first, [m for m in everything if m.time_ns < cut * 1e9]),
        (rest, [m for m in everything if m.time_ns >= cut * 1e9]),
    ):
        with Writer(path, version=8, storage_plugin=StoragePlugin.MCAP) as writer:
            connections = {
                topic: writer.add_connection(*topic, typestore=STORE)
                for topic in (SPEED, ACCELERATION, TRACKS)
            }
            for message in kept:
                writer.write(connections[message.topic], message.time_ns, message.data)
    return first, rest


def main() -> None:
    """Write the bags."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="a segment of comma2k19")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cut", type=float, default=40.0, help="seconds to learn from (40)")
    arguments = parser.parse_args()
    for path in write_bags(arguments.data, arguments.output, arguments.cut):
        print(path)


if __name__ == "__main__":
    main()
