"""The executable `monitor_node`."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn.threads import compute_in_one_thread
from forewarn_ros.process import Interrupt, middleware


def main(args: Sequence[str] | None = None, interrupt: Interrupt | None = None) -> None:
    """Run the monitor until a signal ends it."""
    with interrupt or Interrupt() as stop:
        compute_in_one_thread()
        # Only now: this imports NumPy.
        from forewarn_ros.lifecycle import serve
        from monitor_node.node import MonitorNode

        with middleware(args):
            with stop.making():
                node = MonitorNode()
            serve(node, stop)
