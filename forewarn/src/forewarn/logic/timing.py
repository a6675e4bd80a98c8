"""Bounds of formulas as whole moments of the monitor's clock."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from forewarn.errors import FormulaError
from forewarn.logic.printing import format_interval
from forewarn.signals.clock_kinds import by_clock

if TYPE_CHECKING:
    from forewarn.logic.syntax import Bound, Interval
    from forewarn.signals.clock import Clock

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SLACK = 1e-9
_MAX_STEPS = 10_000_000


class Steps(NamedTuple):
    """A closed interval in ticks; `upper` None means without end."""

    lower: int
    upper: int | None


FOREVER = Steps(0, None)


def in_steps(interval: Interval | None, clock: Clock) -> Steps:
    """Return the moments of `clock` that lie in `interval`.

    On a grid, an upper end of b seconds is ``floor(b * rate + 1e-9)`` steps, a lower end
    ``ceil(b * rate - 1e-9)``.

    Raises
    ------
    FormulaError
        No tick lies in the interval, a number of steps is not whole, or a bound is in seconds
        where the clock is steps.
    """
    if interval is None:
        return FOREVER
    for bound in (interval.upper, interval.lower):
        if bound is not None and bound.unit != "steps" and not clock.timed:
            raise FormulaError(
                f"a bound of {bound.value:g} {bound.unit}: the clock is steps",
                accepted="bounds in steps: [0:20], [0 steps:20 steps]",
            )
    lower = _steps(interval.lower, clock, up=True)
    if interval.upper is None:
        return Steps(lower, None)
    upper = _steps(interval.upper, clock, up=False)
    if _exact(interval.lower, clock) > _exact(interval.upper, clock):
        raise FormulaError(
            f"the interval {format_interval(interval)} ends before it begins",
            accepted="the smaller bound first",
        )
    if lower > upper:
        raise FormulaError(
            f"no tick {by_clock(clock.remembered)} lies in {format_interval(interval)}",
            accepted=f"an interval that holds a multiple of {clock.say(clock.duration(1))}",
        )
    return Steps(lower, upper)


def _steps(bound: Bound, clock: Clock, *, up: bool) -> int:
    whole, exact = bound.unit == "steps", _exact(bound, clock)
    if not exact <= _MAX_STEPS:
        counted = "" if whole else f" is {exact:.10g} steps {by_clock(clock.remembered)}"
        raise FormulaError(
            f"a bound of {bound.value:.10g} {bound.unit}{counted}",
            accepted=f"at most {_MAX_STEPS} steps",
        )
    if whole and exact != int(exact):
        raise FormulaError(f"{bound.value:g} steps", accepted="a whole number of steps")
    return max(math.ceil(exact - _SLACK) if up else math.floor(exact + _SLACK), 0)


def _exact(bound: Bound, clock: Clock) -> float:
    """Return a bound in steps, before it is rounded."""
    return bound.value if bound.unit == "steps" else bound.value * _SECONDS[bound.unit] * clock.rate
