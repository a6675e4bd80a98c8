"""The life of the bridge's process."""

from __future__ import annotations

from collections.abc import Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn

from apollo_bridge.node import BridgeNode

WAKE = 0.5


def run(args: Sequence[str] | None, interrupts: Sequence[int]) -> None:
    """Serve until the context is shut down, or there is an interrupt."""
    rclpy.init(args=args)
    try:
        if not interrupts:
            _serve(interrupts)
    except ExternalShutdownException:
        pass
    except Exception:
        if rclpy.ok():
            raise  # else a signal shut the context down in the midst of a call to the middleware
    finally:
        rclpy.try_shutdown()


def _serve(interrupts: Sequence[int]) -> None:
    node = BridgeNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        autostart = node.get_parameter("autostart").value
        if autostart and node.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            node.trigger_activate()
        while rclpy.ok() and not interrupts:
            executor.spin_once(timeout_sec=WAKE)
    finally:
        node.stop()
        executor.shutdown()
        node.destroy_node()
