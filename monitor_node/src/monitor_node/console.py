"""Console scripts. Imports take most of the time of a start: a signal ends them in silence, too."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module

from forewarn_ros.process import Interrupt

ASKING = ("-h", "--help")


def monitor_node() -> None:
    """Run the monitor."""
    _run("monitor_node", "monitor_node.main", interrupted=0)


def bag_player_node() -> None:
    """Play a recording; what was interrupted was not played, and its exit code says so."""
    _run("bag_player_node", "monitor_node.bag_player", interrupted=130)


def twist_gate_node() -> None:
    """Run the gate."""
    _run("twist_gate_node", "monitor_node.twist_gate_node", interrupted=0)


def monitor_top() -> None:
    """Watch a monitor in a terminal."""
    _run("monitor_top", "monitor_node.top", interrupted=0)


def _run(executable: str, module: str, interrupted: int) -> None:
    with Interrupt() as interrupt:
        if asked(sys.argv[1:]):
            print(usage(executable))
            return
        main = import_module(module).main
        if interrupt.signalled:
            raise SystemExit(interrupted)
        main(interrupt=interrupt)


def asked(arguments: Sequence[str]) -> bool:
    """Return whether help is asked for; arguments after ``--ros-args`` are the middleware's."""
    arguments = list(arguments)
    own = arguments[: arguments.index("--ros-args")] if "--ros-args" in arguments else arguments
    return any(word in ASKING for word in own)


def usage(executable: str) -> str:
    """Return the help of an executable: its parameters, which nothing else tells without `ros2`."""
    from monitor_node import parameters  # imports the middleware, which takes a while

    purpose, table, needed = {
        "monitor_node": (
            "The monitor, a lifecycle node.",
            parameters.NODE_PARAMETERS,
            "config:=monitor.yaml -p autostart:=true",
        ),
        "bag_player_node": (
            "Plays a recording, by the clock or in step with a monitor.",
            parameters.PLAYER_PARAMETERS,
            "bag:=run.mcap",
        ),
        "twist_gate_node": (
            "The gate for velocity commands between planner and base.",
            parameters.GATE_PARAMETERS,
            "config:=monitor.yaml",
        ),
        "monitor_top": (
            "Shows a monitor's risks and alerts in a terminal; keys acknowledge and mute.",
            parameters.TOP_PARAMETERS,
            "monitor:=/monitor",
        ),
    }[executable]
    lines = [f"usage: {executable} --ros-args -p {needed}", "", purpose, "", "parameters:"]
    for entry in table:
        lines.append(f"  {entry.name} (default: {entry.default!r})")
        text = entry.descriptor.description
        lines += textwrap.wrap(text, 96, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)
