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
FEW = 40  # pairs of a piece and a box up to which loops are quicker than arrays
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
        length = math.hypot(px - x, py - y)
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
        chosen = boxes if len(near) == len(result) else Boxes(*(box[near] for box in boxes))
        few = len(near) * len(course.pieces) <= FEW
        result[near] = (_one_by_one if few else _all_at_once)(course, chosen)
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


def _one_by_one(course: Course, boxes: Boxes) -> list[float]:
    """Return the first overlaps, pair by pair of box and piece: quicker than arrays for a few."""
    speed, found = course.speed, []
    for x, y, yaw, vx, vy, *sizes in zip(*(box.tolist() for box in boxes), strict=True):
        c, s = math.cos(yaw), math.sin(yaw)
        half, side, own, flank = (size / 2 for size in sizes)
        first = math.inf
        for px, py, cos, sin, begin, end in course.pieces:
            dx, dy, wx, wy = x - px, y - py, vx - cos * speed, vy - sin * speed
            along, across = abs(cos * c + sin * s), abs(cos * s - sin * c)
            enter = _meeting(
                (
                    (dx * cos + dy * sin, wx * cos + wy * sin, own + half * along + side * across),
                    (
                        dy * cos - dx * sin,
                        wy * cos - wx * sin,
                        flank + half * across + side * along,
                    ),
                    (dx * c + dy * s, wx * c + wy * s, half + own * along + flank * across),
                    (dy * c - dx * s, wy * c - wx * s, side + own * across + flank * along),
                ),
                begin,
                end,
            )
            if enter < math.inf:
                first = enter
                break
        found.append(first)
    return found


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


def _all_at_once(course: Course, boxes: Boxes) -> Floats:
    """Return the first overlaps by arrays over all pieces and boxes, of shapes (p, n)."""
    columns = np.array(course.pieces).T[:, :, None]
    x0, y0, cos, sin, begin, end = columns
    c, s = np.cos(boxes.yaw), np.sin(boxes.yaw)
    turned = np.abs(np.array([cos * c + sin * s, cos * s - sin * c]))
    offset = np.array([boxes.x - x0, boxes.y - y0])
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
    enter = np.maximum(np.minimum(one, two).max(axis=0), begin)
    leave = np.minimum(np.maximum(one, two).min(axis=0), end)
    found: Floats = np.where(enter < leave, enter, np.inf).min(axis=0)
    return found
