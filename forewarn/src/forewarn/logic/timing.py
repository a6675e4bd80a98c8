"""Bounds in seconds as whole steps of the monitor's grid."""

from __future__ import annotations

import math
from typing import NamedTuple

from forewarn.errors import FormulaError
from forewarn.logic.printing import format_interval
from forewarn.logic.syntax import Bound, Interval

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SLACK = 1e-9
_MAX_STEPS = 10_000_000


class Steps(NamedTuple):
    """A closed interval in ticks; `upper` None means without end."""

    lower: int
    upper: int | None


FOREVER = Steps(0, None)


def in_steps(interval: Interval | None, rate: float) -> Steps:
    """Return the ticks that lie in `interval` at `rate` Hz.

    An upper end of b seconds is ``floor(b * rate + 1e-9)`` steps, a lower end
    ``ceil(b * rate - 1e-9)``.

    Raises
    ------
    FormulaError
        No tick lies in the interval, or a number of steps is not whole.
    """
    if interval is None:
        return FOREVER
    lower = _steps(interval.lower, rate, up=True)
    if interval.upper is None:
        return Steps(lower, None)
    upper = _steps(interval.upper, rate, up=False)
    if lower > upper:
        raise FormulaError(
            f"no tick of {rate:g} Hz lies in {format_interval(interval)}",
            accepted=f"an interval that holds a multiple of {1 / rate:g} s",
        )
    return Steps(lower, upper)


def _steps(bound: Bound, rate: float, *, up: bool) -> int:
    whole = bound.unit == "steps"
    exact = bound.value if whole else bound.value * _SECONDS[bound.unit] * rate
    if not exact <= _MAX_STEPS:
        raise FormulaError(
            f"a bound of {bound.value:g} {bound.unit} is {exact:.10g} steps at {rate:g} Hz",
            accepted=f"at most {_MAX_STEPS} steps",
        )
    if whole and exact != int(exact):
        raise FormulaError(f"{bound.value:g} steps", accepted="a whole number of steps")
    return max(math.ceil(exact - _SLACK) if up else math.floor(exact + _SLACK), 0)
