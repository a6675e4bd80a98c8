"""The gate beside a real monitor that dies, hangs, starves and comes back."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from acting import config
from forewarn_msgs.msg import Intervention
from live_process import starving
from live_ros import Probe, Process, monitor_parameters
from robots import QUICK, Robot, gated
from small_world import MONITOR, serialized

pytestmark = pytest.mark.ros


class Scene:
    """A robot, its gate, and a monitor that has nothing to say, with a killed one's successors."""

    def __init__(self, robot: Robot, world: Path, config: Path, running: ExitStack) -> None:
        self.robot = robot
        self._parameters = monitor_parameters(world, config=str(config), mode="act")
        self._running = running
        self.monitor = self.start()
        robot.probe.node.create_timer(0.05, lambda: self.feed(30.0))

    def start(self) -> Process:
        """Start a monitor; what it was before has ended."""
        self.monitor = Process("main", self.robot.probe.domain, self._parameters)
        return self._running.enter_context(self.monitor)

    def feed(self, distance: float) -> None:
        """Publish what the monitor watches."""
        for topic, value in (("/world/odometry", 3.0), ("/world/distance", distance)):
            self.robot.probe.publisher(topic).publish(serialized(topic, value))


@pytest.fixture(scope="module")
def watched(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("scene")
    with gated(folder) as robot, ExitStack() as running:
        yield Scene(robot, world, folder / "monitor.yaml", running)


@pytest.fixture
def scene(watched: Scene) -> Scene:
    """Let the robot drive, whatever a test before has left behind."""
    watched.monitor.process.send_signal(signal.SIGCONT)
    if watched.monitor.process.poll() is not None:
        watched.start()
    watched.robot.wait_for(1.0, "nothing is asked for")
    return watched


def test_a_killed_monitor_stops_the_robot_and_a_new_one_lets_it_go(scene: Scene) -> None:
    robot = scene.robot
    scene.monitor.process.kill()
    scene.monitor.wait()
    robot.wait_for(0.0, "monitor")
    assert robot.applied[-1].action == Intervention.COMFORTABLE_STOP
    scene.start()
    robot.wait_for(1.0, "nothing is asked for")


def test_a_stopped_monitor_stops_the_robot_until_it_goes_on(scene: Scene) -> None:
    robot, monitor = scene.robot, scene.monitor
    monitor.process.send_signal(signal.SIGSTOP)
    robot.wait_for(0.0, "monitor")
    monitor.process.send_signal(signal.SIGCONT)
    robot.wait_for(1.0, "nothing is asked for")


def test_a_starved_monitor_stops_the_robot(scene: Scene) -> None:
    robot = scene.robot
    with starving(scene.monitor):
        robot.probe.wait(lambda: "monitor" in robot.applied[-1].reason, "the gate to notice")
        assert robot.applied[-1].action == Intervention.COMFORTABLE_STOP


def test_a_deactivated_monitor_stops_the_robot(scene: Scene) -> None:
    robot = scene.robot
    assert robot.probe.change("deactivate")
    robot.wait_for(0.0, "monitor")
    assert robot.probe.change("activate")
    robot.wait_for(1.0, "nothing is asked for")


def test_the_monitor_notices_a_killed_gate_long_before_the_middleware_does(
    world: Path, tmp_path: Path, probe: Probe
) -> None:
    """For 20 s it said that a stop was taken up by a gate that was dead."""
    file = config(tmp_path, f"{{twist: {{{QUICK}}}}}", MONITOR)
    parameters = monitor_parameters(world, config=file, mode="act")
    with Process("main", probe.domain, parameters), ExitStack() as running:
        gate = running.enter_context(Process("twist_gate_node", probe.domain, {"config": file}))
        probe.wait_for_status("actuator twist", "OK")
        gate.process.kill()
        gate.wait()
        probe.wait_for_status("actuator twist", "ERROR", "the gate /twist_gate has been silent for")
        running.enter_context(Process("twist_gate_node", probe.domain, {"config": file}))
        probe.wait_for_status("actuator twist", "OK")


def test_the_monitor_knows_whether_the_gate_follows(scene: Scene) -> None:
    robot, probe = scene.robot, scene.robot.probe
    probe.wait_for_status("actuator twist", "OK", "nothing is asked for")
    timer = probe.node.create_timer(0.02, lambda: scene.feed(5.0))
    probe.wait_for_status("actuator twist", "OK", "taken up")
    asked = (Intervention.COMFORTABLE_STOP, Intervention.LIMIT_SPEED)
    probe.wait(lambda: robot.applied[-1].action in asked, "the gate to do it")
    timer.cancel()
