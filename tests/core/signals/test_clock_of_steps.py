"""Steps as moments: what is one, what belongs to it, and how its durations are said."""

from __future__ import annotations

import math

import pytest

from forewarn.errors import RecordingError
from forewarn.signals.clock import Clock
from forewarn.signals.clock_kinds import Grid, Steps, by_clock, clock_of
from forewarn.signals.feed import Feed
from forewarn.signals.sources import SourceSignal

STEP = 1_000_000_000


def feed(timeout: float = math.inf, clock: Clock | None = None) -> Feed:
    limit = -1 if math.isinf(timeout) else round(timeout * STEP)
    sources = [SourceSignal(name, "", "", None, limit, None) for name in ("a", "b")]
    return Feed(sources, {}, clock or Steps())


def test_each_line_is_a_step_whatever_its_time() -> None:
    found = feed()
    lines = [(5, "", {"a": 1.0}), (5, "", {"b": 2.0}), (9 * STEP, "", {"a": 3.0})]
    snapshots = [found.snapshot(step) for step in found.play(lines, 5, 9 * STEP)]
    assert [s.tick for s in snapshots] == [0, 1, 2]
    assert [s.values for s in snapshots] == [(1.0, None), (1.0, 2.0), (3.0, 2.0)]
    assert [s.time_ns for s in snapshots] == [5, 5, 9 * STEP]


def test_a_value_of_its_own_step_has_age_0_and_grows_a_step_old_with_each() -> None:
    found = feed(timeout=1)
    steps = found.play([(t, "", {"a": 1.0} if t == 0 else {"b": 1.0}) for t in range(3)], 0, 2)
    ages, stale = [], []
    for step in steps:
        snapshot = found.snapshot(step)
        ages.append(found.ages(step)[0])
        stale.append([s.name for s in snapshot.stale])
    assert ages == [0, STEP, 2 * STEP]
    assert stale == [["b"], [], ["a"]]  # b never came; one step is not too old, two are


def test_only_messages_of_the_named_topic_are_steps() -> None:
    moments = Steps("/step").moments()
    samples = [(1, "/odom", b""), (2, "/step", b""), (3, "/odom", b""), (4, "/step", b"")]
    places: list[int] = []

    def accept(topic: str, time_ns: int, payload: bytes) -> None:
        places.append(moments.arrival(topic, time_ns, payload))

    assert list(moments.play(samples, 1, 4, accept)) == [range(1), range(1, 2)]  # type: ignore[arg-type]
    assert places == [0, 0, STEP, STEP]  # what comes before a step belongs to it
    assert [moments.stamp_ns(step) for step in (0, 1)] == [2, 4]
    assert moments.last_due(0) == 1
    assert moments.due_ns(2) is None


def test_a_recording_without_a_step_is_refused() -> None:
    with pytest.raises(RecordingError, match="no message on /step"):
        list(feed(clock=Steps("/step")).play([(1, "/odom", {"a": 1.0})], 1, 1))


@pytest.mark.parametrize(
    ("clock", "duration", "said", "at_most", "at_least"),
    [
        (Grid(10.0), 0.25, "0.25 s", 2, 3),
        (Grid(10.0), 0.3, "0.3 s", 3, 3),
        (Steps(), 3, "3 steps", 3, 3),
        (Steps(), 1, "1 step", 1, 1),
        (Steps(), 2.5, "2.5 steps", 2, 3),  # a mean of several
    ],
)
def test_durations(clock: Clock, duration: float, said: str, at_most: int, at_least: int) -> None:
    assert clock.say(duration) == said
    assert clock.ticks(duration) == at_most
    assert clock.at_least(duration) == at_least


def test_what_a_model_remembers() -> None:
    assert [clock_of(rate).remembered for rate in (10.0, "steps")] == [10.0, "steps"]
    assert [by_clock(10.0), by_clock("steps")] == ["at 10 Hz", "by steps"]
