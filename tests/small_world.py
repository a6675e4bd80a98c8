"""A small world for tests and benchmarks: its bags, its monitor file, a model learned from it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from forewarn.cli import main
from forewarn.config.file import load_spec
from forewarn.learning.pipeline import learn
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.models.file import save_model
from forewarn.monitoring.build import compile_spec
from forewarn.recordings.writing import RecordingWriter

LATENCY_NS = 25_000_000
START_NS = 1_700_000_000_040_000_000
ODOMETRY, DISTANCE = "/world/odometry", "/world/distance"
GATED = "actuators: {twist: {input: /raw, output: /cmd, max_speed: 1, max_turn: 1}}"
TYPES = {ODOMETRY: "nav_msgs/msg/Odometry", DISTANCE: "std_msgs/msg/Float32"}
MONITOR = """\
version: 1
rate: 10
startup_grace: 1.0
signals:
  speed:
    topic: /world/odometry
    type: nav_msgs/msg/Odometry
    value: twist.twist.linear.x
    timeout: 0.5
  distance: {topic: /world/distance, type: std_msgs/msg/Float32, value: data, timeout: 0.5}
  ttc: {value: "distance / max(speed, 0.1)"}
predicates:
  moving: speed > 0.5
  close: distance < 8
bins:
  ttc: [1, 2]
terminal: {collision: distance <= 0.5}
properties:
  brake:
    formula: always(close implies eventually[0:1](not moving))
    horizon: 2.0
    thresholds: {warn: 0.2, act: 0.4, release: 0.15}
    enter: 1
    exit: 2
    hold: 0.2
    intervention: COMFORTABLE_STOP
  no_collision:
    formula: always(not collision)
    horizon: 3.0
    thresholds: {warn: 0.1, act: 0.3, release: 0.05}
    intervention: LIMIT_SPEED
    speed_limit: 1.0
"""


def world(seed: int, seconds: float) -> Iterator[tuple[int, str, float]]:
    """Yield (time, topic, value): a car that closes in on something and often brakes late."""
    rng = random.Random(seed)
    speed, distance, braking = 3.0, 30.0, False
    for step in range(round(seconds * 50)):
        time_ns = START_NS + step * 20_000_000 + rng.randrange(3_000_000)
        if distance < 8 and not braking and rng.random() < 0.012:
            braking = True
        if distance < 0.3 or (braking and speed == 0.0 and rng.random() < 0.02):
            speed, distance, braking = 3.0, rng.uniform(15, 30), False
        speed = max(0.0, speed - 0.12) if braking else speed
        distance -= speed * 0.02
        yield time_ns, ODOMETRY, speed
        if step % 5 == 0:
            yield time_ns + 1_000_000, DISTANCE, distance


@lru_cache
def _type(topic: str) -> tuple[MessageType, Any]:
    mtype = installed_message_type(TYPES[topic])
    return mtype, mtype.typestore


def serialized(topic: str, value: float, stamp_ns: int = 0) -> bytes:
    """Return a message of the world in CDR."""
    mtype, store = _type(topic)
    float32 = store.types["std_msgs/msg/Float32"] if topic == DISTANCE else None
    message = float32(data=value) if float32 else _odometry(store, value, stamp_ns)
    return bytes(store.serialize_cdr(message, mtype.name))


def _odometry(store: Any, speed: float, stamp_ns: int) -> Any:
    types = store.types
    vector = types["geometry_msgs/msg/Vector3"]
    zero = np.zeros(36)
    stamp = types["builtin_interfaces/msg/Time"](sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    pose = types["geometry_msgs/msg/Pose"](
        position=types["geometry_msgs/msg/Point"](x=0.0, y=0.0, z=0.0),
        orientation=types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    twist = types["geometry_msgs/msg/Twist"](
        linear=vector(x=speed, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=0.0)
    )
    return types["nav_msgs/msg/Odometry"](
        header=types["std_msgs/msg/Header"](stamp=stamp, frame_id="odom"),
        child_frame_id="base_link",
        pose=types["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=zero),
        twist=types["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=zero),
    )


def write_bag(path: Path, seed: int, seconds: float) -> Path:
    """Record the world as an MCAP file."""
    definitions = {}
    for topic, name in TYPES.items():
        definitions[topic] = _type(topic)[1].generate_msgdef(name, ros_version=2)[0]
    with RecordingWriter(path) as writer:
        for time_ns, topic, value in world(seed, seconds):
            payload = serialized(topic, value, time_ns - LATENCY_NS)
            writer.write(topic, TYPES[topic], definitions[topic], time_ns, payload)
    return path


def write_world(folder: Path, *, seconds: float = 12.0, text: str = MONITOR) -> Path:
    """Write monitor.yaml, model.json, other.json (less data) and bag.mcap, unseen by both."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "monitor.yaml"
    config.write_text(text)
    bags = [write_bag(folder / f"learn{seed}.mcap", seed, 60.0) for seed in (1, 2, 3)]
    spec = load_spec(config)
    compiled = compile_spec(spec)
    for name, used in (("model.json", bags), ("other.json", bags[:2])):
        save_model(learn(used, spec, compiled.abstraction).model, folder / name)
    write_bag(folder / "bag.mcap", 7, seconds)
    return folder


def write_watched(folder: Path, text: str) -> dict[str, str]:
    """Write a monitor file that names what is normal, and its model; return them as parameters."""
    config, model, normal = folder / "monitor.yaml", folder / "model.json", folder / "normal"
    config.write_text(text)
    normal.mkdir()
    bags = [str(write_bag(folder / f"{seed}.mcap", seed, 30.0)) for seed in (1, 2, 3)]
    for seed in range(10, 15):
        write_bag(normal / f"{seed}.mcap", seed, 40.0)
    assert main(["learn", *bags, "-c", str(config), "-o", str(model), "-q"]) == 0
    given = ["anomalies", bags[0], "-c", str(config), "-m", str(model), "--alpha", "0.2", "-q"]
    given += ["--calibrate", str(normal), "--save", str(folder / "normal.anomalies")]
    assert main(given) in (0, 1)
    config.write_text(f"{text}anomaly: {{file: normal.anomalies}}\n")
    return {"config": str(config), "model": str(model)}
