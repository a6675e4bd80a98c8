"""The executable `monitor_node`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node

from monitor_node.interrupt import Interrupt, middleware
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


def spin(executor: Any, interrupt: Interrupt) -> None:
    """Serve until there is a signal."""
    # EventsExecutor.spin() was once seen to burn a core without calling back; spin_once never.
    while not interrupt.told:
        executor.spin_once(timeout_sec=WAKE)


def main(args: Sequence[str] | None = None, interrupt: Interrupt | None = None) -> None:
    """Run the monitor until it is told to stop."""
    with interrupt or Interrupt() as told, middleware(args):
        node = MonitorNode()
        executor = make_executor(node.get_parameter("executor").value, node)
        try:
            if node.get_parameter("autostart").value:
                _start(node, told)
            spin(executor, told)
        finally:
            node.finish()
            # A service that still awaits its thread would be waited for on Humble, for ever.
            executor.shutdown(timeout_sec=0)
            node.destroy_node()


def _start(node: MonitorNode, interrupt: Interrupt) -> None:
    with interrupt.raising():  # the bounds of a large model take long
        configured = node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    if configured and not interrupt.told:
        node.trigger_activate()
