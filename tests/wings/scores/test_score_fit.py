"""Learned scores against scikit-learn itself, and against what they promise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

pytest.importorskip("sklearn", reason="the extra `learn` is not installed")
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from threadpoolctl import threadpool_limits

from forewarn.assessment.ranking import curve_of
from forewarn.config.sections import PropertySpec
from forewarn.errors import ConfigError
from forewarn.learning.folds import parted
from forewarn.models.checked_json import Reader
from forewarn.wings.scores import members as member_fits
from forewarn.wings.scores import score_fit
from forewarn.wings.scores.boosted_trees import LARGE, PARAMETERS, SMALL, STEP
from forewarn.wings.scores.fit import features_of, lags_of
from forewarn.wings.scores.line import RIDGES, Line, fit_lines
from forewarn.wings.scores.model_file import dump_scores, parse_scores
from forewarn.wings.scores.score import Scoring, compiled_trees
from forewarn.wings.scores.score_fit import FittedScore, Rows, fit_score, thinned
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
        x = np.array([oracle.features(window, LAGS) for window in windows])
        rise = np.nan_to_num(values[:, 0] - np.roll(values[:, 0], 2))
        logit = 1.5 * rise - 1.2 * values[:, 2] + 0.8 * np.nan_to_num(values[:, 1]) - 1.5
        followed = rng.random(ticks) < 1 / (1 + np.exp(-logit))
        sure = np.ones(ticks, dtype=bool)
        found.append(Rows(f"run{seed}", np.arange(ticks), x, followed, sure, 3, frozenset()))
    return tuple(sorted(found, key=lambda one: one.digest))


TREES = 50


def fit_to(
    parts: Sequence[Rows],
    scoring: Scoring = SCORING,
    directions: Sequence[int] = DIRECTIONS,
    telling: int = 99,
) -> FittedScore:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_fit, "MOST_TREES", TREES)
        patch.setattr(score_fit, "FOLDS", range(4, 21))
        patch.setattr(member_fits, "TELLING", telling)
        return fit_score(scoring, directions, "p", SECTION, parts)


@cache
def fitted() -> FittedScore:
    return fit_to(parts())


def constraints() -> list[int]:
    sign = dict(zip(NAMES, DIRECTIONS, strict=True))
    return [sign[next(n for n in NAMES if n in name.split())] for name in features_of(NAMES, LAGS)]


WIDTH = len(features_of("x", LAGS))
PRESENT = np.arange(WIDTH * len(NAMES)) % WIDTH == 0
ALL = np.ones_like(PRESENT)
DIRECTED = np.repeat(np.array(DIRECTIONS) != 0, WIDTH)
OF_TREES = ["trees", "small trees", "small trees of signals with a direction"]
MEMBERS = [*OF_TREES, "line"]
KINDS = (ALL, ALL, DIRECTED), (LARGE, SMALL, SMALL)
PRIOR = np.array([member_fits.PRIOR[name] for name in MEMBERS]) / 1.3


def sklearn_model(chosen: list[Rows], trees: int, columns: Any = ALL, size: Any = LARGE) -> Any:
    x, y = features_and_outcomes(chosen)
    model = HistGradientBoostingClassifier(
        max_iter=trees,
        monotonic_cst=[sign for sign, use in zip(constraints(), columns, strict=True) if use],
        **PARAMETERS,
        **size,
    )
    with threadpool_limits(1):
        return model.fit(x[:, columns], y)


@cache
def best_ridge() -> float:
    """Return the ridge that loses least on recordings left out, tried one by one."""
    lost = []
    for ridge in RIDGES:
        odds = crossed(lambda some, x, r=ridge: the_line(some, r).logit(x))
        lost.append(log_loss(fitted().followed, 1 / (1 + np.exp(-odds))))
    return RIDGES[int(np.argmin(lost))]


def the_line(chosen: list[Rows], ridge: float) -> Line:
    lines = fit_lines(*features_and_outcomes(chosen), constraints(), PRESENT)
    return lines[RIDGES.index(ridge)]


def crossed(says: Any) -> Any:
    """Return what is said of each recording by what was fitted without its fold."""
    found = []
    own = parted([part.digest for part in parts()], len(fitted().fit.unseeing))
    for fold, part in zip(own, parts(), strict=True):
        others = [one for one, other in zip(parts(), own, strict=True) if other != fold]
        found.append(says(others, part.features))
    return np.concatenate(found)


def features_and_outcomes(chosen: list[Rows]) -> tuple[Any, Any]:
    x = np.concatenate([part.features for part in chosen])
    return x, np.concatenate([part.followed for part in chosen])


def members(chosen: list[Rows], rounds: Sequence[int], x: Any) -> Any:
    """Return the log-odds of scikit-learn's trees and of the line, shape (n, 4)."""
    bent = [
        sklearn_model(chosen, count, own, size).decision_function(x[:, own])
        for count, own, size in zip(rounds, *KINDS, strict=True)
    ]
    return np.column_stack([*bent, the_line(chosen, best_ridge()).logit(x)])


@cache
def odds_of_others() -> Any:
    """Return what members say of each recording that did not see it."""
    return crossed(lambda others, x: members(others, fitted().rounds, x))


def chances(odds: Any) -> Any:
    return 1 / (1 + np.exp(-odds))


def test_the_score_is_a_weighted_sum_of_scikit_learns_log_odds_and_lines() -> None:
    fit, weights = fitted().fit, fitted().members
    assert [*weights] == MEMBERS and all(0 < weight < 0.8 for weight in weights.values())
    x = np.concatenate([part.features for part in parts()])
    trees = compiled_trees(3, LAGS, fit.ensemble)
    found = np.array([trees.judge(row.copy()) for row in x])
    odds = members([*parts()], fitted().rounds, x) @ [*weights.values()]
    apart = np.log(found / (1 - found)) - odds
    np.testing.assert_allclose(apart, apart[0], rtol=0, atol=1e-9)  # the intercept
    assert abs(apart[0]) < 1
    assert [oracle.score(fit.ensemble, row) for row in x[::40]] == found[::40].tolist()


def test_every_recording_is_judged_by_members_that_did_not_see_it() -> None:
    found, odds = fitted(), odds_of_others()
    apart = np.log(found.scores / (1 - found.scores)) - odds @ [*found.members.values()]
    np.testing.assert_allclose(apart, apart[0], rtol=0, atol=1e-5)  # in single precision
    of_mean = log_loss(found.followed, chances(odds @ PRIOR))
    assert log_loss(found.followed, found.scores) < of_mean
    for member in odds.T:
        assert of_mean < log_loss(found.followed, chances(member)) + 0.01


def test_of_each_kind_there_are_as_many_trees_as_predict_others_best() -> None:
    for count, own, size in zip(fitted().rounds, *KINDS, strict=True):

        def stages(some: list[Rows], x: Any, own: Any = own, size: Any = size) -> Any:
            model = sklearn_model(some, TREES, own, size)
            return np.column_stack([*model.staged_decision_function(x[:, own])])

        losses = [log_loss(fitted().followed, chances(odds)) for odds in crossed(stages).T]
        assert count == STEP * (1 + int(np.argmin(losses[STEP - 1 :: STEP])))


def test_weights_are_those_of_the_penalised_loss() -> None:
    """The optimum by a general method: none below 0, held near what is known before."""
    found, y, odds = fitted(), fitted().followed, odds_of_others()
    hold = member_fits.HOLD / sum(part.followed.any() for part in parts())

    def loss(at: Any) -> float:
        z = at[0] + odds @ at[1:]
        held = hold / 2 * (at[0] ** 2 + ((at[1:] - PRIOR) ** 2).sum())
        return float(np.mean(np.logaddexp(0, z) - y * z) + held)

    bounds = [(None, None), *[(0, None)] * 4]
    wanted = minimize(loss, [0, *PRIOR], bounds=bounds, method="L-BFGS-B", tol=1e-12)
    np.testing.assert_allclose([*found.members.values()], wanted.x[1:], atol=2e-3)


def test_without_a_past_there_are_the_same_members() -> None:
    flat = [part._replace(features=part.features[:, PRESENT]) for part in parts()]
    found = fit_to(flat, replace(SCORING, moments=0))
    assert [*found.members] == MEMBERS
    assert len(found.fit.ensemble.line) == 3 and found.fit.features == [*NAMES]


@pytest.mark.parametrize("directions", [(0, 0, 0), (1, -1, -1)])
def test_where_all_signals_or_none_have_a_direction_there_are_no_trees_of_some(
    directions: tuple[int, ...],
) -> None:
    found = fit_to(parts(), directions=directions)
    assert [*found.members] == [name for name in MEMBERS if name != OF_TREES[2]]


@pytest.mark.parametrize(("violated", "together"), [(4, 1), (5, 1), (5, 2)])
def test_only_few_violations_need_to_be_told_which_signals_matter(
    violated: int, together: int
) -> None:
    """Recordings of a group count as one."""
    some = [part._replace(group=f"g{i // together}") for i, part in enumerate(parts())]
    quiet = [part._replace(followed=part.followed & False) for part in some[violated:]]
    found = fit_to([*some[:violated], *quiet], telling=5)
    assert (OF_TREES[2] in found.members) == (violated / together < 5)


@given(st.integers(1, 9), st.lists(st.sampled_from((-1, 0, 1)), min_size=1, max_size=6))
def test_trees_of_signals_with_a_direction_see_these_and_their_past_alone(
    width: int, signs: list[int]
) -> None:
    columns = member_fits.columns_of(width, signs, 0)
    owner = np.arange(width * len(signs)) // width
    directed = columns.trees.pop(OF_TREES[2], None)
    assert (directed is None) == (all(signs) or not any(signs))
    if directed is not None:
        assert {*owner[directed]} == {i for i, sign in enumerate(signs) if sign}
        assert directed.sum() == width * np.count_nonzero(signs)
    assert columns.line.tolist() == [i % width == 0 for i in range(width * len(signs))]
    assert columns.trees["trees"].all()
    many = member_fits.columns_of(width, signs, member_fits.TELLING)
    assert [*many.trees] == [*columns.trees]


def test_recordings_of_a_group_are_left_out_together() -> None:
    """A recording and its mirror image, of another digest, must not teach each other."""
    names = {part.digest: f"g{i // 2}" for i, part in enumerate(parts())}
    grouped = [part._replace(group=names[part.digest]) for part in parts()]
    found = fit_to(grouped)
    fit = found.fit
    folds = parted([part.group for part in grouped], len(fit.unseeing))
    assert fit.groups == tuple(part.group for part in grouped)
    assert {fit.group_of(digest) for digest in names} == {*names.values()}
    assert fit.group_of("elsewhere") == "elsewhere" and fitted().fit.group_of("run1") == "run1"
    weights = [found.members[name] for name in OF_TREES]
    for own, part in [*zip(folds, grouped, strict=True)][:4]:
        others = [one for one, other in zip(grouped, folds, strict=True) if other != own]
        assert not any(one.group == part.group for one in others)
        bent = compiled_trees(3, LAGS, replace(fit.unseeing[own], line=()))
        wanted = members(others, found.rounds, part.features)[:, :-1] @ weights
        odds = np.array([bent.judge(row.copy()) for row in part.features])
        apart = np.log(odds / (1 - odds)) - wanted
        np.testing.assert_allclose(apart, apart[0], rtol=0, atol=1e-9)


def test_groups_are_part_of_what_is_frozen() -> None:
    plain = fitted().fit
    one, other = (replace(plain, groups=(name, *["b"] * 11)) for name in "ab")
    assert len({plain.digest, one.digest, other.digest}) == 3
    (back,) = parse_scores(
        [Reader(json.loads(json.dumps(dump_scores([one])[0])), "learned_score[0]")]
    )
    assert back == one and "groups" not in dump_scores([plain])[0]


def test_it_ranks_what_it_did_not_see_and_says_how_well() -> None:
    found = fitted()
    area = curve_of(found.scores, found.followed).area
    assert area == pytest.approx(average_precision_score(found.followed, found.scores))
    assert area > 1.3 * found.followed.mean()


def test_a_line_is_scikit_learns_logistic_regression() -> None:
    x, y = features_and_outcomes([*parts()])
    line = fit_lines(x, y, [0] * x.shape[1], np.ones(x.shape[1], bool))[RIDGES.index(1e-2)]
    rows = line.scale(x)
    model = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=5000).fit(rows, y)
    np.testing.assert_allclose(line.logit(x), model.decision_function(rows), atol=2e-3)
    far = np.where(np.isnan(x), x, 1e300)
    assert np.isfinite(line.logit(far)).all()
    np.testing.assert_array_equal(line.logit(far), line.logit(np.where(np.isnan(x), x, 50.0)))


def test_a_line_may_keep_to_some_features() -> None:
    x, y = features_and_outcomes([*parts()])
    used = np.arange(x.shape[1]) % 3 == 0
    line = fit_lines(x, y, [0] * x.shape[1], used)[-1]
    assert (line.slope[~used] == 0).all() and (line.slope[used] != 0).all()
    alone = fit_lines(x[:, used], y, [0] * int(used.sum()), np.ones(used.sum(), bool))[-1]
    np.testing.assert_allclose(line.slope[used], alone.slope, rtol=1e-3)


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
    trees = compiled_trees(3, LAGS, fitted().fit.ensemble)
    a, b, c = window[-1]
    before = trees.score(tuple(window))
    after = trees.score((*window[:-1], (a + up, b, c - down)))
    assert before is not None and after is not None and after >= before


def test_cuts_lie_between_equal_shares_of_the_violations() -> None:
    found = fitted()
    cuts = found.fit.cuts
    assert len(cuts) == score_fit.BINS - 1
    hit = found.scores[found.followed]
    for index, cut in enumerate(cuts, 1):
        near = np.mean(hit < cut * 1.06) + 0.01, np.mean(hit < cut * 0.94) - 0.01
        assert near[1] <= index / score_fit.BINS <= near[0]
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
    width = WIDTH
    asked = {i for i, row in enumerate(fit.ensemble.line) if row[0]}
    asked |= {*fit.ensemble.feature} - {-1}
    assert {i for i, needed in enumerate(fit.ensemble.needed) if needed} == {
        i for i in asked if not width <= i < 2 * width
    }
    trees = compiled_trees(3, LAGS, fit.ensemble)
    assert trees.score(((0.0, None, 0.0),)) is not None
    assert trees.score(((None, 0.0, 0.0),)) is None


def short(recordings: int, violations: bool = True) -> list[Rows]:
    """Return recordings of two ticks, a violation after the first."""
    outcomes = np.array([violations, False])
    blank = Rows("", np.arange(2), np.zeros((2, 1)), outcomes, outcomes | True, 0, frozenset())
    return [blank._replace(digest=f"run{i:03}") for i in range(recordings)]


@pytest.mark.parametrize(("recordings", "folds"), [(99, 10), (100, 5), (10, 10), (9, 9), (2, 2)])
def test_many_recordings_need_fewer_folds_and_few_are_left_out_one_by_one(
    recordings: int, folds: int
) -> None:
    some = short(recordings)
    own = parted([part.digest for part in some], folds)
    assert score_fit._folds("ahead", "p", some) == (folds, own)
    together = [part._replace(group=f"g{i % 60}") for i, part in enumerate(short(recordings))]
    assert score_fit._folds("ahead", "p", together)[0] == min(10, recordings)


@given(st.integers(2, 24), st.data())
def test_beside_each_of_few_folds_something_can_be_fitted(count: int, data: st.DataObject) -> None:
    violated = data.draw(st.sets(st.integers(0, count - 1), min_size=2))
    some = [
        part if i in violated else part._replace(followed=part.followed & False)
        for i, part in enumerate(short(count))
    ]
    folds, own = score_fit._folds("ahead", "p", some)
    assert {*own} == {*range(folds)}  # none is empty
    assert all(any(own[i] != fold for i in violated) for fold in range(folds))


def refused(changed: list[Rows], scoring: Scoring = SCORING) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        fit_to(changed, scoring)
    return caught.value


def test_without_violations_it_says_what_is_needed() -> None:
    quiet = [part._replace(followed=part.followed & False) for part in parts()]
    error = refused(quiet)
    assert error.key == "learned_score.ahead.for" and "0 of 12" in error.problem
    one = [parts()[0], *quiet[1:]]
    assert "1 of 12" in refused(one).problem and "two violations" in refused(one).accepted


def test_a_signal_that_is_no_number_is_named_or_left_out() -> None:
    texts = [part._replace(others=frozenset({"b"})) for part in parts()]
    error = refused(texts)
    assert error.key == "learned_score.ahead.from[1]" and "'b'" in error.problem
    found = fit_to(texts, replace(SCORING, named=False))
    assert found.fit.signals == ("a", "c") and found.left_out == ("b",)
    assert found.fit.directions == (1, -1)


def test_a_signal_that_is_never_known_is_named() -> None:
    width = len(features_of("x", LAGS))
    blank = parts()[0].features.copy()
    blank[:, width : 2 * width] = np.nan
    error = refused([part._replace(features=blank) for part in parts()])
    assert error.key == "learned_score.ahead.from[1]" and "never known" in error.problem
