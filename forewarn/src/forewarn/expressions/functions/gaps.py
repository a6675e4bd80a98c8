"""Distances between a rectangle and others, in metres."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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
