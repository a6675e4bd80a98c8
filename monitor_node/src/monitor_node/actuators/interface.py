"""What an actuator is, and what it is asked for."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from forewarn.config.actions import ACTIONS, NO_ACTION
from forewarn.monitoring.intervention import Request
from forewarn_ros.status import Severity, Status

PATIENCE = 5.0
"""Seconds after which a call counts as lost: its server may have died with the answer."""


class Demand(NamedTuple):
    """What the robot is asked to do now.

    Attributes
    ----------
    action : str
        Constant of forewarn_msgs/msg/Intervention; ``NONE`` if nothing is asked for.
    speed_limit : float
        m/s, for LIMIT_SPEED; NaN otherwise. 0 means to stand still.
    id : int
        Number of the intervention.
    """

    action: str = NO_ACTION
    speed_limit: float = math.nan
    id: int = 0

    @property
    def limits(self) -> bool:
        """Tell whether a speed limit is asked for."""
        return ACTIONS[self.action].limits

    @property
    def stops(self) -> bool:
        """Tell whether a stop of any kind is asked for."""
        return ACTIONS[self.action].stops

    @property
    def hard(self) -> bool:
        """Tell whether the stop is one with the largest safe deceleration."""
        return ACTIONS[self.action].hard

    @property
    def moves(self) -> bool:
        """Tell whether anything is asked for that changes the motion."""
        return ACTIONS[self.action].moves


NOTHING = Demand()


def demand_of(request: Request | None) -> Demand:
    """Return what a request asks of the robot: nothing while it is not active."""
    if request is None or not request.active:
        return NOTHING
    # One NaN for all: the same demand has to equal itself, or it would be sent at every tick.
    limit = request.speed_limit if ACTIONS[request.action].limits else math.nan
    return Demand(request.action, limit, request.id)


class Actuator(Protocol):
    """One way to a robot. Times are seconds of a steady clock."""

    name: str

    def demand(self, demand: Demand, now: float) -> None:
        """Take in what is asked for; called at every tick, mostly with the same."""

    def poll(self, now: float) -> None:
        """Try again what has not worked yet; called several times a second."""

    def status(self, now: float) -> Status:
        """Report, with an ERROR if something was not taken up in time."""

    def owes(self) -> bool:
        """Tell whether something is in force that only this node takes back."""

    def resume(self) -> None:
        """Take note that a former life of this node left something in force."""

    def close(self) -> None:
        """Leave the topics."""


class Confirmation:
    """Whether what was asked for is taken up in time.

    Parameters
    ----------
    timeout : float
        Seconds.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.what = ""
        self.confirmed = True
        self._since = 0.0

    def ask(self, what: str, now: float) -> None:
        """Begin to wait, unless this is what is waited for or was confirmed already."""
        if what != self.what:
            self.what, self.confirmed, self._since = what, not what, now

    def observe(self, met: bool, now: float) -> None:
        """Take in whether the stack does now what was asked for; it may cease to."""
        if self.confirmed and not met and self.what:
            self._since = now
        self.confirmed = met or not self.what

    def overdue(self, now: float) -> bool:
        """Tell whether it is time for an error."""
        return not self.confirmed and now - self._since >= self.timeout

    def status(self, name: str, now: float, problem: str = "", **values: object) -> Status:
        """Report under `name`; `problem` says what stands in the way."""
        found = {"asked for": self.what or "nothing", "confirmed": self.confirmed, **values}
        if self.overdue(now):
            waited = f"{self.what}: not taken up for {now - self._since:.1f} s"
            text = f"{waited}; {problem}" if problem else waited
            return Status(f"actuator {name}", Severity.ERROR, text, found)
        if not self.what:
            return Status(f"actuator {name}", Severity.OK, "nothing is asked for", found)
        state = "taken up" if self.confirmed else "not confirmed yet"
        return Status(f"actuator {name}", Severity.OK, f"{self.what}: {state}", found)
