"""The topics that the monitor publishes, and the promises that go with them."""

from __future__ import annotations

from typing import Any

from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

from forewarn.signals.clock import Clock
from monitor_node.conversions import Intervention, RiskArray, Signals, Signature, String

PERIODS_TO_DEADLINE = 2
PERIODS_TO_DEATH = 5
LEAST_LEASE = 0.2
KEPT_EVENTS = 1000


class Outputs:
    """Publishers, silent while the node is inactive.

    Risk and interventions are reliable and transient local. The deadline is two periods of the
    monitor, and there is none where it counts steps; a monitor that has not looked for five what is
    due loses its liveliness, which is manual: a node that hangs does not pass for alive.

    Parameters
    ----------
    node : LifecycleNode
        Where they live.
    clock : Clock
        What a moment is.
    mode : str
        ``observe`` or ``act``.

    Attributes
    ----------
    signature : Signature
        What tells these publishers from those of another life.
    """

    def __init__(self, node: LifecycleNode, clock: Clock, mode: str) -> None:
        self._node = node
        self.signature = Signature(mode)
        lease = _seconds(max(PERIODS_TO_DEATH * clock.period, LEAST_LEASE))
        promised = _kept(10, liveliness=LivelinessPolicy.MANUAL_BY_TOPIC)
        promised.liveliness_lease_duration = lease
        prompt = _kept(10, liveliness=LivelinessPolicy.MANUAL_BY_TOPIC)
        prompt.liveliness_lease_duration = lease
        if clock.regular:
            prompt.deadline = _seconds(PERIODS_TO_DEADLINE * clock.period)
        self.risk = self._create(RiskArray, "~/output/risk", prompt)
        self.intervention = self._create(Intervention, "~/output/intervention", promised)
        self.state = self._create(Signals, "~/debug/state", QoSProfile(depth=10))
        self.events = self._create(String, "~/debug/events", _kept(KEPT_EVENTS))

    def _create(self, kind: Any, topic: str, qos: QoSProfile) -> Any:
        return self._node.create_lifecycle_publisher(
            kind, topic, qos, qos_overriding_options=QoSOverridingOptions.with_default_policies()
        )

    def alive(self) -> None:
        """Tell subscribers that the monitor is ticking."""
        self.risk.assert_liveliness()
        self.intervention.assert_liveliness()

    def close(self) -> None:
        """Destroy the publishers."""
        for publisher in (self.risk, self.intervention, self.state, self.events):
            self._node.destroy_lifecycle_publisher(publisher)


def _seconds(value: float) -> Duration:
    return Duration(nanoseconds=round(value * 1e9))


def _kept(depth: int, **policies: Any) -> QoSProfile:
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
        **policies,
    )
