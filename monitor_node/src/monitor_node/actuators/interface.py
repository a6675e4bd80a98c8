"""What an actuator is, and what it is asked for."""

from __future__ import annotations

from typing import Protocol

from forewarn.monitoring.intervention import Intervention
from forewarn_ros.status import Severity, Status

PATIENCE = 5.0
"""Seconds after which a call counts as lost: its server may have died with the answer."""


class Actuator(Protocol):
    """One way to a robot. Times are seconds of a steady clock."""

    name: str

    def demand(self, demand: Intervention, now: float) -> None:
        """Take in what is `demanded`; called at every tick, mostly with the same."""

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
    """Whether what was asked for is taken up in time."""

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
