"""What the log says while something lasts: once, and then ever more rarely."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

AGAIN, LONGEST = 10.0, 600.0
CLOCK_PATIENCE = 5.0
INPUT_PATIENCE = 1.0
THROTTLE = 5.0
KEPT_LINES = 1000
DECIMAL = re.compile(r"\d+\.\d+")


class Reminder:
    """Says that something lasts: after a while, then after 10 s, 20 s, 40 s, up to 10 minutes.

    `patience`: seconds for which it has to last before it is logged at all.
    """

    def __init__(self, say: Callable[[str], object], patience: float = 0.0) -> None:
        self._say, self._patience = say, patience
        self._line, self._due, self._pause = "", math.inf, AGAIN

    def take(self, line: str, now: float) -> None:
        """Take in how things are at `now`, in seconds; an empty line means that nothing lasts."""
        if not line:
            self._due = math.inf
        elif self._due == math.inf:
            self._due, self._pause = now + self._patience, AGAIN
        elif line != self._line:  # another line than the last: it cannot wait for minutes
            self._due, self._pause = min(self._due, now + AGAIN), AGAIN
        self._line = line
        if line and now >= self._due:
            self._say(line)
            self._due = now + self._pause
            self._pause = min(2 * self._pause, LONGEST)


class Reminders:
    """Reminds of what a monitor lacks that is active.

    `elsewhere`: notes about its signals that have been logged already.
    """

    def __init__(self, say: Callable[[str], object], elsewhere: Sequence[str]) -> None:
        self._elsewhere = frozenset(elsewhere)
        self._clock = Reminder(say, CLOCK_PATIENCE)
        self._inputs = Reminder(say, INPUT_PATIENCE)
        self._notes = Reminder(say)

    def take(
        self,
        now: float,
        silent: Sequence[str],
        clocks: Sequence[str] | None,
        notes: Sequence[str],
        *,
        started: bool,
    ) -> None:
        """Take in how things are.

        `clocks`: nodes that publish /clock; None by the system's clock.
        """
        self._inputs.take(without_publishers(silent), now)
        self._clock.take(without_clock(clocks, started=started), now)
        self._notes.take("; ".join(note for note in notes if note not in self._elsewhere), now)


class Throttle:
    """Logs a line unless it logged the same one less than five seconds ago.

    Lines that differ only in decimal numbers are the same. Where two nodes publish the clock, it
    jumps at each of their messages, by a different number of seconds each time.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._logged_at: dict[str, float] = {}

    def take(self, line: str, now: float) -> None:
        """Take in a line at `now`, in seconds."""
        key = DECIMAL.sub("", line)
        if now - self._logged_at.get(key, -math.inf) < THROTTLE:
            return
        if (
            len(self._logged_at) >= KEPT_LINES
        ):  # lines with numbers in them are never the same again
            self._logged_at.clear()
        self._logged_at[key] = now
        self._say(line)


def without_publishers(names: Sequence[str]) -> str:
    """Return the line about topics without a publisher; empty if there are none."""
    if not names:
        return ""
    return f"no node publishes {', '.join(names)}: look for other names with `ros2 topic list`"


def without_clock(publishers: Sequence[str] | None, *, started: bool) -> str:
    """Return the line about simulated time that does not come; empty if it does."""
    if publishers is None or (publishers and started):
        return ""
    if publishers:
        return f"no time has come on /clock yet, which {', '.join(publishers)} publishes: no ticks"
    return (
        "use_sim_time is true, and no node publishes /clock: no ticks (start a simulator or "
        "bag_player_node, or set use_sim_time to false)"
    )
