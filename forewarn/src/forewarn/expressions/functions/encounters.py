"""When a vehicle that follows its path and objects that move on run into each other.

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
