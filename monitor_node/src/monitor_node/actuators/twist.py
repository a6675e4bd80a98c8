"""The gate between two topics of velocity commands, as the monitor sees it.

The gate is a process of its own (`twist_gate_node`) that listens to the monitor's topics, so that
it outlives the monitor. Here is only watched whether it does what it was asked to.
"""

from __future__ import annotations

from typing import Any

from forewarn_msgs.msg import Intervention
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from forewarn.config.actuators import TwistSpec
from forewarn_ros.status import Severity, Status
from monitor_node.actuators.interface import NOTHING, Confirmation, Demand

INTERFACES: tuple[str, ...] = ()
APPLIED = "output/applied"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def make(node: Node, spec: TwistSpec) -> Gate:
    """Return the actuator."""
    return Gate(node, spec)


class Gate:
    """Compares what is asked for with what the gate says that it applies."""

    name = "twist"

    def __init__(self, node: Node, spec: TwistSpec) -> None:
        self._node, self._spec = node, spec
        self._topic = f"{spec.gate}/{APPLIED}"
        self._subscription = node.create_subscription(
            Intervention, self._topic, self._heard, LATCHED
        )
        self._confirmation = Confirmation(spec.confirm_timeout)
        self._wanted: Demand = NOTHING
        self._applied: Any = None
        self._now = 0.0

    def demand(self, demand: Demand, now: float) -> None:
        """Take note of what the gate is asked for by topic."""
        self._wanted = demand if demand.moves else NOTHING
        what = f"{demand.action} ({demand.id})" if demand.moves else ""
        self._confirmation.ask(what, now)
        self.poll(now)

    def poll(self, now: float) -> None:
        """Compare."""
        self._now = now
        self._confirmation.observe(self._met(), now)

    def _met(self) -> bool:
        applied, wanted = self._applied, self._wanted
        return (
            applied is not None
            and self._subscription.get_publisher_count() > 0
            and applied.id == wanted.id
            and applied.action == getattr(Intervention, wanted.action)
            and (not wanted.limits or applied.speed_limit == wanted.speed_limit)
        )

    def _heard(self, message: Any) -> None:
        self._applied = message
        self._confirmation.observe(self._met(), self._now)

    def status(self, now: float) -> Status:
        """Report; a gate that is absent is an error at any time."""
        if not self._subscription.get_publisher_count():
            text = f"there is no gate {self._spec.gate}: start twist_gate_node"
            return Status("actuator twist", Severity.ERROR, text, {})
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
