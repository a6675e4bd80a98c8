"""Maps that calibrate risks: against brute force, on chains that are right and on ones that lie."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from forewarn.errors import ModelError
from forewarn.learning.calibration_fit import fit_isotonic, fit_platt, judged
from forewarn.models.calibration_map import Recalibration


def a_map(**changes: Any) -> Recalibration:
    values: dict[str, Any] = {
        "name": "rule",
        "formula": "always(not p)",
        "horizon": 2.0,
        "method": "isotonic",
    }
    return Recalibration(**{**values, **changes})


def isotonic(risk: np.ndarray[Any, Any], followed: np.ndarray[Any, Any], prior: float) -> Any:
    return a_map(knots=fit_isotonic(*judged(risk, followed, np.ones(len(risk))), prior))


def platt(risk: np.ndarray[Any, Any], followed: np.ndarray[Any, Any]) -> Any:
    line = fit_platt(*judged(risk, followed, np.ones(len(risk))))
    return a_map(method="platt", slope=line.slope, intercept=line.intercept)


ticks = st.lists(
    st.tuples(st.floats(0, 1) | st.sampled_from([0.1, 0.5, 1e-300, 1 - 1e-16]), st.booleans()),
    min_size=1,
    max_size=40,
)


@settings(deadline=None)
@given(ticks, st.sampled_from([0.01, 1.0, 20.0]), st.lists(st.floats(0, 1), min_size=2))
def test_maps_rise_within_the_unit_interval_and_keep_what_is_certain(
    run: list[tuple[float, bool]], prior: float, asked: list[float]
) -> None:
    risk = np.array([r for r, _ in run])
    followed = np.array([f for _, f in run])
    found = [isotonic(risk, followed, prior)]
    inner, hits, _ = judged(risk, followed, np.ones(len(risk)))
    if hits.any() and not hits.all():
        try:
            found.append(platt(risk, followed))
        except ModelError as error:
            assert "falls with the risk" in str(error)
    points = np.sort(np.array([*asked, *inner.tolist(), 0.0, 1.0]))
    for item in found:
        values = item(points)
        assert (np.diff(values) >= (0 if item.method == "isotonic" else -1e-15)).all()
        assert ((values >= 0) & (values <= 1)).all()
        assert item(np.array([0.0, 1.0, math.nan]))[:2].tolist() == [0.0, 1.0]
        assert math.isnan(item(np.array([[math.nan]]))[0, 0])


def brute_force(risks: list[float], hits: list[float], weights: list[float]) -> list[float]:
    """Return the isotonic frequencies by their min-max formula (Barlow et al., 1972)."""
    n = len(risks)
    return [
        max(
            min(
                sum(hits[a : b + 1]) / sum(weights[a : b + 1]) for b in range(i, n)
            )
            for a in range(i + 1)
        )
        for i in range(n)
    ]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=40))
def test_pools_are_those_of_isotonic_regression(run: list[tuple[int, bool]]) -> None:
    risk = np.array([r / 10 for r, _ in run])
    followed = np.array([f for _, f in run])
    values = sorted(set(risk.tolist()))
    weights = [float((risk == v).sum()) for v in values]
    hits = [float(followed[risk == v].sum()) for v in values]
    expected = brute_force(values, hits, weights)
    knots = fit_isotonic(risk, followed, np.ones(len(risk)), 1e-12)
    pools = sorted(set(np.round(expected, 9)))
    assert [y for _, y in knots] == pytest.approx(pools, abs=1e-8)
    for x, y in knots:
        inside = [v for v, e in zip(values, expected, strict=True) if abs(e - y) < 1e-8]
        assert min(inside) - 1e-9 <= x <= max(inside) + 1e-9


@pytest.mark.parametrize("seed", [1, 2])
def test_platt_is_the_logistic_regression_on_softened_targets(seed: int) -> None:
    generator = np.random.default_rng(seed)
    risk = generator.uniform(0.01, 0.99, 300)
    followed = generator.random(300) < risk**2
    odds = np.log(risk / (1 - risk))
    hits = followed.sum()
    target = np.where(followed, (hits + 1) / (hits + 2), 1 / (300 - hits + 2))

    def loss(line: Any) -> float:
        z = line[0] * odds + line[1]
        return float(np.sum(np.logaddexp(0, z) - target * z))

    expected = optimize.minimize(loss, [1.0, 0.0], method="BFGS", tol=1e-9).x
    assert fit_platt(risk, followed, np.ones(len(risk))) == pytest.approx(tuple(expected), abs=1e-4)


def world(seed: int, ticks: int = 20_000) -> tuple[Any, Any]:
    """Return true risks, mostly small as in practice, and what followed."""
    generator = np.random.default_rng(seed)
    truth = generator.beta(0.3, 2.0, ticks).clip(1e-6, 1 - 1e-6)
    return truth, generator.random(ticks) < truth


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_what_is_right_stays_about_as_it_is(method: str) -> None:
    truth, followed = world(1)
    found = isotonic(truth, followed, 20) if method == "isotonic" else platt(truth, followed)
    fresh, outcome = world(2)
    change = found(fresh) - fresh
    assert np.abs(change).mean() < 0.01
    assert np.abs(change).max() < 0.12
    before, after = np.mean((fresh - outcome) ** 2), np.mean((found(fresh) - outcome) ** 2)
    assert after < 1.01 * before


@pytest.mark.parametrize("method", ["isotonic", "platt"])
@pytest.mark.parametrize("power", [0.4, 2.5])
def test_what_is_wrong_is_mended_on_fresh_runs(method: str, power: float) -> None:
    truth, followed = world(3)
    found = (
        isotonic(truth**power, followed, 20)
        if method == "isotonic"
        else platt(truth**power, followed)
    )
    fresh, outcome = world(4)
    before = np.mean((fresh**power - outcome) ** 2)
    after = np.mean((found(fresh**power) - outcome) ** 2)
    best = np.mean((fresh - outcome) ** 2)
    assert after < before - 0.5 * (before - best)
    assert np.abs(found(fresh**power) - fresh).mean() < 0.5 * np.abs(fresh**power - fresh).mean()


def test_few_ticks_prove_little() -> None:
    """Three ticks at risk 0.6 that were all followed do not make it certain."""
    risk = np.array([0.1] * 100 + [0.6] * 3)
    followed = np.array([False] * 100 + [True] * 3)
    knots = fit_isotonic(risk, followed, np.ones(len(risk)), 20.0)
    assert knots == (
        (pytest.approx(0.1), pytest.approx(20 * 0.1 / 120)),
        (pytest.approx(0.6), pytest.approx((3 + 20 * 0.6) / 23)),
    )


def test_a_risk_that_warns_of_nothing_is_refused_by_platt() -> None:
    risk = np.linspace(0.01, 0.99, 100)
    with pytest.raises(ModelError, match="falls with the risk"):
        fit_platt(risk, risk < 0.3, np.ones(len(risk)))


def test_separated_outcomes_have_a_finite_curve() -> None:
    risk = np.linspace(0.01, 0.99, 100)
    line = fit_platt(risk, risk > 0.5, np.ones(len(risk)))
    assert 0 < line.slope < 100


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"method": "guess"}, "method"),
        ({"horizon": 0.0}, "horizon"),
        ({"knots": ((0.0, 0.1),)}, "knots"),
        ({"knots": ((0.5, 0.1), (0.5, 0.2))}, "knots"),
        ({"knots": ((0.2, 0.3), (0.5, 0.2))}, "knots"),
        ({"knots": ((0.2, 1.3),)}, "knots"),
        ({"slope": 0.0}, "slope"),
        ({"slope": math.nan}, "slope"),
        ({"intercept": math.inf}, "intercept"),
    ],
)
def test_what_is_no_map_is_refused(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelError) as caught:
        a_map(**changes)
    assert caught.value.key == key


@settings(deadline=None)
@given(st.lists(st.floats(0, 1, exclude_min=True, exclude_max=True), unique=True, max_size=6))
def test_an_isotonic_map_goes_through_its_knots(risks: list[float]) -> None:
    risks = sorted(risks)
    shares = [i / (len(risks) + 1) for i in range(len(risks))]
    found = a_map(knots=tuple(zip(risks, shares, strict=True)))
    assert found(np.array(risks)).tolist() == shares
    for (a, low), (b, high) in pairwise(zip(risks, shares, strict=True)):
        middle = float(found(np.array([(a + b) / 2]))[0])
        assert low <= middle <= high


def test_a_map_fits_its_own_formula_and_horizon_only() -> None:
    found = a_map()
    assert found.fits("always(not  p)", 2.0)
    assert not found.fits("always(p)", 2.0)
    assert not found.fits("always(not p)", 3.0)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 0.99), st.booleans(), st.integers(1, 4)), min_size=1, max_size=12
    )
)
def test_a_weight_is_so_many_ticks(run: list[tuple[float, bool, int]]) -> None:
    risk, followed, weight = (np.array(column) for column in zip(*run, strict=True))
    more = np.repeat(risk, weight), np.repeat(followed, weight), np.ones(weight.sum())
    once = fit_isotonic(risk, followed, weight.astype(float), 5.0)
    again = fit_isotonic(*more, 5.0)
    assert np.array(once) == pytest.approx(np.array(again))
    if followed.any() and not followed.all():
        try:
            lines = fit_platt(*more), fit_platt(risk, followed, weight.astype(float))
        except ModelError:
            return
        odds = np.log(risk) - np.log1p(-risk)  # many lines are as good where all risks are equal
        one, other = (line.slope * odds + line.intercept for line in lines)
        assert one == pytest.approx(other, abs=1e-4)
