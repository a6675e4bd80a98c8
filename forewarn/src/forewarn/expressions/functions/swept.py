"""How far a round robot gets along a path before it touches a point that it sees.

A disc that moves in straight pieces meets a point where the line of its centre enters the circle
of the same radius about that point, so that nothing is sampled: the result is exact.

Lengths are in metres, headings in radians from the x axis, counterclockwise.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BLOCK = 32
"""Pieces of the way that are looked at together: most contacts lie in the first ones."""


def way_along(path: Floats, pose: tuple[float, float, float], reach: float) -> Floats | None:
    """Return the way of a robot that follows a path, as the robot sees it.

    The robot makes for the first point of the path that is more than `reach` ahead of the point
    nearest to it, or for its end, and follows the path from there.

    `path`, shape (2, k): finite points, in the frame of `pose`.
    `pose`: x, y and heading of the robot.
    `reach`: a robot that is further from the path than this does not follow it.
    Returns shape (m, 2): points in the robot's frame (x ahead, y to the left), the robot's place
    first. None if it does not follow the path: it has less than two points, is too far, or lies
    behind.
    """
    x, y, heading = pose
    cos, sin = math.cos(heading), math.sin(heading)
    along, across = path[0] - x, path[1] - y
    points = np.stack([along * cos + across * sin, across * cos - along * sin], axis=1)
    steps = np.diff(points, axis=0)
    squares = np.einsum("ni,ni->n", steps, steps)
    moves = squares > 0.0
    if not moves.any():
        return None
    points = np.concatenate([points[:1], points[1:][moves]])
    steps, squares = steps[moves], squares[moves]
    parts = np.clip(-np.einsum("ni,ni->n", points[:-1], steps) / squares, 0.0, 1.0)
    feet = points[:-1] + parts[:, None] * steps
    nearest = int(np.argmin(np.einsum("ni,ni->n", feet, feet)))
    if math.hypot(*feet[nearest]) > reach:
        return None
    lengths = np.sqrt(squares)
    stations = np.concatenate([[0.0], np.cumsum(lengths)])
    station = stations[nearest] + parts[nearest] * lengths[nearest]
    if not station < stations[-1]:
        return None
    first = min(int(np.searchsorted(stations, station + reach, "right")), len(points) - 1)
    way: Floats = np.concatenate([np.zeros((1, 2)), points[first:]])
    return way


def way_to_contact(way: Floats, radius: float, points: Floats) -> float:
    """Return how far a disc gets along a way before it touches a point; inf if it does not.

    `way`, shape (m, 2): places of the centre, two or more.
    `points`, shape (n, 2): points. One that the disc only moves away from is ignored.
    """
    low, high = way.min(axis=0) - radius, way.max(axis=0) + radius
    points = points[np.all((points >= low) & (points <= high), axis=1)]
    steps = np.diff(way, axis=0)
    lengths = np.hypot(steps[:, 0], steps[:, 1])
    stations = np.concatenate([[0.0], np.cumsum(lengths)])
    steps, starts = steps[lengths > 0.0], way[:-1][lengths > 0.0]
    stations, lengths = stations[:-1][lengths > 0.0], lengths[lengths > 0.0]
    units = steps / lengths[:, None]
    for begin in range(0, len(units) if len(points) else 0, BLOCK):
        block = slice(begin, begin + BLOCK)
        offsets = points[None, :, :] - starts[block, None, :]
        unit = units[block, None, :]
        along = np.einsum("pnk,pnk->pn", offsets, np.broadcast_to(unit, offsets.shape))
        across = unit[..., 0] * offsets[..., 1] - unit[..., 1] * offsets[..., 0]
        half = np.sqrt(np.maximum(radius * radius - across * across, 0.0))
        enter = np.maximum(along - half, 0.0)
        met = (np.abs(across) < radius) & (along > 0.0) & (enter <= lengths[block, None])
        found = np.where(met, stations[block, None] + enter, np.inf).min()
        if found < np.inf:
            return float(found)
    return math.inf


def straight_on(length: float) -> Floats:
    """Return the way of a robot that goes straight on for a length."""
    return np.array([[0.0, 0.0], [length, 0.0]])
