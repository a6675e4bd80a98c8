"""How far a disc gets along a path: against shapely, which moves it in small steps, and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown

INF = math.inf
STEP, CLOSE = 0.005, 1e-7
HERE = [0.0, 0.0, 0.0]
AHEAD = [np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4)]
NO_PATH = [np.zeros(0), np.zeros(0)]
LEFT = [np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 2.0])]


def free(path: Any, pose: Any, radius: float, x: Any, y: Any, *reach: float) -> Any:
    return FUNCTIONS["free_along"](path, pose, radius, x, y, *reach)


@pytest.mark.parametrize(
    ("path", "x", "y", "expected"),
    [
        (AHEAD, 2.0, 0.0, 1.7),
        (AHEAD, 2.0, 0.29, 2.0 - math.sqrt(0.09 - 0.29**2)),
        (AHEAD, 2.0, 0.31, INF),
        (AHEAD, -0.2, 0.0, INF),  # it touches it, and moves away
        (AHEAD, 0.2, 0.0, 0.0),
        (AHEAD, 3.2, 0.0, 2.9),
        (AHEAD, 3.4, 0.0, INF),  # behind the end of the path
        (NO_PATH, 3.4, 0.0, 3.1),
        (NO_PATH, 9.0, 0.2, 9.0 - math.sqrt(0.05)),
        (NO_PATH, -1.0, 0.0, INF),
        (LEFT, 1.5, 0.0, INF),  # the wall from which it means to turn away
        (LEFT, 1.0, 1.5, 2.2),
    ],
)
def test_ways_by_hand(path: Any, x: float, y: float, expected: float) -> None:
    assert free(path, HERE, 0.3, x, y) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("pose", "expected"),
    [
        ([0.0, 0.4, 0.0], INF),  # still on its path
        ([0.0, 0.6, 0.0], 1.7),  # too far from it: straight on
        ([4.0, 0.0, 0.0], 1.7),  # the path lies behind
        ([3.0, 0.0, 0.0], 1.7),  # and so it does at its end
        ([2.9, 0.0, 0.0], INF),
    ],
)
def test_a_path_that_is_not_followed_is_none(pose: Any, expected: float) -> None:
    assert free(AHEAD, pose, 0.3, 2.0, 0.0) == pytest.approx(expected)


def test_it_comes_back_to_its_path_within_its_reach() -> None:
    path = [np.arange(0.0, 5.0, 0.05), np.full(100, 0.4)]
    # From 0.4 m beside it, the robot makes for a point that is 0.5 m ahead.
    assert free(path, HERE, 0.3, 0.4, 0.4) < math.hypot(0.4, 0.4) - 0.29
    assert free(path, HERE, 0.3, 1.5, -0.2) == INF
    assert free(path, HERE, 0.3, 1.5, -0.2, 0.3) == pytest.approx(1.5 - math.sqrt(0.05))


place = st.floats(-3, 3).map(lambda value: round(value, 2))
angle = st.floats(-3.1, 3.1).map(lambda value: round(value, 2))


@st.composite
def ways(draw: Any) -> Any:
    yaw, xs, ys = draw(angle), [0.0], [0.0]
    for turn in draw(st.lists(st.floats(-2, 2), min_size=1, max_size=6)):
        yaw += turn
        xs.append(xs[-1] + 0.7 * math.cos(yaw))
        ys.append(ys[-1] + 0.7 * math.sin(yaw))
    return np.array(xs), np.array(ys)


@given(ways(), angle, st.lists(st.tuples(place, place), min_size=1, max_size=6))
def test_a_disc_that_moves_in_small_steps_gets_as_far(
    path: Any, heading: float, points: Any
) -> None:
    """It stands at the beginning of its path, anywhere, and sees points that it does not touch."""
    radius = 0.3
    points = [(x, y) for x, y in points if math.hypot(x, y) > radius + STEP]
    if not points:
        return
    cos, sin = math.cos(heading), math.sin(heading)
    xs, ys = 5 + path[0] * cos - path[1] * sin, -2 + path[0] * sin + path[1] * cos
    pose = [5.0, -2.0, heading]
    found = free([xs, ys], pose, radius, *np.array(points).T, 1e-6)
    line = shapely.LineString(list(zip(*path, strict=True)))
    seen = shapely.MultiPoint(points)
    stations = np.arange(0.0, line.length, STEP)
    near = shapely.distance(shapely.line_interpolate_point(line, stations), seen)
    inside = near < radius
    expected = float(stations[np.argmax(inside)]) if inside.any() else INF
    if found == INF:
        assert not inside.any()
        return
    assert found <= expected + CLOSE
    assert found >= expected - STEP - CLOSE or expected == INF
    # At that very place the disc touches one of them, and before none.
    assert line.interpolate(found).distance(seen) == pytest.approx(radius, abs=1e-6)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("free_along([a, a], [0, 0, 0], 0, a, a)", "above 0"),
        ("free_along([a, a], [0, 0, 0], a, a, a)", "one robot at a time"),
        ("free_along([a, a], [0, 0], 0.3, a, a)", "a pose is needed"),
        ("free_along(a, [0, 0, 0], 0.3, a, a)", "a path is [xs, ys]"),
        ("free_along([a, a], [0, 0, 0], 0.3, a, [1, 2, 3])", "different lengths"),
        ("free_along([a, a], [0, 0, 0], 0.3, a, a + nan)", "a point is not known"),
    ],
)
def test_what_cannot_be_answered_is_unknown_and_says_why(source: str, reason: str) -> None:
    found = compile_expression(parse_expression(source), ["a"])([np.array([1.0, 2.0])])
    assert isinstance(found, Unknown)
    assert reason in found.reason


def test_points_in_no_finite_distance_are_never_met() -> None:
    assert free(NO_PATH, HERE, 0.3, np.array([INF, 2.0]), np.array([0.0, 0.0])) == 1.7
    assert free(NO_PATH, HERE, 0.3, np.array([INF]), np.array([0.0])) == INF
    assert free(AHEAD, HERE, 0.3, np.zeros(0), np.zeros(0)) == INF
