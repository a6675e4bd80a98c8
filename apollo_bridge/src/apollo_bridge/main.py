"""Entry point of the executable ``apollo_bridge``."""

from __future__ import annotations

from collections.abc import Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn

from apollo_bridge.node import BridgeNode

WAKE = 0.5


def main(args: Sequence[str] | None = None) -> None:
    """Run the bridge until it is told to stop."""
    rclpy.init(args=args)
    node = BridgeNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        autostart = node.get_parameter("autostart").value
        if autostart and node.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            node.trigger_activate()
        while rclpy.ok():
            executor.spin_once(timeout_sec=WAKE)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.stop()
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()
