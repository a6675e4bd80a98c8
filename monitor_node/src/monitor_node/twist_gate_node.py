"""The executable `twist_gate_node`: it stands between planner and base, and outlives the monitor.

Safe is to stop. The gate lets nothing through before it has heard a full verdict of one monitor,
and brings the robot to rest when that monitor falls silent, loses its liveliness, speaks about a
time too long ago, contradicts itself, or leaves an intervention neither repeated nor withdrawn, and
when anybody else speaks in its place. Whom it trusts is decided in `watchdog`, what passes in
`twist_gate`; here are the topics.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from forewarn_msgs.msg import Intervention as InterventionMessage
from forewarn_msgs.msg import RiskArray
from forewarn_msgs.srv import Acknowledge
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

from forewarn.config.actuators import NO_WAY, TwistSpec, Ways
from forewarn.config.file import MonitorSpec, load_spec
from forewarn.errors import ConfigError, ForewarnError
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.clock import Clock as MonitorClock
from forewarn.signals.clock_kinds import clock_of
from forewarn_ros.clock import SimulatedTime
from forewarn_ros.events import SubscriptionEventCallbacks, owner, qos_mismatches, reaches
from forewarn_ros.messages import diagnostics, to_time
from forewarn_ros.overrides import tell_ignored, tell_unaddressed
from forewarn_ros.process import Interrupt, middleware, spin
from forewarn_ros.status import Severity, Status
from monitor_node import conversions, parameters
from monitor_node.actuators.twist import APPLIED
from monitor_node.escape import account_of
from monitor_node.gate_status import ends_status, odometry_status, output_status
from monitor_node.motion import Velocity
from monitor_node.outputs import deadline, lease, prompt
from monitor_node.security import announce_security
from monitor_node.twist_gate import GateRules, GateState, idle, measure, receive, step
from monitor_node.watchdog import BY_MONITOR, NOTHING_ASKED, Watchdog

try:
    from rclpy.subscription import MessageInfo

    TOLD = "publisher_gid" in MessageInfo.__annotations__
except ImportError:  # before Kilted
    TOLD = False

Hear = Callable[[Any, bytes], None]

REPORT_PERIOD = 0.5
ODOMETRY = "nav_msgs/msg/Odometry"
LOOK_PERIOD = 0.1
"""Seconds between two looks at who publishes: the graph says nothing of itself."""


class TwistGate(SimulatedTime):
    """The gate."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("twist_gate", **arguments)
        parameters.declare(self, parameters.GATE_PARAMETERS)
        # A mistyped one leaves the gate closed: all its bounds are in the monitor file.
        tell_unaddressed(self)
        tell_ignored(self)
        if self.get_parameter("open_for").value:
            self.get_logger().warning("open_for opens nothing at the start: set it afterwards")
        self.spec, monitor = self._configuration()
        clock = clock_of(monitor.rate)
        timeout = self.spec.monitor_timeout or lease(clock)
        oldest = self.spec.deadline or (deadline(clock) if clock.regular else timeout)
        self.watchdog = Watchdog(timeout, clock.period, oldest + monitor.settle)
        self._dead = 0
        self.rules = GateRules.of(self.spec)
        self.state = GateState()
        self._security = announce_security(self)
        self._frame = ""
        self._commands = 0
        self._refused = 0
        self._unmeasured = 0
        self._applied: tuple[Intervention, str] | None = None
        self._open_until = -math.inf
        self._interventions: Any = None
        self.create_service(Acknowledge, "~/acknowledge", self._acknowledge)
        self._listen(clock)
        self._publish_to()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(LOOK_PERIOD, self._look, clock=steady)
        self.create_timer(1.0 / self.spec.rate, self._drive, clock=steady)
        # At the moment at which the last statement is too old, not up to 1 / rate later.
        self._overdue = self.create_timer(self.watchdog.oldest, self._drive, clock=steady)
        self.create_timer(REPORT_PERIOD, self._report, clock=steady)
        self.add_on_set_parameters_callback(self._override)

    def _configuration(self) -> tuple[TwistSpec, MonitorSpec]:
        path = self.get_parameter("config").value
        if not path:
            raise ConfigError("is not set", key="parameter config", accepted="a monitor file")
        spec = load_spec(path)
        section = spec.actuators.twist
        if section is None:
            raise ConfigError(
                "is missing",
                file=spec.file,
                key="actuators.twist",
                accepted="input: and output: topics of the gate",
            )
        if self.get_fully_qualified_name() != section.gate:
            self.get_logger().warning(
                f"{path} calls the gate {section.gate}, this node is "
                f"{self.get_fully_qualified_name()}: the monitor will not find it"
            )
        return section, spec

    def _listen(self, clock: MonitorClock) -> None:
        name, kind = self.spec.monitor, TwistStamped if self.spec.stamped else Twist
        self._heard = [
            self.create_subscription(
                kind,
                self.spec.input,
                self._command,
                QoSProfile(depth=1),
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
        ]
        if self.spec.odometry is not None:
            newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            odometry = self.create_subscription(Odometry, self.spec.odometry, self._measure, newest)
            self._heard.append(odometry)
        self.create_subscription(
            RiskArray,
            f"{name}/output/risk",
            with_writer(self._judge),
            prompt(clock, depth=1),
            event_callbacks=SubscriptionEventCallbacks(
                liveliness=self._liveliness, incompatible_qos=self._incompatible
            ),
        )
        self._ask()

    def _ask(self) -> None:
        """Subscribe to interventions, perhaps again: publishers then send the last ones."""
        if self._interventions is not None:
            self.destroy_subscription(self._interventions)
        self._interventions = self.create_subscription(
            InterventionMessage,
            f"{self.spec.monitor}/output/intervention",
            with_writer(self._intervene),
            QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL),
        )
        self._asked = time.monotonic()

    def _publish_to(self) -> None:
        kind = TwistStamped if self.spec.stamped else Twist
        self._output = self.create_publisher(
            kind,
            self.spec.output,
            QoSProfile(depth=1),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._echo = self.create_publisher(InterventionMessage, f"~/{APPLIED}", latched)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)

    # What comes in

    def _command(self, message: Any) -> None:
        command = _velocity(message.twist if self.spec.stamped else message)
        self._commands += 1
        self._refused += not command.finite
        self._frame = message.header.frame_id if self.spec.stamped else ""
        self.state = receive(self.rules, self.state, command, time.monotonic())
        self._drive()

    def _measure(self, message: Any) -> None:
        measured = _velocity(message.twist.twist)
        self._unmeasured += not measured.finite
        self.state = measure(self.state, measured, time.monotonic())

    def _judge(self, message: Any, writer: bytes) -> None:
        statement, now = conversions.repeated(message, writer, self._now_ns()), time.monotonic()
        self.watchdog.verdict(statement, now)
        self._drive()
        left = self.watchdog.oldest - self.watchdog.age(now)
        if left > 0.0:
            self._overdue.timer_period_ns = round(left * NANOSECONDS) + 1
            self._overdue.reset()

    def _intervene(self, message: Any, writer: bytes) -> None:
        statement = conversions.stated(message, writer, self._now_ns())
        self.watchdog.intervene(statement, time.monotonic())
        self._drive()

    def _liveliness(self, event: Any) -> None:
        self._dead = event.not_alive_count
        self.watchdog.liveliness(event.alive_count)

    def _look(self) -> None:
        """Count who may speak for the monitor: a dead publisher stays in the graph for a while."""
        topics = (f"{self.spec.monitor}/output/{output}" for output in ("risk", "intervention"))
        known = max(self.count_publishers(topic) for topic in topics)
        now = time.monotonic()
        self.watchdog.publishers(known - self._dead, now)
        if self.watchdog.misses_intervention(now) and now - self._asked > self.watchdog.timeout:
            self._ask()

    def _acknowledge(self, request: Any, response: Any) -> Any:
        """Trust a monitor that only observes after one that acted: an operator has looked."""
        response.success = self.watchdog.acknowledge(time.monotonic())
        response.message = "a monitor that only observes is trusted"
        if not response.success:
            response.message = "nothing to acknowledge: no observing monitor follows an acting one"
        who, why = request.requester[:80] or "no name given", request.reason[:300]
        self.get_logger().warning(f"acknowledged by {who!r} ({why!r}): {response.message}")
        return response

    def _incompatible(self, event: Any) -> None:
        self.get_logger().error(
            f"{self.spec.monitor}/output/risk is published without the promises of a monitor"
        )

    def _override(self, changed: Sequence[Any]) -> Any:
        for parameter in changed:
            if parameter.name == "open_for":
                self._open_until = time.monotonic() + parameter.value
                self.get_logger().warning(f"commands pass unchecked for {parameter.value:g} s")
        return SetParametersResult(successful=True)

    # What goes out

    def _demand(self, now: float) -> tuple[Intervention, str]:
        if now < self._open_until:
            return NOTHING, "opened by hand"
        return self.watchdog.demand(now)

    def _clear(self, now: float) -> Ways:
        return NO_WAY if now < self._open_until else self.watchdog.way_out(now)

    def _drive(self) -> None:
        now = time.monotonic()
        demand, reason = self._demand(now)
        if not idle(self.rules, self.state, demand, now):
            self.state = step(self.rules, self.state, demand, now, self._clear(now))
            self._output.publish(self._message(self.state.output))
        if self.state.escape.moving:
            reason += ", on its way out"
        if self._applied != (demand, reason):
            if self._applied is None or self._applied[1] != reason:
                self.get_logger().info(f"{demand.action}: {reason}")
            self._applied = demand, reason
            self._echo.publish(conversions.applied(self._now_ns(), demand, reason))

    def _message(self, velocity: Velocity) -> Any:
        message = TwistStamped() if self.spec.stamped else Twist()
        twist = message
        if self.spec.stamped:
            message.header.stamp = to_time(self._now_ns())
            message.header.frame_id = self._frame
            twist = message.twist
        twist.linear.x, twist.linear.y, twist.linear.z = velocity[:3]
        twist.angular.x, twist.angular.y, twist.angular.z = velocity[3:]
        return message

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _report(self) -> None:
        now, limits = time.monotonic(), self.rules.escape
        demand, reason = self._demand(now)
        if self._applied is not None:  # its silence tells the monitor that the gate is dead
            self._echo.publish(conversions.applied(self._now_ns(), *self._applied))
        healthy = reason in (BY_MONITOR, NOTHING_ASKED)
        values = {
            "action": demand.action,
            "commands": self._commands,
            "commands that were no numbers": self._refused,
            "speed (m/s)": f"{self.state.output.speed:.3f}",
            "held back": self.state.held,
            "session of the monitor": self.watchdog.adopted or "none",
            "age of its newest verdict (s)": f"{self.watchdog.age(now):.3f}",
            "messages of the monitor that came late": self.watchdog.late,
        }
        level = Severity.OK if healthy else Severity.ERROR
        if limits is not None:
            account, clear = self.state.escape, self._clear(now)
            values["way out"] = account_of(limits, account, self.state.output, clear)
            if account.moving and healthy:
                level, reason = Severity.WARN, f"{reason}, on its way out"
        found = [
            Status("gate", level, f"{demand.action}: {reason}", values),
            output_status(self._output.topic_name, *self._ends(), self.spec.base),
            ends_status(self._misfits(), [*qos_mismatches(self, [self._output], self._heard)]),
            self._security,
        ]
        if self.spec.odometry is not None:
            silent = now - self.state.measured_at
            limit, strange = self.rules.command_timeout, self._unmeasured
            found.append(odometry_status(self._heard[1].topic_name, silent, limit, strange))
        self._diagnostics.publish(diagnostics(self._now_ns(), self.get_name(), found))

    def _ends(self) -> tuple[list[str], list[str]]:
        """Return who publishes the output besides the gate, and who hears it."""
        topic, own = self._output.topic_name, self.get_fully_qualified_name()
        publishers = self.get_publishers_info_by_topic(topic)
        ours = next((end for end in publishers if owner(end) == own), None)
        others = [owner(end) for end in publishers if end is not ours]  # a second gate is another
        ears = self.get_subscriptions_info_by_topic(topic)
        return others, [
            owner(ear)
            for ear in ears
            if ear.topic_type == self._kind
            and (ours is None or reaches(ours.qos_profile, ear.qos_profile))
        ]

    @property
    def _kind(self) -> str:
        return f"geometry_msgs/msg/{'TwistStamped' if self.spec.stamped else 'Twist'}"

    def _misfits(self) -> list[str]:
        """Return who exchanges nothing with the gate on its topics, for their type is another."""
        spec = self.spec
        ends = [
            (spec.input, self._kind, self.get_publishers_info_by_topic),
            (spec.output, self._kind, self.get_subscriptions_info_by_topic),
        ]
        if spec.odometry is not None:
            ends.append((spec.odometry, ODOMETRY, self.get_publishers_info_by_topic))
        return [
            f"{owner(end)} has {end.topic_type} on {topic}, the gate {kind}"
            for topic, kind, ends_of in ends
            for end in ends_of(topic)
            if end.topic_type != kind
        ]


def _velocity(twist: Any) -> Velocity:
    linear, angular = twist.linear, twist.angular
    return Velocity(linear.x, linear.y, linear.z, angular.x, angular.y, angular.z)


def with_writer(callback: Hear) -> Callable[..., None]:
    """Return what to subscribe with so that `callback` gets the message and its writer's identity.

    The identity is empty where rclpy does not tell it, before Kilted. The events executor dies of
    such a callback: only for nodes that another one runs.
    """
    if not TOLD:
        return lambda message: callback(message, b"")
    return lambda message, info: callback(message, _identity(info))


def _identity(info: Any) -> bytes:
    gid = info.get("publisher_gid")
    return b"" if gid is None else bytes(gid["data"])


def main(args: Sequence[str] | None = None, interrupt: Interrupt | None = None) -> None:
    """Run the gate until a signal ends it; then the robot is stopped by its base's time-out."""
    with interrupt or Interrupt() as stop, middleware(args):
        try:
            with stop.making():
                node = TwistGate()
        except ForewarnError as error:
            raise SystemExit(f"twist_gate: {error}") from None
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        try:
            spin(executor, stop)
        finally:
            executor.shutdown()
            node.destroy_node()
