"""In which order a recording and /clock are published, so that a monitor sees what replay sees.

A message has to be there before the tick is evaluated that is due after its arrival. When it
arrived, to the nanosecond, the player tells beside it (forewarn_msgs/msg/Arrivals).

A reliable Fast DDS writer asks its readers every 3 s whether they have everything, and
`Publisher.wait_for_all_acked` waits for that: lock-step would take 3 s a tick. The period is no
policy of ROS, only of Fast DDS's own profiles, which it reads when the first node is made
(`prompt_acknowledgements`).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from forewarn.monitoring.session_events import Activate, ClockHeard, Start, decode
from forewarn.recordings.interface import Sample
from forewarn.signals.clock import Clock
from forewarn.signals.clock_kinds import Grid, clock_of
from forewarn_ros.process import WAKE


class Rationale(NamedTuple):
    """What the monitor has announced."""

    grid: Clock
    settle_ns: int
    inputs: frozenset[str]


class Announced:
    """What a player needs of all that the monitor tells on its topic of events: when, not what.

    `started`: the tick at which it began, since `forget`.
    `seen_ns`: the clock that it has heard before its first tick; -1 for none, since `forget`.
    """

    def __init__(self) -> None:
        self.grounds: Rationale | None = None
        self.forget()

    def forget(self) -> None:
        """Play again: the monitor has to begin and to hear the clock once more."""
        self.started: int | None = None
        self.seen_ns = -1

    def hear(self, text: str) -> None:
        """Take in an event; raises RecordingError if the text holds no event."""
        event = decode(text)
        if isinstance(event, Activate):
            inputs = frozenset(event.inputs.values())
            self.grounds = Rationale(clock_of(event.rate), event.settle_ns, inputs)
        elif isinstance(event, Start):
            self.started = event.tick
        elif isinstance(event, ClockHeard):
            self.seen_ns = event.time_ns


class Step(NamedTuple):
    """Publish samples, have them acknowledged, set the clock, and wait."""

    samples: tuple[Sample, ...]
    clock_ns: int
    # The tick whose verdict is to be waited for; None: until the monitor has seen the clock
    tick: int | None


class LockStep:
    """The steps of one pass through a recording; the first one restarts the ticks."""

    def __init__(self, grid: Grid, settle_ns: int, start_ns: int, end_ns: int) -> None:
        self.grid = grid
        self.settle_ns = settle_ns
        self.first = grid.tick_at_or_after(start_ns)
        self.last = grid.tick_at_or_after(end_ns)

    def steps(self, samples: Iterable[Sample]) -> Iterator[Step]:
        """Yield the steps of samples in log-time order."""
        yield Step((), self.grid.time_ns(self.first - 1) + 1, None)
        source = iter(samples)
        waiting = next(source, None)
        for clock_ns, tick in self._clocks():
            ready = []
            while waiting is not None and waiting.time_ns <= clock_ns:
                ready.append(waiting)
                waiting = next(source, None)
            yield Step(tuple(ready), clock_ns, tick)

    def _clocks(self) -> Iterator[tuple[int, int | None]]:
        """Yield where the clock stops, and the tick that is due there."""
        due_ns = self.grid.time_ns(self.first) + self.settle_ns
        tick = self.first
        while self.settle_ns and (clock_ns := self.grid.time_ns(tick) + 1) < due_ns:
            yield clock_ns, None
            tick += 1
        for tick in range(self.first, self.last + 1):
            yield self.grid.time_ns(tick) + self.settle_ns, tick


def timeline(
    samples: Iterable[Sample], start_ns: int, end_ns: int, step_ns: int
) -> Iterator[tuple[int, Sample | None]]:
    """Yield samples with their times, and None where /clock is to be published.

    `step_ns`: nanoseconds of the recording from one /clock to the next; 0: none is published.
    """
    clock_ns = start_ns if step_ns else end_ns + 1
    for sample in chain(samples, (None,)):
        until_ns = end_ns if sample is None else sample.time_ns
        while clock_ns <= until_ns:
            yield clock_ns, None
            clock_ns += step_ns
        if sample is not None:
            yield sample.time_ns, sample


class Pace:
    """Holds a course through time at `rate` times real time; 0 is as fast as possible."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._begun = time.monotonic()

    def wait(self, offset: float, serve: Callable[[float], None]) -> None:
        """Wait until `offset` seconds of the recording have passed."""
        if self._rate <= 0:
            return
        while (left := self._begun + offset / self._rate - time.monotonic()) > 0:
            if left < 2e-3:
                time.sleep(left)
            else:
                serve(min(left - 1e-3, WAKE))


VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
PERIOD_NS = 1_000_000
_PROFILE = """\
<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="{namespace}">
  <profiles>
    <{writer} profile_name="forewarn_lock_step" is_default_profile="true">
      <times><{period}><sec>0</sec><nanosec>{nanoseconds}</nanosec></{period}></times>
    </{writer}>
  </profiles>
</dds>
"""


@contextmanager
def prompt_acknowledgements() -> Iterator[None]:
    """Set the profile for nodes made within the block, unless the user has one already."""
    if any(variable in os.environ for variable in VARIABLES):
        yield
        return
    recent = _has_recent_fast_dds()
    variable = VARIABLES[0 if recent else 1]
    with tempfile.TemporaryDirectory(prefix="forewarn-") as folder:
        file = Path(folder) / "fastdds.xml"
        file.write_text(_profile(recent), encoding="utf-8")
        os.environ[variable] = str(file)
        try:
            yield
        finally:
            del os.environ[variable]


def _profile(recent: bool) -> str:
    """Return the profile for Fast DDS 3 (Kilted) or 2 (Humble, Jazzy)."""
    if recent:
        return _PROFILE.format(
            namespace="http://www.eprosima.com",
            writer="data_writer",
            period="heartbeat_period",
            nanoseconds=PERIOD_NS,
        )
    return _PROFILE.format(
        namespace="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles",
        writer="publisher",
        period="heartbeatPeriod",
        nanoseconds=PERIOD_NS,
    )


def _has_recent_fast_dds() -> bool:
    """Tell by the name of the installed package, which changed with version 3."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / "fastdds").is_dir() for prefix in prefixes if prefix)
