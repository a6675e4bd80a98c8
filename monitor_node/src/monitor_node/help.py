"""What an executable's ``--help`` says: its parameters. Without `ros2`, nothing else tells them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

ASKING = ("-h", "--help")


def asked(arguments: Sequence[str]) -> bool:
    """Tell whether help is asked for; what follows ``--ros-args`` is the middleware's."""
    arguments = list(arguments)
    own = arguments[: arguments.index("--ros-args")] if "--ros-args" in arguments else arguments
    return any(word in ASKING for word in own)


def usage(executable: str) -> str:
    """Return the help of an executable."""
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
    }[executable]
    lines = [f"usage: {executable} --ros-args -p {needed}", "", purpose, "", "parameters:"]
    for entry in table:
        lines.append(f"  {entry.name} (default: {entry.default!r})")
        text = entry.descriptor.description
        lines += textwrap.wrap(text, 96, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)
