"""The executable `monitor_node`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node

from monitor_node.interrupt import Interrupt
from monitor_node.node import MonitorNode
from monitor_node.parameters import refuse

WAKE = 0.5


def make_executor(kind: str, node: Node) -> Any:
    """Return an executor that serves `node`: ``events`` where rclpy has it, else ``single``."""
    executor: Any = None
    if refused := refuse("executor", kind):
        node.get_logger().error(f"{refused}; 'single' stands in")
    if kind == "events":
        try:
            from rclpy.experimental import EventsExecutor

            executor = EventsExecutor(context=node.context)
        except ImportError:
            node.get_logger().warning("this rclpy has no EventsExecutor; 'single' stands in")
    executor = executor or SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    return executor


def spin(executor: Any) -> None:
    """Serve until the context is shut down, by a signal for instance."""
    # EventsExecutor.spin() was once seen to burn a core without calling back; spin_once never.
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=WAKE)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        if rclpy.ok():
            raise  # else a signal shut the context down in the midst of a call to the middleware


def main(args: Sequence[str] | None = None) -> None:
    """Run the monitor until it is told to stop."""
    with Interrupt() as interrupt:
        rclpy.init(args=args)
        node = MonitorNode()
        executor = make_executor(node.get_parameter("executor").value, node)
        try:
            autostart = node.get_parameter("autostart").value
            if autostart and node.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                node.trigger_activate()
            interrupt.raises = False
            spin(executor)
        finally:
            node.finish()
            executor.shutdown()
            node.destroy_node()
            rclpy.try_shutdown()
