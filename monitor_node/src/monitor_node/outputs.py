"""The topics that the monitor publishes, and the promises that go with them."""

from __future__ import annotations

from typing import Any

from forewarn_msgs.msg import AlertArray, Anomaly, RiskArray, Signals
from forewarn_msgs.msg import Intervention as InterventionMessage
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import String

from forewarn.signals.clock import Clock
from monitor_node.conversions import Signature

PERIODS_TO_DEADLINE = 2
PERIODS_TO_DEATH = 5
LEAST_LEASE = 0.2
KEPT_EVENTS = 1000
KEPT_REFUSALS = 100
KEPT: dict[str, Any] = {
    "reliability": ReliabilityPolicy.RELIABLE,
    "durability": DurabilityPolicy.TRANSIENT_LOCAL,
}


class Outputs:
    """Publishers, silent while the node is inactive.

    Risk and interventions are reliable and transient local. The deadline is two periods of the
    monitor; without one where it counts steps. A monitor that has not looked for five what is
    due loses its liveliness, which is manual: a node that hangs does not pass for alive.

    Attributes
    ----------
    risk : Publisher
        Every tick.
    intervention : Publisher
        While one is asked for, and once to withdraw it; before the risk of the same tick, which
        repeats what it asks for.
    anomaly : Publisher or None
        Every tick, before its risk, where the monitor file has a section ``anomaly``.
    refusal : Publisher or None
        For each goal that rules speak against, or that could not be judged or passed on, where the
        monitor file has ``guards``. No gate listens: nothing has happened.
    alerts : Publisher
        Whenever an alert begins, acts, ends or is acknowledged.
    state : Publisher
        Every tick, while it has subscribers: signals, then ``predicates.NAME`` and
        ``terminal.NAME``
        as 1, 0 or NaN.
    events : Publisher
        What happens to the monitor, in JSON: ``activate``, ``start``, ``clock``, ``reset``,
        ``release``, ``mute``, ``acknowledge``, ``policy``, ``model``, ``goal``.
    """

    def __init__(
        self,
        node: LifecycleNode,
        clock: Clock,
        mode: str,
        *,
        anomalies: bool = False,
        guards: bool = False,
    ) -> None:
        self._node = node
        self.signature = Signature(mode)
        risk, intervention = prompt(clock, depth=10, **KEPT), alive(clock, depth=10, **KEPT)
        self.risk = self._create(RiskArray, "~/output/risk", risk)
        self.intervention = self._create(InterventionMessage, "~/output/intervention", intervention)
        self.anomaly = None
        if anomalies:
            quality = prompt(clock, depth=10, **KEPT)
            self.anomaly = self._create(Anomaly, "~/output/anomaly", quality)
        self.refusal = None
        if guards:
            quality = QoSProfile(depth=KEPT_REFUSALS, **KEPT)
            self.refusal = self._create(InterventionMessage, "~/output/refusal", quality)
        self.alerts = self._create(AlertArray, "~/output/alerts", QoSProfile(depth=1, **KEPT))
        self.state = self._create(Signals, "~/debug/state", QoSProfile(depth=10))
        self.events = self._create(String, "~/debug/events", QoSProfile(depth=KEPT_EVENTS, **KEPT))

    def _create(self, kind: Any, topic: str, qos: QoSProfile) -> Any:
        return self._node.create_lifecycle_publisher(
            kind, topic, qos, qos_overriding_options=QoSOverridingOptions.with_default_policies()
        )

    def alive(self) -> None:
        """Tell subscribers that the monitor is ticking."""
        self.risk.assert_liveliness()
        self.intervention.assert_liveliness()
        if self.anomaly is not None:
            self.anomaly.assert_liveliness()

    def close(self) -> None:
        """Destroy the publishers."""
        optional, others = (self.anomaly, self.refusal), (self.alerts, self.state, self.events)
        for publisher in (self.risk, self.intervention, *optional, *others):
            if publisher is not None:
                self._node.destroy_lifecycle_publisher(publisher)


def lease(clock: Clock) -> float:
    """Return for how many seconds a monitor may be silent before it counts as dead."""
    return max(PERIODS_TO_DEATH * clock.period, LEAST_LEASE)


def deadline(clock: Clock) -> float:
    """Return how old what is known may be, in s, before the monitor counts as late."""
    return PERIODS_TO_DEADLINE * clock.period


def alive(clock: Clock, **policies: Any) -> QoSProfile:
    """Return the profile of a topic whose silence means that the monitor hangs or is dead."""
    profile = QoSProfile(liveliness=LivelinessPolicy.MANUAL_BY_TOPIC, **policies)
    profile.liveliness_lease_duration = _seconds(lease(clock))
    return profile


def prompt(clock: Clock, **policies: Any) -> QoSProfile:
    """Return such a profile for what comes at every tick; steps come when they come."""
    profile = alive(clock, **policies)
    if clock.regular:
        profile.deadline = _seconds(deadline(clock))
    return profile


def _seconds(value: float) -> Duration:
    return Duration(nanoseconds=round(value * 1e9))
