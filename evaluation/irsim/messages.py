"""Frames as a robot with Nav2 publishes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.harness import messages
from evaluation.harness.messages import EPOCH_NS, Message, Topic, header, message, stamp
from evaluation.irsim.approach import DIRECTIONS, Approaches
from evaluation.irsim.planner import Path as Way
from evaluation.irsim.robot import Command, Frame
from evaluation.irsim.scenes import ANGLES, RANGE, RATE

PERIOD_NS = round(1e9 / RATE)
THINKING_NS = 5_000_000
"""How much later than its scan a command comes, so that it belongs to the next tick."""

SCAN = Topic("/scan", "sensor_msgs/msg/LaserScan")
APPROACH = Topic("/scan/approach", "sensor_msgs/msg/LaserScan")
"""Not a scanner's: nearest point (`ranges`) and its approach (`intensities`) of each sector."""

ODOMETRY = Topic("/odom", "nav_msgs/msg/Odometry")
COMMAND = Topic("/cmd_vel", "geometry_msgs/msg/TwistStamped")
BUMPER = Topic("/bumper", "std_msgs/msg/Bool")
GOAL = Topic("/navigate_to_pose/_action/status", "action_msgs/msg/GoalStatusArray")
PLAN = Topic("/plan", "nav_msgs/msg/Path")
TOPICS = (SCAN, APPROACH, ODOMETRY, COMMAND, BUMPER, GOAL, PLAN)
EXECUTING, SUCCEEDED = 2, 4

Floats = NDArray[np.float64]
_NOTHING: Floats = np.zeros(0)


def time_of(tick: int) -> int:
    """Return when a tick is."""
    return EPOCH_NS + tick * PERIOD_NS


def _message(time_ns: int, topic: Topic, fields: dict[str, Any]) -> Message:
    return Message(time_ns, topic, message(topic.type, fields))


class Publisher:
    """The robot's nodes of one episode; a node that compares scans has to remember."""

    def __init__(self) -> None:
        self._approaches = Approaches()

    def sensed(self, frame: Frame) -> Iterator[Message]:
        """Yield what the robot publishes of a frame."""
        now = time_of(frame.tick)
        approach = self._approaches.see(frame.pose, frame.ranges)
        yield _message(now, SCAN, _scan(ANGLES, frame.ranges, now))
        yield _message(now, APPROACH, _scan(DIRECTIONS, approach.nearest, now, approach.speed))
        yield _message(now, ODOMETRY, _odometry(frame, now))
        yield _message(now, BUMPER, {"data": frame.collided})
        if frame.tick == 0 or frame.arrived:
            status = SUCCEEDED if frame.arrived else EXECUTING
            number = {"uuid": np.arange(16, dtype=np.uint8)}
            goal = {"goal_info": {"goal_id": number, "stamp": stamp(now)}, "status": status}
            yield _message(now, GOAL, {"status_list": [goal]})


def commanded(frame: Frame, command: Command) -> Message:
    """Return the command that follows a frame."""
    now = time_of(frame.tick) + THINKING_NS
    return _message(now, COMMAND, {"header": header(now, "base_link"), "twist": _twist(*command)})


def planned(frame: Frame, path: Way) -> Message:
    """Return the path that the planner means to drive, as of its look at a frame."""
    now = time_of(frame.tick) + THINKING_NS
    poses = [
        {"header": header(now, "odom"), "pose": {"position": {"x": x, "y": y}}}
        for x, y in zip(*path, strict=True)
    ]
    return _message(now, PLAN, {"header": header(now, "odom"), "poses": poses})


def write_bag(path: Path, episode: Iterable[tuple[Frame, Command, Way | None]]) -> None:
    """Write an episode as a bag, which must not exist."""

    def published() -> Iterator[Message]:
        publisher = Publisher()
        for frame, command, way in episode:
            yield from publisher.sensed(frame)
            if not frame.over:
                if way is not None:
                    yield planned(frame, way)
                yield commanded(frame, command)

    messages.write_bag(path, TOPICS, published())


def _twist(speed: float, turn: float) -> dict[str, Any]:
    return {"linear": {"x": float(speed)}, "angular": {"z": float(turn)}}


def _scan(
    angles: Floats, ranges: Floats, now: int, intensities: Floats = _NOTHING
) -> dict[str, Any]:
    return {
        "header": header(now, "base_link"),
        "angle_min": float(angles[0]),
        "angle_max": float(angles[-1]),
        "angle_increment": float(angles[1] - angles[0]),
        "scan_time": 1 / RATE,
        "range_min": 0.1,
        "range_max": RANGE,
        "ranges": ranges.astype(np.float32),
        "intensities": intensities.astype(np.float32),
    }


def _odometry(frame: Frame, now: int) -> dict[str, Any]:
    x, y, yaw = frame.pose
    turned = {"z": math.sin(yaw / 2), "w": math.cos(yaw / 2)}
    return {
        "header": header(now, "odom"),
        "child_frame_id": "base_link",
        "pose": {"pose": {"position": {"x": x, "y": y}, "orientation": turned}},
        "twist": {"twist": _twist(frame.speed, frame.turn)},
    }
