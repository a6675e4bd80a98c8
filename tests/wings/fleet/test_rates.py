"""Rates of events: exact where recordings are alike, as much wider as they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forewarn.wings.fleet.rates import event_rate


@given(events=st.integers(0, 300), hours=st.floats(0.01, 1000))
def test_the_interval_of_one_recording_is_the_exact_one_of_poisson(
    events: int, hours: float
) -> None:
    found = event_rate([events], [hours])
    assert (found.rate, found.dispersion) == (events / hours, 1.0)
    assert stats.poisson.cdf(events, found.upper * hours) == pytest.approx(0.025, rel=1e-6)
    if events:
        assert stats.poisson.sf(events - 1, found.lower * hours) == pytest.approx(0.025, rel=1e-6)
    else:
        assert found.lower == 0


@given(
    runs=st.lists(
        st.tuples(st.integers(0, 20), st.one_of(st.just(0.0), st.floats(0.1, 5))),
        min_size=1,
        max_size=20,
    )
)
def test_the_rate_lies_in_its_interval_whatever_the_order(runs: list[tuple[int, float]]) -> None:
    events, hours = zip(*[(n if h else 0, h) for n, h in runs], strict=True)
    found, back = event_rate(events, hours), event_rate(events[::-1], hours[::-1])
    assert found.events == sum(events) == back.events and found.dispersion >= 1
    assert (found.lower, found.upper) == pytest.approx((back.lower, back.upper))
    if found.hours:
        assert found.lower <= found.rate <= found.upper
    else:
        assert math.isnan(found.rate) and found.upper == math.inf


def test_intervals_hold_where_recordings_differ() -> None:
    draw, hours = np.random.default_rng(3), np.full(40, 0.5)
    held = naive = 0
    for _ in range(400):
        events = draw.poisson(draw.gamma(1.0, 6.0, size=40) * hours)  # on average 6 an hour
        found = event_rate(events.tolist(), hours.tolist())
        held += found.lower <= 6.0 <= found.upper
        as_one = event_rate([int(events.sum())], [float(hours.sum())])
        naive += as_one.lower <= 6.0 <= as_one.upper
    assert held / 400 > 0.9
    assert naive / 400 < 0.8
