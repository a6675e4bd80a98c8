"""Which actuators leave the robot driving when the monitor dies, and what would stop it."""

from __future__ import annotations

from forewarn.config.actuators import ActuatorsSpec

NAV2 = (
    "no dead man's switch: when the monitor dies, goals are pursued, and a speed limit stays as it "
    "is. A lock_topic with a timeout in twist_mux, the parameter bond, or actuators.twist would "
    "stop the robot"
)
AUTOWARE = (
    "no dead man's switch: when the monitor dies, its last command stays in force. A unit for it "
    "in Autoware's diagnostic graph would stop the vehicle (say so by diagnostic_graph: true), or "
    "actuators.twist"
)


def unwatched(spec: ActuatorsSpec, *, bond: bool) -> dict[str, str]:
    """Return, by actuator, what does not happen when the monitor dies.

    Parameters
    ----------
    spec : ActuatorsSpec
        What the monitor file names. A gate stops the robot whatever else is named.
    bond : bool
        Whether a lifecycle manager takes Nav2 down with the monitor.
    """
    found: dict[str, str] = {}
    if spec.twist is not None:
        return found
    if spec.nav2 is not None and spec.nav2.lock_topic is None and not bond:
        found["nav2"] = NAV2
    if spec.autoware is not None and not spec.autoware.diagnostic_graph:
        found["autoware"] = AUTOWARE
    return found
