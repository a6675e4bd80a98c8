"""Numbers for people have no needless exponents, and shares do not round to all or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.reports.figures import percent, rounded


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (8.2e-7, "less than 0.01 %"),
        (0.00012, "0.012 %"),
        (0.0834, "8.3 %"),
        (0.5, "50 %"),
        (0.994, "99 %"),
        (0.9951, "more than 99 %"),
        (0.999999, "more than 99 %"),
        (1.0, "100 %"),
    ],
)
def test_shares(share: float, text: str) -> None:
    assert percent(share) == text


@given(st.floats(0, 1))
def test_no_share_has_an_exponent_and_only_all_is_all(share: float) -> None:
    text = percent(share)
    assert "e+" not in text
    assert "e-" not in text
    assert (text == "100 %") == (share == 1)
    assert (text == "0 %") == (share == 0)


@given(st.floats(0.001, 1e9), st.integers(2, 4))
def test_rounding_keeps_the_digits_that_it_says(value: float, digits: int) -> None:
    text = rounded(value, digits)
    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=0.5001 * 10 ** (1 - digits))
