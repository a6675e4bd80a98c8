"""The black box of a running monitor: what its files hold, and what it does not lose."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forewarn_msgs.srv import SaveIncident
from live_ros import Probe, Process, Stepper, alert, stepped
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image
from small_world import MONITOR
from std_msgs.msg import String

from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock_kinds import Grid
from forewarn.wings.black_box.incident_file import TABLE

pytestmark = pytest.mark.ros
Start = Callable[..., Process]
BOX = """\
black_box:
  folder: {folder}
  before: 2
  after: 1
  topics: [/camera, /map_name, /nothing]
  trigger: [{trigger}]
"""


def write_config(folder: Path, trigger: str = "act, violation, anomaly", more: str = "") -> Path:
    config = folder / "boxed.yaml"
    config.write_text(MONITOR + BOX.format(folder=folder / "incidents", trigger=trigger) + more)
    return config


@contextmanager
def boxed(world: Path, folder: Path, **kwargs: str) -> Iterator[tuple[Process, Probe, Stepper]]:
    with stepped(world, config=str(write_config(folder, **kwargs))) as (process, probe, stepper):
        stepper.begin()
        yield process, probe, stepper


def files(folder: Path) -> list[Path]:
    return sorted((folder / "incidents").glob("*.mcap"))


def wait_for_files(probe: Probe, folder: Path, count: int) -> list[Path]:
    probe.wait(lambda: len(files(folder)) == count, f"{count} files in {folder}")
    return files(folder)


def messages(recording: Recording, topic: str, kind: Any) -> list[Any]:
    return [deserialize_message(bytes(sample.data), kind) for sample in recording.read([topic])]


def test_a_file_holds_all_that_lies_about_the_moment(world: Path, tmp_path: Path) -> None:
    with boxed(world, tmp_path) as (process, probe, stepper):
        camera = probe.connected("/camera", "sensor_msgs/msg/Image")
        latched = {"durability": DurabilityPolicy.TRANSIENT_LOCAL}
        probe.publisher("/map_name", "std_msgs/msg/String", **latched)
        probe.deliver(String(data="harbour"), "/map_name", "std_msgs/msg/String")
        early = [stepper.step(speed=1.0, distance=30.0) for _ in range(40)]
        for number in range(5):
            probe.deliver(Image(height=number), "/camera", "sensor_msgs/msg/Image")
            stepper.step(speed=1.0, distance=30.0)
        assert camera.topic_name == "/camera"
        alert(stepper)
        moment = stepper.tick - 1
        stepper.steps(15, speed=0.0, distance=5.0)
        (path,) = wait_for_files(probe, tmp_path, 1)
        probe.wait_for_status("black box", "OK", "waiting for a trigger")
        assert probe.values("black box")["without publisher"] == "/nothing"
        published = {risk.risks[0].tick: risk for risk in probe.risks}
        assert "at most 512 MB of messages in memory" in process.output
    with open_recording(path) as recording:
        assert recording.warnings == []
        assert {"/camera", "/map_name", "/world/odometry", "/world/distance"} < set(
            recording.topics
        )
        assert [i.height for i in messages(recording, "/camera", Image)] == [0, 1, 2, 3, 4]
        (name,) = messages(recording, "/map_name", String)
        assert name.data == "harbour", "published long before, and kept for late subscribers"
        risks = messages(recording, "/monitor/output/risk", type(early[0]))
        ticks = [risk.risks[0].tick for risk in risks]
        assert ticks == list(range(moment - 20, moment + 11))
        assert all(str(risk) == str(published[risk.risks[0].tick]) for risk in risks)
        states = recording.topics["/monitor/debug/state"]
        assert states.count == len(risks)
        assert recording.topics["/monitor/output/intervention"].count >= 1
        kinds = [log.function for log in messages(recording, "/monitor/incident/moments", Log)]
        assert kinds.count("act") == 1
        table = recording.metadata()[TABLE]
        assert (table["trigger"], table["property"]) == ("act", "brake")
        assert int(table["time_ns"]) == Grid(10.0).time_ns(moment)
        assert table["model"] == risks[0].model_digest
        assert [one["kind"] for one in json.loads(table["moments"])] == kinds
        assert recording.attachments()["monitor.yaml"].decode().startswith(MONITOR)
    assert files(tmp_path) == [path]
    assert not list((tmp_path / "incidents").glob("*.part"))


def test_a_service_writes_one_whenever_somebody_asks(world: Path, tmp_path: Path) -> None:
    with boxed(world, tmp_path, trigger="anomaly") as (process, probe, stepper):
        stepper.steps(5, speed=1.0, distance=30.0)
        asked = {"requester": "anna", "reason": "it looked odd"}
        response = probe.call(SaveIncident, "save_incident", **asked)
        assert response.success, response.message
        stepper.steps(15, speed=1.0, distance=30.0)
        (path,) = wait_for_files(probe, tmp_path, 1)
        assert str(path) == response.path
        assert "by anna: it looked odd" in process.output
    with open_recording(path) as recording:
        table = recording.metadata()[TABLE]
    assert (table["trigger"], table["text"]) == ("request", "asked for by anna: it looked odd")


def test_without_a_black_box_there_is_nothing_to_save(world: Path) -> None:
    with stepped(world) as (_, probe, stepper):
        stepper.begin()
        stepper.step(speed=1.0, distance=30.0)
        response = probe.call(SaveIncident, "save_incident")
        assert not response.success
        assert "black_box" in response.message


def test_a_kill_while_writing_leaves_a_file_that_the_next_life_names(
    start: Start, probe: Probe, tmp_path: Path
) -> None:
    config = write_config(tmp_path, trigger="violation")
    config.write_text(config.read_text().replace("after: 1", "after: 600"))
    process = start(config=str(config))
    probe.wait(lambda: len(probe.risks) > 3, "ticks")
    assert probe.call(SaveIncident, "save_incident").success
    parts = tmp_path / "incidents"
    probe.wait(lambda: list(parts.glob("*.part")), "a file that is being written")
    known = len(probe.risks)
    probe.wait(lambda: len(probe.risks) > known + 30, "more than the period of a flush")
    process.process.send_signal(signal.SIGKILL)
    process.wait()
    again = start(config=str(config))
    probe.wait(lambda: "was not completed" in again.output, "the other life's words")
    (torn,) = files(tmp_path)
    assert str(torn) in again.output
    with open_recording(torn) as recording:
        assert recording.topics["/monitor/output/risk"].count > 5
        assert recording.metadata()[TABLE]["trigger"] == "request"
