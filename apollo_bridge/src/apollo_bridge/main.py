"""Entry point of the executable ``apollo_bridge``."""

from __future__ import annotations

import signal
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run the bridge until it is told to stop."""
    interrupts: list[int] = []
    # rclpy's handlers shut the context down, which ends the loop, and call the handler of before.
    # KeyboardInterrupt on top of that, raised while C++ imports something or converts a message, is
    # lost or comes out as another error. A shell's background jobs ignore the signal.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    from apollo_bridge.running import run  # not before: imports take most of the time of a start

    run(args, interrupts)
