"""The grid of ticks: tick k lies at ``floor(k * 1e9 / rate)`` nanoseconds of the clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Grid:
    """Integer arithmetic between nanoseconds and ticks, exact for every rate.

    Attributes
    ----------
    rate : float
        Ticks per second.
    """

    rate: float

    def __post_init__(self) -> None:
        # The decimal a user wrote (0.1), not its nearest binary fraction.
        ratio = Fraction(repr(self.rate))
        object.__setattr__(self, "_numerator", NANOSECONDS * ratio.denominator)
        object.__setattr__(self, "_denominator", ratio.numerator)

    _numerator: int = 0
    _denominator: int = 1

    def time_ns(self, tick: int) -> int:
        """Return the nanosecond at which `tick` lies."""
        return tick * self._numerator // self._denominator

    def tick_at_or_after(self, time_ns: int) -> int:
        """Return the first tick at or after a moment: the one a sample belongs to."""
        # time(k) >= t  <=>  k * n >= t * d, because t is an integer
        return -(-time_ns * self._denominator // self._numerator)

    def tick_at_or_before(self, time_ns: int) -> int:
        """Return the last tick at or before a moment: the newest one that is due."""
        # time(k) <= t  <=>  k * n < (t + 1) * d
        return ((time_ns + 1) * self._denominator - 1) // self._numerator

    def ticks(self, seconds: float) -> int:
        """Return the whole ticks within a span, as upper bounds of formulas count them."""
        return math.floor(seconds * self.rate + 1e-9)
