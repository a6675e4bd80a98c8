"""Console scripts. Imports take most of the time of a start: Ctrl-C ends them in silence, too."""

from __future__ import annotations

import signal
from importlib import import_module


def monitor_node() -> None:
    """Run the monitor."""
    _run("monitor_node.main", interrupted=0)


def bag_player_node() -> None:
    """Play a recording; what was interrupted was not played, and its exit code says so."""
    _run("monitor_node.bag_player", interrupted=130)


def twist_gate_node() -> None:
    """Run the gate."""
    _run("monitor_node.twist_gate_node", interrupted=0)


def _run(module: str, interrupted: int) -> None:
    interrupts: list[int] = []
    # A shell's background jobs ignore the signal.
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        # KeyboardInterrupt, raised while C++ imports something, is lost or becomes another error.
        signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    main = import_module(module).main
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupts:
        raise SystemExit(interrupted)
    main()
