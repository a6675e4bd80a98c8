"""The plan of the lock-step player, held against the pacing of the node and against replay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forewarn.recordings.interface import Sample
from forewarn.signals.clock_kinds import Grid
from monitor_node.lockstep import LockStep, timeline
from monitor_node.pacing import Pacer

START = 1_700_000_000_000_000_000
STAMPED, PLAIN = "/stamped", "/plain"
PERIOD = 100_000_000


def received(plan: LockStep, samples: list[Sample]) -> list[tuple[Sample, int, int]]:
    """Return when each sample counts as arrived in a node that is told, and at which tick."""
    pacer = Pacer(plan.grid, plan.settle_ns, 10**12)
    pacer.simulated = True
    system_ns, found = 1, []
    waiting: list[tuple[Sample, int]] = []
    for step in plan.steps(samples):
        waiting += [(sample, system_ns) for sample in step.samples]
        system_ns += 10
        restart = pacer.advance(step.clock_ns, system_ns)
        assert (restart is not None) == (system_ns == 11), "ticks begin once"
        system_ns += 10
        due = list(pacer.due())
        assert due == ([] if step.tick is None else [step.tick])
        for tick in due:  # the node takes messages when a tick is due
            for sample, received_ns in waiting:
                arrival = pacer.arrival_ns(received_ns, system_ns, sample.time_ns)
                assert arrival is not None
                found.append((sample, arrival, tick))
            waiting.clear()
            pacer.evaluated(tick)
    assert not waiting
    assert not pacer.untimely
    return found


@given(
    st.sampled_from([10.0, 7.0, 30.0, 2.5]),
    st.sampled_from([0, 1, 30_000_000, PERIOD, 150_000_000, 470_000_000]),
    st.lists(st.tuples(st.integers(0, 3 * 10**9), st.booleans()), min_size=1, max_size=60),
)
def test_every_message_counts_at_the_moment_and_for_the_tick_that_it_has_in_replay(
    rate: float, settle_ns: int, drawn: list[tuple[int, bool]]
) -> None:
    grid = Grid(rate)
    samples = [
        Sample(START + offset, STAMPED if stamped and settle_ns else PLAIN, b"")
        for offset, stamped in sorted(drawn)
    ]
    plan = LockStep(grid, settle_ns, samples[0].time_ns, samples[-1].time_ns)
    found = received(plan, samples)
    reachable = [s for s in samples if grid.tick_at_or_after(s.time_ns) <= plan.last]
    published = [id(sample) for sample, _, _ in found]
    assert len(set(published)) == len(published)
    assert {id(sample) for sample in reachable} <= set(published)
    for sample, arrival, tick in found:
        assert arrival == sample.time_ns
        assert tick == max(grid.tick_at_or_after(arrival - settle_ns), plan.first)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40))
def test_messages_of_a_topic_keep_their_order(offsets: list[int]) -> None:
    samples = [Sample(START + offset, PLAIN, b"") for offset in sorted(offsets)]
    plan = LockStep(Grid(10.0), 250_000_000, samples[0].time_ns, samples[-1].time_ns)
    published = [sample for step in plan.steps(samples) for sample in step.samples]
    assert published == samples[: len(published)]


def test_without_settling_each_tick_has_its_messages_before_its_clock() -> None:
    offsets = [0, 50, 100, 101, 250]
    samples = [Sample(START + ms * 1_000_000, PLAIN, b"") for ms in offsets]
    plan = LockStep(Grid(10.0), 0, START, samples[-1].time_ns)
    steps = [(len(step.samples), step.clock_ns - START, step.tick) for step in plan.steps(samples)]
    first = START // PERIOD
    assert steps == [
        (0, -PERIOD + 1, None),
        (1, 0, first),
        (2, PERIOD, first + 1),
        (1, 2 * PERIOD, first + 2),
        (1, 3 * PERIOD, first + 3),
    ]


def test_by_the_clock_time_is_told_up_to_the_end_and_before_the_samples_of_a_moment() -> None:
    samples = [Sample(START + time_ns, PLAIN, b"") for time_ns in (5, 20, 20)]
    told = [
        (time_ns - START, sample is None)
        for time_ns, sample in timeline(samples, START, START + 30, 10)
    ]
    clock = [(0, True), (10, True), (20, True), (30, True)]
    assert [entry for entry in told if entry[1]] == clock
    assert told == [clock[0], (5, False), *clock[1:3], (20, False), (20, False), clock[3]]
    assert not any(sample is None for _, sample in timeline(samples, START, START + 30, 0))
