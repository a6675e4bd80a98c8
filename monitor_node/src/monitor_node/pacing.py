"""Which ticks are due, when a message arrived, and whether the clock has jumped: all without ROS.

A message counts from when the middleware received it. That moment is on the system's clock; under
simulated time it becomes the simulated time that was in force then, unless a player tells when it
arrived in the recording. The time in force is earlier than the true one by up to a period of
/clock, and never later, so that no age comes out too small.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from forewarn.signals.clock import NANOSECONDS, Clock, Moments


class Restart(NamedTuple):
    """Ticks begin, for the first time or again."""

    tick: int
    time_ns: int
    reason: str
    jump_ns: int  # How far the clock jumped; 0 at the first start


class Pacer:
    """Follows one clock.

    `max_step_ns`: a clock that moves on by more than this has jumped.
    `moments`: those of the session, where they depend on what arrived.
    """

    def __init__(
        self, clock: Clock, settle_ns: int, max_step_ns: int, moments: Moments | None = None
    ) -> None:
        self.clock = clock
        self.moments = clock.moments(settle_ns) if moments is None else moments
        self.settle_ns = settle_ns
        self.max_step_ns = max_step_ns
        self.simulated = False
        self.last: int | None = None
        # first, last: first tick since the last start; newest tick that was evaluated, None before
        self.first = 0
        self.jumps = 0  # How often the clock jumped
        # Messages that came to light only after the tick that they would have belonged to
        self.late = 0
        # Arrivals that a player reported and that cannot be: before the last tick, or ahead of the
        # clock
        self.untimely = 0
        self._now_ns: int | None = None
        self._floor_ns = 0
        self._since_ns = 0
        self._steps: deque[tuple[int, int]] = deque()

    @property
    def started(self) -> bool:
        """Tell whether the clock has been seen."""
        return self._now_ns is not None

    def advance(self, now_ns: int, system_ns: int, passed_ns: int = 0) -> Restart | None:
        """Take in the clock; return what has begun, if anything has.

        `now_ns`: the node's clock; under simulated time after every step of it.
        `system_ns`: the system's clock, which stamps what the middleware receives.
        `passed_ns`: what a steady clock says has passed since the last call: a node that did not
        get to run for long has missed ticks, and its clock has not jumped.
        """
        before, self._now_ns = self._now_ns, now_ns
        self._since_ns = min(self._since_ns, system_ns)  # the system's clock may be set back
        if before is None:
            return self._begin(now_ns, "the monitor was activated", 0)
        jump_ns = now_ns - before
        stalled_ns = 0 if self.simulated else passed_ns
        over = now_ns < self._floor_ns and self.clock.regular
        if jump_ns < 0 and (self.simulated or over):
            text = f"the clock jumped back by {-jump_ns / NANOSECONDS:.3f} s"
        elif jump_ns - stalled_ns > self.max_step_ns and self.clock.regular:
            text = f"the clock jumped ahead by {jump_ns / NANOSECONDS:.3f} s"
        else:
            if self.simulated:
                self._steps.append((system_ns, now_ns))
            return None
        self.jumps += 1
        self._since_ns = system_ns
        self._steps.clear()
        if self.simulated:
            self._steps.append((system_ns, now_ns))
        return self._begin(now_ns, text, jump_ns)

    def switch(self, simulated: bool) -> None:
        """Follow another clock from now on: simulated time was switched on or off."""
        self.simulated = simulated
        self._now_ns = None
        self._steps.clear()

    def _begin(self, now_ns: int, reason: str, jump_ns: int) -> Restart:
        self.last = None
        self.first = self.moments.following(now_ns)
        self._floor_ns = now_ns
        return Restart(self.first, now_ns, reason, jump_ns)

    def arrival_ns(
        self, received_ns: int, taken_ns: int, player_ns: int | None = None
    ) -> int | None:
        """Return when a message counts as arrived; None if that was before the clock jumped.

        `received_ns`: system time at which the middleware had it; 0 if it does not say.
        `taken_ns`: system time once it had been taken from the middleware.
        `player_ns`: simulated time at which it arrived, by a player's report.
        """
        time_ns = self.received_ns(received_ns, taken_ns)
        if time_ns is None:
            return None
        assert self._now_ns is not None
        if player_ns is not None and self.simulated:
            if self._floor_ns <= player_ns <= self._now_ns:
                return player_ns
            self.untimely += 1
        if time_ns < self._floor_ns:
            self.late += not self.simulated
            return self._floor_ns
        return time_ns

    def received_ns(self, received_ns: int, taken_ns: int) -> int | None:
        """Return when the middleware had a message, on this clock, whatever tick it belongs to.

        None if that was before the clock jumped. The parameters are those of `arrival_ns`.
        """
        assert self._now_ns is not None
        if received_ns and received_ns < self._since_ns:
            return None
        if received_ns > taken_ns and not self.simulated:
            return None  # it had come when the clock was set back: nothing comes before its time
        if self.simulated:
            return self._simulated_ns(received_ns)
        return received_ns or self._no_later_than_due(self._now_ns)

    def _simulated_ns(self, received_ns: int) -> int:
        """Return the simulated time that was in force at a moment of the system's clock."""
        found = 0
        for system_ns, simulated_ns in self._steps:
            if received_ns and system_ns > received_ns:
                break
            found = simulated_ns
        return found if received_ns else self._no_later_than_due(found)

    def _no_later_than_due(self, time_ns: int) -> int:
        due_ns = self.due_ns(self.last_due) if self.clock.regular else None
        return time_ns if due_ns is None else min(time_ns, due_ns)

    def taken(self, arrival_ns: int) -> None:
        """Note an arrival that was handed over; where arrivals make moments, none comes before."""
        if not self.clock.regular:
            self._floor_ns = max(self._floor_ns, arrival_ns)

    def due_ns(self, tick: int) -> int | None:
        """Return when a tick may be evaluated; None if that is not known."""
        return self.moments.due_ns(tick)

    def overdue_ns(self, tick: int) -> int:
        """Return for how long a tick has been due."""
        due_ns = self.due_ns(tick)
        assert due_ns is not None and self._now_ns is not None
        return self._now_ns - due_ns

    @property
    def last_due(self) -> int:
        """The newest tick that may be evaluated."""
        assert self._now_ns is not None
        return self.moments.last_due(self._now_ns)

    @property
    def next(self) -> int:
        """The next tick to evaluate."""
        return self.first if self.last is None else self.last + 1

    def due(self) -> range:
        """Return the ticks that are due and were not evaluated."""
        return range(self.next, self.last_due + 1)

    def evaluated(self, tick: int) -> None:
        """Note that a tick is done: what arrives from now on belongs to a later one."""
        self.last = tick
        due_ns = self.due_ns(tick)
        assert due_ns is not None
        after = due_ns + 1
        self._floor_ns = after if self.clock.regular else max(self._floor_ns, after)
        while len(self._steps) > 1:
            self._steps.popleft()


class Timing:
    """How punctual the ticks are, since it was last asked.

    `ticks`, `overruns`: ticks evaluated, and those of them that had to wait for an earlier one, in
    all.
    `left_out`: ticks that were left out because the monitor lagged, in all.
    `worst_late_ns`, `worst_step_ns`: greatest time from a tick to its publication, and that it took
    itself, since `read`.
    """

    def __init__(self) -> None:
        self.ticks = self.overruns = self.left_out = 0
        self.worst_late_ns = self.worst_step_ns = 0
        self._overruns_read = self._left_out_read = 0

    def note(
        self, ticks: int, overruns: int, late_ns: int, step_ns: int, left_out: int = 0
    ) -> None:
        """Take in the ticks that were evaluated at once, and how many were left out."""
        self.ticks += ticks
        self.left_out += left_out
        self.overruns += overruns
        self.worst_late_ns = max(self.worst_late_ns, late_ns)
        self.worst_step_ns = max(self.worst_step_ns, step_ns)

    def read(self) -> tuple[int, int, float, float]:
        """Return what is new: ticks left out, overruns, worst lateness and computing time in ms."""
        found = (
            self.left_out - self._left_out_read,
            self.overruns - self._overruns_read,
            self.worst_late_ns / 1e6,
            self.worst_step_ns / 1e6,
        )
        self._overruns_read, self._left_out_read = self.overruns, self.left_out
        self.worst_late_ns = self.worst_step_ns = 0
        return found
