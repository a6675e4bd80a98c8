"""A robot around a gate: a planner, a base that obeys, and the topics of a monitor."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acting import config
from forewarn_msgs.msg import Intervention, Risk, RiskArray
from geometry_msgs.msg import Twist, TwistStamped
from live_ros import KEPT, Probe, Process, free_domain
from rclpy.duration import Duration
from rclpy.qos import LivelinessPolicy, QoSProfile
from small_world import MONITOR

from forewarn_ros.messages import from_time

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
        self.stamped_outputs: list[tuple[float, float]] = []
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
        if self.stamped:
            stamp = from_time(message.header.stamp) / 1e9
            self.stamped_outputs.append((stamp, twist.linear.x))

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
def gated(
    folder: Path, section: str = QUICK, *, stamped: bool = False, text: str = MONITOR
) -> Iterator[Robot]:
    """Run a gate with a robot around it, and yield the robot."""
    with free_domain() as domain:
        probe = Probe(domain)
        twist = f"{section}, stamped: {'true' if stamped else 'false'}"
        file = config(folder, f"{{twist: {{{twist}}}}}", text)
        with Process("twist_gate_node", domain, {"config": file}):
            yield Robot(probe, stamped=stamped)
        probe.close()


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
        self.number = 0
        self.asked = Intervention(speed_limit=math.nan)
        self.mute = False
        self.timer = probe.node.create_timer(0.1, self._tick)

    def _tick(self) -> None:
        self.number += 2
        stamp = self._node.get_clock().now().to_msg()
        self.asked.header.stamp = stamp
        for name, value in self.signed.items():
            setattr(self.asked, name, value)
        self.asked.sequence = self.number
        if not self.mute:
            self.intervention.publish(self.asked)
        verdict = RiskArray(**self.signed, sequence=self.number + 1, intervention_id=self.asked.id)
        verdict.header.stamp = stamp
        for name in ("action", "active", "speed_limit", "escape_reverse", "escape_turn"):
            setattr(verdict, name, getattr(self.asked, name))
        verdict.risks = [Risk()]
        self.risk.publish(verdict)

    def ask(
        self,
        action: int,
        *,
        active: bool = True,
        speed_limit: float = math.nan,
        escape_reverse: bool = False,
        escape_turn: bool = False,
    ) -> None:
        self.asked = Intervention(
            id=1,
            action=action,
            active=active,
            speed_limit=speed_limit,
            risk=0.5,
            escape_reverse=escape_reverse,
            escape_turn=escape_turn,
        )

    def withdraw(self) -> None:
        self.asked = Intervention(id=1, speed_limit=math.nan, risk=math.nan)

    def close(self) -> None:
        """Leave the topics."""
        self._node.destroy_timer(self.timer)
        self._node.destroy_publisher(self.risk)
        self._node.destroy_publisher(self.intervention)
