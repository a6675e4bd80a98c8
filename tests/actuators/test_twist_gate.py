"""The gate over real topics: what a monitor asks for, twins, and ways around the gate."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import rclpy
from acting import config
from forewarn_msgs.msg import Intervention, RiskArray
from forewarn_msgs.srv import Acknowledge
from geometry_msgs.msg import Twist, TwistStamped
from live_ros import Probe, Process, monitor_parameters
from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from robots import QUICK, Monitor, Robot, gated
from small_world import MONITOR, serialized

from forewarn_ros.status import Severity
from monitor_node.gate_status import output_status
from monitor_node.node import MonitorNode

pytestmark = pytest.mark.ros
SLACK = 2.0  # a machine with other work to do


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Callable[..., Robot]]:
    """Return a function that starts a gate, and a robot around it."""
    with ExitStack() as running:
        yield lambda *section, **how: running.enter_context(gated(tmp_path, *section, **how))


@pytest.fixture(scope="module")
def unwatched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robot]:
    """Return a robot behind a gate to which no monitor speaks."""
    with gated(tmp_path_factory.mktemp("gate")) as robot:
        yield robot


def test_each_action_over_topics(gate: Callable[..., Robot]) -> None:
    robot = gate(stamped=True)
    robot.wait_for(0.0, "the monitor has not spoken yet")
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.LIMIT_SPEED, speed_limit=0.25)
    robot.wait_for(0.25, "asked for by the monitor")
    assert robot.obeyed[-1][1].angular.z == pytest.approx(0.125)
    assert robot.applied[-1].action == Intervention.LIMIT_SPEED
    assert robot.applied[-1].id == 1
    monitor.ask(Intervention.EMERGENCY_STOP)
    robot.wait_for(0.0, "asked for by the monitor")
    assert robot.obeyed[-1][1].angular.z == 0.0
    monitor.withdraw()
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.COMFORTABLE_STOP)
    robot.wait_for(0.0, "asked for by the monitor")
    monitor.withdraw()
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(200)  # what this gate has never heard of
    robot.wait_for(0.0, "an unknown action")


def test_an_observing_twin_does_not_lift_a_stop(gate: Callable[..., Robot]) -> None:
    """It let the robot drive at 0.44 m/s, and without the acting one at 1.0 m/s."""
    robot = gate()
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.EMERGENCY_STOP)
    robot.wait_for(0.0, "asked for by the monitor")
    stood = len(robot.obeyed)
    twin = Monitor(robot.probe, "7819", Intervention.OBSERVE)
    robot.probe.wait(lambda: "another" in robot.applied[-1].reason, "the gate to notice")
    robot.probe.wait_for_status("gate", "ERROR", "another", node="twist_gate")
    twin.close()
    robot.probe.wait(
        lambda: robot.applied[-1].reason == "asked for by the monitor", "trust in the first"
    )
    monitor.withdraw()
    robot.probe.wait(lambda: robot.applied[-1].action == Intervention.NONE, "the end of the stop")
    ended = len(robot.obeyed)
    robot.wait_for(1.0, "nothing is asked for")
    assert {twist.linear.x for _, twist in robot.obeyed[stood : ended - 5]} == {0.0}


def test_an_observing_successor_lifts_a_stop_only_once_somebody_acknowledges(
    gate: Callable[..., Robot],
) -> None:
    robot = gate()
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.ask(Intervention.EMERGENCY_STOP)
    robot.wait_for(0.0, "asked for by the monitor")
    monitor.close()
    stood = len(robot.obeyed)
    Monitor(robot.probe, "7819", Intervention.OBSERVE)
    robot.probe.wait(lambda: "only observes" in robot.applied[-1].reason, "the gate to notice")
    robot.probe.wait_for_status("gate", "ERROR", "only observes", node="twist_gate")
    ended = len(robot.obeyed)
    client = robot.probe.node.create_client(Acknowledge, "/twist_gate/acknowledge")
    assert client.wait_for_service(60.0)
    done = client.call_async(Acknowledge.Request(requester="anna\x1b[2J", reason="it stands"))
    robot.probe.wait(done.done, "an answer")
    assert done.result().success
    robot.wait_for(1.0, "nothing is asked for")
    assert {twist.linear.x for _, twist in robot.obeyed[stood:ended]} == {0.0}


def test_a_monitor_in_whose_name_somebody_spoke_is_heard_once_it_is_alone(
    gate: Callable[..., Robot],
) -> None:
    """Its intervention was refused, and it repeats none while it asks for nothing."""
    robot = gate()
    forger = Monitor(robot.probe)
    forger.number = 2**40
    robot.wait_for(1.0, "nothing is asked for")
    monitor = Monitor(robot.probe)
    robot.probe.wait(lambda: monitor.number > 0, "its first verdict")
    monitor.mute = True
    robot.wait_for(0.0)
    forger.close()
    robot.wait_for(1.0, "nothing is asked for")


def test_an_intervention_that_could_not_be_published_stops_the_robot(
    gate: Callable[..., Robot],
) -> None:
    robot = gate()
    monitor = Monitor(robot.probe)
    robot.wait_for(1.0, "nothing is asked for")
    monitor.mute = True
    monitor.ask(Intervention.LIMIT_SPEED, speed_limit=0.5)
    robot.wait_for(0.0, "contradict each other")


ESCAPE = "escape: {reverse: {when: distance > 1, speed: 0.1}, distance: 0.15, renewed_after: 1}"
WAY_OUT = f"{QUICK.replace('odometry: /odom, ', '')}, {ESCAPE}"


def renewed(robot: Robot) -> None:
    """Wait until the robot has driven long enough for the next stop to be another one."""
    robot.wait_for(1.0, "nothing is asked for")

    def said() -> str:
        gate = robot.probe.diagnostics.get("twist_gate: gate")
        return next((value.value for value in gate.values if value.key == "way out"), "none")

    robot.probe.wait(lambda: "used 0.00" in said(), lambda: f"another account (now {said()})")


def test_a_stopped_robot_backs_away_as_far_as_it_may_while_the_way_is_clear(
    gate: Callable[..., Robot],
) -> None:
    robot = gate(WAY_OUT)
    monitor = Monitor(robot.probe)
    renewed(robot)
    monitor.ask(Intervention.EMERGENCY_STOP)
    robot.wait_for(0.0, "asked for by the monitor")
    robot.command.linear.x = -1.0
    stood = len(robot.obeyed)
    monitor.ask(Intervention.EMERGENCY_STOP, escape_turn=True)
    robot.probe.wait(lambda: len(robot.obeyed) > stood + 50, "commands")
    assert {twist.linear.x for _, twist in robot.obeyed[stood:]} == {0.0}
    monitor.ask(Intervention.EMERGENCY_STOP, escape_reverse=True)
    robot.wait_for(-0.1, "the monitor, on its way out")
    robot.probe.wait_for_status("gate", "WARN", "on its way out", node="twist_gate")
    # A gate that did not get to look for a while lets nothing out, and goes on afterwards.
    robot.probe.wait(
        lambda: {twist.linear.x for _, twist in robot.obeyed[-50:]} == {0.0}, "the end of its way"
    )
    assert robot.applied[-1].reason == "asked for by the monitor"
    assert {twist.angular.z for _, twist in robot.obeyed[stood:]} == {0.0}
    moved = [(at, -twist.linear.x) for at, twist in robot.obeyed[stood:]]
    way = sum(speed * (b - a) for (a, speed), (b, _) in itertools.pairwise(moved))
    assert 0.0 < way < 0.15 + 0.1 * SLACK
    monitor.withdraw()
    robot.wait_for(-1.0, "nothing is asked for")


def test_a_gate_that_restarts_in_a_stop_lets_nothing_out_before_it_has_ended(
    probe: Probe, domain: int, tmp_path: Path
) -> None:
    """It let the whole distance out again at each start: 2.42 m instead of 0.48 m."""
    file = config(tmp_path, f"{{twist: {{{WAY_OUT}}}}}", MONITOR)
    robot, monitor = Robot(probe), Monitor(probe)
    with Process("twist_gate_node", domain, {"config": file}) as process:
        renewed(robot)
        robot.command.linear.x = -1.0
        monitor.ask(Intervention.EMERGENCY_STOP, escape_reverse=True)
        robot.wait_for(-0.1, "the monitor, on its way out")
        process.process.kill()
        process.wait()
    # What it had sent may still be on its way.
    probe.wait(lambda: time.monotonic() - robot.obeyed[-1][0] > 0.5, "the last of the old gate")
    restarted = len(robot.obeyed)
    with Process("twist_gate_node", domain, {"config": file}):
        probe.wait(lambda: len(robot.obeyed) > restarted + 5, "the new gate")
        robot.wait_for(0.0, "asked for by the monitor")
        stood = len(robot.obeyed)
        probe.wait(lambda: len(robot.obeyed) > stood + 100, "commands")
        assert {twist.linear.x for _, twist in robot.obeyed[restarted:]} == {0.0}
        robot.command.linear.x = 1.0
        monitor.withdraw()
        renewed(robot)
        robot.command.linear.x = -1.0
        monitor.ask(Intervention.EMERGENCY_STOP, escape_reverse=True)
        robot.wait_for(-0.1, "the monitor, on its way out")


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


def test_a_bypass_is_an_error_within_a_second(unwatched: Robot) -> None:
    probe = unwatched.probe
    probe.wait_for_status("output", "OK", "drives the base", node="twist_gate")
    planner = probe.node.create_publisher(Twist, "/cmd_out", 1)
    begun = time.monotonic()
    probe.wait_for_status("output", "ERROR", "/probe publishes /cmd_out", node="twist_gate")
    assert time.monotonic() - begun < 1.0 + SLACK
    probe.node.destroy_publisher(planner)
    probe.wait_for_status("output", "OK", "drives the base", node="twist_gate")


def test_a_gate_without_a_base_is_an_error(gate: Callable[..., Robot]) -> None:
    """A recorder that listens is no base."""
    robot = gate(f"{QUICK}, base: /base")
    probe = robot.probe
    probe.wait_for_status("output", "ERROR", "/base does not subscribe", node="twist_gate")
    base = Node("base", context=probe.context)
    begun = time.monotonic()
    base.create_subscription(Twist, "/cmd_out", lambda message: None, 1)
    probe.wait_for_status("output", "OK", "drives the base", node="twist_gate")
    assert time.monotonic() - begun < 1.0 + SLACK
    base.destroy_node()
    probe.wait_for_status("output", "ERROR", "/base does not subscribe", node="twist_gate")


def test_a_first_intervention_that_the_middleware_refuses_stops_the_robot(
    gate: Callable[..., Robot], world: Path, tmp_path: Path
) -> None:
    """The monitor says no risk that the gate could take for an answer, and tries again."""
    robot = gate()
    probe, said = robot.probe, list[tuple[str, bool, int]]()
    file = config(tmp_path, f"{{twist: {{{QUICK}}}}}", MONITOR)
    given = monitor_parameters(world, config=file, mode="act")
    node = MonitorNode(
        context=probe.context,
        parameter_overrides=[Parameter(name, value=value) for name, value in given.items()],
    )
    probe.executor.add_node(node)
    node.trigger_configure()
    assert node._outputs is not None
    intervention, risk = node._outputs.intervention, node._outputs.risk
    publish, publish_risk = intervention.publish, risk.publish
    refuses = False

    def asked(message: Intervention) -> None:
        if message.active and refuses:
            said.append(("refused", message.active, message.id))
            raise RuntimeError("the middleware refuses it")
        said.append(("intervention", message.active, message.id))
        publish(message)

    def judged(message: bytes) -> None:
        risk_array = deserialize_message(message, RiskArray)
        said.append(("risk", risk_array.active, risk_array.intervention_id))
        publish_risk(message)

    intervention.publish, risk.publish = asked, judged
    inputs = {"/world/odometry": 3.0, "/world/distance": 20.0}

    def feed() -> None:
        for topic, value in inputs.items():
            probe.publisher(topic).publish(serialized(topic, value))

    timer = probe.node.create_timer(0.05, feed)
    node.trigger_activate()
    robot.wait_for(1.0, "nothing is asked for")
    said.clear()
    refuses = True
    inputs["/world/distance"] = 5.0
    robot.wait_for(0.0)
    first = next(place for place, (kind, *_) in enumerate(said) if kind == "refused")
    probe.wait(lambda: len(said) > first + 5, "more attempts")
    assert {kind for kind, *_ in said[first:]} == {"refused"}, "no risk without its intervention"
    refuses = False
    probe.wait(lambda: robot.applied[-1].reason == "asked for by the monitor", "what was asked for")
    assert robot.speed == 0.0
    after = next(place for place, (kind, *_) in enumerate(said[first:], first) if kind != "refused")
    assert said[after][:2] == ("intervention", True)
    assert said[after + 1] == ("risk", *said[after][1:]), "the risk repeats what was asked for"
    assert not [active for _, active, _ in said[:first] if active], "the first one was refused"
    probe.node.destroy_timer(timer)
    node.trigger_shutdown()
    probe.executor.remove_node(node)
    node.destroy_node()


@pytest.mark.parametrize(
    ("publishers", "subscribers", "base", "problem"),
    [
        ([], ["/driver"], None, ""),
        ([], ["/driver", "/rosbag"], "/driver", ""),
        ([], [], None, "no node subscribes to /cmd"),
        ([], ["/rosbag"], "/driver", "/driver does not subscribe to /cmd"),
        (["/joy", "/gate"], ["/driver"], None, "/gate, /joy publishes /cmd as well"),
    ],
)
def test_who_else_may_drive_the_base(
    publishers: list[str], subscribers: list[str], base: str | None, problem: str
) -> None:
    status = output_status("/cmd", publishers, subscribers, base)
    assert (status.level == Severity.ERROR) == bool(problem)
    assert problem in status.message


def test_a_planner_and_a_base_of_another_type_or_quality_are_named(unwatched: Robot) -> None:
    """Nothing but a line in the log said why the robot stood, and the base passed for driven."""
    probe = unwatched.probe
    probe.wait_for_status("types", "OK", node="twist_gate")
    context = Context()
    rclpy.init(context=context, domain_id=probe.domain)
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    other = "/stamped has geometry_msgs/msg/TwistStamped on {}, the gate geometry_msgs/msg/Twist"
    picky = "no messages on {} between /picky and twist_gate"
    for name, kind, qualities, text in (
        ("stamped", TwistStamped, (10, 10), other),
        ("picky", Twist, (best_effort, latched), picky),
    ):
        node = Node(name, context=context)
        node.create_publisher(kind, "/cmd_in", qualities[0])
        node.create_subscription(kind, "/cmd_out", lambda message: None, qualities[1])
        for topic in ("/cmd_in", "/cmd_out"):
            probe.wait_for_status("types", "ERROR", text.format(topic), node="twist_gate")
        said = {value.key: value.value for value in probe.diagnostics["twist_gate: output"].values}
        assert said["subscribers"] == "1", "one that hears nothing is none"
        node.destroy_node()
    rclpy.shutdown(context=context)


def test_odometry_that_is_silent_or_no_number_is_an_error(unwatched: Robot) -> None:
    probe = unwatched.probe
    silent = "no speed was measured on /odom"
    probe.wait_for_status("odometry", "ERROR", f"{silent} yet", node="twist_gate")
    odometry = Odometry()
    publisher = probe.node.create_publisher(Odometry, "/odom", 1)
    timer = probe.node.create_timer(0.05, lambda: publisher.publish(odometry))
    probe.wait_for_status("odometry", "OK", node="twist_gate")
    odometry.twist.twist.linear.x = math.nan
    probe.wait_for_status("odometry", "ERROR", f"{silent} for", node="twist_gate")
    odometry.twist.twist.linear.x = 1.0
    probe.wait_for_status("odometry", "OK", node="twist_gate")
    timer.cancel()


def test_a_planner_that_dies_does_not_leave_the_robot_driving(gate: Callable[..., Robot]) -> None:
    robot = gate()
    Monitor(robot.probe)
    robot.wait_for(1.0)
    robot._timer.cancel()
    robot.wait_for(0.0)


def test_an_operator_opens_the_gate_for_a_while(unwatched: Robot) -> None:
    robot = unwatched
    robot.wait_for(0.0, "has not spoken yet")
    other = Probe(robot.probe.domain, "/twist_gate")
    assert other.set(open_for=1.0).successful
    other.close()
    robot.wait_for(1.0, "opened by hand")
    robot.wait_for(0.0, "has not spoken yet")


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
