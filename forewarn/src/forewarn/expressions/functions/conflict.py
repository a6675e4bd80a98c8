"""The functions of expressions that ask when something gets in the way.

The geometry behind them is in :mod:`forewarn.expressions.functions.encounters`,
:mod:`forewarn.expressions.functions.encounters` and :mod:`forewarn.expressions.functions.swept`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from forewarn.expressions.functions.encounters import Floats, Vehicle, gaps_to, times_to_conflict
from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.functions.swept import straight_on, way_along, way_to_contact
from forewarn.expressions.operators import number, numbers
from forewarn.expressions.values import NAN, Notes, is_unknown, kind

HORIZON = 5.0
REACH = 0.5
OBJECT = "[x, y, yaw, vx, vy, length, width]"


def time_to_conflict(
    notes: Notes, path: Any, pose: Any, speed: Any, size: Any, objects: Any, horizon: Any = HORIZON
) -> Any:
    """Return when a vehicle that follows a path at its present speed begins to overlap objects.

    `path`, shape (k,): the xs and ys of the path, in metres. It may begin behind the vehicle. Where
    it ends, or has no points, the vehicle goes straight on.
    `pose`: x, y (m) and heading (rad) of the centre of the vehicle's rectangle.
    `speed`: its speed along the path, m/s. Without a positive one it stands.
    `size`, shape (n,): its length and width, m; vectors give it another size for each object, as
    far as to keep a distance from some.
    `objects`, shape (n,): x, y (m), yaw (rad), velocity along x and y (m/s), length and width (m)
    of the objects.
    `horizon`: seconds to look ahead.
    Returns shape (n,): seconds; 0 for an object that overlaps the vehicle now, inf for one that it
    does not meet within the horizon, NaN for one of which something is unknown. A number if all of
    `objects` are numbers.
    """
    line, place = _path(notes, path), _pose(notes, pose)
    columns = _boxes(notes, size, objects)
    pace, limit = number(notes, speed), number(notes, horizon)
    if line is None or place is None or columns is None:
        return NAN
    if isinstance(pace, np.ndarray) or isinstance(limit, np.ndarray):
        return notes.unknown("time_to_conflict() takes one vehicle at a time")
    if not math.isfinite(pace) or not math.isfinite(limit):
        return NAN
    vehicle = Vehicle(*place, pace)
    return _each(columns, lambda boxes: times_to_conflict(line, vehicle, boxes, limit))


def gap_to(notes: Notes, pose: Any, size: Any, objects: Any) -> Any:
    """Return how far objects are from a vehicle, between their rectangles.

    `pose`, `size`, `objects`: velocities do not matter.
    Returns shape (n,): metres; 0 for an object that overlaps the vehicle, NaN for one of which
    something is unknown. A number if all of `objects` are numbers.
    """
    place, columns = _pose(notes, pose), _boxes(notes, size, objects)
    if place is None or columns is None:
        return NAN
    still = columns[:3] + columns[5:]
    return _each(still, lambda boxes: gaps_to(place, boxes[5:], boxes[:5]))


def free_along(
    notes: Notes, path: Any, pose: Any, radius: Any, x: Any, y: Any, reach: Any = REACH
) -> Any:
    """Return how far a round robot gets along a path before it touches a point that it sees.

    `path`, shape (k,): the xs and ys of the path, in metres, in the frame of `pose`. Where it is
    not followed (without two points, behind the robot, or too far from it) the robot goes straight
    on; where it ends, the robot ends.
    `pose`: x, y (m) and heading (rad) of the robot's centre.
    `radius`: its radius, m, with the distance that it is to keep.
    `x`, `y`, shape (n,): points as the robot sees them, m: ahead of its centre and to its left.
    `reach`: metres: a robot that is further from the path does not follow it, and one that follows
    it comes back to it within so much.
    Returns metres; 0 if it touches a point now and gets nearer to it, inf if it touches none.
    """
    line, place = _path(notes, path), _pose(notes, pose)
    points = numbers(notes, x, y)
    sizes = [number(notes, size) for size in (radius, reach)]
    if line is None or place is None or points is None:
        return NAN
    if any(isinstance(size, np.ndarray) for size in sizes):
        return notes.unknown("free_along() takes one robot at a time")
    if not all(size > 0.0 and math.isfinite(size) for size in sizes):
        return notes.unknown("free_along() needs a radius and a reach above 0")
    seen = np.stack(np.broadcast_arrays(*map(np.atleast_1d, points)), axis=1)
    if np.isnan(seen).any():
        return notes.unknown("free_along(): a point is not known")
    way = way_along(line, place, sizes[1])
    if way is None:
        reached = seen[np.isfinite(seen).all(axis=1), 0]
        way = straight_on(max(reached.max(initial=0.0), 0.0))
    return way_to_contact(way, sizes[0], seen)


def _boxes(notes: Notes, size: Any, objects: Any) -> list[Any] | None:
    """Return the fields of `Boxes` as numbers and vectors of one length, or None with a note."""
    sizes = _columns(notes, "a size", "[length, width]", size, 2)
    boxes = _columns(notes, "objects", OBJECT, objects, 7)
    return None if sizes is None or boxes is None else numbers(notes, *boxes, *sizes)


def _each(columns: list[Any], value: Callable[[Floats], Floats]) -> Any:
    """Return a value of each box, NaN where something of it is unknown, or a size is negative."""
    single = not any(isinstance(column, np.ndarray) for column in columns)
    count = max((len(column) for column in columns if isinstance(column, np.ndarray)), default=1)
    full = [c if isinstance(c, np.ndarray) else np.full(count, c) for c in columns]
    stacked = np.concatenate(full).reshape(len(full), count)
    known = np.isfinite(stacked).all(axis=0) & (stacked[-4:] >= 0).all(axis=0)
    if known.all():
        result = value(stacked)
    else:
        result = np.full(count, NAN)
        result[known] = value(np.ascontiguousarray(stacked[:, known]))
    return result[0].item() if single else result


def _path(notes: Notes, path: Any) -> Any:
    """Return a path as an array of shape (2, k), or None with a note."""
    columns = _columns(notes, "a path", "[xs, ys]", path, 2)
    parts = None if columns is None else numbers(notes, *columns)
    if parts is None:
        return None
    if not all(isinstance(part, np.ndarray) for part in parts):
        notes.unknown("a path is [xs, ys], two arrays")
        return None
    line = np.array(parts)
    if not np.isfinite(line).all():
        notes.unknown("the path has points that are not known")
        return None
    return line


def _columns(notes: Notes, name: str, what: str, value: Any, count: int) -> Any:
    """Return the numbers or vectors that a list is made of, or None with a note."""
    if is_unknown(value):
        return None
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != count:
        notes.unknown(f"{kind(value)} where {name} is needed: {what}")
        return None
    return value if isinstance(value, (list, tuple)) else value.tolist()


def _pose(notes: Notes, value: Any) -> tuple[float, float, float] | None:
    """Return a pose of three known numbers, or None."""
    items = number(notes, value)
    if not isinstance(items, np.ndarray) or len(items) != 3:
        if not is_unknown(value):
            notes.unknown(f"{kind(value)} where a pose is needed: [x, y, heading]")
        return None
    x, y, heading = items.tolist()
    return (x, y, heading) if math.isfinite(x + y + heading) else None


def _function(call: Callable[..., Any], low: int, high: int, summary: str) -> Function:
    return Function(call, low, high, summary, by_platform=True, needs="the vehicle and its path")


register(
    {
        "time_to_conflict": _function(
            time_to_conflict,
            5,
            6,
            "seconds until a vehicle on a path overlaps each object; inf if it does not",
        ),
        "gap_to": _function(
            gap_to, 3, 3, "distance of each object to the vehicle, 0 if they overlap"
        ),
        "free_along": _function(
            free_along,
            5,
            6,
            "metres that a round robot gets along a path before it touches a point; inf if none",
        ),
    }
)
