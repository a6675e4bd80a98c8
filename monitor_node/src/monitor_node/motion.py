"""Velocities of a robot, and bounds of how they change: plain values."""

from __future__ import annotations

import math
from typing import NamedTuple


class Pace(NamedTuple):
    """How fast something moves: m/s and rad/s, whatever the direction."""

    speed: float
    turn: float

    @property
    def finite(self) -> bool:
        """Tell whether both are numbers."""
        return math.isfinite(self.speed) and math.isfinite(self.turn)


class Velocity(NamedTuple):
    """A command: m/s along x, y, z, and rad/s about x, y, z."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0

    @property
    def speed(self) -> float:
        """Speed over ground in m/s."""
        return math.hypot(self.x, self.y, self.z)

    @property
    def turn(self) -> float:
        """Turn rate in rad/s."""
        return math.hypot(self.roll, self.pitch, self.yaw)

    @property
    def pace(self) -> Pace:
        """Speed and turn rate."""
        return Pace(self.speed, self.turn)

    @property
    def finite(self) -> bool:
        """Tell whether all components are numbers, and none so large that its square is not."""
        return self.pace.finite

    def scaled(self, factor: float) -> Velocity:
        """Return the command times a factor."""
        return Velocity(*(component * factor for component in self))


REST = Velocity()


class Rates(NamedTuple):
    """Bounds of a change of velocity: m/s^2 and rad/s^2."""

    linear: float
    angular: float

    def time(self, pace: Pace) -> float:
        """Return how many seconds it takes to come to rest, or to reach `pace` from it."""
        return max(pace.speed / self.linear, pace.turn / self.angular)
