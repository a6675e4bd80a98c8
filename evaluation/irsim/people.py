"""How people walk: straight to their next point, and around a robot once they notice it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from evaluation.irsim.scenes import PERSON_RADIUS, ROBOT_RADIUS, SIZE, Person

ARRIVED = 0.3
VIEW = math.radians(75)
"""Half of the angle within which somebody sees the robot."""


@dataclass
class Walker:
    """A person on the way; `goal` is the position of the next point in the person's path."""

    person: Person
    goal: int = 1
    turn: float = field(default=0.0, init=False)

    def velocity(
        self, x: float, y: float, robot: tuple[float, float, float, float]
    ) -> tuple[float, float]:
        """Return the velocity from x, y on; `robot` has the robot's position and velocity."""
        tx, ty = self.person.path[self.goal]
        if math.hypot(tx - x, ty - y) < ARRIVED:
            self.goal = (self.goal + 1) % len(self.person.path)
            tx, ty = self.person.path[self.goal]
        course = math.atan2(ty - y, tx - x)
        speed = self.person.speed
        rx, ry, rvx, rvy = robot
        gap = math.hypot(rx - x, ry - y) - PERSON_RADIUS - ROBOT_RADIUS
        bearing = math.remainder(math.atan2(ry - y, rx - x) - course, math.tau)
        if gap < self.person.notices and abs(bearing) < VIEW:
            # To the side on which the robot is not; the same one until it is passed.
            if self.turn == 0.0:
                across = -math.sin(course) * rvx + math.cos(course) * rvy
                side = bearing if abs(bearing) > 0.1 else across
                self.turn = -1.0 if side > 0 else 1.0
            course += self.turn * (math.pi / 2 - 0.1)
            speed *= 0.6
        else:
            self.turn = 0.0
        vx, vy = speed * math.cos(course), speed * math.sin(course)
        low, high = PERSON_RADIUS + 0.1, SIZE - PERSON_RADIUS - 0.1
        vx = 0.0 if (x < low and vx < 0) or (x > high and vx > 0) else vx
        vy = 0.0 if (y < low and vy < 0) or (y > high and vy > 0) else vy
        return vx, vy
