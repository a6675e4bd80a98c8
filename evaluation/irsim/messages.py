"""Frames as a robot with Nav2 publishes them, and as bags."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from evaluation.irsim.approach import DIRECTIONS, Approaches
from evaluation.irsim.robot import Command, Frame
from evaluation.irsim.scenes import ANGLES, RANGE, RATE

STORE = get_typestore(Stores.ROS2_HUMBLE)
EPOCH_NS = 1_700_000_000_000_000_000
"""When every episode begins."""

PERIOD_NS = round(1e9 / RATE)
THINKING_NS = 5_000_000
"""How much later than its scan a command comes, so that it belongs to the next tick."""

SCAN = ("/scan", "sensor_msgs/msg/LaserScan")
APPROACH = ("/scan/approach", "sensor_msgs/msg/LaserScan")
"""Not a scanner's: nearest point (`ranges`) and its approach (`intensities`) of each sector."""

ODOMETRY = ("/odom", "nav_msgs/msg/Odometry")
COMMAND = ("/cmd_vel", "geometry_msgs/msg/TwistStamped")
BUMPER = ("/bumper", "std_msgs/msg/Bool")
GOAL = ("/navigate_to_pose/_action/status", "action_msgs/msg/GoalStatusArray")
TOPICS = (SCAN, APPROACH, ODOMETRY, COMMAND, BUMPER, GOAL)
EXECUTING, SUCCEEDED = 2, 4

Floats = NDArray[np.float64]
_NOTHING: Floats = np.zeros(0)


class Message(NamedTuple):
    """A message, when it arrives, and its topic and type."""

    time_ns: int
    topic: tuple[str, str]
    fields: Any

    @property
    def data(self) -> bytes:
        """The message in CDR."""
        return bytes(STORE.serialize_cdr(self.fields, self.topic[1]))


def time_of(tick: int) -> int:
    """Return when a tick is."""
    return EPOCH_NS + tick * PERIOD_NS


class Publisher:
    """The robot's nodes of one episode; a node that compares scans has to remember."""

    def __init__(self) -> None:
        self._approaches = Approaches()

    def sensed(self, frame: Frame) -> Iterator[Message]:
        """Yield what the robot publishes of a frame."""
        now = time_of(frame.tick)
        approach = self._approaches.see(frame.pose, frame.ranges)
        yield Message(now, SCAN, _scan(ANGLES, frame.ranges, now))
        yield Message(now, APPROACH, _scan(DIRECTIONS, approach.nearest, now, approach.speed))
        yield Message(now, ODOMETRY, _odometry(frame, now))
        yield Message(now, BUMPER, _new(BUMPER[1], data=frame.collided))
        if frame.tick == 0 or frame.arrived:
            yield Message(now, GOAL, _goal(SUCCEEDED if frame.arrived else EXECUTING, now))


def commanded(frame: Frame, command: Command) -> Message:
    """Return the command that follows a frame."""
    now = time_of(frame.tick) + THINKING_NS
    twist = _twist(*command)
    return Message(now, COMMAND, _new(COMMAND[1], header=_header(now, "base_link"), twist=twist))


def write_bag(path: Path, episode: Iterable[tuple[Frame, Command]]) -> None:
    """Write an episode as a rosbag2 folder (MCAP, zstd); it must not exist."""
    writer = Writer(path, version=8, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        known = {topic: writer.add_connection(*topic, typestore=STORE) for topic in TOPICS}
        publisher = Publisher()
        for frame, command in episode:
            for message in publisher.sensed(frame):
                writer.write(known[message.topic], message.time_ns, message.data)
            if not frame.over:
                last = commanded(frame, command)
                writer.write(known[last.topic], last.time_ns, last.data)


def _new(name: str, **fields: Any) -> Any:
    return STORE.types[name](**fields)


def _stamp(now: int) -> Any:
    return _new("builtin_interfaces/msg/Time", sec=now // 10**9, nanosec=now % 10**9)


def _header(now: int, frame_id: str) -> Any:
    return _new("std_msgs/msg/Header", stamp=_stamp(now), frame_id=frame_id)


def _vector(x: float = 0.0, z: float = 0.0) -> Any:
    return _new("geometry_msgs/msg/Vector3", x=float(x), y=0.0, z=float(z))


def _twist(speed: float, turn: float) -> Any:
    return _new("geometry_msgs/msg/Twist", linear=_vector(speed), angular=_vector(z=turn))


def _scan(angles: Floats, ranges: Floats, now: int, intensities: Floats = _NOTHING) -> Any:
    return _new(
        SCAN[1],
        header=_header(now, "base_link"),
        angle_min=float(angles[0]),
        angle_max=float(angles[-1]),
        angle_increment=float(angles[1] - angles[0]),
        time_increment=0.0,
        scan_time=1 / RATE,
        range_min=0.1,
        range_max=RANGE,
        ranges=ranges.astype(np.float32),
        intensities=intensities.astype(np.float32),
    )


def _odometry(frame: Frame, now: int) -> Any:
    x, y, yaw = frame.pose
    unknown = np.zeros(36)
    turned = _new(
        "geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=math.sin(yaw / 2), w=math.cos(yaw / 2)
    )
    pose = _new(
        "geometry_msgs/msg/Pose",
        position=_new("geometry_msgs/msg/Point", x=x, y=y, z=0.0),
        orientation=turned,
    )
    return _new(
        ODOMETRY[1],
        header=_header(now, "odom"),
        child_frame_id="base_link",
        pose=_new("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=unknown),
        twist=_new(
            "geometry_msgs/msg/TwistWithCovariance",
            twist=_twist(frame.speed, frame.turn),
            covariance=unknown,
        ),
    )


def _goal(status: int, now: int) -> Any:
    number = _new("unique_identifier_msgs/msg/UUID", uuid=np.arange(16, dtype=np.uint8))
    info = _new("action_msgs/msg/GoalInfo", goal_id=number, stamp=_stamp(now))
    each = _new("action_msgs/msg/GoalStatus", goal_info=info, status=status)
    return _new(GOAL[1], status_list=[each])
