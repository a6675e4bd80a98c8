"""Which ticks are due, when messages arrived, and what counts as a jump: without ROS."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.signals.grid import Grid
from monitor_node.pacing import Pacer

S = 1_000_000_000
MS = 1_000_000


def make(*, simulated: bool = False, settle_ns: int = 0) -> Pacer:
    pacer = Pacer(Grid(10.0), settle_ns, 5 * S)
    pacer.simulated = simulated
    return pacer


def evaluate(pacer: Pacer) -> list[int]:
    ticks = list(pacer.due())
    for tick in ticks:
        pacer.evaluated(tick)
    return ticks


def test_the_first_tick_is_the_first_at_or_after_the_clock() -> None:
    pacer = make()
    start = pacer.advance(100 * S + 1, 100 * S + 1)
    assert start is not None
    assert (start.tick, start.jump_ns) == (1001, 0)
    assert evaluate(pacer) == []
    pacer.advance(100 * S + 100 * MS, 0)
    assert evaluate(pacer) == [1001]


def test_a_clock_that_stands_on_a_tick_makes_it_due_at_once() -> None:
    pacer = make()
    pacer.advance(100 * S, 0)
    assert evaluate(pacer) == [1000]


def test_late_ticks_are_due_one_after_the_other() -> None:
    pacer = make()
    pacer.advance(100 * S, 0)
    evaluate(pacer)
    assert pacer.advance(100 * S + 350 * MS, 0) is None
    assert evaluate(pacer) == [1001, 1002, 1003]


def test_a_message_counts_from_when_it_was_received() -> None:
    pacer = make()
    pacer.advance(100 * S, 100 * S)
    evaluate(pacer)
    pacer.advance(100 * S + 130 * MS, 100 * S + 130 * MS)
    assert pacer.arrival_ns(100 * S + 99 * MS) == 100 * S + 99 * MS
    assert pacer.arrival_ns(100 * S + 120 * MS) == 100 * S + 120 * MS
    assert pacer.late == 0


def test_what_comes_to_light_after_its_tick_belongs_to_the_next() -> None:
    pacer = make()
    pacer.advance(100 * S, 0)
    evaluate(pacer)
    assert pacer.arrival_ns(100 * S - 1) == 100 * S + 1
    assert pacer.late == 1


def test_without_a_stamp_a_message_counts_for_the_tick_before_which_it_was_found() -> None:
    pacer = make()
    pacer.advance(100 * S, 0)
    evaluate(pacer)
    pacer.advance(100 * S + 103 * MS, 0)
    assert pacer.arrival_ns(0) == 100 * S + 100 * MS


def test_under_simulated_time_a_message_counts_from_the_time_in_force() -> None:
    pacer = make(simulated=True)
    for system, clock in ((10, 50 * S + 1), (20, 50 * S + 40 * MS), (30, 50 * S + 80 * MS)):
        pacer.advance(clock, system)
    assert pacer.arrival_ns(25) == 50 * S + 40 * MS
    assert pacer.arrival_ns(35) == 50 * S + 80 * MS
    assert pacer.arrival_ns(5) == 50 * S + 1
    assert pacer.arrival_ns(0) == 50 * S + 1, "no stamp: as late as can be said, and no later"


def test_lock_step_gives_every_message_the_next_tick() -> None:
    pacer = make(simulated=True)
    pacer.advance(Grid(10.0).time_ns(499) + 1, 10)
    for tick in range(500, 520):
        system = 20 + tick * 10
        arrival = pacer.arrival_ns(system - 5)
        assert arrival is not None
        assert pacer.grid.tick_at_or_after(arrival) == tick
        pacer.advance(pacer.grid.time_ns(tick), system)
        assert evaluate(pacer) == [tick]


@pytest.mark.parametrize("simulated", [True, False])
def test_a_clock_that_goes_back_has_jumped_and_what_was_received_before_is_dropped(
    simulated: bool,
) -> None:
    pacer = make(simulated=simulated)
    pacer.advance(100 * S, 1000)
    evaluate(pacer)
    jump = pacer.advance(40 * S, 2000)
    assert jump is not None
    assert (jump.tick, jump.jump_ns) == (400, -60 * S)
    assert "jumped back by 60.000 s" in jump.reason
    assert pacer.arrival_ns(1999) is None
    assert pacer.arrival_ns(2001) == 40 * S
    assert pacer.jumps == 1
    assert evaluate(pacer) == [400]


def test_the_system_clock_may_be_slewed_within_a_period() -> None:
    pacer = make()
    pacer.advance(100 * S, 0)
    evaluate(pacer)
    pacer.advance(100 * S + 90 * MS, 0)
    assert pacer.advance(100 * S + 80 * MS, 0) is None
    assert pacer.advance(99 * S, 0) is not None


def test_a_large_step_ahead_has_jumped() -> None:
    pacer = make()
    pacer.advance(100 * S, 0)
    assert pacer.advance(105 * S, 0) is None
    evaluate(pacer)
    jump = pacer.advance(110 * S + 1, 7)
    assert jump is not None
    assert "ahead by 5.000 s" in jump.reason
    assert evaluate(pacer) == []


def test_another_clock_starts_anew() -> None:
    pacer = make()
    pacer.advance(100 * S, 0)
    pacer.switch(True)
    assert not pacer.started
    assert pacer.advance(5 * S, 1) is not None


def test_settling_delays_evaluation_and_not_the_tick() -> None:
    pacer = make(settle_ns=30 * MS)
    pacer.advance(100 * S, 0)
    assert evaluate(pacer) == []
    pacer.advance(100 * S + 30 * MS, 0)
    assert evaluate(pacer) == [1000]
    assert pacer.arrival_ns(100 * S + 10 * MS) == 100 * S + 30 * MS + 1


@given(st.lists(st.integers(-3 * S, 3 * S), max_size=60), st.booleans())
def test_ticks_of_one_run_never_repeat_or_skip(steps: list[int], simulated: bool) -> None:
    pacer = make(simulated=simulated)
    now, last = 1000 * S, None
    for step in [0, *steps]:
        now = max(now + step, 1)
        restart = pacer.advance(now, now)
        if restart is not None:
            last = restart.tick - 1
        for tick in pacer.due():
            assert last is not None
            assert tick == last + 1
            assert pacer.due_ns(tick) <= now
            pacer.evaluated(tick)
            last = tick
            arrival = pacer.arrival_ns(now)
            assert arrival is None or pacer.grid.tick_at_or_after(arrival) > tick
