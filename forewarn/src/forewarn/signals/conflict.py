"""When a vehicle that follows its path and objects that move on run into each other.

The vehicle is a rectangle that goes along a path at its present speed; each object is one that
keeps its velocity. Both move in straight pieces, and two such rectangles overlap exactly while
their shadows overlap on the directions of their four sides (the separating axis theorem, as in
Gottschalk, Lin and Manocha, *OBBTree*, SIGGRAPH 1996, section 5). On each direction that is an
interval of time, so that nothing is sampled: the result is exact for this motion.

Lengths are in metres, times in seconds, angles in radians from the x axis, counterclockwise.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

JOIN = 3.0  # a vehicle beside its path comes back to it within so many metres
STANDSTILL = 1e-3  # m/s: slower than that, a path is not followed


class Vehicle(NamedTuple):
    """The monitored vehicle: centre of its rectangle, heading, and speed ahead."""

    x: float
    y: float
    heading: float
    speed: float


class Boxes(NamedTuple):
    """Rectangles that keep their velocity; all arrays have shape (n,).

    Attributes
    ----------
    x, y, yaw : ndarray of float64
        Centres, and the direction of the length.
    vx, vy : ndarray of float64
        Velocities, in the frame of the centres.
    length, width : ndarray of float64
        Sizes.
    own_length, own_width : ndarray of float64
        Sizes that the vehicle has for each of them: with a distance to be kept, say.
    """

    x: Floats
    y: Floats
    yaw: Floats
    vx: Floats
    vy: Floats
    length: Floats
    width: Floats
    own_length: Floats
    own_width: Floats


class Course(NamedTuple):
    """A motion in p straight pieces.

    Attributes
    ----------
    origin : ndarray of float64, shape (2, p)
        Where the centre would be at time 0 if it always moved as in this piece.
    unit : ndarray of float64, shape (2, p)
        Direction of the motion and of the rectangle's length.
    speed : float
        Along the path.
    begin, end : ndarray of float64, shape (p,)
        Times between which a piece holds.
    low, high : tuple of two floats
        Least and greatest x and y of the centre.
    """

    origin: Floats
    unit: Floats
    speed: float
    begin: Floats
    end: Floats
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
    if speed < STANDSTILL:
        return _pieces([(x, y, vehicle.heading, 0.0)], 0.0, horizon)
    pieces, at = [], 0.0
    for px, py in _ahead(path, x, y):
        length = math.hypot(px - x, py - y)
        if length > 0.0 and at < horizon:
            pieces.append((x, y, math.atan2(py - y, px - x), at))
            x, y, at = px, py, at + length / speed
    return _pieces(pieces or [(x, y, vehicle.heading, 0.0)], speed, horizon)


def _pieces(
    pieces: list[tuple[float, float, float, float]], speed: float, horizon: float
) -> Course:
    """Return the course of pieces that begin at x and y in a direction and at a time."""
    x, y, direction, begin = np.array(pieces).T
    unit = np.array([np.cos(direction), np.sin(direction)])
    end = np.append(begin[1:], horizon)
    last_x, last_y, last, at = pieces[-1]
    left = speed * (horizon - at)
    xs = [last_x + left * math.cos(last), *(each[0] for each in pieces)]
    ys = [last_y + left * math.sin(last), *(each[1] for each in pieces)]
    return Course(
        origin=np.array([x, y]) - unit * (speed * begin),
        unit=unit,
        speed=speed,
        begin=begin,
        end=end,
        low=(min(xs), min(ys)),
        high=(max(xs), max(ys)),
    )


def _ahead(path: Floats, x: float, y: float) -> list[tuple[float, float]]:
    """Return the points of a path that lie well ahead of a place."""
    points: list[tuple[float, float]] = list(zip(*path.tolist(), strict=True))
    nearest, station, stations = math.inf, 0.0, [0.0]
    for (ax, ay), (bx, by) in pairwise(points):
        ux, uy, dx, dy = bx - ax, by - ay, x - ax, y - ay
        square = ux * ux + uy * uy
        part = min(max((dx * ux + dy * uy) / square, 0.0), 1.0) if square > 0.0 else 0.0
        distance = (dx - part * ux) ** 2 + (dy - part * uy) ** 2
        length = math.sqrt(square)
        if distance < nearest:
            nearest, station = distance, stations[-1] + part * length
        stations.append(stations[-1] + length)
    return points[bisect_right(stations, station + JOIN) :]


def times_to_conflict(path: Floats, vehicle: Vehicle, boxes: Boxes, horizon: float) -> Floats:
    """Return when a vehicle that goes along a path begins to overlap each box.

    Parameters
    ----------
    path : ndarray of float64, shape (2, k)
        As in `course_along`.
    vehicle : Vehicle
        The vehicle.
    boxes : Boxes
        n boxes, all finite.
    horizon : float
        Seconds to look ahead.

    Returns
    -------
    ndarray of float64, shape (n,)
        Seconds, 0 for boxes that overlap the vehicle already; inf without an overlap before
        `horizon`. Touching is no overlap.
    """
    result = np.full(len(boxes.x), np.inf)
    course = course_along(path, vehicle, horizon)
    near = _within_reach(course, boxes, horizon)
    if len(near):
        chosen = boxes if len(near) == len(result) else Boxes(*(each[near] for each in boxes))
        result[near] = _first_overlaps(course, chosen)
    return result


def _within_reach(course: Course, boxes: Boxes, horizon: float) -> npt.NDArray[np.intp]:
    """Return which boxes can be met: those whose way passes the bounds of the course."""
    reach = (boxes.length + boxes.width + boxes.own_length + boxes.own_width) / 2
    near = np.ones(len(reach), dtype=np.bool_)
    for low, high, place, speed in zip(
        course.low, course.high, (boxes.x, boxes.y), (boxes.vx, boxes.vy), strict=True
    ):
        later = place + speed * horizon
        near &= np.minimum(place, later) - reach <= high
        near &= np.maximum(place, later) + reach >= low
    return np.flatnonzero(near)


def _first_overlaps(course: Course, boxes: Boxes) -> Floats:
    """Intersect the intervals of the four directions, for every piece and box; shapes (p, n)."""
    cos, sin = course.unit[:, :, None]
    c, s = np.cos(boxes.yaw), np.sin(boxes.yaw)
    turned = np.abs(np.array([cos * c + sin * s, cos * s - sin * c]))
    offset = np.array([boxes.x - course.origin[0, :, None], boxes.y - course.origin[1, :, None]])
    motion = np.array([boxes.vx - cos * course.speed, boxes.vy - sin * course.speed])
    sizes = np.array([boxes.length, boxes.width, boxes.own_length, boxes.own_width]) / 2
    other, own = sizes[:2, None], sizes[2:, None]
    shape = (4, *turned.shape[1:])
    distance, speed, reach = np.empty(shape), np.empty(shape), np.empty(shape)
    for moved, result in ((offset, distance), (motion, speed)):
        x, y = moved
        result[0], result[1] = x * cos + y * sin, y * cos - x * sin
        result[2], result[3] = x * c + y * s, y * c - x * s
    reach[:2] = other[0] * turned + other[1] * turned[::-1] + own
    reach[2:] = own[0] * turned + own[1] * turned[::-1] + other
    with np.errstate(all="ignore"):
        # Without a relative speed these are -inf and inf within reach, twice the same beyond.
        one, two = (-reach - distance) / speed, (reach - distance) / speed
    enter = np.maximum(np.minimum(one, two).max(axis=0), course.begin[:, None])
    leave = np.minimum(np.maximum(one, two).min(axis=0), course.end[:, None])
    found: Floats = np.where(enter < leave, enter, np.inf).min(axis=0)
    return found
