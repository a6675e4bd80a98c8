"""Times to conflict in Python: the oracle of ``_encounters.c``, which must give the same bits."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

from forewarn.expressions.functions.encounters import Boxes, Floats, Vehicle

JOIN = 3.0  # a vehicle beside its path comes back to it within so many metres
STANDSTILL = 1e-3  # m/s: slower than that, a path is not followed


class Piece(NamedTuple):
    """A straight piece of a motion.

    Attributes
    ----------
    x, y : float
        Where the centre would be at time 0 if it always moved as in this piece.
    cos, sin : float
        Direction of the motion and of the rectangle's length.
    begin, end : float
        Times between which it holds.
    """

    x: float
    y: float
    cos: float
    sin: float
    begin: float
    end: float


class Course(NamedTuple):
    """A motion in straight pieces, one after the other.

    Attributes
    ----------
    pieces : list of Piece
        At least one.
    speed : float
        Along the path.
    low, high : tuple of two floats
        Least and greatest x and y of the centre.
    """

    pieces: list[Piece]
    speed: float
    low: tuple[float, float]
    high: tuple[float, float]


def course_along(path: Floats, vehicle: Vehicle, horizon: float) -> Course:
    """Return how a vehicle goes along a path at its present speed.

    From its place it makes for the first point of the path that is more than `JOIN` ahead of the
    point nearest to it, and follows the path from there; where the path ends, it goes straight on.

    Parameters
    ----------
    path : ndarray of float64, shape (2, k)
        Finite points. What lies behind the vehicle does not count, so that the path may have been
        planned a moment ago. Without points the vehicle goes straight ahead.
    vehicle : Vehicle
        The vehicle; it stands if it does not move forwards.
    horizon : float
        Time after which nothing is asked.
    """
    x, y, speed = vehicle.x, vehicle.y, vehicle.speed
    cos, sin = math.cos(vehicle.heading), math.sin(vehicle.heading)
    if speed < STANDSTILL:
        return Course([Piece(x, y, cos, sin, 0.0, horizon)], 0.0, (x, y), (x, y))
    pieces, xs, ys, at = [], [x], [y], 0.0
    for px, py in _ahead(path, x, y):
        length = math.sqrt((px - x) * (px - x) + (py - y) * (py - y))
        if length > 0.0:
            cos, sin = (px - x) / length, (py - y) / length
            until, before = min(at + length / speed, horizon), speed * at
            pieces.append(Piece(x - cos * before, y - sin * before, cos, sin, at, until))
            x, y, at = px, py, until
            xs.append(x)
            ys.append(y)
            if at >= horizon:
                break
    if at < horizon:
        before, left = speed * at, speed * (horizon - at)
        pieces.append(Piece(x - cos * before, y - sin * before, cos, sin, at, horizon))
        xs.append(x + cos * left)
        ys.append(y + sin * left)
    return Course(pieces, speed, (min(xs), min(ys)), (max(xs), max(ys)))


def _ahead(path: Floats, x: float, y: float) -> list[tuple[float, float]]:
    """Return the points of a path that lie well ahead of a place."""
    points: list[tuple[float, float]] = list(zip(*path.tolist(), strict=True))
    nearest, station, stations = math.inf, 0.0, [0.0]
    for (ax, ay), (bx, by) in pairwise(points):
        ux, uy, dx, dy = bx - ax, by - ay, x - ax, y - ay
        square = ux * ux + uy * uy
        part = min(max((dx * ux + dy * uy) / square, 0.0), 1.0) if square > 0.0 else 0.0
        across, along = dx - part * ux, dy - part * uy
        distance = across * across + along * along
        length = math.sqrt(square)
        if distance < nearest:
            nearest, station = distance, stations[-1] + part * length
        stations.append(stations[-1] + length)
    return points[bisect_right(stations, station + JOIN) :]


def times_to_conflict(path: Floats, vehicle: Vehicle, boxes: Boxes, horizon: float) -> list[float]:
    """Return when a vehicle that goes along a path begins to overlap each box."""
    course = course_along(path, vehicle, horizon)
    found = []
    for box in zip(*(column.tolist() for column in boxes), strict=True):
        near = _within_reach(course, box, horizon)
        found.append(_meeting_of(course, box) if near else math.inf)
    return found


def _within_reach(course: Course, box: tuple[float, ...], horizon: float) -> bool:
    """Tell whether a box can be met: whether its way passes the bounds of the course."""
    reach = sum(box[5:]) / 2
    for low, high, place, speed in zip(course.low, course.high, box[:2], box[3:5], strict=True):
        later = place + speed * horizon
        if not (min(place, later) - reach <= high and max(place, later) + reach >= low):
            return False
    return True


def _meeting_of(course: Course, box: tuple[float, ...]) -> float:
    """Return the first overlap, piece by piece."""
    x, y, yaw, vx, vy, *sizes = box
    c, s, speed = math.cos(yaw), math.sin(yaw), course.speed
    half, side, own, flank = (size / 2 for size in sizes)
    for px, py, cos, sin, begin, end in course.pieces:
        dx, dy, wx, wy = x - px, y - py, vx - cos * speed, vy - sin * speed
        along, across = abs(cos * c + sin * s), abs(cos * s - sin * c)
        shadows = (
            (dx * cos + dy * sin, wx * cos + wy * sin, own + half * along + side * across),
            (dy * cos - dx * sin, wy * cos - wx * sin, flank + half * across + side * along),
            (dx * c + dy * s, wx * c + wy * s, half + own * along + flank * across),
            (dy * c - dx * s, wy * c - wx * s, side + own * across + flank * along),
        )
        enter = _meeting(shadows, begin, end)
        if enter < math.inf:
            return enter
    return math.inf


def _meeting(shadows: tuple[tuple[float, float, float], ...], begin: float, end: float) -> float:
    """Return when all shadows begin to overlap; inf if they do not between two times.

    Each shadow is a distance at time 0, its change in a second, and the distance within which
    they overlap.
    """
    for distance, speed, reach in shadows:
        if speed == 0.0:
            if abs(distance) >= reach:
                return math.inf
            continue
        one, two = (-reach - distance) / speed, (reach - distance) / speed
        if speed < 0.0:
            one, two = two, one
        begin, end = max(begin, one), min(end, two)
        if begin >= end:
            return math.inf
    return begin
