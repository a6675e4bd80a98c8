"""Poses of frames over real topics: transient local static transforms, and the same bits."""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interface_builds import built
from live_process import environment
from live_ros import Probe, Process, of
from replayed import check_record, offline, play, published

from forewarn.messages.definitions import installed_message_type
from forewarn.recordings.writing import RecordingWriter

pytestmark = pytest.mark.ros
PACKAGES = Path(__file__).with_name("interfaces")
ROBOT = Path(__file__).with_name("robot.py")
TYPE = "tf2_msgs/msg/TFMessage"
BEGIN_NS = 1_700_000_000_000_000_000
MONITOR = """
rate: 10
signals:
  x: {frame: {of: lidar, in: map}, value: translation.x, timeout: 0.8}
  heading: {frame: {of: lidar, in: map}, value: yaw(rotation), timeout: 0.8}
predicates:
  begun: x > 0
  far: x > 2.5
  left: heading > 0.1
properties:
  near: {formula: always(not far), horizon: 1.0}
"""


@pytest.fixture
def installed(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the processes of the test find tf2_msgs, which is none of the wheels."""
    prefix = built(PACKAGES, repository / ".ros" / "tf2_msgs", tmp_path_factory.mktemp("tf2"))
    (python,) = (prefix / "lib").glob("python3*/site-packages")
    for name, path in (
        ("AMENT_PREFIX_PATH", prefix),
        ("LD_LIBRARY_PATH", prefix / "lib"),
        ("PYTHONPATH", python),
    ):
        before = (
            os.environ.get(name)
            or {
                "AMENT_PREFIX_PATH": sys.prefix,
                "LD_LIBRARY_PATH": f"{sys.prefix}/lib",
                "PYTHONPATH": "",
            }[name]
        )
        monkeypatch.setenv(name, os.pathsep.join(filter(None, [str(path), before])))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(MONITOR, encoding="utf-8")
    return path


@pytest.fixture
def robot(domain: int, installed: None) -> Iterator[None]:
    with subprocess.Popen([sys.executable, ROBOT], env=environment(domain)) as process:
        yield
        process.terminate()


def transform(time_ns: int, parent: str, child: str, x: float, heading: float) -> bytes:
    """Return a message with one transform in CDR, by hand."""
    body = bytearray(struct.pack("<IiI", 1, *divmod(time_ns, 10**9)))
    for text in (parent, child):
        body += bytes(-len(body) % 4) + struct.pack("<I", len(text) + 1) + text.encode() + b"\0"
    body += bytes(-len(body) % 8)
    turned = (0.0, 0.0, math.sin(heading / 2), math.cos(heading / 2))
    return b"\0\1\0\0" + bytes(body) + struct.pack("<7d", x, 0.0, 0.0, *turned)


def write_drive(path: Path) -> Path:
    """Write five seconds of a robot whose place on the map is lost for a while."""
    store = installed_message_type(TYPE).typestore
    kind = (TYPE, store.generate_msgdef(TYPE, ros_version=2)[0])
    with RecordingWriter(path) as writer:
        for number in range(100):
            now = BEGIN_NS + number * 50_000_000 + number % 7 * 1_000_000
            if number == 12:
                lidar = transform(0, "base_link", "lidar", 0.5, 0.3)
                writer.write("/tf_static", *kind, now, lidar)
            if number % 6 == 0 and not 30 < number < 60:
                drift = transform(now - 70_000_000, "map", "odom", number / 100, 0.0)
                writer.write("/tf", *kind, now, drift)
            driven = transform(now - 3_000_000, "odom", "base_link", number / 20, -number / 100)
            writer.write("/tf", *kind, now, driven)
    return path


@pytest.mark.parametrize("time", ["", "timestamp_source: header\nsettle: 0.05\n"])
def test_a_pose_in_lock_step_is_what_replay_gives(
    start: Callable[..., Process], probe: Probe, installed: None, config: Path, time: str
) -> None:
    config.write_text(MONITOR + time, encoding="utf-8")
    bag, record = write_drive(config.with_name("bag.mcap")), config.with_name("record.mcap")
    process = start(config=str(config), model="", use_sim_time=True, record=str(record))
    play(probe, bag=str(bag), lockstep=True, rate=0.0)
    expected = offline(config, None, bag)
    probe.wait(lambda: len(probe.risks) >= len(expected), "the last verdicts")
    assert published(probe.risks) == expected
    keys = [fact[2] for fact in expected]
    assert {"???", "101", "100", "110"} <= {*keys}
    assert keys.count("???") > 8  # before the lidar is known, and while the place is lost
    assert process.stop() == 0
    assert check_record(record) == len(expected)


def test_a_static_transform_that_was_published_before_is_heard(
    start: Callable[..., Process], probe: Probe, robot: None, config: Path
) -> None:
    probe.wait(lambda: probe.node.get_publishers_info_by_topic("/tf_static"), "the robot")
    record = config.with_name("record.mcap")
    process = start(config=str(config), model="", record=str(record))
    probe.wait(
        lambda: (
            len(probe.risks) > 8 and of(probe.risks[-1], "near").details.state_key.startswith("11")
        ),
        lambda: f"the robot to be far: {probe.risks[-1:]}",
    )
    probe.wait_for_status("input /tf_static", "OK")
    assert "transient local" in probe.values("input /tf_static")["QoS"]
    assert process.stop() == 0
    assert check_record(record) > 5
