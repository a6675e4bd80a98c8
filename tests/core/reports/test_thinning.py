from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.reports.thinning import extremes

VALUES = st.lists(st.sampled_from([0.0, 0.25, 1.0, math.nan]) | st.floats(0, 1), max_size=300)


def test_a_short_column_is_kept_whole() -> None:
    assert extremes(np.arange(5.0), 10).tolist() == [0, 1, 2, 3, 4]


def test_a_peak_of_one_tick_survives() -> None:
    values = np.zeros(72_000)
    values[41_234] = 1.0
    rows = extremes(values, 4000)
    assert len(rows) <= 4000
    assert 41_234 in rows.tolist()


@settings(deadline=None)
@given(VALUES, st.integers(4, 60))
def test_thinning_keeps_ends_extremes_and_gaps(numbers: list[float], limit: int) -> None:
    values = np.array(numbers, dtype=np.float64)
    rows = extremes(values, limit)
    kept = values[rows]
    assert (np.diff(rows) > 0).all()
    if len(values):
        assert rows[0] == 0
        assert rows[-1] == len(values) - 1
        assert np.isnan(kept).any() == np.isnan(values).any()
    if len(values) and not np.isnan(values).all():
        assert np.nanmax(kept) == np.nanmax(values)
        assert np.nanmin(kept) == np.nanmin(values)
    assert len(rows) <= max(len(values) if len(values) <= limit else 0, 4 * max(limit // 4, 1) + 2)
