"""Entry point of the executable ``apollo_bridge``."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn

from apollo_bridge.node import BridgeNode

WAKE = 0.5


def main(args: Sequence[str] | None = None) -> None:
    """Run the bridge until it is told to stop."""
    interrupts: list[int] = []
    # rclpy's handlers shut the context down, which ends the loop, and call the handler of before.
    # KeyboardInterrupt on top of that, raised while C++ converts a message, comes out as an error
    # of the conversion. A shell's background jobs ignore the signal.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    rclpy.init(args=args)
    try:
        if not interrupts:
            _run(interrupts)
    except ExternalShutdownException:
        pass
    except Exception:
        if rclpy.ok():
            raise  # else a signal shut the context down in the midst of a call to the middleware
    finally:
        rclpy.try_shutdown()


def _run(interrupts: list[int]) -> None:
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
