"""What the gate reports of those around it: base, planner and odometry. Plain, without ROS."""

from __future__ import annotations

import math
from collections.abc import Sequence

from forewarn_ros.status import Severity, Status


def output_status(
    topic: str, publishers: Sequence[str], subscribers: Sequence[str], base: str | None
) -> Status:
    """Report whether the gate, and it alone, drives the base.

    `publishers`: full names of the nodes that publish it besides the gate.
    `subscribers`: full names of the nodes that hear it.
    `base`: the node that drives the base, if the monitor file names it.
    """
    problems = []
    if publishers:
        others = ", ".join(sorted(publishers))
        problems.append(f"{others} publishes {topic} as well: the base may follow that")
    if base is not None and base not in subscribers:
        problems.append(f"{base} does not subscribe to {topic}: the gate drives nothing")
    elif not subscribers:
        problems.append(f"no node subscribes to {topic}: the gate drives nothing")
    values = {"publishers besides the gate": len(publishers), "subscribers": len(subscribers)}
    level = Severity.ERROR if problems else Severity.OK
    return Status("output", level, "; ".join(problems) or "drives the base", values)


def ends_status(misfits: Sequence[str], mismatches: Sequence[str]) -> Status:
    """Report whether planner, base and odometry exchange messages with the gate.

    `misfits`: who has another type than the gate.
    `mismatches`: who has a quality of service that does not fit the gate's.
    """
    problems = list(mismatches)
    if misfits:
        hint = "actuators.twist.stamped says which type commands have"
        problems.insert(0, f"{'; '.join(misfits)}: {hint}")
    if problems:
        return Status("types", Severity.ERROR, "; ".join(problems), {})
    fine = "planner, base and odometry have the gate's types and quality of service"
    return Status("types", Severity.OK, f"{fine}, if they are there", {})


def odometry_status(topic: str, silent: float, limit: float, strange: int) -> Status:
    """Report whether the gate knows how fast the robot is.

    `silent`: seconds since a speed was measured; infinite before the first.
    `limit`: seconds for which a measured speed counts.
    """
    values = {"messages without a number": strange}
    if silent <= limit:
        return Status("odometry", Severity.OK, "the speed is known", values)
    since = "yet" if math.isinf(silent) else f"for {silent:.1f} s"
    text = f"no speed was measured on {topic} {since}"
    meaning = "a stop begins at the speed that was let through, and no way out is open"
    return Status("odometry", Severity.ERROR, f"{text}: {meaning}", values)
