"""What comes nearer by itself: the difference of two scans, the robot's own motion taken out.

A monitor's expressions see one moment. This is the node beside it that remembers the last ones: for
each sector around the robot it publishes how near the nearest point is, and how fast that comes
nearer to the place where the robot is.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.irsim.scenes import ANGLES, RANGE, RATE

Floats = NDArray[np.float64]

SECTORS = 72
AROUND = 3
"""Sectors to each side from which somebody may have come."""

BACK = 3
"""Ticks between the two scans."""

FASTEST = 1.5
"""m/s; what seems to come faster has just come into view."""

DIRECTIONS = (np.arange(SECTORS) + 0.5) * math.tau / SECTORS - math.pi
"""The middle of each sector, in radians from straight ahead."""


class Approach(NamedTuple):
    """Of each sector, shape (72,): metres to the nearest point, and its approach in m/s."""

    nearest: Floats
    speed: Floats


class Approaches:
    """Remembers the scans of the last moments."""

    def __init__(self) -> None:
        self._points: deque[tuple[Floats, Floats]] = deque(maxlen=BACK + 1)

    def see(self, pose: tuple[float, float, float], ranges: Floats) -> Approach:
        """Take in a scan and where it was taken."""
        x, y, yaw = pose
        seen = np.isfinite(ranges)
        angles = ANGLES[seen] + yaw
        self._points.append((x + ranges[seen] * np.cos(angles), y + ranges[seen] * np.sin(angles)))
        nearest = _sectors(*self._points[-1], pose)
        before = _sectors(*self._points[0], pose)
        # What passes by was in a sector beside, just as near: it does not approach.
        turns = range(-AROUND, AROUND + 1)
        around = np.min([np.roll(before, turn) for turn in turns], axis=0)
        span = max(len(self._points) - 1, 1) / RATE
        speed = (around - nearest) / span
        return Approach(nearest, np.where(np.abs(speed) < FASTEST, speed, 0.0))


def _sectors(xs: Floats, ys: Floats, pose: tuple[float, float, float]) -> Floats:
    """Return the distance of the nearest point of each sector as seen from a pose."""
    x, y, yaw = pose
    dx, dy = xs - x, ys - y
    bearing = np.mod(np.arctan2(dy, dx) - yaw + math.pi, math.tau)
    sector = np.minimum((bearing / math.tau * SECTORS).astype(np.int64), SECTORS - 1)
    nearest = np.full(SECTORS, RANGE)
    np.minimum.at(nearest, sector, np.hypot(dx, dy))
    return nearest
