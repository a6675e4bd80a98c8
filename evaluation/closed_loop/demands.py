"""Rules without a model for the town's ego, on the signals of the monitor file."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evaluation.harness.control import Quantity, Values, number
from monitor_node.actuators.interface import Demand

STOP, SOFT_STOP = Demand("EMERGENCY_STOP"), Demand("COMFORTABLE_STOP")
LIGHT_AHEAD = 40.0  # m
CLOSE = 10.0  # m ahead of the ego's centre
BESIDE = 3.0  # m to either side
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


def stops_for_everything() -> tuple[Quantity, ...]:
    """Return the rules of a monitor that knows no risk but stops: at lights, before anybody."""
    return (
        Quantity("light", _light_ahead, 1.0, 0.5, SOFT_STOP),
        Quantity("anybody", _anybody_close, 1.0, 0.5, SOFT_STOP),
    )


def _light_ahead(values: Values) -> float:
    line = number(values, "stop_line")
    return float(number(values, "light") in (1.0, 2.0) and 0 < line <= LIGHT_AHEAD)


def _anybody_close(values: Values) -> float:
    cos, sin = (f(number(values, "heading", 0.0)) for f in (math.cos, math.sin))
    x, y = number(values, "ego_x"), number(values, "ego_y")
    others = zip(_list(values, "obj_x"), _list(values, "obj_y"), strict=True)
    offsets = (
        ((ox - x) * cos + (oy - y) * sin, (oy - y) * cos - (ox - x) * sin) for ox, oy in others
    )
    return float(any(0 < along < CLOSE and abs(across) < BESIDE for along, across in offsets))


def _list(values: Values, name: str) -> Sequence[float]:
    value = values.get(name)
    return () if value is None else tuple(map(float, value))
