"""What the values of proposed signals are like in recordings, tick by tick."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.init.relative import Candidate
from forewarn.errors import RecordingError, located
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.recordings.interface import Recording, Sample
from forewarn.recordings.traces import JsonTrace
from forewarn.signals.clock import NANOSECONDS, Clock
from forewarn.signals.feed import Feed
from forewarn.signals.sources import SourceSignal

NAN = math.nan
NO_RHYTHM = (NAN, NAN)


class Statistics(NamedTuple):
    """What the values of a signal are like, over the ticks at which it had one.

    Attributes
    ----------
    known : float
        Share of the ticks with a value.
    low, p10, median, p90, high : float
        Quantiles of the finite values.
    texts : tuple of str
        The most frequent texts of a text signal.
    is_array : bool
        Values are arrays; there are no quantiles.
    """

    known: float
    low: float
    p10: float
    median: float
    p90: float
    high: float
    texts: tuple[str, ...] = ()
    is_array: bool = False


class Scan(NamedTuple):
    """What reading recordings once has shown.

    Attributes
    ----------
    values : dict of int to list
        Of each candidate at every tick; None where it had none.
    steps : dict of str to list of float
        Seconds between the messages of each topic.
    seconds : float
        How much of the recordings was read.
    """

    values: dict[int, list[Any]]
    ticks: int
    steps: dict[str, list[float]]
    seconds: float


def scan_all(
    recordings: Sequence[Recording],
    candidates: Sequence[Candidate],
    clock: Clock,
    limit: float,
    progress: Callable[[float, float], None],
) -> Scan:
    """Read recordings for `limit` seconds together, each for an equal share of what is left."""
    values: dict[int, list[Any]] = {i: [] for i in range(len(candidates))}
    steps: dict[str, list[float]] = defaultdict(list)
    ticks, seconds = 0, 0.0
    total = min(limit, sum(recording.duration for recording in recordings))
    for left, recording in zip(range(len(recordings), 0, -1), recordings, strict=True):
        before = seconds

        def tell(passed: float, _: float, before: float = before) -> None:
            progress(before + passed, total)

        part = _scan(recording, candidates, clock, (limit - seconds) / left, tell)
        for i, found in part.values.items():
            values[i] += found
        for topic, times in part.steps.items():
            steps[topic] += times
        ticks, seconds = ticks + part.ticks, seconds + part.seconds
    return Scan(values, ticks, steps, seconds)


def _scan(
    recording: Recording,
    candidates: Sequence[Candidate],
    clock: Clock,
    limit: float,
    progress: Callable[[float, float], None],
) -> Scan:
    traced = isinstance(recording, JsonTrace)
    received = [
        i
        for i, candidate in enumerate(candidates)
        if candidate.topic or not candidate.proposal.value
    ]
    sources = [
        SourceSignal(
            candidates[i].proposal.name if traced else str(i),
            candidates[i].topic,
            candidates[i].msgtype,
            None if traced else parse_expression(candidates[i].proposal.value),
            -1,
            None,
        )
        for i in received
    ]
    topics = {candidate.topic: candidate.msgtype for candidate in candidates}
    types = {
        topic: info.message_type
        for topic, info in recording.topics.items()
        if info.message_type is not None and topics.get(topic) == info.msgtype
    }
    feed = Feed(sources, types, clock)
    total = min(recording.duration, limit)
    keep = _Keeper(candidates, received)
    arrivals: dict[str, list[int]] = defaultdict(list)

    def within() -> Iterator[Sample]:
        for sample in recording.read(types.keys() if not traced else None):
            passed = (sample.time_ns - recording.start_ns) / NANOSECONDS
            if passed > limit:
                break
            arrivals[sample.topic].append(sample.time_ns)
            yield sample
            progress(passed, total)

    ticks = 0
    end_ns = recording.start_ns + round(total * NANOSECONDS)
    with located(RecordingError, file=recording.path):
        for tick in feed.play(within(), recording.start_ns, end_ns):
            keep(feed.snapshot(tick).values)
            ticks += 1
    steps = {
        topic: (np.diff(np.array(times, dtype=np.int64)) / NANOSECONDS).tolist()
        for topic, times in arrivals.items()
    }
    return Scan(keep.values, ticks, steps, total)


class _Keeper:
    """Keeps the values of all signals, tick by tick; derived ones are computed."""

    def __init__(self, candidates: Sequence[Candidate], received: Sequence[int]) -> None:
        self.values: dict[int, list[Any]] = {i: [] for i in range(len(candidates))}
        self._received = received
        names = [candidates[i].proposal.name for i in received]
        self._derived = [
            (i, compile_expression(parse_expression(candidate.proposal.value), names))
            for i, candidate in enumerate(candidates)
            if i not in received
        ]

    def __call__(self, snapshot: Sequence[Any]) -> None:
        """Take in the received values of one tick; None is unknown."""
        for i, value in zip(self._received, snapshot, strict=True):
            self.values[i].append(value)
        for i, function in self._derived:
            value = function([NAN if value is None else value for value in snapshot])
            known = not isinstance(value, Unknown) and value == value
            self.values[i].append(value if known else None)


def rhythm(steps: Sequence[float]) -> tuple[float, float]:
    """Return the median and the greatest time between messages; NaN for a single message."""
    return (float(np.median(steps)), max(steps)) if steps else NO_RHYTHM


def numbers_of(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return the value at each tick, NaN where it was no number."""
    return np.array(
        [v if isinstance(v, (bool, int, float)) else NAN for v in values], dtype=np.float64
    )


def statistics_of(values: Sequence[Any], ticks: int) -> Statistics | None:
    """Return what values are like; None if there are none."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    known = len(values) / max(ticks, 1)
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        ordered = sorted(set(texts), key=lambda text: (-texts.count(text), text))[:6]
        return Statistics(known, NAN, NAN, NAN, NAN, NAN, texts=tuple(ordered))
    numbers = numbers_of(values)
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        is_array = hasattr(values[0], "__len__")
        return Statistics(known, NAN, NAN, NAN, NAN, NAN, is_array=is_array)
    low, p10, median, p90, high = np.quantile(numbers, (0, 0.1, 0.5, 0.9, 1)).tolist()
    return Statistics(known, low, p10, median, p90, high)
