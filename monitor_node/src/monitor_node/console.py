"""Console scripts. Imports take most of the time of a start: a signal ends them in silence, too."""

from __future__ import annotations

import sys
from importlib import import_module

from forewarn_ros.process import Interrupt
from monitor_node.help import asked, usage


def monitor_node() -> None:
    """Run the monitor."""
    _run("monitor_node", "monitor_node.main", interrupted=0)


def bag_player_node() -> None:
    """Play a recording; what was interrupted was not played, and its exit code says so."""
    _run("bag_player_node", "monitor_node.bag_player", interrupted=130)


def twist_gate_node() -> None:
    """Run the gate."""
    _run("twist_gate_node", "monitor_node.twist_gate_node", interrupted=0)


def _run(executable: str, module: str, interrupted: int) -> None:
    with Interrupt() as interrupt:
        if asked(sys.argv[1:]):
            print(usage(executable))
            return
        main = import_module(module).main
        if interrupt.told:
            raise SystemExit(interrupted)
        main(interrupt=interrupt)
