"""Times to conflict: against rectangles moved in small steps with shapely, and by hand."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import shapely
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import affinity

from forewarn.errors import FieldError
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.functions.encounters import Boxes, Vehicle, times_to_conflict
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import compile_extractor
from tests import encounters_interpreter as oracle

INF, NAN = math.inf, math.nan
STEP = 0.01  # s
HORIZON = 3.0
STRAIGHT = [np.array([0.0, 40.0]), np.array([0.0, 0.0])]
CAR = [4.0, 2.0]


def times(path: Any, pose: Any, speed: Any, size: Any, objects: Any, *horizon: Any) -> Any:
    return FUNCTIONS["time_to_conflict"](path, pose, speed, size, objects, *horizon)


def crossing(x: float, y: float, vx: float, vy: float, size: tuple[float, float] = (1, 1)) -> Any:
    return [x, y, 0.0, vx, vy, *size]


def rectangle(x: float, y: float, yaw: float, length: float, width: float) -> Any:
    box = shapely.box(-length / 2, -width / 2, length / 2, width / 2)
    return affinity.translate(affinity.rotate(box, yaw, (0, 0), use_radians=True), x, y)


BOX = st.tuples(*[st.floats(-9, 9)] * 2, st.floats(-4, 4), st.floats(0.2, 11), st.floats(0.2, 3))


@settings(max_examples=examples(300))
@given(ego=BOX, others=st.lists(BOX, max_size=4))
def test_a_gap_is_the_distance_of_the_rectangles(ego: Any, others: list[Any]) -> None:
    x, y, yaw, length, width = np.array(others).reshape(-1, 5).T
    found = FUNCTIONS["gap_to"](ego[:3], ego[3:], [x, y, yaw, 0.0, 0.0, length, width])
    assert found == pytest.approx([rectangle(*ego).distance(rectangle(*o)) for o in others])


def test_a_gap_of_what_is_not_known_is_not_known() -> None:
    objects = [np.array([9.0, NAN, 9.0]), 0.0, 0.0, NAN, 0.0, np.array([4.0, 4.0, -1.0]), 2.0]
    found = FUNCTIONS["gap_to"]([0, 0, 0], CAR, objects)
    assert np.isnan(found).tolist() == [False, True, True]  # velocities do not matter
    assert FUNCTIONS["gap_to"]([0, 0, 0], CAR, [9.0, 0.0, 0.0, 0.0, 0.0, 4.0, 2.0]) == 5.0
    assert math.isnan(FUNCTIONS["gap_to"]([0, 0, NAN], CAR, crossing(9, 0, 0, 0)))
    assert FUNCTIONS["gap_to"]([0, 0, 0], CAR, [np.array([])] * 7).tolist() == []


def simulated(path: Any, pose: Any, speed: float, size: Any, each: Any) -> tuple[float, float]:
    """Step both rectangles through time: first overlap, and the least distance before it."""
    corners = list(zip(*path, strict=True))
    station = shapely.LineString(corners).project(shapely.Point(pose[:2]))
    points = [tuple(pose[:2])]
    at = 0.0
    for i, point in enumerate(corners):
        at += math.dist(point, corners[max(i - 1, 0)])
        if at > station + 3.0:
            points.append(point)
    line = shapely.LineString(points) if len(points) > 1 else None
    nearest = INF
    for step in range(round(HORIZON / STEP)):
        t = step * STEP
        x, y, yaw = _along(line, points, pose, speed * t if speed >= 1e-3 else 0.0)
        yaw = pose[2] if speed < 1e-3 else yaw
        mine = rectangle(x, y, yaw, *size)
        other = rectangle(each[0] + each[3] * t, each[1] + each[4] * t, each[2], *each[5:])
        if mine.intersection(other).area > 0:
            return t, nearest
        nearest = min(nearest, mine.distance(other))
    return INF, nearest


def _along(line: Any, points: Any, pose: Any, s: float) -> tuple[float, float, float]:
    if line is None:
        return pose[0] + s * math.cos(pose[2]), pose[1] + s * math.sin(pose[2]), pose[2]
    at = 0.0
    for i, ((ax, ay), (bx, by)) in enumerate(pairwise(points)):
        length = math.dist((ax, ay), (bx, by))
        if s < at + length or i == len(points) - 2:
            yaw = math.atan2(by - ay, bx - ax)
            return ax + (s - at) * math.cos(yaw), ay + (s - at) * math.sin(yaw), yaw
        at += length
    raise AssertionError


near = st.floats(-25, 25).map(lambda value: round(value, 2))
pace = st.floats(-12, 12).map(lambda value: round(value, 2))
angle = st.floats(-3.1, 3.1).map(lambda value: round(value, 2))
sizes = st.tuples(st.sampled_from([0.5, 2.0, 4.6]), st.sampled_from([0.5, 1.8]))
objects = st.tuples(near, near, angle, pace, pace, sizes).map(lambda o: [*o[:5], *o[5]])


@st.composite
def paths(draw: Any) -> Any:
    """A path that turns at most 1 rad a piece, beginning a bit behind or before the vehicle."""
    yaw, x, y = draw(angle), draw(st.floats(-4, 4)), draw(st.floats(-1, 1))
    points = [(x, y)]
    for turn in draw(st.lists(st.floats(-1, 1), min_size=1, max_size=6)):
        yaw += turn
        points.append((points[-1][0] + 4 * math.cos(yaw), points[-1][1] + 4 * math.sin(yaw)))
    return [np.array(point) for point in zip(*points, strict=True)]


@settings(max_examples=examples(40), deadline=None)
@given(paths(), angle, st.sampled_from([0.0, 0.7, 4.0, 13.0]), sizes, objects)
def test_conflicts_begin_when_small_steps_say_so(
    path: Any, heading: float, speed: float, size: Any, each: Any
) -> None:
    pose = [0.0, 0.0, heading]
    found = times(path, pose, speed, list(size), each, HORIZON)
    expected, distance = simulated(path, pose, speed, size, each)
    if found < expected - STEP - 1e-9:
        # Between two steps they may overlap so shortly that no step sees it, but not from afar.
        assert distance <= 30 * STEP
    else:
        assert found <= expected + 1e-9 or expected == INF == found


@settings(max_examples=examples(200), deadline=None)
@given(paths(), angle, st.sampled_from([0.0, 0.7, 4.0, 13.0]), st.lists(objects, max_size=6))
def test_what_is_compiled_has_the_bits_of_the_oracle(
    path: Any, heading: float, speed: float, each: Any
) -> None:
    line, vehicle = np.array(path), Vehicle(0.0, 0.0, heading, speed)
    boxes = np.array([[*one, *CAR] for one in each]).reshape(-1, 9).T.copy()
    found = times_to_conflict(line, vehicle, boxes, HORIZON).tolist()
    assert found == oracle.times_to_conflict(line, vehicle, Boxes(*boxes), HORIZON)


def test_many_objects_at_once_are_as_each_alone() -> None:
    rng = np.random.default_rng(5)
    columns = [
        *rng.uniform(-30, 30, (2, 200)),
        rng.uniform(-3, 3, 200),
        *rng.uniform(-10, 10, (2, 200)),
        *rng.uniform(0.3, 5, (2, 200)),
    ]
    pose, path = [1.0, -1.0, 0.4], [np.array([0.0, 5, 9, 12]), np.array([0.0, 0, 2, 6])]
    together = times(path, pose, 8.0, CAR, columns)
    alone = [times(path, pose, 8.0, CAR, [float(c[i]) for c in columns]) for i in range(200)]
    assert together.tolist() == alone
    assert 10 < np.isfinite(together).sum() < 150


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (crossing(22.5, 0, 0, 0), 2.0),  # 20 m from bumper to side at 10 m/s
        (crossing(22.5, 0, 5, 0), 4.0),  # going ahead at half the speed
        (crossing(22.5, 0, 10, 0), INF),
        (crossing(-12.5, 0, 20, 0), 1.0),  # from behind
        (crossing(20, 1.5, 0, 0), INF),  # touching only
        (crossing(20, 1.4, 0, 0), 1.75),
        (crossing(22, -11.5, 0, 5), 2.0),  # from the side, into the side: 10 m at 5 m/s
        (crossing(22, -31.5, 0, 5), INF),  # passed by then
        (crossing(1, 0.5, 0, 0), 0.0),
        (crossing(60, 0, 0, 0), INF),  # 5.75 s: beyond the horizon
    ],
)
def test_meetings_by_hand(each: Any, expected: float) -> None:
    assert times(STRAIGHT, [0, 0, 0], 10.0, CAR, each) == pytest.approx(expected)


def test_a_path_round_a_corner_spares_whom_the_straight_line_would_hit() -> None:
    corner = [np.array([0.0, 10, 10]), np.array([0.0, 0, 30])]
    ahead, around = crossing(20, 0, 0, 0), crossing(10, 20, 0, 0)
    assert times(corner, [0, 0, 0], 5.0, CAR, ahead) == INF
    # 10 m to the corner, 20 m up to the centre, less half the car's length and half the box
    assert times(corner, [0, 0, 0], 10.0, CAR, around) == pytest.approx(2.75)
    assert times([[], []], [0, 0, 0], 5.0, CAR, ahead) == pytest.approx(3.5)


def test_what_lies_behind_on_the_path_does_not_count() -> None:
    path = [np.arange(-20.0, 21.0, 4.0), np.zeros(11)]
    behind = crossing(-10, 0, 0, 0)
    assert times(path, [0, 0, 0], 5.0, CAR, behind) == INF
    # beyond the end of the path it goes straight on
    assert times(path, [0, 0, 0], 10.0, CAR, crossing(42.5, 0, 0, 0)) == pytest.approx(4.0)


def test_a_standing_vehicle_is_met_where_it_stands_and_as_it_stands() -> None:
    across = [0.0, 0.0, math.pi / 2]
    coming = crossing(-6.5, 0, 1, 0)
    assert times(STRAIGHT, across, 0.0, CAR, coming, 9.0) == pytest.approx(5.0)
    assert times(STRAIGHT, [0, 0, 0], 0.0, CAR, coming) == pytest.approx(4.0)
    assert times(STRAIGHT, [0, 0, 0], -2.0, CAR, coming) == pytest.approx(4.0)


def test_objects_of_which_something_is_unknown_are_unknown_alone() -> None:
    columns = [np.array([22.5, 22.5, NAN]), *([0.0] * 4), np.array([1.0, INF, 1.0]), 1.0]
    np.testing.assert_allclose(times(STRAIGHT, [0, 0, 0], 10.0, CAR, columns), [2.0, NAN, NAN])
    none = [np.zeros(0)] * 7
    assert times(STRAIGHT, [0, 0, 0], 10.0, CAR, none).shape == (0,)


def test_the_size_may_differ_from_object_to_object() -> None:
    two = [np.array([22.5, 22.5]), np.array([1.6, 1.6]), *([0.0] * 3), 1.0, 1.0]
    sizes = [np.array([4.0, 6.0]), np.array([2.0, 3.0])]
    # Half a metre kept at either side makes it a conflict, a metre ahead one 0.1 s earlier.
    np.testing.assert_allclose(times(STRAIGHT, [0, 0, 0], 10.0, sizes, two), [INF, 1.9])
    one = [22.5, 1.6, *([0.0] * 3), 1.0, 1.0]
    np.testing.assert_allclose(times(STRAIGHT, [0, 0, 0], 10.0, sizes, one), [INF, 1.9])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("time_to_conflict([xs, [1, 2, 3]], (0, 0, 0), 5, (4, 2), o)", "different lengths"),
        ("time_to_conflict(xs, (0, 0, 0), 5, (4, 2), o)", r"a path is \[xs, ys\]"),
        ("time_to_conflict([xs, [nan, 1]], (0, 0, 0), 5, (4, 2), o)", "not known"),
        (
            "time_to_conflict([xs, xs], (0, 0), 5, (4, 2), o)",
            r"a pose is needed: \[x, y, heading\]",
        ),
        ("time_to_conflict([xs, xs], (0, 0, 0), xs, (4, 2), o)", "one vehicle at a time"),
        ("time_to_conflict([xs, xs], (0, 0, 0), 5, 4, o)", "a size is needed"),
        ("time_to_conflict([xs, xs], (0, 0, 0), 5, (4, 2), xs)", "objects"),
        ("time_to_conflict([xs, xs], (0, 0, 0), 5, ('a', 'b'), o)", "a number is needed"),
    ],
)
def test_what_cannot_be_answered_is_unknown_and_says_why(source: str, reason: str) -> None:
    values = {"xs": np.array([0.0, 10.0]), "o": [1.0] * 7}
    function = compile_expression(parse_expression(source), list(values))
    result = function(list(values.values()))
    assert isinstance(result, Unknown)
    assert re.search(reason, result.reason), result.reason


def test_without_a_known_vehicle_nothing_is_known() -> None:
    each = crossing(22.5, 0, 0, 0)
    for unknown in (
        times(STRAIGHT, [0, NAN, 0], 10.0, CAR, each),
        times(STRAIGHT, NAN, 10.0, CAR, each),
        times(STRAIGHT, [0, 0, 0], NAN, CAR, each),
        times(STRAIGHT, [0, 0, 0], 10.0, CAR, NAN),
        times(NAN, [0, 0, 0], 10.0, CAR, each),
        times(STRAIGHT, [0, 0, 0], 10.0, CAR, each, INF),
    ):
        assert math.isnan(unknown)


def test_it_is_for_derived_signals() -> None:
    odometry = installed_message_type("nav_msgs/msg/Odometry")
    source = parse_expression("time_to_conflict(1, 2, 3, 4, 5)")
    with pytest.raises(FieldError, match="the vehicle and its path are not part"):
        compile_extractor(odometry, [source])


def test_arrays_that_are_not_aligned_are_refused() -> None:
    boxes = np.frombuffer(bytes(9 * 8 + 1), np.uint8)[1:].view(np.float64).reshape(9, 1)
    with pytest.raises(ValueError, match="aligned"):
        times_to_conflict(np.zeros((2, 0)), Vehicle(0, 0, 0, 1), boxes, 3.0)
