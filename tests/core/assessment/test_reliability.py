"""Figures of calibration against their definitions, and against scipy."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.reliability import (
    NEVER,
    Predictions,
    calibrate,
    outcomes,
    pool,
    waits,
    wilson,
)
from forewarn.monitoring.verdict import PropertyStatus

PAIRS = st.lists(
    st.tuples(st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.booleans()),
    min_size=1,
    max_size=20,
)


def predicted(pairs: list[tuple[float, bool]], censored: int = 0) -> Predictions:
    return Predictions(
        np.array([risk for risk, _ in pairs], dtype=np.float64),
        np.array([followed for _, followed in pairs], dtype=bool),
        censored,
    )


@given(PAIRS, st.integers(1, 12))
def test_figures_are_those_of_their_definitions(pairs: list[tuple[float, bool]], bins: int) -> None:
    found = calibrate(predicted(pairs, censored=7), bins)
    assert found is not None
    outcomes = [followed for _, followed in pairs]
    base = fmean(outcomes)
    brier = fmean((risk - followed) ** 2 for risk, followed in pairs)
    assert (found.ticks, found.censored) == (len(pairs), 7)
    assert found.base_rate == pytest.approx(base)
    assert found.brier == pytest.approx(brier)
    if base in {0.0, 1.0}:
        assert found.skill is None
    else:
        constant = fmean((base - followed) ** 2 for followed in outcomes)
        assert found.skill == pytest.approx(1 - brier / constant)
    error = 0.0
    inside = {
        i: [pair for pair in pairs if min(int(pair[0] * bins), bins - 1) == i] for i in range(bins)
    }
    inside = {i: members for i, members in inside.items() if members}
    assert len(found.bins) == len(inside)
    for one_bin, (i, members) in zip(found.bins, inside.items(), strict=True):
        assert (one_bin.low, one_bin.high, one_bin.ticks) == (
            i / bins,
            (i + 1) / bins,
            len(members),
        )
        assert one_bin.predicted == pytest.approx(fmean(risk for risk, _ in members))
        assert one_bin.observed == pytest.approx(fmean(followed for _, followed in members))
        known = binomtest(sum(f for _, f in members), len(members)).proportion_ci(method="wilson")
        assert one_bin.observed_low == pytest.approx(known.low, abs=1e-12)
        assert one_bin.observed_high == pytest.approx(known.high, abs=1e-12)
        error += len(members) / len(pairs) * abs(one_bin.predicted - one_bin.observed)
    assert found.expected_error == pytest.approx(error)


def test_there_are_ten_bins_unless_asked_for_otherwise() -> None:
    found = calibrate(predicted([(0.05, False), (0.99, True)]))
    assert found is not None
    assert [(one_bin.low, one_bin.high) for one_bin in found.bins] == [(0.0, 0.1), (0.9, 1.0)]


def test_nothing_to_judge_has_no_figures() -> None:
    nothing = pool([])
    assert calibrate(nothing) is None
    assert (nothing.risk.dtype, nothing.followed.dtype, nothing.censored) == (float, bool, 0)


def test_runs_are_pooled_in_order() -> None:
    both = pool([predicted([(0.1, True)], 2), predicted([(0.2, False)], 3)])
    assert both.risk.tolist() == [0.1, 0.2]
    assert both.followed.tolist() == [True, False]
    assert both.followed.dtype == bool
    assert both.censored == 5


def test_an_interval_of_a_share_stays_within_zero_and_one() -> None:
    for count in range(1, 1000):
        low, high = wilson(0.0, count)[0], wilson(1.0, count)[1]
        assert 0.0 <= low < 1e-15
        assert 1.0 - 1e-15 < high <= 1.0
    assert all(type(end) is float for end in wilson(0.5, 5))


def test_a_monitor_that_tells_neither_terminal_labels_nor_doubt_is_judged_by_its_status() -> None:
    status = [PropertyStatus.SATISFIED_SO_FAR] * 8
    status[2], status[5] = PropertyStatus.ENDED, PropertyStatus.INACTIVE
    run = ScoredRun(
        rate=10.0,
        horizon=2,
        ticks=np.arange(10, 18),
        score=np.zeros(8),
        violation=np.arange(8) == 4,
        status=np.array(status, dtype=np.int8),
    )
    found = waits(run)
    assert found.violated.tolist() == [14] * 4 + [NEVER] * 4
    assert found.over.tolist() == [12, 12, 14, 15, 16, 17, 18, 19]
    assert found.lost.tolist() == [15] * 5 + [18] * 3
    followed, known = outcomes(run)
    assert followed.tolist() == [False, False, True, True, False, False, False, False]
    assert known.tolist() == [True] * 3 + [False] * 2 + [True, False, False]
