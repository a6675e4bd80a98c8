"""What a monitor says to a gate, and whether a gate can understand it: plain, without ROS."""

from __future__ import annotations

import math
from typing import NamedTuple

from forewarn.config.actions import ACTIONS, NO_ACTION
from forewarn.config.actuators import NO_WAY, Ways
from forewarn.monitoring.intervention import Intervention

OBSERVE, ACT = "observe", "act"
LONGEST_SESSION = 64


class Statement(NamedTuple):
    """What an Intervention, or what a RiskArray repeats of it, says."""

    session: str  # Life of the monitor that speaks
    sequence: int
    mode: str = ACT  # ``observe`` or ``act``; anything else is not understood
    id: int = 0
    # Constant of forewarn_msgs/msg/Intervention; anything else is not understood
    action: str = NO_ACTION
    active: bool = False
    speed_limit: float = math.nan  # m/s; NaN for none
    verdicts: int = 1  # Properties judged; an Intervention, which judges none, counts as one
    writer: bytes = b""  # Identity of the publisher, where the middleware tells it; else empty
    escape: Ways = NO_WAY
    # Seconds from the moment that it is about to its arrival, on the listener's clock; negative if
    # that clock is behind
    age: float = 0.0

    @property
    def problem(self) -> str:
        """Why it cannot be understood; empty if it can."""
        if not 0 < len(self.session) <= LONGEST_SESSION:
            return "a message without a session"
        if self.mode not in (OBSERVE, ACT):
            return "a message of an unknown mode"
        if self.action not in ACTIONS:
            return "an unknown action"
        if not self.verdicts:
            return "an empty verdict"
        if self.active and (self.mode == OBSERVE or self.action == NO_ACTION):
            return "a message that contradicts itself"
        if self.escape and not (self.active and ACTIONS[self.action].stops):
            return "a way out of no stop"
        if self.active and ACTIONS[self.action].limits and not math.isfinite(self.speed_limit):
            return "a speed limit that is no number"
        return ""

    @property
    def demand(self) -> Intervention:
        """What it asks of the robot."""
        return Intervention(self.action, self.speed_limit, self.id, self.active).demanded

    def agrees(self, other: Statement) -> bool:
        """Tell whether both ask for the same."""
        return self._asked() == other._asked()

    def _asked(self) -> tuple[object, ...]:
        limit = None if math.isnan(self.speed_limit) else self.speed_limit
        return self.mode, self.id, self.action, self.active, limit
