"""The gate over real topics: what the monitor asks for, and a monitor that dies or hangs."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from acting import config
from forewarn_msgs.msg import Intervention, Risk, RiskArray
from geometry_msgs.msg import Twist, TwistStamped
from live_process import starving
from live_ros import KEPT, Probe, Process, free_domain, monitor_parameters
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.qos import LivelinessPolicy, QoSProfile
from small_world import MONITOR, serialized

pytestmark = pytest.mark.ros
QUICK = (
    "input: /cmd_in, output: /cmd_out, max_speed: 2.0, max_turn: 2.0, odometry: /odom, "
    "comfortable_deceleration: 5.0, acceleration: 5.0"
)


class Robot:
    """A planner that commands 1 m/s with a curve all the time, and a base that obeys."""

    def __init__(self, probe: Probe, *, stamped: bool = False) -> None:
        self.probe = probe
        self.stamped = stamped
        self.kind = TwistStamped if stamped else Twist
        self.obeyed: list[tuple[float, Any]] = []
        self.applied: list[Intervention] = []
        node = probe.node
        self.commands = node.create_publisher(self.kind, "/cmd_in", 10)
        node.create_subscription(self.kind, "/cmd_out", self._obey, 100)
        node.create_subscription(
            Intervention, "/twist_gate/output/applied", self.applied.append, KEPT
        )
        self._timer = node.create_timer(0.02, self._plan)
        self.command = self.kind()
        twist = self.command.twist if stamped else self.command
        twist.linear.x, twist.angular.z = 1.0, 0.5
        if stamped:
            self.command.header.frame_id = "base_link"

    def _plan(self) -> None:
        self.commands.publish(self.command)

    def _obey(self, message: Any) -> None:
        twist = message.twist if self.stamped else message
        self.obeyed.append((time.monotonic(), twist))

    @property
    def speed(self) -> float:
        return self.obeyed[-1][1].linear.x if self.obeyed else math.nan

    def wait_for(self, speed: float, why: str = "") -> None:
        """Wait until the base moves at that speed, for that reason of the gate."""
        self.probe.wait(
            lambda: (
                self.speed == speed
                and (not why or (self.applied and why in self.applied[-1].reason))
            ),
            lambda: f"{speed} m/s {why} (now {self.speed}, {self.applied[-1:]})",
        )


@contextmanager
def gated(folder: Path, section: str = QUICK, *, stamped: bool = False) -> Iterator[Robot]:
    """Run a gate with a robot around it, and yield the robot."""
    with free_domain() as domain:
        probe = Probe(domain)
        twist = f"{section}, stamped: {'true' if stamped else 'false'}"
        file = config(folder, f"{{twist: {{{twist}}}}}", MONITOR)
        with Process("twist_gate_node", domain, {"config": file}):
            yield Robot(probe, stamped=stamped)
        probe.close()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Callable[..., Robot]]:
    """Return a function that starts a gate, and a robot around it."""
    with ExitStack() as running:
        yield lambda *section, **how: running.enter_context(gated(tmp_path, *section, **how))


class Monitor:
    """Topics as the monitor publishes them, at its rate, from this process."""

    def __init__(self, probe: Probe, session: str = "5e55", mode: int = Intervention.ACT) -> None:
        self._node = probe.node
        promised = QoSProfile(
            depth=10,
            durability=KEPT.durability,
            liveliness=LivelinessPolicy.MANUAL_BY_TOPIC,
            liveliness_lease_duration=Duration(seconds=0.5),
        )
        self.intervention = probe.node.create_publisher(
            Intervention, "/monitor/output/intervention", promised
        )
        promised.deadline = Duration(seconds=0.2)
        self.risk = probe.node.create_publisher(RiskArray, "/monitor/output/risk", promised)
        self.signed = {"session": session, "mode": mode}
        self._number = 0
        self.asked = Intervention(speed_limit=math.nan)
        self.mute = False
        self.timer = probe.node.create_timer(0.1, self._tick)

    def _tick(self) -> None:
        self._number += 2
        for name, value in self.signed.items():
            setattr(self.asked, name, value)
        self.asked.sequence = self._number
        if not self.mute:
            self.intervention.publish(self.asked)
        verdict = RiskArray(**self.signed, sequence=self._number + 1, intervention_id=self.asked.id)
        for name in ("action", "active", "speed_limit"):
            setattr(verdict, name, getattr(self.asked, name))
        verdict.risks = [Risk()]
        self.risk.publish(verdict)

    def ask(self, action: int, *, active: bool = True, speed_limit: float = math.nan) -> None:
        self.asked = Intervention(
            id=1, action=action, active=active, speed_limit=speed_limit, risk=0.5
        )

    def withdraw(self) -> None:
        self.asked = Intervention(id=1, speed_limit=math.nan, risk=math.nan)

    def close(self) -> None:
        """Leave the topics."""
        self._node.destroy_timer(self.timer)
        self._node.destroy_publisher(self.risk)
        self._node.destroy_publisher(self.intervention)


@pytest.mark.parametrize("stamped", [False, True], ids=["Twist", "TwistStamped"])
def test_each_action_over_topics(gate: Callable[..., Robot], stamped: bool) -> None:
    robot = gate(stamped=stamped)
    robot.wait_for(0.0, "the monitor has not spoken yet")
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.LIMIT_SPEED, speed_limit=0.25)
    robot.wait_for(0.25, "the monitor")
    assert robot.obeyed[-1][1].angular.z == pytest.approx(0.125)
    assert robot.applied[-1].action == Intervention.LIMIT_SPEED
    assert robot.applied[-1].id == 1
    monitor.ask(Intervention.EMERGENCY_STOP)
    robot.wait_for(0.0, "the monitor")
    assert robot.obeyed[-1][1].angular.z == 0.0
    monitor.withdraw()
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.COMFORTABLE_STOP)
    robot.wait_for(0.0, "the monitor")
    monitor.withdraw()
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(200)  # what this gate has never heard of
    robot.wait_for(0.0, "an unknown action")


def test_a_monitor_that_only_observes_lets_pass(gate: Callable[..., Robot]) -> None:
    robot = gate()
    monitor = Monitor(robot.probe, mode=Intervention.OBSERVE)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.EMERGENCY_STOP, active=False)
    seen, told = len(robot.obeyed), len(robot.applied)
    robot.probe.wait(lambda: len(robot.obeyed) > seen + 25, "commands")
    assert not [each for each in robot.applied[told:] if "unknown" in each.reason]
    assert not [each for each in robot.applied[told:] if each.reason == "the monitor"]


def test_an_observing_twin_does_not_lift_a_stop(gate: Callable[..., Robot]) -> None:
    """It let the robot drive at 0.44 m/s, and without the acting one at 1.0 m/s."""
    robot = gate()
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.EMERGENCY_STOP)
    robot.wait_for(0.0, "the monitor")
    stood = len(robot.obeyed)
    twin = Monitor(robot.probe, "7819", Intervention.OBSERVE)
    robot.probe.wait(lambda: "another" in robot.applied[-1].reason, "the gate to notice")
    robot.probe.wait_for_status("gate", "ERROR", "another", node="twist_gate")
    twin.close()
    robot.probe.wait(lambda: robot.applied[-1].reason == "the monitor", "trust in the first")
    monitor.withdraw()
    robot.probe.wait(lambda: robot.applied[-1].action == Intervention.NONE, "the end of the stop")
    ended = len(robot.obeyed)
    robot.wait_for(1.0, "nothing is asked for")
    assert {twist.linear.x for _, twist in robot.obeyed[stood : ended - 5]} == {0.0}


def test_an_intervention_that_could_not_be_published_stops_the_robot(
    gate: Callable[..., Robot],
) -> None:
    robot = gate()
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.mute = True
    monitor.ask(Intervention.LIMIT_SPEED, speed_limit=0.5)
    robot.wait_for(0.0, "contradict each other")


def test_a_stop_is_no_harder_than_it_should_be(
    gate: Callable[..., Robot],
) -> None:
    robot = gate(QUICK.replace("5.0, acc", "1.0, acc"))
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0)
    begun = len(robot.obeyed) - 1
    monitor.ask(Intervention.COMFORTABLE_STOP)
    robot.wait_for(0.0)
    falling = [(t, twist.linear.x) for t, twist in robot.obeyed[begun:]]
    start = next(t for t, speed in falling if speed < 1.0)
    stopped = next(t for t, speed in falling if speed == 0.0)
    assert stopped - start > 0.8, "1 m/s at 1 m/s^2 takes a second"
    speeds = [speed for _, speed in falling]
    assert speeds == sorted(speeds, reverse=True)
    for _, twist in robot.obeyed[begun:]:
        assert twist.angular.z == pytest.approx(twist.linear.x / 2)


def test_a_planner_that_saturates_is_stopped_from_the_measured_speed(
    gate: Callable[..., Robot],
) -> None:
    robot = gate()
    monitor = Monitor(robot.probe)
    robot.command.linear.x, robot.command.angular.z = 100.0, 0.0
    robot.wait_for(2.0)
    odometry = robot.probe.node.create_publisher(Odometry, "/odom", 1)
    driven = Odometry()
    driven.twist.twist.linear.x = 0.1
    robot.probe.node.create_timer(0.02, lambda: odometry.publish(driven))
    robot.probe.wait(odometry.get_subscription_count, "the gate's subscription to odometry")
    begun = len(robot.obeyed)
    robot.probe.wait(lambda: len(robot.obeyed) > begun + 5, "commands, and odometry meanwhile")
    monitor.ask(Intervention.COMFORTABLE_STOP)
    robot.wait_for(0.0)
    assert not [twist for _, twist in robot.obeyed[begun:] if 0.2 < twist.linear.x < 1.9]


def test_a_planner_that_dies_does_not_leave_the_robot_driving(
    gate: Callable[..., Robot],
) -> None:
    robot = gate()
    Monitor(robot.probe)
    robot.wait_for(1.0)
    robot._timer.cancel()
    robot.wait_for(0.0)


def test_an_operator_opens_the_gate_for_a_while(
    gate: Callable[..., Robot],
) -> None:
    robot = gate()
    robot.wait_for(0.0, "has not spoken yet")
    other = Probe(robot.probe.domain, "/twist_gate")
    assert other.set(open_for=1.0).successful
    other.close()
    robot.wait_for(1.0, "opened by hand")
    robot.wait_for(0.0, "has not spoken yet")


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


def test_the_monitor_knows_whether_the_gate_follows(scene: Scene) -> None:
    robot, probe = scene.robot, scene.robot.probe
    probe.wait_for_status("actuator twist", "OK", "nothing is asked for")
    timer = probe.node.create_timer(0.02, lambda: scene.feed(5.0))
    probe.wait_for_status("actuator twist", "OK", "taken up")
    assert robot.applied[-1].action in (Intervention.COMFORTABLE_STOP, Intervention.LIMIT_SPEED)
    timer.cancel()


def test_without_a_gate_the_monitor_reports_an_error(
    world: Path, tmp_path: Path, probe: Probe
) -> None:
    file = config(tmp_path, f"{{twist: {{{QUICK}}}}}", MONITOR)
    with Process("main", probe.domain, monitor_parameters(world, config=file, mode="act")):
        probe.wait_for_status("actuator twist", "ERROR", "there is no gate /twist_gate")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "parameter config: is not set"), (MONITOR, "actuators.twist: is missing")],
)
def test_a_gate_without_a_section_says_so(
    text: str, problem: str, tmp_path: Path, domain: int
) -> None:
    file = tmp_path / "monitor.yaml"
    file.write_text(text)
    process = Process("twist_gate_node", domain, {"config": str(file) if text else ""})
    assert process.wait() == 1
    assert problem in process.output
    process.__exit__()
