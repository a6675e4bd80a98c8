"""In which order a recording and /clock are published, so that a monitor sees what replay sees.

A message that a monitor receives counts from the simulated time that is in force, and never from
before the last tick that was evaluated. Where the stamp in the header decides to which tick a
message belongs, it only has to arrive before that tick is evaluated. Where arrival decides (no
`time: stamp`, or a type without a stamp), it has to arrive while the clock says the right tick.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forewarn.recordings import Sample
from forewarn.signals.clock import Grid


class Step(NamedTuple):
    """Publish samples, have them acknowledged, set the clock, and wait.

    Attributes
    ----------
    tick : int or None
        The tick whose verdict is to be waited for; None: until the monitor has seen the clock.
    """

    samples: tuple[Sample, ...]
    clock_ns: int
    tick: int | None


class LockStep:
    """The steps of one pass through a recording; the first one begins the ticks anew.

    Parameters
    ----------
    grid : Grid
        Ticks of the monitor.
    settle_ns : int
        How much later than its tick it evaluates.
    by_arrival : collection of str
        Topics on which arrival counts although stamps do on others; all if `settle_ns` is 0.
    start_ns, end_ns : int
        The span of the recording.
    """

    def __init__(
        self, grid: Grid, settle_ns: int, by_arrival: Iterable[str], start_ns: int, end_ns: int
    ) -> None:
        self.grid = grid
        self.settle_ns = settle_ns
        self.by_arrival = frozenset(by_arrival)
        self.first = grid.tick_at_or_after(start_ns)
        self.last = grid.tick_at_or_after(end_ns)

    def steps(self, samples: Iterable[Sample]) -> Iterator[Step]:
        """Yield the steps of samples in log-time order."""
        yield Step((), self.grid.time_ns(self.first - 1) + 1, None)
        source, held = iter(samples), deque[Sample]()
        waiting = next(source, None)
        moment_ns = self.grid.time_ns(self.first - 1) + 1
        for clock_ns, tick in self._clocks():
            current = self.grid.tick_at_or_after(moment_ns)
            ready = []
            while held and self._own(held[0]) <= current:
                ready.append(held.popleft())
            while waiting is not None and waiting.time_ns <= clock_ns:
                early = waiting.topic in self.by_arrival and self._own(waiting) > current
                (held if early else ready).append(waiting)
                waiting = next(source, None)
            yield Step(tuple(ready), clock_ns, tick)
            moment_ns = clock_ns if tick is None else clock_ns + 1

    def _clocks(self) -> Iterator[tuple[int, int | None]]:
        """Yield where the clock stops, and the tick that is due there."""
        due_ns = self.grid.time_ns(self.first) + self.settle_ns
        tick = self.first
        while self.settle_ns and (clock_ns := self.grid.time_ns(tick) + 1) < due_ns:
            yield clock_ns, None
            tick += 1
        for tick in range(self.first, self.last + 1):
            yield self.grid.time_ns(tick) + self.settle_ns, tick

    def _own(self, sample: Sample) -> int:
        return self.grid.tick_at_or_after(sample.time_ns)
