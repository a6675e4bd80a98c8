"""A small robot that mostly brakes before obstacles, recorded as a robot would record it."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from own_environment import NotInstalledError, folder
from rosbags.typesys import Stores, get_typestore

from forewarn.expressions.functions import embeddings
from forewarn.expressions.functions.embeddings import EmbeddingModel
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.monitoring.record import RISK_TYPE
from forewarn.monitoring.risk_rows import RiskRow
from forewarn.recordings.writing import RecordingWriter

STORE = get_typestore(Stores.ROS2_HUMBLE)
ODOMETRY, SCAN, BOOL = "nav_msgs/msg/Odometry", "sensor_msgs/msg/LaserScan", "std_msgs/msg/Bool"
START_NS = 1_700_000_000_000_000_000

CORRIDOR_YAML = """\
version: 1
rate: 10
signals:
  speed: {topic: /odom, type: nav_msgs/msg/Odometry, value: twist.twist.linear.x, timeout: 0.5}
  nearest: {topic: /scan, type: sensor_msgs/msg/LaserScan, value: "min(ranges)", timeout: 0.5}
  bumper: {topic: /bumper, type: std_msgs/msg/Bool, value: data, timeout: 0.5}
predicates:
  fast: speed > 0.3
bins:
  nearest: [0.6, 1.0, 1.6]
terminal:
  contact: bumper
properties:
  slow_down:
    formula: always(nearest<1 implies eventually[0:0.8](not fast))
    horizon: 2.0
    thresholds: {warn: 0.2, act: 0.4, release: 0.1}
  no_contact:
    formula: always(not contact)
    horizon: 1.0
    thresholds: {warn: 0.2, act: 0.4, release: 0.1}
    enter: 1
"""


class Message(NamedTuple):
    time_ns: int
    topic: str
    msgtype: str
    data: bytes


def _serialized(msgtype: str, message: Any) -> bytes:
    return bytes(STORE.serialize_cdr(message, msgtype))


def _header(time_ns: int, frame: str) -> Any:
    stamp = STORE.types["builtin_interfaces/msg/Time"](time_ns // 10**9, time_ns % 10**9)
    return STORE.types["std_msgs/msg/Header"](stamp, frame)


def odometry(time_ns: int, x: float, speed: float) -> Message:
    types = STORE.types
    pose = types["geometry_msgs/msg/Pose"](
        types["geometry_msgs/msg/Point"](x, 0.0, 0.0),
        types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0),
    )
    vector = types["geometry_msgs/msg/Vector3"]
    twist = types["geometry_msgs/msg/Twist"](vector(speed, 0.0, 0.0), vector(0.0, 0.0, 0.0))
    message = types[ODOMETRY](
        _header(time_ns, "odom"),
        "base_link",
        types["geometry_msgs/msg/PoseWithCovariance"](pose, np.zeros(36)),
        types["geometry_msgs/msg/TwistWithCovariance"](twist, np.zeros(36)),
    )
    return Message(time_ns, "/odom", ODOMETRY, _serialized(ODOMETRY, message))


def scan(time_ns: int, distance: float) -> Message:
    ranges = np.full(36, 12.0, dtype=np.float32)
    ranges[17:20] = distance
    message = STORE.types[SCAN](
        _header(time_ns, "laser"), -0.3, 0.3, 0.017, 0.0, 0.1, 0.05, 12.0, ranges, np.zeros(0, "f4")
    )
    return Message(time_ns, "/scan", SCAN, _serialized(SCAN, message))


def bumper(time_ns: int, pressed: bool) -> Message:
    message = STORE.types[BOOL](pressed)
    return Message(time_ns, "/bumper", BOOL, _serialized(BOOL, message))


def corridor(seed: int, seconds: float) -> Iterator[Message]:
    """Drive towards one obstacle after the other; every sixth time without looking."""
    draw = random.Random(seed)
    x, speed, distance, rest, looks = 0.0, 0.0, 4.0, 0.0, True
    step, pressed = 0.02, False
    for i in range(int(seconds / step)):
        time_ns = START_NS + i * 20_000_000
        if rest > 0:
            rest -= step
            speed = 0.0
            if rest <= 0:
                distance, pressed = draw.uniform(2.5, 5.0), False
                looks = draw.random() > 1 / 6
        elif distance < 0.05:
            speed, rest, pressed = 0.0, 1.0, True
        else:
            brake = distance < (1.3 if looks else 0.35)
            speed = max(speed - 1.2 * step, 0.0) if brake else min(speed + 0.8 * step, 1.0)
            x, distance = x + speed * step, distance - speed * step
            if brake and speed == 0.0:
                rest = draw.uniform(0.5, 1.5)
        noise = draw.gauss(0.0, 0.02)
        if i % 5 in (0, 2):
            yield odometry(time_ns, x, speed)
        if i % 5 == 0:
            yield scan(time_ns + 3_000_000, max(distance + noise, 0.01))
            yield bumper(time_ns + 4_000_000, pressed)


@lru_cache
def definition(msgtype: str) -> str:
    text, _ = STORE.generate_msgdef(msgtype, ros_version=2)
    return text


def write_recording(path: Path, messages: Iterator[Message] | list[Message]) -> Path:
    with RecordingWriter(path) as writer:
        for message in messages:
            writer.write(
                message.topic,
                message.msgtype,
                definition(message.msgtype),
                message.time_ns,
                message.data,
            )
    return path


class Corridor(NamedTuple):
    """A monitor file, recordings to learn from, and one to keep."""

    config: Path
    recordings: list[Path]
    held_out: Path


@pytest.fixture(scope="session")
def corridor_run(tmp_path_factory: pytest.TempPathFactory) -> Corridor:
    """Return a monitor file with six recordings of the corridor and a held-out one."""
    folder = tmp_path_factory.mktemp("corridor")
    config = folder / "monitor.yaml"
    config.write_text(CORRIDOR_YAML)
    bags = folder / "bags"
    bags.mkdir()
    recordings = [
        write_recording(bags / f"run{seed}.mcap", corridor(seed, 90.0)) for seed in range(6)
    ]
    return Corridor(config, recordings, write_recording(folder / "held.mcap", corridor(99, 60.0)))


@pytest.fixture(scope="session")
def record() -> Callable[[Path, list[Message]], Path]:
    """Return a function that writes messages to a recording."""
    return write_recording


@pytest.fixture(scope="session")
def drive() -> Callable[[int, float], list[Message]]:
    """Return a function that drives the corridor: seed, seconds -> messages."""
    return lambda seed, seconds: list(corridor(seed, seconds))


@pytest.fixture
def our_messages(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install forewarn_msgs from its sources, as far as definitions go."""
    share = tmp_path / "ament" / "share" / "forewarn_msgs"
    shutil.copytree(repository / "ros2_ws" / "src" / "forewarn_msgs" / "msg", share / "msg")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ament"))


@pytest.fixture
def risk_type(our_messages: None) -> MessageType:
    return installed_message_type(RISK_TYPE)


@pytest.fixture
def risk_array() -> Callable[[MessageType, tuple[RiskRow, ...], int], bytes]:
    """Return a function that serializes risks as the node publishes them."""
    return _risk_array


def _risk_array(mtype: MessageType, rows: tuple[RiskRow, ...], stamp_ns: int) -> bytes:
    types = mtype.typestore.types
    stamp = types["builtin_interfaces/msg/Time"](stamp_ns // 10**9, stamp_ns % 10**9)
    risk = types["forewarn_msgs/msg/Risk"]
    details = types["forewarn_msgs/msg/RiskDetails"]
    ours, inner = (
        {name for name, _ in mtype.types[f"forewarn_msgs/msg/{name}"][1]}
        for name in ("Risk", "RiskDetails")
    )
    assert (ours - {"details"}) | inner == set(RiskRow._fields)

    def message(row: RiskRow) -> Any:
        values = row._asdict()
        values["automaton_states"] = np.array(row.automaton_states, dtype=np.int32)
        values["stale_ages"] = np.array(row.stale_ages, dtype=np.float64)
        for name in ("automaton_state_names", "stale_signals", "most_likely_path"):
            values[name] = list(values[name])
        within = {name: values.pop(name) for name in inner}
        return risk(**values, details=details(**within))

    header = types["std_msgs/msg/Header"](stamp, "")
    array = types[RISK_TYPE](
        header=header,
        session="a session",
        sequence=1,
        mode=0,
        intervention_id=0,
        action=0,
        active=False,
        speed_limit=0.0,
        escape_reverse=False,
        escape_turn=False,
        model_digest="digest",
        risks=[message(row) for row in rows],
    )
    return bytes(mtype.typestore.serialize_cdr(array, RISK_TYPE))


@pytest.fixture
def embedding_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingModel]:
    """Return the model of the extra `embeddings`, which lies in an environment of its own."""
    try:
        monkeypatch.syspath_prepend(folder("embeddings"))
    except NotInstalledError as error:
        pytest.skip(f"the extra cannot be installed here: {error}")
    embeddings.installed_model.cache_clear()
    yield embeddings.installed_model()
    embeddings.installed_model.cache_clear()
    embeddings._remembered.cache_clear()


@pytest.fixture
def no_embedding_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the extra `embeddings` one that is not installed, here or anywhere."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    embeddings.installed_model.cache_clear()
    yield
    embeddings.installed_model.cache_clear()
