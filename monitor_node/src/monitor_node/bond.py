"""Nav2's bond: heartbeats to a lifecycle manager while the node is active.

The manager waits `bond_timeout` for the bond of each node that it activates, and takes all of them
down when one breaks; with `bond_timeout: 0.0` it does without. Heartbeats come from the same
executor as the ticks, so that a node that hangs breaks its bond, and none come while ticks fail.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from monitor_node.message_types import interface_class

STATUS = "bond/msg/Status"
TOPIC = "/bond"
PERIOD = 0.1
TIMEOUT = 4.0
"""The values of Nav2's own nodes, in seconds."""
GOODBYE = 0.3


def check_bond() -> None:
    """Check that the messages of a bond are installed."""
    interface_class(STATUS, where="parameter bond")


class Bond:
    """One side of a bond, alive from its making to `close`."""

    def __init__(self, node: LifecycleNode, alive: Callable[[], bool]) -> None:
        self._node, self._alive = node, alive
        self._class = interface_class(STATUS)
        self._instance = str(uuid.uuid4())
        self._publisher = node.create_publisher(self._class, TOPIC, QoSProfile(depth=100))
        self._timer = node.create_timer(
            PERIOD, self._beat, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        self._beat()

    def _beat(self) -> None:
        if self._alive():
            self._publisher.publish(self._status(active=True))

    def close(self) -> None:
        """Break the bond in good order."""
        self._publisher.publish(self._status(active=False))
        # Destroyed at once, the publisher might take the message with it.
        self._publisher.wait_for_all_acked(Duration(seconds=GOODBYE))
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    def _status(self, *, active: bool) -> Any:
        message = self._class(
            id=self._node.get_name(),
            instance_id=self._instance,
            active=active,
            heartbeat_timeout=TIMEOUT,
            heartbeat_period=PERIOD,
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        return message
