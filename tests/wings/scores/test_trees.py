"""The compiled evaluation of trees, against Python and brute force."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.wings.scores.fit import Ensemble, features_of, lags_of
from forewarn.wings.scores.score import compiled_trees
from tests import trees_interpreter as oracle

values = st.one_of(
    st.none(), st.floats(-5, 5), st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e300, -1e300])
)


@st.composite
def ensembles(draw: st.DrawFn, features: int) -> Ensemble:
    arrays: list[tuple[int, float, int, int, int, float]] = []

    def node(depth: int) -> int:
        here = len(arrays)
        value = draw(st.floats(-3, 3))
        arrays.append((-1, 0.0, -1, -1, 0, value))
        if depth and draw(st.booleans()):
            feature = draw(st.integers(0, features - 1))
            threshold = draw(st.floats(-5, 5))
            left, right = node(depth - 1), node(depth - 1)
            arrays[here] = (feature, threshold, left, right, draw(st.integers(0, 1)), value)
        return here

    roots = [node(3) for _ in range(draw(st.integers(0, 3)))]
    columns = [tuple(column) for column in zip(*arrays, strict=True)] or [()] * 6
    needed = tuple(draw(st.integers(0, 1)) for _ in range(features))
    number = st.floats(-5, 5)
    row = st.tuples(number, number, number, number).map(lambda r: (*r[:2], *sorted(r[2:])))
    rows = draw(st.lists(row, max_size=3))
    line = tuple(rows[i % len(rows)] for i in range(features)) if rows else ()
    base = draw(st.floats(-4, 4))
    return Ensemble(base, tuple(roots), *columns, needed, line)  # type: ignore[arg-type]


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, Ensemble, tuple[tuple[float | None, ...], ...]]:
    signals = draw(st.integers(1, 3))
    moments = draw(st.integers(0, 6))
    names = [f"s{i}" for i in range(signals)]
    count = len(features_of(names, lags_of(moments)))
    row = st.tuples(*[values] * signals)
    window = tuple(draw(st.lists(row, min_size=1, max_size=moments + 1)))
    return signals, moments, draw(ensembles(count)), window


def same(one: list[float], other: list[float]) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(one, other, strict=True))


@given(cases())
def test_evaluates_as_python_does_to_the_bit(
    case: tuple[int, int, Ensemble, tuple[tuple[float | None, ...], ...]],
) -> None:
    signals, moments, ensemble, window = case
    lags = lags_of(moments)
    trees = compiled_trees(signals, lags, ensemble)
    x = oracle.features(window, lags)
    assert same(trees.features(window), x)
    assert trees.score(window) == oracle.score(ensemble, x)
    assert trees.shares(window) == oracle.shares(ensemble, x, len(x) // signals)


@given(cases())
def test_the_shares_of_the_signals_add_up_to_the_logit(
    case: tuple[int, int, Ensemble, tuple[tuple[float | None, ...], ...]],
) -> None:
    signals, moments, ensemble, window = case
    trees = compiled_trees(signals, lags_of(moments), ensemble)
    shares = trees.shares(window)
    x = oracle.features(window, lags_of(moments))
    if shares is not None:
        assert sum(shares) == pytest.approx(oracle.logit(ensemble, x), abs=1e-9)


@given(st.floats(-40, 40))
def test_the_probability_is_the_logistic_function_within_bounds(logit: float) -> None:
    ensemble = Ensemble(logit, (), (), (), (), (), (), (), (0,))
    found = compiled_trees(1, (), ensemble).score(((1.0,),))
    assert found is not None and 0 < found < 1
    held = min(max(logit, -30), 30)
    assert found == pytest.approx(1 / (1 + math.exp(-held)), rel=1e-15 * 8)


def test_a_value_that_the_fit_always_knew_is_needed() -> None:
    leaf = (-1, 0.0, -1, -1, 0)
    columns = list(zip((0, 1.0, 1, 2, 1), leaf, leaf, strict=True))
    ensemble = Ensemble(0.0, (0,), *columns, (0.0, -1.0, 1.0), (1, 0))  # type: ignore[arg-type]
    trees = compiled_trees(2, (), ensemble)
    assert trees.score(((None, 2.0),)) is None
    assert trees.score(((0.5, None),)) == oracle.probability(-1.0)
    forgiving = Ensemble(0.0, (0,), *columns, (0.0, -1.0, 1.0), (0, 0))  # type: ignore[arg-type]
    trees = compiled_trees(2, (), forgiving)
    assert trees.score(((None, 2.0),)) == oracle.probability(-1.0)


@pytest.mark.parametrize(
    "change",
    [
        {"left": (0, -1, -1)},  # its own child
        {"left": (3, -1, -1)},
        {"right": (-1, -1, -1)},
        {"feature": (1, -1, -1)},
        {"feature": (-2, -1, -1)},
        {"threshold": (math.inf, 0.0, 0.0)},
        {"value": (0.0, math.nan, 0.0)},
        {"value": (0.0, 0.0)},
        {"roots": (3,)},
        {"needed": (1, 1)},
        {"missing_left": (2, 0, 0)},
        {"base": math.inf},
        {"line": ((1.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 1.0))},
        {"line": ((1.0, 0.0, 0.0, math.inf),)},
        {"line": ((1.0, 0.0, 2.0, 1.0),)},
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, object]) -> None:
    sound: dict[str, object] = {
        "base": 0.0,
        "roots": (0,),
        "feature": (0, -1, -1),
        "threshold": (1.0, 0.0, 0.0),
        "left": (1, -1, -1),
        "right": (2, -1, -1),
        "missing_left": (0, 0, 0),
        "value": (0.0, 1.0, 2.0),
        "needed": (0,),
    }
    assert Ensemble(**sound).problem(1) is None  # type: ignore[arg-type]
    wrong = Ensemble(**{**sound, **change})  # type: ignore[arg-type]
    problem = wrong.problem(1)
    assert problem is not None and problem[0] in change
    if "missing_left" not in change:
        with pytest.raises(ValueError):
            compiled_trees(1, (), wrong)


@pytest.mark.parametrize("window", [(), ((1.0, 2.0),), ((1,),), ([1.0],), [(1.0,)], (("a",),)])
def test_a_window_of_another_form_is_refused(window: object) -> None:
    trees = compiled_trees(1, (1, 2), None)
    with pytest.raises(ValueError):
        trees.features(window)  # type: ignore[arg-type]


def test_features_that_are_not_aligned_are_refused() -> None:
    trees = compiled_trees(1, (), Ensemble(0.0, (), (), (), (), (), (), (), (0,)))
    assert trees.judge(bytes(8)) == 0.5
    with pytest.raises(ValueError, match="aligned"):
        trees.judge(memoryview(bytes(9))[1:])


def test_more_lags_than_a_window_may_have_are_refused() -> None:
    with pytest.raises(ValueError, match="too many lags"):
        compiled_trees(1, [1] * 2**20, Ensemble(0.0, (), (), (), (), (), (), (), (0,)))


def test_infinite_pushes_against_each_other_give_no_probability() -> None:
    lines = ((1e308, 0.0, -1e300, 1e300),) * 2
    trees = compiled_trees(2, (), Ensemble(0.0, (), (), (), (), (), (), (), (0, 0), lines))
    assert math.isnan(trees.score(((1e300, -1e300),)))
