"""The executable `monitor_node`."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn_ros.lifecycle import serve
from forewarn_ros.process import Interrupt, middleware
from monitor_node.node import MonitorNode


def main(args: Sequence[str] | None = None, interrupt: Interrupt | None = None) -> None:
    """Run the monitor until it is told to stop."""
    with interrupt or Interrupt() as told, middleware(args):
        serve(MonitorNode(), told)
