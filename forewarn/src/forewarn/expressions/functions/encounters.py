"""When a vehicle on its path and objects that move run into each other; gaps between them.

The vehicle is a rectangle that goes along a path at its present speed; each object is one that
keeps its velocity. Both move in straight pieces, and two such rectangles overlap exactly while
their shadows overlap on the directions of their four sides (the separating axis theorem, as in
Gottschalk, Lin and Manocha, *OBBTree*, SIGGRAPH 1996, section 5). On each direction that is an
interval of time, so that nothing is sampled: the result is exact for this motion.

Lengths are in metres, times in seconds, angles in radians from the x axis, counterclockwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from forewarn.errors import NotBuiltError

try:
    from forewarn.expressions.functions import _encounters
except ImportError as error:
    raise NotBuiltError("geometry of encounters") from error

Floats = npt.NDArray[np.float64]


class Vehicle(NamedTuple):
    """The monitored vehicle: centre of its rectangle, heading, and speed ahead."""

    x: float
    y: float
    heading: float
    speed: float


class Boxes(NamedTuple):
    """Rectangles that keep their velocity; all arrays have shape (n,).

    `x`, `y`, `yaw`: centres, and the direction of the length.
    `vx`, `vy`: velocities, in the frame of the centres.
    `own_length`, `own_width`: sizes that the vehicle has for each of them: with a distance to be
    kept, say.
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


def times_to_conflict(path: Floats, vehicle: Vehicle, boxes: Floats, horizon: float) -> Floats:
    """Return when a vehicle that goes along a path begins to overlap each box.

    From its place it makes for the first point of the path that is more than 3 m ahead of the
    point nearest to it, and follows the path from there at its present speed; where the path ends,
    it goes straight on. A vehicle that does not move forwards stands.

    `path`, shape (2, k): finite points. What lies behind the vehicle does not count, so that the
    path may have been planned a moment ago. Without points the vehicle goes straight ahead.
    `boxes`, shape (9, n): the fields of `Boxes`, all finite.
    `horizon`: seconds to look ahead.
    Returns shape (n,): seconds, 0 for boxes that overlap the vehicle already; inf without an
    overlap before `horizon`. Touching is no overlap.
    """
    return np.frombuffer(_encounters.times_to_conflict(path, vehicle, boxes, horizon))


CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]]) / 2


def gaps_to(place: tuple[float, float, float], sizes: Floats, boxes: Floats) -> Floats:
    """Return the distance of a rectangle to each of others; 0 where they touch or overlap.

    Between two rectangles that do not overlap, the shortest way begins or ends at a corner. They
    overlap where they do on the directions of all four sides (the separating axis theorem).

    `place`: x, y and heading of the centre.
    `sizes`, shape (2, n): its length and width, as it has them for each of the others.
    `boxes`, shape (5, n): x, y, yaw, length and width of the others.
    Returns ndarray of float64, shape (n,).
    """
    x, y, yaw, length, width = boxes
    cos, sin = np.cos(place[2]), np.sin(place[2])
    dx, dy = x - place[0], y - place[1]
    turned = yaw - place[2]
    centre = np.stack([dx * cos + dy * sin, dy * cos - dx * sin])  # as the rectangle sees them
    back = np.stack([np.cos(turned), np.sin(turned)])
    seen = np.stack(  # the rectangle's centre as they see it
        [-centre[0] * back[0] - centre[1] * back[1], centre[0] * back[1] - centre[1] * back[0]]
    )
    others = np.stack([length, width])
    near, apart = _nearest_corner(centre, turned, others, sizes)
    near_too, apart_too = _nearest_corner(seen, -turned, sizes, others)
    return np.where(apart | apart_too, np.minimum(near, near_too), 0.0)


def _nearest_corner(
    centre: Floats, turned: Floats, sizes: Floats, own: Floats
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return how near the corners of rectangles come to one at the origin, and which it misses.

    It misses those that do not overlap with it on the directions of its own sides.
    """
    along, across = CORNERS[:, :1] * sizes[0], CORNERS[:, 1:] * sizes[1]
    cos, sin = np.cos(turned), np.sin(turned)
    x = centre[0] + along * cos - across * sin
    y = centre[1] + along * sin + across * cos
    half = own / 2
    beyond = np.maximum(np.abs(x) - half[0], 0.0), np.maximum(np.abs(y) - half[1], 0.0)
    apart = (
        (x.min(axis=0) > half[0]) | (x.max(axis=0) < -half[0])
        | (y.min(axis=0) > half[1]) | (y.max(axis=0) < -half[1])
    )  # fmt: skip
    return np.hypot(*beyond).min(axis=0), apart
