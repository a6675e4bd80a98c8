"""The kinds of clock: ticks on a grid of time, and steps, each of which is a message of one topic.

Ticks come whether or not anything arrives, a step whenever its message comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from forewarn.errors import RecordingError
from forewarn.signals.clock import NANOSECONDS, Accept, Clock, Payload, Samples, two_times

if TYPE_CHECKING:
    from forewarn.config.fields import Rate


def clock_of(rate: Rate, topic: str | None = None) -> Clock:
    """Return the clock of a model or a monitor file: ticks at a rate, or steps of a topic."""
    return Steps(topic) if rate == "steps" else Grid(rate)


def by_clock(rate: Rate) -> str:
    """Return how a model or a monitor file counts, for people: ``at 10 Hz``, ``by steps``."""
    return "by steps" if rate == "steps" else f"at {rate:g} Hz"


LONGEST_GAP_NS = 30 * 24 * 3600 * NANOSECONDS


@dataclass(frozen=True)
class Grid:
    """Ticks: tick k lies at ``floor(k * 1e9 / rate)`` nanoseconds; exact for every rate."""

    rate: float  # ticks per second

    noun: ClassVar[str] = "tick"
    unit: ClassVar[str] = "s"
    hour: ClassVar[str] = "an hour"
    timeout: ClassVar[float] = 1.0
    timed: ClassVar[bool] = True
    regular: ClassVar[bool] = True

    def __post_init__(self) -> None:
        # The decimal a user wrote (0.1), not its nearest binary fraction.
        ratio = Fraction(repr(self.rate))
        object.__setattr__(self, "_numerator", NANOSECONDS * ratio.denominator)
        object.__setattr__(self, "_denominator", ratio.numerator)

    _numerator: int = 0
    _denominator: int = 1

    @property
    def remembered(self) -> Rate:
        """Return the rate."""
        return self.rate

    @property
    def period(self) -> float:
        """Return the seconds from tick to tick."""
        return 1.0 / self.rate

    @property
    def wall_rate(self) -> float:
        """Return the rate: the number of a tick is a time."""
        return self.rate

    def wall(self, moment: int, time_ns: int) -> int:
        """Return the number of the tick."""
        del time_ns
        return moment

    def time_ns(self, tick: int) -> int:
        """Return the nanosecond at which `tick` lies."""
        return tick * self._numerator // self._denominator

    def tick_at_or_after(self, time_ns: int) -> int:
        """Return the first tick at or after a moment: the one a sample belongs to."""
        # time(k) >= t  <=>  k * n >= t * d, because t is an integer
        return -(-time_ns * self._denominator // self._numerator)

    def tick_at_or_before(self, time_ns: int) -> int:
        """Return the last tick at or before a moment: the newest one that is due."""
        # time(k) <= t  <=>  k * n < (t + 1) * d
        return ((time_ns + 1) * self._denominator - 1) // self._numerator

    def since(self, now_ns: int, age_ns: int) -> int:
        """Return the difference."""
        return now_ns - age_ns

    def ticks(self, duration: float) -> int:
        """Return the whole ticks within a span, as upper bounds of formulas count them."""
        return math.floor(duration * self.rate + 1e-9)

    def at_least(self, duration: float) -> int:
        """Return the ticks that a span lasts at the least."""
        return math.ceil(duration * self.rate - 1e-9)

    def duration(self, moments: float) -> float:
        """Return the seconds that so many ticks last."""
        return moments / self.rate

    def say(self, duration: float, digits: str = "g") -> str:
        """Return seconds for people."""
        return f"{duration:{digits}} s"

    def figure(self, duration: float, digits: str = "g") -> str:
        """Return seconds without their unit."""
        return f"{duration:{digits}}"

    def span(self, duration: float) -> str:
        """Return seconds for people, long ones in minutes and hours."""
        if duration < 60:
            return f"{duration:.1f} s"
        minutes, rest = divmod(round(duration), 60)
        if minutes < 60:
            return f"{minutes} min {rest:02d} s"
        return f"{minutes // 60} h {minutes % 60:02d} min"

    def moments(self, settle_ns: int = 0) -> GridMoments:
        """Return the ticks of this grid, each evaluated `settle_ns` late."""
        return GridMoments(self, settle_ns)


class GridMoments:
    """The ticks of a grid; see `Moments`. It needs no memory: the time says it all."""

    by_time = True

    def __init__(self, clock: Grid, settle_ns: int = 0) -> None:
        self.clock: Clock = clock
        self._grid = clock
        self._settle_ns = settle_ns
        self.following = clock.tick_at_or_after
        self.stamp_ns = clock.time_ns

    def arrival(self, topic: str, time_ns: int, payload: Payload) -> int:
        """Return the time itself."""
        del topic, payload
        return time_ns

    def last_due(self, now_ns: int) -> int:
        """Return the newest tick that may be evaluated."""
        return self._grid.tick_at_or_before(now_ns - self._settle_ns)

    def due_ns(self, moment: int) -> int:
        """Return the time of the tick, and what it has to settle."""
        return self._grid.time_ns(moment) + self._settle_ns

    def part(self) -> None:
        """Do nothing: time has passed, and what is old by it is unknown."""

    def expected(self, start_ns: int, end_ns: int, count: int) -> int:
        """Return how many ticks lie between."""
        del count
        return max(self.following(end_ns) - self.following(start_ns), 1)

    def play(self, samples: Samples, start_ns: int, end_ns: int, accept: Accept) -> Iterator[range]:
        """Yield the ticks from the first at or after `start_ns` to that at or after `end_ns`.

        Raises RecordingError if nothing comes for so long that a time must be wrong.
        """
        tick = self.following(start_ns)
        due = self.due_ns(tick)
        for time_ns, topic, payload in samples:
            if due < time_ns:
                _check_gap(due, time_ns)
                passed, tick = tick, self.following(time_ns - self._settle_ns)
                yield range(passed, tick)
                due = self.due_ns(tick)
            accept(topic, time_ns, payload)
        _check_gap(due, end_ns)
        yield range(tick, self.following(end_ns) + 1)


def _check_gap(due_ns: int, next_ns: int) -> None:
    """Refuse a gap whose ticks would keep a machine busy for hours, with nothing to see in them."""
    if next_ns - due_ns > LONGEST_GAP_NS:
        if two_times(due_ns, next_ns):
            raise RecordingError(
                f"its times are of two clocks: up to {due_ns / NANOSECONDS:.0f} s simulated time "
                f"or time since a start, from {next_ns / NANOSECONDS:.0f} s on system time",
                accepted="gaps of up to 30 days, or a part with one clock: --from and --to",
            )
        days = (next_ns - due_ns) / (24 * 3600 * NANOSECONDS)
        raise RecordingError(
            f"nothing was recorded for {days:,.0f} days up to {next_ns / NANOSECONDS:.9f} s: "
            "a time is damaged, or a clock was set in between",
            accepted="gaps of up to 30 days",
        )


WAKE = 0.02
"""Seconds between two looks of a node for messages, where the clock itself says nothing of time."""


@dataclass(frozen=True)
class Steps:
    """Steps: each message of one topic is one, whenever it comes; durations are in steps.

    `topic`: whose messages are steps; None for what supplies signals by name: a line of a trace.
    """

    topic: str | None = None

    noun: ClassVar[str] = "step"
    unit: ClassVar[str] = "steps"
    hour: ClassVar[str] = "in 3,600 steps"
    timeout: ClassVar[float] = math.inf
    timed: ClassVar[bool] = False
    regular: ClassVar[bool] = False
    rate: ClassVar[float] = 1.0
    remembered: ClassVar[Rate] = "steps"
    period: ClassVar[float] = WAKE
    wall_rate: ClassVar[float] = float(NANOSECONDS)

    def wall(self, moment: int, time_ns: int) -> int:
        """Return the time of the step: its number says nothing of time."""
        del moment
        return time_ns

    def time_ns(self, tick: int) -> int:
        """Return the place of a step on the axis of steps."""
        return tick * NANOSECONDS

    def tick_at_or_after(self, time_ns: int) -> int:
        """Return the first step at or after a place on the axis of steps."""
        return -(-time_ns // NANOSECONDS)

    def since(self, now_ns: int, age_ns: int) -> int:
        """Return the time of the step for values that came with it, and 0 for others."""
        return 0 if age_ns else now_ns

    def ticks(self, duration: float) -> int:
        """Return a number of steps, rounded down."""
        return math.floor(duration + 1e-9)

    def at_least(self, duration: float) -> int:
        """Return a number of steps, rounded up."""
        return math.ceil(duration - 1e-9)

    def duration(self, moments: float) -> float:
        """Return the steps themselves."""
        return float(moments)

    def say(self, duration: float, digits: str = "g") -> str:
        """Return steps for people."""
        text = self.figure(duration, digits)
        return f"{text} step" if text == "1" else f"{text} steps"

    def figure(self, duration: float, digits: str = "g") -> str:
        """Return a number of steps; one that is not whole, a mean, has one digit."""
        del digits
        return f"{duration:g}" if duration == round(duration) else f"{duration:.1f}"

    def span(self, duration: float) -> str:
        """Return a number of steps for people."""
        return f"{round(duration):,} step{'' if round(duration) == 1 else 's'}"

    def moments(self, settle_ns: int = 0) -> StepMoments:
        """Return a count of steps."""
        del settle_ns
        return StepMoments(self)


class StepMoments:
    """Counts the messages that are steps, from 0; see `Moments`.

    What arrives before a step belongs to it. Numbers go on rising after a reset.
    """

    by_time = False

    def __init__(self, clock: Steps) -> None:
        self.clock: Clock = clock
        self._topic = clock.topic
        self._count = 0
        self._stamps: dict[int, int] = {}
        self._parted = -1

    def arrival(self, topic: str, time_ns: int, payload: Payload) -> int:
        """Count the arrival if it is a step."""
        step = self._count
        by_name = isinstance(payload, Mapping)
        if by_name if self._topic is None else topic == self._topic:
            self._stamps[step] = time_ns
            self._count += 1
        return step * NANOSECONDS

    def following(self, time_ns: int) -> int:
        """Return the next step, whenever it comes."""
        del time_ns
        return self._count

    def last_due(self, now_ns: int) -> int:
        """Return the newest step that has come."""
        del now_ns
        return self._count - 1

    def due_ns(self, moment: int) -> int | None:
        """Return when a step came."""
        return self._stamps.get(moment)

    def stamp_ns(self, moment: int) -> int:
        """Return when a step came; those long before it are forgotten."""
        while (oldest := next(iter(self._stamps), moment)) < moment - 1:
            del self._stamps[oldest]
        return self._stamps.get(moment, 0)

    def part(self) -> None:
        """Leave a step out, so that the one before and the one after are no neighbours."""
        if self._count and self._parted != self._count - 1:
            self._parted = self._count
            self._count += 1

    def expected(self, start_ns: int, end_ns: int, count: int) -> int:
        """Return the number of messages, of which no more can be steps."""
        del start_ns, end_ns
        return max(count, 1)

    def play(self, samples: Samples, start_ns: int, end_ns: int, accept: Accept) -> Iterator[range]:
        """Yield a step for each sample that is one.

        Raises RecordingError if none is.
        """
        del start_ns, end_ns
        first = done = self._count
        for time_ns, topic, payload in samples:
            accept(topic, time_ns, payload)
            while done < self._count:
                if done != self._parted:
                    yield range(done, done + 1)
                done += 1
        if done == first:
            what = "line with signals by name" if self._topic is None else "message"
            where = "" if self._topic is None else f" on {self._topic}"
            raise RecordingError(
                f"holds no step: no {what}{where}",
                accepted="a trace, or `step:` in the monitor file names a topic of the recording",
            )


LONG_GAP_NS = 600 * NANOSECONDS
"""The shortest time without any message that is reported."""


def telling_gaps(samples: Samples, notes: list[str]) -> Iterator[tuple[int, str, Payload]]:
    """Yield the samples, and note at their end how long nothing arrived, if it was long."""
    newest: int | None = None
    gaps = []
    for sample in samples:
        if newest is not None and sample[0] - newest >= LONG_GAP_NS:
            gaps.append(sample[0] - newest)
        newest = sample[0] if newest is None else max(newest, sample[0])
        yield sample
    if gaps:
        more = f" at the longest, in {len(gaps)} gaps" if len(gaps) > 1 else ""
        notes.append(
            f"nothing arrives for {max(gaps) / NANOSECONDS:,.0f} s{more}: the ticks in "
            "between are unknown; cut the recording where it pauses"
        )
