"""Figures of calibration against their definitions, and against scipy."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from written_runs import clips, track

from forewarn.assessment.calibration import fit
from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.reliability import (
    NEVER,
    Predictions,
    calibrate,
    outcomes,
    pool,
    predictions,
    waits,
    wilson,
)
from forewarn.config.sections import PropertySpec
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


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans(), st.integers(1, 4)), min_size=1))
def test_a_tick_of_weight_three_stands_for_three(ticks: list[tuple[float, bool, int]]) -> None:
    single = predicted([(risk, followed) for risk, followed, _ in ticks])
    found = calibrate(single._replace(weight=np.array([float(weight) for _, _, weight in ticks])))
    repeated = calibrate(predicted([(r, f) for r, f, weight in ticks for _ in range(weight)]))
    assert found is not None and repeated is not None
    assert found.ticks == len(ticks)
    assert found.base_rate == pytest.approx(repeated.base_rate)
    assert found.brier == pytest.approx(repeated.brier)
    assert found.expected_error == pytest.approx(repeated.expected_error, abs=1e-12)
    for ours, theirs in zip(found.bins, repeated.bins, strict=True):
        assert (ours.predicted, ours.observed) == pytest.approx((theirs.predicted, theirs.observed))


def test_runs_with_and_without_weights_are_pooled() -> None:
    plain = predicted([(0.1, True)])
    weighed = predicted([(0.2, False), (0.3, True)])._replace(weight=np.array([1.5, 2.5]))
    for parts, expected in (
        ([plain, weighed], [1.0, 1.5, 2.5]),
        ([weighed, plain], [1.5, 2.5, 1.0]),
    ):
        assert pool(parts).weights.tolist() == expected
    assert pool([plain, plain]).weight is None


def test_there_are_ten_bins_unless_asked_for_otherwise() -> None:
    found = calibrate(predicted([(0.05, False), (0.99, True)]))
    assert found is not None
    assert [(one_bin.low, one_bin.high) for one_bin in found.bins] == [(0.0, 0.1), (0.9, 1.0)]


def test_nothing_to_judge_has_no_figures() -> None:
    nothing = pool([])
    assert calibrate(nothing) is None
    assert calibrate(predictions(track("", ""))) is None
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


def expected_outcome(facts: str, t: int, horizon: int | None) -> bool | None:
    """Walk forward from tick t: did a violation follow, or was the answer not to be had?

    Whether there is an answer must not depend on it: nobody stops walking at a violation.
    """
    followed = False
    for u in range(t + 1, len(facts) if horizon is None else t + horizon + 1):
        if u >= len(facts) or facts[u] in "-?~_":
            return None
        followed = followed or facts[u] in "VT"
        if facts[u] in "ET":
            return followed
    return None if horizon is None else followed


@given(st.text("....VvET-?~_", max_size=20), st.sampled_from([None, 1, 3]))
def test_predictions_pair_each_tick_with_what_followed(facts: str, horizon: int | None) -> None:
    risk = [i / 64 for i in range(len(facts))]
    found = predictions(track("." * len(facts), facts, horizon=horizon, risk=risk))
    wanted = [
        (i / 64, expected_outcome(facts, i, horizon)) for i, f in enumerate(facts) if f in ".~"
    ]
    judged = [(r, o) for r, o in wanted if o is not None]
    assert list(zip(found.risk.tolist(), found.followed.tolist(), strict=True)) == judged
    assert found.censored == len(wanted) - len(judged)


RULE = PropertySpec(formula="always(not p)", horizon=2.0)


def test_a_perfect_model_is_called_right_though_recordings_are_short() -> None:
    parts = [predictions(clip) for clip in clips(seed=1, seconds=3.0)]
    found = calibrate(pool(parts))
    assert found is not None
    assert found.bins[0].predicted == pytest.approx(0.332, abs=1e-3)
    assert found.expected_error < 0.02
    fitted = fit("rule", RULE, parts, method="isotonic", rate=10.0)
    assert fitted.found is not None
    assert fitted.found(np.array([0.332])) == pytest.approx(0.332, abs=0.02)


def test_a_map_is_judged_on_groups_that_it_was_not_fitted_to() -> None:
    """Each group has a risk of its own that tells nothing of other groups."""
    rng = np.random.default_rng(5)
    parts, clusters = [], []
    for group, share in enumerate(rng.permutation(np.linspace(0.1, 0.9, 24)).tolist()):
        risk = np.full(200, (group + 0.5) / 24)
        for _ in range(4):
            parts.append(Predictions(risk, rng.random(200) < share, 0))
            clusters.append(f"robot={group}")
    order = rng.permutation(len(parts))
    parts, clusters = [parts[i] for i in order], [clusters[i] for i in order]
    alone, grouped = (
        fit("rule", RULE, parts, method="isotonic", rate=10.0, clusters=given)
        for given in (None, clusters)
    )
    assert alone.found == grouped.found  # what is fitted is the same
    assert alone.before is not None and alone.after is not None and grouped.after is not None
    assert grouped.after.brier > alone.after.brier
    names = [f"run {i}" for i in range(len(parts))]
    assert fit("rule", RULE, parts, method="isotonic", rate=10.0, clusters=names) == alone


def test_a_violation_at_the_end_of_an_episode_counts_for_the_ticks_before_it() -> None:
    found = predictions(track("." * 5, "....T", horizon=20))
    assert found.followed.tolist() == [True] * 4
    assert found.censored == 0


def test_calibration_of_a_forecast_computed_by_hand() -> None:
    # Ticks 0, 1, 3 and 4 at risk 0.25, one of them followed within a tick: 1/4 in that bin.
    run = track("." * 6, "..V...", horizon=1, risk=[0.25, 0.25, 1.0, 0.25, 0.25, 0.75])
    pairs = predictions(run)
    assert pairs.followed.tolist() == [False, True, False, False]
    result = calibrate(pairs)
    assert result is not None
    assert result.brier == pytest.approx((3 * 0.25**2 + 0.75**2) / 4)
    assert result.base_rate == 0.25
    assert result.skill == pytest.approx(0.0)
    assert result.expected_error == pytest.approx(0.0)
    assert [(b.low, b.high, b.ticks) for b in result.bins] == [(0.2, 0.3, 4)]
    assert result.censored == 1


def test_a_certain_forecast_falls_into_the_last_bin() -> None:
    result = calibrate(predictions(track("....", "..V.", horizon=1, risk=[0.0, 1.0, 1.0, 0.0])))
    assert result is not None
    assert [(b.low, b.observed) for b in result.bins] == [(0.0, 0.0), (0.9, 1.0)]
    assert result.brier == 0.0
    assert result.skill == pytest.approx(1.0)


def test_pooled_runs_do_not_touch_each_other() -> None:
    one = predictions(track("..", "..", horizon=1))
    two = predictions(track("..", "V.", horizon=1))
    both = pool([one, two])
    assert both.followed.tolist() == [False]
    assert both.censored == 2


def test_wilson_agrees_with_published_values() -> None:
    # Newcombe (1998), table I: 81/263 gives 0.2553 to 0.3662, 0/20 gives 0 to 0.1611.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
