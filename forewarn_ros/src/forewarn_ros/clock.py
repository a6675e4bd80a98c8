"""Simulated time that may be nonsense: rclpy's own callback raises, which would end the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rosgraph_msgs.msg import Clock

THROTTLE = 5.0


def is_simulated(node: Node) -> bool:
    """Return whether the time of a node comes from /clock."""
    clock: Any = node.get_clock()  # a ROSClock, whatever rclpy's types say
    return bool(clock.ros_time_is_active)


class SimulatedTime(Node):
    """A node that ignores a /clock before zero, and says so; to be inherited first."""

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Callable[..., None], *args: Any, **options: Any
    ) -> Any:
        """Subscribe; see `Node.create_subscription`, which rclpy calls for /clock as well."""
        if msg_type is Clock and topic == "/clock":
            callback = self._guarded(callback)
        return super().create_subscription(msg_type, topic, callback, *args, **options)

    def _guarded(self, callback: Callable[[Clock], None]) -> Callable[[Clock], None]:
        def hear(message: Clock) -> None:
            if message.clock.sec < 0:
                self.get_logger().warning(
                    f"/clock says {message.clock.sec} s and is ignored (accepted: 0 or more)",
                    throttle_duration_sec=THROTTLE,
                )
                return
            callback(message)

        return hear
