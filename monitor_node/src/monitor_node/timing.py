"""How punctual the ticks are, for /diagnostics."""

from __future__ import annotations


class Timing:
    """How punctual the ticks are, since it was last asked.

    Attributes
    ----------
    ticks, overruns : int
        Ticks evaluated, and those of them that had to wait for an earlier one, in all.
    worst_late_ns, worst_step_ns : int
        Greatest time from a tick to its publication, and that it took itself, since `read`.
    """

    def __init__(self) -> None:
        self.ticks = self.overruns = 0
        self.worst_late_ns = self.worst_step_ns = 0
        self._overruns_read = 0

    def note(self, ticks: int, overruns: int, late_ns: int, step_ns: int) -> None:
        """Take in the ticks that were evaluated at once."""
        self.ticks += ticks
        self.overruns += overruns
        self.worst_late_ns = max(self.worst_late_ns, late_ns)
        self.worst_step_ns = max(self.worst_step_ns, step_ns)

    def read(self) -> tuple[int, float, float]:
        """Return new overruns, worst lateness and worst computing time in ms, and begin anew."""
        found = (
            self.overruns - self._overruns_read,
            self.worst_late_ns / 1e6,
            self.worst_step_ns / 1e6,
        )
        self._overruns_read = self.overruns
        self.worst_late_ns = self.worst_step_ns = 0
        return found
