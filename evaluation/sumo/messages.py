"""Turn simulation frames into what a robot publishes, in standard ROS 2 messages.

Stamps, frames and latencies are those of a robot as well.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from evaluation.harness.messages import EPOCH_NS, Message, header, message
from evaluation.sumo.simulation import STEP, Body, Frame, Light
from evaluation.sumo.surroundings import Surroundings

# As in autoware_perception_msgs/TrafficLightElement; 0: there is none.
LIGHT_CODES = {"red": 1, "yellow": 2, "green": 3}
LIGHT_UNKNOWN = 0
NO_STOP_LINE = math.inf
DETECTED, TRACKED, PLANNED, MEASURED = (30.0, 6.0), (35.0, 8.0), (12.0, 4.0), (2.0, 0.6)
"""Latencies: the least and the mean extra one, in milliseconds."""


class Published(NamedTuple):
    """A topic: its type, the steps from one message to the next, and its latency."""

    name: str
    type: str
    every: int
    latency_ms: tuple[float, float]


def _number(name: str, latency: tuple[float, float]) -> Published:
    return Published(name, "std_msgs/msg/Float64", 5, latency)


ODOMETRY = Published("/ego/odometry", "nav_msgs/msg/Odometry", 1, MEASURED)
ACCELERATION = Published("/ego/acceleration", "geometry_msgs/msg/AccelStamped", 5, MEASURED)
COLLISION = Published("/ego/collision", "std_msgs/msg/Bool", 5, (3.0, 1.0))
OBJECTS = Published("/perception/objects", "visualization_msgs/msg/MarkerArray", 5, TRACKED)
LIGHT = Published("/perception/traffic_light", "std_msgs/msg/UInt8", 5, DETECTED)
STOP_LINE = _number("/perception/stop_line_distance", DETECTED)
LIGHT_AGE = _number("/perception/traffic_light_age", DETECTED)
PATH = Published("/planning/path", "nav_msgs/msg/Path", 10, PLANNED)
TOPICS = (ODOMETRY, ACCELERATION, COLLISION, OBJECTS, LIGHT, STOP_LINE, LIGHT_AGE, PATH)
# What the traffic laws of evaluation/study ask for; published by its recordings only.
DIRECTION = Published("/planning/direction", "std_msgs/msg/UInt8", 5, PLANNED)
ROAD = {
    "junction": _number("/perception/junction_distance", DETECTED),
    "lead_distance": _number("/perception/lead_distance", TRACKED),
    "lead_speed": _number("/perception/lead_speed", TRACKED),
    "exit_space": _number("/perception/exit_space", TRACKED),
    "exit_speed": _number("/perception/exit_speed", TRACKED),
    "crossing_time": _number("/perception/crossing_time", TRACKED),
    "yield_gap": _number("/perception/yield_gap", TRACKED),
}
ROAD_TOPICS = (ROAD["junction"], DIRECTION, *list(ROAD.values())[1:])


def publish(frames: Iterable[Frame], seed: int) -> Iterator[Message]:
    """Yield the messages of a run in the order of their arrival.

    Latencies come from a generator seeded with `seed`; messages of one topic never overtake
    each other.
    """
    rng = random.Random(zlib.crc32(f"latency {seed}".encode()))
    pending: list[Message] = []
    last: dict[Published, int] = {}
    for frame in frames:
        stamp = EPOCH_NS + round(frame.step * STEP * 1e9)
        for topic, fields in _messages(frame, stamp):
            least, extra = topic.latency_ms
            arrival = stamp + round((least + min(rng.expovariate(1 / extra), 8 * extra)) * 1e6)
            last[topic] = arrival = max(arrival, last.get(topic, 0) + 1)
            pending.append(Message(arrival, topic, message(topic.type, fields)))
        pending.sort(key=lambda item: item.time_ns)
        while pending and pending[0].time_ns <= stamp:
            yield pending.pop(0)
    yield from pending


def _messages(frame: Frame, stamp: int) -> Iterator[tuple[Published, dict[str, Any]]]:
    yield ODOMETRY, _odometry(frame, stamp)
    if frame.step % 5 == 0:
        across = grid(frame.speed * frame.yaw_rate, 256)
        linear = {"x": grid(frame.acceleration, 256), "y": across}
        yield ACCELERATION, {"header": header(stamp, "base_link"), "accel": {"linear": linear}}
        yield COLLISION, {"data": frame.collision}
    if frame.objects is not None:
        yield OBJECTS, {"markers": [_marker(body, stamp) for body in frame.objects]}
    if frame.step % 5 == 0:
        yield from ((topic, {"data": value}) for topic, value in light_values(frame.light).items())
    if frame.path is not None:
        yield PATH, _path(frame.path, stamp)
    if frame.surroundings is not None:
        yield DIRECTION, {"data": frame.surroundings.direction}
        for name, value in road_values(frame.surroundings).items():
            yield ROAD[name], {"data": value}


def light_values(light: Light | None) -> dict[Published, float]:
    """Return colour, distance and age of the ego's light, as they are published."""
    if light is None:
        return {LIGHT: LIGHT_UNKNOWN, STOP_LINE: NO_STOP_LINE, LIGHT_AGE: 0.0}
    return {
        LIGHT: LIGHT_CODES[light.colour],
        STOP_LINE: grid(light.distance, 256),
        LIGHT_AGE: grid(light.age, 64),
    }


def road_values(seen: Surroundings) -> dict[str, float]:
    """Return the numbers of the road ahead, as they are published."""
    found = ((name, getattr(seen, name)) for name in ROAD)
    return {name: value if math.isinf(value) else grid(value, 256) for name, value in found}


def grid(value: float, per_unit: int = 1024) -> float:
    """Round to the resolution of a sensor; short binary fractions keep the recordings small."""
    return round(value * per_unit) / per_unit


def _pose(x: float, y: float, yaw: float, z: float = 0.0, per_metre: int = 1024) -> dict[str, Any]:
    half = grid(yaw, 8192) / 2
    return {
        "position": {"x": grid(x, per_metre), "y": grid(y, per_metre), "z": z},
        "orientation": {"z": grid(math.sin(half), 1 << 16), "w": grid(math.cos(half), 1 << 16)},
    }


def _odometry(frame: Frame, stamp: int) -> dict[str, Any]:
    linear = {"x": grid(frame.speed), "y": grid(frame.lateral_speed)}
    return {
        "header": header(stamp, "map"),
        "child_frame_id": "base_link",
        "pose": {"pose": _pose(frame.x, frame.y, frame.yaw)},
        "twist": {"twist": {"linear": linear, "angular": {"z": grid(frame.yaw_rate)}}},
    }


def _marker(body: Body, stamp: int) -> dict[str, Any]:
    height = 1.5 if body.kind == "vehicle" else 1.75
    rgb = (0.2, 0.4, 1.0) if body.kind == "vehicle" else (1.0, 0.6, 0.1)
    pose = _pose(body.x, body.y, body.yaw, height / 2, per_metre=256)
    here = pose["position"]
    ahead = {
        "x": here["x"] + grid(body.speed * math.cos(body.yaw), 256),
        "y": here["y"] + grid(body.speed * math.sin(body.yaw), 256),
        "z": height / 2,
    }
    return {
        "header": header(stamp, "map"),
        "ns": body.kind,
        "id": body.number,
        "type": 1,  # CUBE
        "pose": pose,
        "scale": {"x": body.length, "y": body.width, "z": height},
        "color": {**dict(zip("rgb", rgb, strict=True)), "a": 0.8},
        "lifetime": {"nanosec": 300_000_000},
        "points": [here, ahead],
    }


def _path(points: tuple[tuple[float, float], ...], stamp: int) -> dict[str, Any]:
    poses, yaw = [], 0.0
    for index, (x, y) in enumerate(points):
        if index + 1 < len(points):
            yaw = math.atan2(points[index + 1][1] - y, points[index + 1][0] - x)
        pose = _pose(x, y, yaw, per_metre=256)
        poses.append({"header": header(stamp, "map"), "pose": pose})
    return {"header": header(stamp, "map"), "poses": poses}
