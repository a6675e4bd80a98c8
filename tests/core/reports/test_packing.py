from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.reports.packing import Column, pack, size, unpack

NUMBERS = st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), max_size=200)


@settings(deadline=None)
@given(NUMBERS)
def test_an_exact_column_comes_back_as_float32_has_it(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    rows, found = unpack(pack(Column(values, exact=True)))
    assert rows.tolist() == list(range(len(numbers)))
    assert np.array_equal(found, values, equal_nan=True)


@settings(deadline=None)
@given(st.lists(st.floats(-1e30, 1e30).filter(lambda v: v == 0 or abs(v) > 1e-30), max_size=200))
def test_other_columns_lose_less_than_a_hundred_thousandth(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    _, found = unpack(pack(Column(values)))
    assert (np.abs(found - values) <= 1e-5 * np.abs(values)).all()


def test_unknown_and_infinite_values_stay_what_they_are() -> None:
    _, found = unpack(pack(Column(np.array([math.nan, math.inf, -math.inf, -0.0, 1e300]))))
    assert np.array_equal(found, [math.nan, math.inf, -math.inf, 0.0, math.inf], equal_nan=True)


def test_a_thinned_column_keeps_its_peak_and_a_whole_one_everything() -> None:
    values = np.zeros(50_000)
    values[31_415] = 7.0
    rows, found = unpack(pack(Column(values), 1000))
    assert len(rows) <= 1002
    assert found[rows.tolist().index(31_415)] == 7.0
    assert len(unpack(pack(Column(values, whole=True), 1000))[0]) == 50_000


def test_what_changes_rarely_takes_next_to_nothing() -> None:
    steps = np.repeat(np.arange(72.0), 1000)
    assert size(pack(Column(steps))) < 2000
