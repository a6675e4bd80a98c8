"""Clocks: what a moment of the monitor is, how long durations are, and how both are printed.

A clock is a value. Its moments have whole numbers, and lie on an axis in nanoseconds of which one
unit of duration (a second, a step) is 1e9: so ages, bounds and timeouts are computed alike for all
clocks. What has a memory, namely which arrivals make a moment, is in its `Moments`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from forewarn.config.fields import Rate

NANOSECONDS = 1_000_000_000
SYSTEM_TIME_NS = 946_684_800 * NANOSECONDS
"""The year 2000: what shows a later time follows a calendar."""
SIMULATED_NS = 10 * 365 * 86_400 * NANOSECONDS
"""Ten years: a clock that shows less counts from when something began."""

Payload = bytes | memoryview | Mapping[str, Any]
Accept = Callable[[str, int, Payload], None]
Samples = Iterable[tuple[int, str, Payload]]


def two_times(one_ns: int, other_ns: int) -> bool:
    """Tell whether two moments are of different clocks: of a calendar, and simulated or uptime."""
    return min(one_ns, other_ns) < SIMULATED_NS and max(one_ns, other_ns) > SYSTEM_TIME_NS


class Clock(Protocol):
    """A clock of the monitor.

    `noun`, `unit`: what a moment is called; the unit of durations.
    `hour`: what false alarms are counted in: 3,600 units of duration, in words. An hour, for
    seconds.
    """

    noun: ClassVar[str]
    unit: ClassVar[str]
    hour: ClassVar[str]
    timeout: ClassVar[float]  # greatest age at which a signal counts whose timeout is not given
    timed: ClassVar[bool]  # a recording must have times

    @property
    def rate(self) -> float:
        """Moments in a unit of duration."""

    @property
    def remembered(self) -> Rate:
        """What a model keeps of the clock it was learned by; models of other clocks do not fit."""

    @property
    def period(self) -> float:
        """Seconds between two looks of a live node for what is due."""

    @property
    def regular(self) -> bool:
        """Moments come at equal times, so that one which is missing can be noticed."""

    @property
    def wall_rate(self) -> float:
        """How far a moment's position `wall` moves in a second."""

    def wall(self, moment: int, time_ns: int) -> int:
        """Return where a moment lies in the time that people use: mutes are counted by it."""

    def time_ns(self, tick: int) -> int:
        """Return where a moment lies on the axis."""

    def tick_at_or_after(self, time_ns: int) -> int:
        """Return the first moment at or after a place on the axis."""

    def since(self, now_ns: int, age_ns: int) -> int:
        """Return the time at which a value came that has this age; 0 where that is unknown."""

    def ticks(self, duration: float) -> int:
        """Return the whole moments within a duration, as upper bounds count them."""

    def at_least(self, duration: float) -> int:
        """Return the moments that a duration lasts at the least."""

    def duration(self, moments: float) -> float:
        """Return the duration of so many moments."""

    def say(self, duration: float, digits: str = "g") -> str:
        """Return a duration for people: ``0.3 s``, ``3 steps``."""

    def figure(self, duration: float, digits: str = "g") -> str:
        """Return the number of `say` without its unit."""

    def span(self, duration: float) -> str:
        """Return a length of time for people: ``1 h 02 min``, ``12.4 s``, ``350 steps``."""

    def moments(self, settle_ns: int = 0) -> Moments:
        """Return what turns arrivals into moments of this clock."""


class Moments(Protocol):
    """Where moments come from: the feed, the pipeline, replay and the node ask nothing else."""

    clock: Clock  # whose moments they are
    by_time: bool  # the axis is that of time: `arrival` and `stamp_ns` need not be asked

    def arrival(self, topic: str, time_ns: int, payload: Payload) -> int:
        """Take note of an arrival at `time_ns`; return its place on the axis of the clock."""

    def following(self, time_ns: int) -> int:
        """Return the moment to which what arrives at `time_ns` belongs."""

    def last_due(self, now_ns: int) -> int:
        """Return the newest moment that may be evaluated at `now_ns`."""

    def due_ns(self, moment: int) -> int | None:
        """Return when a moment may be evaluated; None if that is not known yet."""

    def stamp_ns(self, moment: int) -> int:
        """Return the time of a moment."""

    def part(self) -> None:
        """Note that what arrives from now on does not follow from what came before."""

    def expected(self, start_ns: int, end_ns: int, count: int) -> int:
        """Return about how many moments so many messages between two times give."""

    def play(self, samples: Samples, start_ns: int, end_ns: int, accept: Accept) -> Iterator[range]:
        """Have recorded samples accepted and yield moments when they are due, as live.

        Nothing arrives between those of a range.

        Raises RecordingError if the recording cannot be played by this clock.
        """


def horizon_ticks(clock: Clock, horizon: float) -> int | None:
    """Return the whole moments within a horizon; None if it has no end."""
    return None if math.isinf(horizon) else clock.ticks(horizon)


def within(clock: Clock, horizon: float) -> str:
    """Return a horizon for people: ``within 3 s``, or ``ever``."""
    return "ever" if math.isinf(horizon) else f"within {clock.say(horizon)}"
