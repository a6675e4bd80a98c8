"""Whether the monitor is alive, and what it asks for: without ROS, by a steady clock."""

from __future__ import annotations

import math

from monitor_node.actuators.interface import NOTHING, Demand

NOTHING_ASKED = "nothing is asked for"
BY_MONITOR = "the monitor"


class Watchdog:
    """Trusts a monitor as long as it speaks.

    Parameters
    ----------
    timeout : float
        Seconds without a tick after which the monitor counts as dead.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._demand: Demand = NOTHING
        self._demanded = -math.inf
        self._ticked = -math.inf
        self._alive = True
        self._late = False

    def tick(self, now: float) -> None:
        """Take note of a verdict."""
        self._ticked, self._late = now, False

    def intervene(self, demand: Demand, now: float) -> None:
        """Take in an intervention that has begun, is repeated or withdrawn."""
        self._demand, self._demanded = demand, now

    def liveliness(self, alive: int) -> None:
        """Take in how many monitors are alive, as the middleware has it."""
        self._alive = alive > 0

    def missed_deadline(self) -> None:
        """No verdict has come in time, as the middleware has it; the next one heals that."""
        self._late = True

    def demand(self, now: float) -> tuple[Demand, str]:
        """Return what to do at `now`, and why."""
        dead = self._dead(now)
        if dead:
            # If it asked for an emergency stop before, it stays one.
            emergency = self._demand.action == "EMERGENCY_STOP"
            action = "EMERGENCY_STOP" if emergency else "COMFORTABLE_STOP"
            return Demand(action), dead
        if not self._demand.moves:
            return NOTHING, NOTHING_ASKED
        if now - self._demanded > self.timeout:
            return Demand("COMFORTABLE_STOP"), "an intervention is neither repeated nor withdrawn"
        return self._demand, BY_MONITOR

    def _dead(self, now: float) -> str:
        if self._ticked == -math.inf:
            return "the monitor has not spoken yet"
        if not self._alive:
            return "the monitor has lost its liveliness"
        if now - self._ticked > self.timeout:
            return "the monitor is silent"
        if self._late:
            return "the monitor misses its deadline"
        return ""
