"""Rules without a model for the town's ego, on the signals of the monitor file."""

from __future__ import annotations

import math

from evaluation.harness.control import Quantity, Values, number
from forewarn.monitoring.intervention import Intervention

STOP, SOFT_STOP = Intervention("EMERGENCY_STOP"), Intervention("COMFORTABLE_STOP")
CONFLICTS = tuple(
    f"conflict_{who}" for who in ("car", "stopped", "flank", "walker", "standing", "in_way")
)
"""The times to conflict that predicates are made of."""


def time_to_conflict(values: Values) -> float:
    """Return the least of the monitor file's times to conflict, in seconds."""
    times = [number(values, name, math.inf) for name in CONFLICTS]
    return min((seconds for seconds in times if seconds == seconds), default=math.inf)


def physical_quantities(
    deceleration: float, conflict: float, hold: int = 5, most: float = math.inf
) -> tuple[Quantity, ...]:
    """Return the rules that a monitor without a model would have.

    The first is on the m/s^2 that it takes to stop at a red or yellow light, and holds for so many
    ticks at the least; the second on the seconds until the ego meets somebody if both go on as they
    do, and stops for so many ticks at the most.
    """

    def needed(values: Values) -> float:
        return number(values, "brake_needed")

    def conflicts(values: Values) -> float:
        return -time_to_conflict(values)

    levels = deceleration, 0.6 * deceleration
    return (
        Quantity("required deceleration", needed, *levels, STOP, hold),
        Quantity("time to conflict", conflicts, -conflict, -1.5 * conflict, STOP, most=most),
    )
