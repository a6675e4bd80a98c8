"""Exact bounds of proportions, against the binomial distribution that defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forewarn.models.estimation import clopper_pearson


@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from([1e-6, 0.01, 0.025, 0.2]))
def test_a_bound_is_where_what_was_seen_becomes_as_rare_as_asked(seen, missed, tail):
    lower, upper = map(float, clopper_pearson(seen, seen + missed, tail))
    assert 0.0 <= lower <= upper <= 1.0
    if seen:
        assert stats.binom.sf(seen - 1, seen + missed, lower) == pytest.approx(tail)
    else:
        assert lower == 0.0
    if missed:
        assert stats.binom.cdf(seen, seen + missed, upper) == pytest.approx(tail)
    else:
        assert upper == 1.0


def test_many_at_once_are_as_each_alone():
    seen, trials = np.array([0, 0, 3, 7]), np.array([0, 9, 9, 7])
    lower, upper = clopper_pearson(seen, trials, 0.025)
    alone = [clopper_pearson(k, n, 0.025) for k, n in zip(seen, trials, strict=True)]
    assert list(zip(lower, upper, strict=True)) == alone
