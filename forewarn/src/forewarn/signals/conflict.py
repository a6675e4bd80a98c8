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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

JOIN = 3.0  # a vehicle beside its path comes back to it within so many metres
STANDSTILL = 1e-3  # m/s: slower than that, a path is not followed


class Vehicle(NamedTuple):
    """The monitored vehicle: centre of its rectangle, heading, speed ahead, and its sizes."""

    x: float
    y: float
    heading: float
    speed: float
    length: float
    width: float


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
    """

    x: Floats
    y: Floats
    yaw: Floats
    vx: Floats
    vy: Floats
    length: Floats
    width: Floats


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
    """

    origin: Floats
    unit: Floats
    speed: float
    begin: Floats
    end: Floats


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
    place = np.array([[vehicle.x], [vehicle.y]])
    ahead = path[:, _first_ahead(path, vehicle.x, vehicle.y) :]
    steps = np.diff(np.concatenate([place, ahead], axis=1), axis=1)
    lengths = np.hypot(steps[0], steps[1])
    if vehicle.speed < STANDSTILL or not lengths.any():
        unit = np.array([[math.cos(vehicle.heading)], [math.sin(vehicle.heading)]])
        speed = vehicle.speed if vehicle.speed >= STANDSTILL else 0.0
        return Course(place, unit, speed, np.zeros(1), np.full(1, horizon))
    moved = lengths > 0.0
    ends = np.cumsum(lengths[moved]) / vehicle.speed
    count = min(int(np.searchsorted(ends, horizon)) + 1, len(ends))
    begin = np.concatenate([[0.0], ends[: count - 1]])
    end = np.concatenate([ends[: count - 1], [horizon]])
    unit = (steps / lengths)[:, moved][:, :count]
    start = np.concatenate([place, ahead], axis=1)[:, :-1][:, moved][:, :count]
    return Course(start - unit * (vehicle.speed * begin), unit, vehicle.speed, begin, end)


def _first_ahead(path: Floats, x: float, y: float) -> int:
    """Return the index of the first point of a path that is well ahead of a place."""
    if path.shape[1] < 2:
        return 0
    steps = np.diff(path, axis=1)
    lengths = np.hypot(steps[0], steps[1])
    dx, dy = x - path[0, :-1], y - path[1, :-1]
    squares = np.maximum(lengths * lengths, 1e-12)
    part = np.minimum(np.maximum((dx * steps[0] + dy * steps[1]) / squares, 0.0), 1.0)
    distances = np.hypot(dx - part * steps[0], dy - part * steps[1])
    nearest = int(distances.argmin())
    stations = np.concatenate([[0.0], np.cumsum(lengths)])
    station = stations[nearest] + part[nearest] * lengths[nearest]
    return int(np.searchsorted(stations, station + JOIN, "right"))


def times_to_conflict(
    course: Course, length: float, width: float, boxes: Boxes, horizon: float
) -> Floats:
    """Return when a rectangle on its course begins to overlap each box.

    Parameters
    ----------
    course : Course
        The motion of the rectangle's centre.
    length, width : float
        Sizes of the rectangle.
    boxes : Boxes
        n boxes, all finite.
    horizon : float
        Seconds to look ahead.

    Returns
    -------
    ndarray of float64, shape (n,)
        Seconds, 0 for boxes that overlap it already; inf without an overlap before `horizon`.
        Touching is no overlap.
    """
    result = np.full(len(boxes.x), np.inf)
    near = _within_reach(course, length, width, boxes, horizon)
    if len(near):
        chosen = Boxes(*(each[near] for each in boxes))
        result[near] = _first_overlaps(course, length, width, chosen)
    return result


def _within_reach(
    course: Course, length: float, width: float, boxes: Boxes, horizon: float
) -> npt.NDArray[np.intp]:
    """Return which boxes can be met at all: the others are too far away for the time there is."""
    start = course.origin[:, 0]
    reach = course.speed + np.hypot(boxes.vx, boxes.vy)
    sizes = (length + width + boxes.length + boxes.width) / 2
    far = np.hypot(boxes.x - start[0], boxes.y - start[1]) > reach * horizon + sizes
    return np.flatnonzero(~far)


def _first_overlaps(course: Course, length: float, width: float, boxes: Boxes) -> Floats:
    """Intersect the intervals of the four directions, for every piece and box; shapes (p, n)."""
    cos, sin = course.unit[0, :, None], course.unit[1, :, None]
    c, s = np.cos(boxes.yaw), np.sin(boxes.yaw)
    dx, dy = boxes.x - course.origin[0, :, None], boxes.y - course.origin[1, :, None]
    wx, wy = boxes.vx - cos * course.speed, boxes.vy - sin * course.speed
    along, across = np.abs(cos * c + sin * s), np.abs(cos * s - sin * c)
    half, side = boxes.length / 2, boxes.width / 2
    mine = length / 2, width / 2
    distances = np.array(
        [dx * cos + dy * sin, dy * cos - dx * sin, dx * c + dy * s, dy * c - dx * s]
    )
    speeds = np.array([wx * cos + wy * sin, wy * cos - wx * sin, wx * c + wy * s, wy * c - wx * s])
    sums = np.array(
        [
            mine[0] + half * along + side * across,
            mine[1] + half * across + side * along,
            half + mine[0] * along + mine[1] * across,
            side + mine[0] * across + mine[1] * along,
        ]
    )
    with np.errstate(all="ignore"):
        # Without a relative speed these are -inf and inf within reach, twice the same beyond.
        one, other = (-sums - distances) / speeds, (sums - distances) / speeds
    enter = np.maximum(np.minimum(one, other).max(axis=0), course.begin[:, None])
    leave = np.minimum(np.maximum(one, other).min(axis=0), course.end[:, None])
    found: Floats = np.where(enter < leave, enter, np.inf).min(axis=0)
    return found
