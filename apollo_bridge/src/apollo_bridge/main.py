"""Entry point of the executable ``apollo_bridge``."""

from __future__ import annotations

import signal
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run the bridge until it is told to stop."""
    signals: list[int] = []
    # rclpy's own handlers shut the context down at once, whatever is being done with it at the
    # moment, and here a thread publishes as well. KeyboardInterrupt, raised while C++ imports
    # something or converts a message, is lost or comes out as another error.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.append(number))
    from apollo_bridge.running import run  # not before: imports take most of the time of a start

    run(args, signals)
    # Ctrl-C often comes twice, from the terminal and from `ros2 launch`; an interpreter that takes
    # itself down has no handlers any more, and would die of the second.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
