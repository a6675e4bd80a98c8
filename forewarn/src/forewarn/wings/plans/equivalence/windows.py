"""Bounds that are times, where no rate says how many steps they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from forewarn.logic.syntax import Bound, Formula, Interval, walk

_SECONDS = {
    "s": Fraction(1), "ms": Fraction(1, 1000), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9),
}  # fmt: skip


def is_timed(interval: Interval | None) -> bool:
    """Tell whether an end of an interval is a time."""
    return interval is not None and any(bound.unit != "steps" for bound in _ends(interval))


def coarsest_rate(formulas: Iterable[Formula]) -> float | None:
    """Return the lowest rate in Hz at which all times are whole steps; None if there are none."""
    times = [
        exact(bound)
        for formula in formulas
        for part in walk(formula)
        for bound in _ends(getattr(part, "interval", None))
        if bound.unit != "steps"
    ]
    if not times:
        return None
    whole = math.lcm(*(time.denominator for time in times))
    common = math.gcd(*(int(time * whole) for time in times))
    return float(Fraction(whole, common)) if common else 1.0


def exact(bound: Bound) -> Fraction:
    """Return the value of a bound as it is written, a time in seconds."""
    return Fraction(repr(bound.value)) * _SECONDS.get(bound.unit, 1)


def _ends(interval: Interval | None) -> list[Bound]:
    ends = () if interval is None else (interval.lower, interval.upper)
    return [bound for bound in ends if bound is not None]
