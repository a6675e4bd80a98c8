"""The life of the bridge's process."""

from __future__ import annotations

from collections.abc import Sequence

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from apollo_bridge.node import BridgeNode

WAKE = 0.5


def run(args: Sequence[str] | None, signals: Sequence[int]) -> None:
    """Serve until there is a signal."""
    if signals:
        return
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    try:
        _serve(signals)
    finally:
        rclpy.try_shutdown()


def _serve(signals: Sequence[int]) -> None:
    node = BridgeNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        if node.get_parameter("autostart").value:
            configured = node.trigger_configure() == TransitionCallbackReturn.SUCCESS
            if configured and not signals:
                node.trigger_activate()
        while not signals:
            executor.spin_once(timeout_sec=WAKE)
    finally:
        node.stop()
        executor.shutdown()
        node.destroy_node()
