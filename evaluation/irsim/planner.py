"""A local planner that goes to its goal, steers around what it sees, and is late at times.

It takes what it sees for standing still, it sees it some ticks late, now and then it looks away,
and it trusts its brakes: how much of each depends on its temper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.irsim.scenes import ROBOT_RADIUS

Floats = NDArray[np.float64]


class Temper(NamedTuple):
    """What makes a planner careful or reckless."""

    speed: float  # m/s on a free way
    brakes: float  # deceleration that it counts on, in m/s^2
    margin: float  # metres that it wants to keep
    delay: int  # ticks by which its view of the scan is late
    lapses: tuple[float, float]  # of attention, a second; and their mean length in seconds


TEMPERS = {
    "careful": Temper(0.45, 0.5, 0.25, 1, (0.03, 0.4)),
    "hasty": Temper(0.7, 0.8, 0.12, 2, (0.08, 0.6)),
    "reckless": Temper(0.95, 1.2, 0.05, 3, (0.15, 0.8)),
}

Path = tuple[list[float], list[float]]
"""Where a robot means to drive: xs and ys, in m, from its place on."""

COURSES = np.radians(np.arange(-100.0, 101.0, 10.0))
SIGHT = 2.5
PIECE = 0.1
"""Seconds between two points of the path that is meant."""


@dataclass(frozen=True)
class View:
    """What the planner sees at a tick: scan and pose."""

    ranges: Floats
    angles: Floats
    x: float
    y: float
    yaw: float


class Planner:
    """The planner of one episode; the seed is that of its lapses."""

    def __init__(
        self, temper: Temper, goal: tuple[float, float], seed: int, rate: float = 10.0
    ) -> None:
        self.temper = temper
        self.limit = math.inf
        self.asked = False
        self.path: Path | None = None
        """What it means to drive, as of its last look; None while it looks away."""
        self._goal = goal
        self._rate = rate
        self._rng = np.random.default_rng([seed, 77])
        self._views: list[View] = []
        self._command = (0.0, 0.0)
        self._course = 0.0
        self._away = 0

    def command(self, view: View) -> tuple[float, float]:
        """Return forward speed and turn rate, in m/s and rad/s.

        `limit` caps the speed, as Nav2's controller server does on its topic `speed_limit`.
        While it is `asked` for another plan it plans as a careful one does, from what is there now.
        """
        self.path = None
        self._views.append(view)
        del self._views[: -self.temper.delay - 1]
        if self.asked:
            self._away = 0
            self._command = self._look(view, view, TEMPERS["careful"])
            return min(self._command[0], self.limit), self._command[1]
        often, long = self.temper.lapses
        if self._away > 0:
            self._away -= 1
        elif self._rng.random() < often / self._rate:
            self._away = int(self._rng.exponential(long) * self._rate)
        if self._away == 0:
            self._command = self._look(self._views[0], view, self.temper)
        speed, turn = self._command
        return min(speed, self.limit), turn

    def _look(self, seen: View, pose: View, temper: Temper) -> tuple[float, float]:
        ahead = math.atan2(self._goal[1] - pose.y, self._goal[0] - pose.x)
        wanted = math.remainder(ahead - pose.yaw, math.tau)
        left = math.hypot(self._goal[0] - pose.x, self._goal[1] - pose.y)
        free = free_distance(seen, COURSES, ROBOT_RADIUS + temper.margin / 2)
        blocked = np.clip(min(SIGHT, left) - free, 0.0, None) / SIGHT
        turned = np.abs(np.remainder(COURSES - wanted + math.pi, math.tau) - math.pi)
        cost = turned + 4.0 * blocked + 0.3 * np.abs(COURSES - self._course)
        best = int(np.argmin(cost))
        self._course = float(COURSES[best])
        turn = turn_rate(self._course)
        room = max(float(free[best]) - temper.margin, 0.0)
        speed = min(temper.speed, math.sqrt(2 * temper.brakes * room))
        speed *= max(math.cos(self._course), 0.1)
        self.path = _path(pose, self._course, temper.speed, min(SIGHT, left))
        return speed, turn


def turn_rate(course: float) -> float:
    """Return how fast the planner turns to a course, in rad/s."""
    return min(max(2.0 * course, -1.5), 1.5)


def _path(pose: View, course: float, speed: float, length: float) -> Path:
    """Return the path along a course: how its own commands drive if it keeps to that course."""
    x, y, yaw, left = pose.x, pose.y, pose.yaw, length
    xs, ys = [x], [y]
    while left > 0.0:
        way = min(speed * max(math.cos(course), 0.1) * PIECE, left)
        turned = turn_rate(course) * PIECE
        yaw, course, left = yaw + turned, course - turned, left - way
        x, y = x + way * math.cos(yaw), y + way * math.sin(yaw)
        xs.append(x)
        ys.append(y)
    return xs, ys


def free_distance(view: View, courses: Floats, half_width: float) -> Floats:
    """Return how far the robot could go along each course before it touches what it sees.

    Courses, shape (k,), are relative to the robot's; a way of twice `half_width` has to be free.
    """
    seen = np.isfinite(view.ranges)
    x = view.ranges[seen] * np.cos(view.angles[seen])
    y = view.ranges[seen] * np.sin(view.angles[seen])
    along = np.cos(courses)[:, None] * x + np.sin(courses)[:, None] * y
    across = np.abs(np.cos(courses)[:, None] * y - np.sin(courses)[:, None] * x)
    hit = (along > 0) & (across < half_width)
    return np.min(np.where(hit, along, np.inf), axis=1, initial=np.inf) - ROBOT_RADIUS
