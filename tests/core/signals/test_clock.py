from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.signals.clock_kinds import Grid

RATES = st.sampled_from([1.0, 3.0, 7.3, 10.0, 29.97, 50.0, 100.0, 0.1, 1000.0])
TICKS = st.integers(-(10**12), 10**13)


@settings(deadline=None)
@given(RATES, TICKS)
def test_tick_k_lies_at_the_floor_of_its_exact_time(rate: float, tick: int) -> None:
    assert Grid(rate).time_ns(tick) == math.floor(tick * 10**9 / Fraction(str(rate)))


@settings(deadline=None)
@given(RATES, st.integers(0, 2**62))
def test_both_directions_agree_with_the_definition(rate: float, time_ns: int) -> None:
    grid = Grid(rate)
    after, before = grid.tick_at_or_after(time_ns), grid.tick_at_or_before(time_ns)
    assert grid.time_ns(after - 1) < time_ns <= grid.time_ns(after)
    assert grid.time_ns(before) <= time_ns < grid.time_ns(before + 1)
