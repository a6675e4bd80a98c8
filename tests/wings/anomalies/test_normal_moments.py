"""How far moments are from normal ones: against scikit-learn, and the promise by repetition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from extent import repetitions
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from forewarn.errors import ModelError, RecordingError
from forewarn.models.checked_json import Reader
from forewarn.wings.anomalies.normal_file import SECTION
from forewarn.wings.anomalies.normal_moments import (
    MOST_MOMENTS,
    STANDARDISING,
    Floats,
    NormalMoments,
    distances,
    fit_normal,
    spread,
    standardised,
)

NAMES = ("speed", "gap", "turning")


def run(chance: np.random.Generator, length: int = 30) -> Floats:
    """Return a run whose signals wander around a level of its own."""
    steps = chance.normal(size=(length, len(NAMES)))
    level = chance.normal(size=len(NAMES)) * (1.0, 5.0, 0.1)
    return np.asarray(level + 0.3 * np.cumsum(steps, axis=0) * (1.0, 5.0, 0.1))


def fitted(runs: list[Floats]) -> NormalMoments:
    return fit_normal(runs, NAMES, [str(i) for i in range(len(runs))])


def greatest(normal: NormalMoments, values: Floats) -> float:
    return max(normal.nearest(row).distance for row in values.tolist())


@given(seed=st.integers(0, 2**32 - 1))
def test_distances_are_those_of_scikit_learn_over_what_is_known(seed):
    chance = np.random.default_rng(seed)
    moments, rows = chance.normal(size=(20, 3)), chance.normal(size=(9, 3))
    rows[chance.random(rows.shape) < 0.3] = np.nan
    found = distances(moments, rows)
    for row, distance in zip(rows, found, strict=True):
        known = ~np.isnan(row)
        if not known.any():
            assert math.isnan(distance)
            continue
        oracle = NearestNeighbors(n_neighbors=1).fit(moments[:, known])
        assert distance == pytest.approx(oracle.kneighbors(row[None, known])[0][0, 0])


@given(seed=st.integers(0, 2**32 - 1))
def test_a_moment_is_as_far_as_many_at_once_and_says_by_which_signals(seed):
    chance = np.random.default_rng(seed)
    normal = fitted([run(chance) for _ in range(8)])
    rows = run(chance, 10)
    rows[chance.random(rows.shape) < 0.2] = np.nan
    many = distances(normal.moments, standardised(rows, normal.centre, normal.scale))
    for row, distance in zip(rows, many, strict=True):
        found = normal.nearest(row.tolist())
        assert found.distance == pytest.approx(distance, nan_ok=True)
        unknown = {name for name, value in zip(NAMES, row, strict=True) if np.isnan(value)}
        assert {*found.unknown} == unknown
        shares = [share for _, share in found.shares]
        assert shares == sorted(shares, reverse=True)
        assert not shares or sum(shares) == pytest.approx(1.0)


def test_each_calibrating_run_is_compared_with_the_moments_of_all_others():
    chance = np.random.default_rng(3)
    runs = [run(chance) for _ in range(12)]
    normal = fitted(runs)
    rows = [standardised(one, normal.centre, normal.scale) for one in runs]
    scaled = np.concatenate(runs[::STANDARDISING])
    assert normal.centre == pytest.approx(scaled.mean(axis=0))
    assert normal.scale == pytest.approx(scaled.std(axis=0))
    expected = []
    for i, one in enumerate(rows):
        if i % STANDARDISING:
            others = np.concatenate(rows[:i] + rows[i + 1 :])  # all 360 moments are kept
            expected.append(max(np.linalg.norm(others - row, axis=1).min() for row in one))
    assert normal.greatest == pytest.approx(sorted(expected))


@pytest.mark.parametrize(("runs", "alpha"), [(26, 0.05), (40, 0.1)])
def test_at_most_the_promised_share_of_new_normal_runs_is_anomalous(runs, alpha):
    """Each repetition learns anew and judges one new run: the promise is about both."""
    chance, number = np.random.default_rng(7), repetitions(1000)
    wrong = 0
    for _ in range(number):
        normal = fitted([run(chance, 15) for _ in range(runs)])
        wrong += greatest(normal, run(chance, 15)) > normal.limit(alpha)
    assert stats.binomtest(wrong, number, alpha, alternative="greater").pvalue > 0.01


def test_the_promise_is_kept_although_few_moments_of_each_run_are():
    chance, number, alpha = np.random.default_rng(8), repetitions(1000), 0.2
    wrong = 0
    for _ in range(number):
        normal = fitted([run(chance, 400) for _ in range(20)])
        assert len(normal.moments) == MOST_MOMENTS
        wrong += bool(
            distances(
                normal.moments, standardised(run(chance, 400), normal.centre, normal.scale)
            ).max()
            > normal.limit(alpha)
        )
    assert stats.binomtest(wrong, number, alpha, alternative="greater").pvalue > 0.01


def test_a_run_of_another_kind_is_anomalous():
    chance = np.random.default_rng(9)
    normal = fitted([run(chance) for _ in range(30)])
    strange = run(chance)
    strange[12, 1] += 100.0
    found = [normal.nearest(row) for row in strange.tolist()]
    worst = max(found, key=lambda one: one.distance)
    assert found.index(worst) == 12 and worst.shares[0][0] == "gap"
    assert worst.distance > normal.limit(0.05) and normal.p_value(worst.distance) < 0.05


def test_no_moment_is_far_from_what_is_kept_of_a_run():
    rows = np.random.default_rng(1).normal(size=(300, 2))
    kept = spread(rows, 40)
    assert len(kept) == 40 and distances(kept, rows).max() < 0.7
    assert {*map(tuple, kept.tolist())} <= {*map(tuple, rows.tolist())}


def test_what_cannot_be_compared_is_left_out_with_the_reason():
    chance = np.random.default_rng(2)
    runs = [np.column_stack([run(chance), np.ones(30), np.full(30, np.nan)]) for _ in range(8)]
    for one in runs:
        one[0, 0] = np.inf
    names = (*NAMES, "flag", "absent")
    normal = fit_normal(runs, names, ["a"], {"turning": "is no number"})
    assert normal.signals == ("gap",)
    assert normal.left_out == {
        "speed": "is infinite at times",
        "turning": "is no number",
        "flag": "never changes",
        "absent": "is known in 0% of moments",
    }


@pytest.mark.filterwarnings("error")
def test_numbers_too_large_to_compare_are_left_out_and_later_ones_are_far():
    chance = np.random.default_rng(2)
    runs = [run(chance) for _ in range(8)]
    runs[1][3, 1] = -1.7e308
    normal = fitted(runs)
    assert normal.greatest[-1] > 1e8 and normal.unlimited and not fitted(runs[2:]).unlimited
    assert normal.nearest([0.0, 1.7e308, 0.0]).distance > 1e8
    for one in runs:
        one[::2, 0] = 1e308
    assert fitted(runs).left_out == {"speed": "is beyond 1e+100 at times"}


def test_an_infinite_value_is_as_far_as_anything_and_nothing_known_is_not_judged():
    chance = np.random.default_rng(2)
    normal = fitted([run(chance) for _ in range(8)])
    far = normal.nearest([1.0, math.inf, 0.0])
    assert math.isfinite(far.distance) and far.distance > 1e8 and far.shares[0] == ("gap", 1.0)
    nothing = normal.nearest([math.nan] * 3)
    assert math.isnan(nothing.distance) and nothing.unknown == NAMES


def test_too_little_to_learn_from_is_an_error():
    chance = np.random.default_rng(2)
    runs = [run(chance) for _ in range(3)]
    with pytest.raises(RecordingError, match=r"3 runs without a violation.*4 or more"):
        fitted(runs)
    with pytest.raises(RecordingError, match="no signal can be compared: speed never changes"):
        fitted([np.ones((5, 3))] * 6)
    normal = fitted([*runs, run(chance)])
    assert normal.least_alpha == normal.usual_alpha == 0.25
    with pytest.raises(ModelError, match=r"3 normal runs.*alpha from 0.25 on"):
        normal.limit(0.1)


def test_it_is_the_same_from_a_file_and_a_damaged_one_is_refused():
    chance = np.random.default_rng(2)
    normal = fitted([run(chance) for _ in range(8)])
    (data,) = SECTION.dump([normal])
    (again,) = SECTION.parse([Reader(data, "normal_moments[0]")])
    assert SECTION.dump([again]) == [data]
    assert (again.moments == normal.moments).all() and again.greatest == normal.greatest
    for key, value in (
        ("signals", []),
        ("scale", [1.0, 0.0, 1.0]),
        ("centre", [1.0]),
        ("moments", data["moments"][:-1]),
        ("moments", []),
        ("greatest", data["greatest"][::-1]),
        ("longest", 0),
        ("left_out", {"x": 1}),
    ):
        with pytest.raises(ModelError, match=key):
            SECTION.parse([Reader({**data, key: value}, "normal_moments[0]")])
