"""Danger scores against scikit-learn itself, and against what they promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn", reason="the extra `learn` is not installed")
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from threadpoolctl import threadpool_limits

from forewarn.assessment.ranking import curve_of
from forewarn.config.sections import PropertySpec
from forewarn.errors import ConfigError
from forewarn.learning import danger_fit
from forewarn.learning.danger_fit import FittedScore, Rows, fit_score, thinned
from forewarn.learning.danger_line import RIDGES, Line, fit_line
from forewarn.learning.danger_trees import PARAMETERS
from forewarn.learning.folds import fold_of
from forewarn.states.danger import Scoring
from forewarn.states.danger.fit import features_of, lags_of
from forewarn.states.danger.score import compiled_trees
from tests import trees_interpreter as oracle

SECTION = PropertySpec(formula="always(not p)", horizon=2.0)
NAMES = ("a", "b", "c")
MOMENTS = 4
SCORING = Scoring("ahead", NAMES, MOMENTS, named=True)
LAGS = lags_of(MOMENTS)
DIRECTIONS = (1, 0, -1)


@cache
def parts(recordings: int = 12, ticks: int = 120, unknown: float = 0.05) -> tuple[Rows, ...]:
    """Return runs of three signals that wander; b is unknown now and then."""
    found = []
    for seed in range(recordings):
        rng = np.random.default_rng(seed)
        values = np.cumsum(rng.normal(size=(ticks, 3)), axis=0) * 0.3
        values[:, 2] = rng.normal(size=ticks)
        values[rng.random(ticks) < unknown, 1] = np.nan
        rows = [tuple(None if v != v else v for v in row) for row in values.tolist()]
        windows = [rows[max(0, i - MOMENTS) : i + 1] for i in range(ticks)]
        x = np.array([oracle.features(window, LAGS, True) for window in windows])
        rise = np.nan_to_num(values[:, 0] - np.roll(values[:, 0], 2))
        logit = 1.5 * rise - 1.2 * values[:, 2] + 0.8 * np.nan_to_num(values[:, 1]) - 1.5
        followed = rng.random(ticks) < 1 / (1 + np.exp(-logit))
        found.append(Rows(f"run{seed}", np.arange(ticks), x, followed, 3, frozenset()))
    return tuple(sorted(found, key=lambda one: one.digest))


TREES = 40


def fit_to(parts: Sequence[Rows], scoring: Scoring = SCORING) -> FittedScore:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(danger_fit, "MOST_TREES", TREES)
        return fit_score(scoring, DIRECTIONS, "p", SECTION, parts)


@cache
def fitted() -> FittedScore:
    return fit_to(parts())


def constraints() -> list[int]:
    names = features_of(NAMES, LAGS, MOMENTS)
    sign = dict(zip(NAMES, DIRECTIONS, strict=True))
    return [
        0 if name.endswith("before") else sign[next(n for n in NAMES if n in name.split())]
        for name in names
    ]


def sklearn_model(chosen: list[Rows], trees: int) -> Any:
    x = np.concatenate([part.features for part in chosen])
    y = np.concatenate([part.followed for part in chosen])
    model = HistGradientBoostingClassifier(
        max_iter=trees, monotonic_cst=constraints(), **PARAMETERS
    )
    with threadpool_limits(1):
        return model.fit(x, y)


def the_line(chosen: list[Rows]) -> Line:
    """Return the line of some recordings, made in the way in which the whole one was."""
    whole = np.array(fitted().fit.ensemble.line)[:, 0] / fitted().line
    x, y = features_and_outcomes([*parts()])
    present = np.arange(x.shape[1]) % (x.shape[1] // len(NAMES)) == 0
    way = next(
        (ridge, used)
        for used in (present, None)
        for ridge in RIDGES
        if np.allclose(fit_line(x, y, constraints(), ridge, used).slope, whole)
    )
    return fit_line(*features_and_outcomes(chosen), constraints(), *way)


def features_and_outcomes(chosen: list[Rows]) -> tuple[Any, Any]:
    x = np.concatenate([part.features for part in chosen])
    return x, np.concatenate([part.followed for part in chosen])


def expected(chosen: list[Rows], trees: int, x: Any) -> Any:
    """Return what scikit-learn's trees and the line of some recordings say together."""
    bent = sklearn_model(chosen, trees).decision_function(x)
    share = fitted().line
    return 1 / (1 + np.exp(-((1 - share) * bent + share * the_line(chosen).logit(x))))


def test_the_score_is_the_mean_of_scikit_learns_log_odds_and_a_lines() -> None:
    fit = fitted().fit
    assert fitted().line == 0.5
    x = np.concatenate([part.features for part in parts()])
    trees = compiled_trees(3, MOMENTS, LAGS, fit.ensemble)
    found = np.array([trees.judge(row.copy()) for row in x])
    wanted = expected([*parts()], len(fit.ensemble.roots), x)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert [oracle.score(fit.ensemble, row) for row in x[::40]] == found[::40].tolist()


def test_every_recording_is_judged_by_trees_that_did_not_see_it() -> None:
    found = fitted()
    folds = len(found.fit.unseeing)
    trees = len(found.fit.ensemble.roots)
    wanted, bent = [], []
    for part in parts():
        own = fold_of(part.digest, folds)
        others = [one for one in parts() if fold_of(one.digest, folds) != own]
        wanted.append(expected(others, trees, part.features))
        bent.append(sklearn_model(others, trees).predict_proba(part.features)[:, 1])
    np.testing.assert_allclose(found.scores, np.concatenate(wanted), rtol=0, atol=1e-12)
    alone = log_loss(found.followed, np.concatenate(bent))
    assert found.losses[trees - 1] == pytest.approx(alone)
    assert log_loss(found.followed, found.scores) < alone
    assert found.losses[trees - 1] == found.losses.min()


def test_it_ranks_what_it_did_not_see_and_says_how_well() -> None:
    found = fitted()
    area = curve_of(found.scores, found.followed).area
    assert area == pytest.approx(average_precision_score(found.followed, found.scores))
    assert area > 1.3 * found.followed.mean()


def test_a_line_is_scikit_learns_logistic_regression() -> None:
    x, y = features_and_outcomes([*parts()])
    line = fit_line(x, y, [0] * x.shape[1], 1e-2)
    rows = line.scale(x)
    model = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=5000).fit(rows, y)
    np.testing.assert_allclose(line.logit(x), model.decision_function(rows), atol=2e-3)
    far = np.where(np.isnan(x), x, 1e300)
    assert np.isfinite(line.logit(far)).all()
    np.testing.assert_array_equal(line.logit(far), line.logit(np.where(np.isnan(x), x, 50.0)))


def test_a_line_may_keep_to_some_features() -> None:
    x, y = features_and_outcomes([*parts()])
    used = np.arange(x.shape[1]) % 3 == 0
    line = fit_line(x, y, [0] * x.shape[1], 1e-2, used)
    assert (line.slope[~used] == 0).all() and (line.slope[used] != 0).all()
    alone = fit_line(x[:, used], y, [0] * int(used.sum()), 1e-2)
    np.testing.assert_allclose(line.slope[used], alone.slope, rtol=1e-3)


@pytest.mark.parametrize(("sign", "share"), [(1.0, 0.0), (-1.0, 1.0)])
def test_who_predicts_better_alone_is_taken_alone(sign: float, share: float) -> None:
    rng = np.random.default_rng(4)
    y = rng.random(900) < 0.3
    good, bad = np.where(y, 3.0, -3.0), np.where(y, -1.0, 1.0)
    bent, straight = (good, bad) if sign > 0 else (bad, good)
    recording = np.arange(900) // 30
    assert danger_fit._share_of_line(bent, straight, y, recording) == share
    assert danger_fit._share_of_line(good, good, y, recording) == 0.5


def test_the_fit_is_the_same_bits_again() -> None:
    again = fit_to(parts())
    assert again.fit == fitted().fit and again.fit.digest == fitted().fit.digest
    assert again.fit.unseeing == fitted().fit.unseeing


rows = st.lists(
    st.tuples(*[st.floats(-4, 4)] * 3), min_size=2, max_size=MOMENTS + 1
)  # what was, and the present last: at the start of a run it stands for what was


@settings(deadline=None)
@given(rows, st.floats(0, 3), st.floats(0, 3))
def test_it_keeps_to_the_directions_whatever_was_before(
    window: list[tuple[float, float, float]], up: float, down: float
) -> None:
    trees = compiled_trees(3, MOMENTS, LAGS, fitted().fit.ensemble)
    a, b, c = window[-1]
    before = trees.score(tuple(window))
    after = trees.score((*window[:-1], (a + up, b, c - down)))
    assert before is not None and after is not None and after >= before


def test_cuts_lie_between_equal_shares_of_the_violations() -> None:
    found = fitted()
    cuts = found.fit.cuts
    assert len(cuts) == danger_fit.BINS - 1
    hit = found.scores[found.followed]
    for index, cut in enumerate(cuts, 1):
        near = np.mean(hit < cut * 1.06) + 0.01, np.mean(hit < cut * 0.94) - 0.01
        assert near[1] <= index / danger_fit.BINS <= near[0]
        assert cut == float(f"{cut:.2g}")


def test_the_weights_tell_which_signals_decide() -> None:
    shares = fitted().fit.shares
    assert sum(shares.values()) == pytest.approx(1)
    assert {*shares} == {*NAMES} and shares["c"] > 0.2


def test_from_too_many_rows_every_second_tick_is_left_out() -> None:
    given_rows = [[part] for part in parts()]
    kept, stride = thinned(reversed(given_rows), most=parts()[0].features.size * 5)
    assert stride == 4
    assert [one[0].digest for one in kept] == [part.digest for part in parts()]
    for (one,), part in zip(kept, parts(), strict=True):
        assert one.ticks.tolist() == part.ticks[part.ticks % 4 == 0].tolist()
        np.testing.assert_array_equal(one.features, part.features[part.ticks % 4 == 0])
    assert thinned(given_rows)[1] == 1


def test_what_is_known_at_all_times_is_needed() -> None:
    fit = fitted().fit
    width = len(features_of("x", LAGS, MOMENTS))
    asked = {i for i, row in enumerate(fit.ensemble.line) if row[0]}
    asked |= {*fit.ensemble.feature} - {-1}
    assert {i for i, needed in enumerate(fit.ensemble.needed) if needed} == {
        i for i in asked if not width <= i < 2 * width
    }
    trees = compiled_trees(3, MOMENTS, LAGS, fit.ensemble)
    assert trees.score(((0.0, None, 0.0),)) is not None
    assert trees.score(((None, 0.0, 0.0),)) is None


def refused(changed: list[Rows], scoring: Scoring = SCORING) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        fit_to(changed, scoring)
    return caught.value


def test_without_violations_it_says_what_is_needed() -> None:
    quiet = [part._replace(followed=part.followed & False) for part in parts()]
    error = refused(quiet)
    assert error.key == "danger.ahead.for" and "0 of 12" in error.problem
    one = [parts()[0], *quiet[1:]]
    assert "1 of 12" in refused(one).problem and "two violations" in refused(one).accepted


def test_a_signal_that_is_no_number_is_named_or_left_out() -> None:
    texts = [part._replace(others=frozenset({"b"})) for part in parts()]
    error = refused(texts)
    assert error.key == "danger.ahead.from[1]" and "'b'" in error.problem
    found = fit_to(texts, replace(SCORING, named=False))
    assert found.fit.signals == ("a", "c") and found.left_out == ("b",)
    assert found.fit.directions == (1, -1)


def test_a_signal_that_is_never_known_is_named() -> None:
    width = len(features_of("x", LAGS, MOMENTS))
    blank = parts()[0].features.copy()
    blank[:, width : 2 * width] = np.nan
    error = refused([part._replace(features=blank) for part in parts()])
    assert error.key == "danger.ahead.from[1]" and "never known" in error.problem
