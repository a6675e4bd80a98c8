"""The gate between two topics of velocity commands, as the monitor sees it.

The gate is a process of its own (`twist_gate_node`) that listens to the monitor's topics, so that
it outlives the monitor. Here is only watched whether it does what it was asked to.
"""

from __future__ import annotations

import math
from typing import Any

from forewarn_msgs.msg import Intervention as InterventionMessage
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from forewarn.config.actuators import TwistSpec
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn_ros.status import Severity, Status
from monitor_node.actuators.interface import Confirmation

INTERFACES: tuple[str, ...] = ()
APPLIED = "output/applied"
SILENCE = 2.0
"""Seconds without a word after which there is no gate: it repeats itself twice a second.

The middleware keeps the publisher of a process that was killed for 20 s.
"""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Gate:
    """Compares what is asked for with what the gate says that it applies."""

    name = "twist"

    def __init__(self, node: Node, spec: TwistSpec) -> None:
        self._node, self._spec = node, spec
        self._topic = f"{spec.gate}/{APPLIED}"
        self._subscription = node.create_subscription(
            InterventionMessage, self._topic, self._heard, LATCHED
        )
        self._confirmation = Confirmation(spec.confirm_timeout)
        self._wanted: Intervention = NOTHING
        self._applied: Any = None
        self._now = 0.0
        self._spoke, self._heard_at = False, math.inf

    def demand(self, demand: Intervention, now: float) -> None:
        """Take note of what the gate is asked for by topic."""
        self._wanted = demand if demand.moves else NOTHING
        what = f"{demand.action} ({demand.id})" if demand.moves else ""
        self._confirmation.ask(what, now)
        self.poll(now)

    def poll(self, now: float) -> None:
        """Compare."""
        self._now = now
        if self._spoke or math.isinf(self._heard_at):  # it has as long to speak for the first time
            self._spoke, self._heard_at = False, now
        self._confirmation.observe(self._met(), now)

    def _met(self) -> bool:
        applied, wanted = self._applied, self._wanted
        return (
            applied is not None
            and not self._missing(self._now)
            and applied.id == wanted.id
            and applied.action == getattr(InterventionMessage, wanted.action)
            and (not wanted.limits or applied.speed_limit == wanted.speed_limit)
        )

    def _missing(self, now: float) -> str:
        """Say why there is no gate; empty if there is one."""
        if not self._subscription.get_publisher_count():
            return f"there is no gate {self._spec.gate}: start twist_gate_node"
        if now - self._heard_at > SILENCE:
            return f"the gate {self._spec.gate} has been silent for {now - self._heard_at:.1f} s"
        return ""

    def _heard(self, message: Any) -> None:
        self._applied, self._spoke = message, True
        self._confirmation.observe(self._met(), self._now)

    def status(self, now: float) -> Status:
        """Report; a gate that is absent is an error at any time."""
        if missing := self._missing(now):
            return Status("actuator twist", Severity.ERROR, missing, {})
        problem = "" if self._applied is None else f"the gate says: {self._applied.reason}"
        return self._confirmation.status("twist", now, problem)

    def owes(self) -> bool:
        """Nothing is kept: the gate follows the monitor's topics."""
        return False

    def resume(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Leave the topic."""
        self._node.destroy_subscription(self._subscription)


ACTUATOR = Gate
