"""The executable `monitor_node`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from forewarn_ros.lifecycle import serve
from forewarn_ros.process import Interrupt, middleware
from monitor_node.node import MonitorNode
from monitor_node.parameters import refuse


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


def main(args: Sequence[str] | None = None, interrupt: Interrupt | None = None) -> None:
    """Run the monitor until it is told to stop."""
    with interrupt or Interrupt() as told, middleware(args):
        node = MonitorNode()
        serve(node, make_executor(node.get_parameter("executor").value, node), told)
