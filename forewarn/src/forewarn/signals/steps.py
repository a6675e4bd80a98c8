"""Steps: each message of one topic is a moment, whenever it comes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from forewarn.errors import RecordingError
from forewarn.signals.clock import NANOSECONDS, Accept, Clock, Payload, Samples

if TYPE_CHECKING:
    from forewarn.config.fields import Rate

WAKE = 0.02
"""Seconds between two looks of a node for messages, where the clock itself says nothing of time."""


@dataclass(frozen=True)
class Steps:
    """Steps: each message of one topic is one, whenever it comes; durations are in steps.

    Attributes
    ----------
    topic : str or None
        Whose messages are steps; None for what supplies signals by name: a line of a trace.
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

        Raises
        ------
        RecordingError
            If none is.
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
