"""The clock without ROS: what docs/design/clock.md promises, to the nanosecond."""

from __future__ import annotations

import pytest
from builtin_interfaces.msg import Time
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.clock_kinds import Grid
from forewarn_ros.messages import from_time, to_time
from monitor_node.inputs import Input
from monitor_node.pacing import Pacer

S = NANOSECONDS
GRID = Grid(10.0)
PERIOD = S // 10
STEP = 5 * S
START = 1_700_000_000 * S
YEAR_2038 = (1 << 31) * S
LAST = (1 << 63) - 1


def begun(
    now: int = START, *, simulated: bool = False, settle: int = 0, rate: float = 10.0
) -> Pacer:
    pacer = Pacer(Grid(rate), settle, STEP)
    pacer.simulated = simulated
    start = pacer.advance(now, now)
    assert start is not None
    assert start.jump_ns == 0
    return pacer


def run(pacer: Pacer, now: int, system: int | None = None) -> list[int]:
    """Advance without a jump and evaluate what is due."""
    assert pacer.advance(now, now if system is None else system) is None
    due = list(pacer.due())
    for tick in due:
        pacer.evaluated(tick)
    return due


def arrival(pacer: Pacer, received_ns: int, player_ns: int | None = None) -> int | None:
    """Return when a message counts as arrived that was taken before the clock was set back."""
    return pacer.arrival_ns(received_ns, LAST, player_ns)


# Jumps


@pytest.mark.parametrize("simulated", [True, False])
def test_a_step_ahead_of_the_limit_is_caught_up_with_and_one_more_nanosecond_is_a_jump(
    simulated: bool,
) -> None:
    pacer = begun(simulated=simulated)
    first = pacer.first
    assert run(pacer, START + STEP) == list(range(first, first + 51))
    again = pacer.advance(START + 2 * STEP + 1, START + 2 * STEP + 1)
    assert again is not None
    assert again.jump_ns == STEP + 1
    assert again.tick == GRID.tick_at_or_after(START + 2 * STEP + 1)
    assert "jumped ahead by 5.000 s" in again.reason
    assert pacer.jumps == 1


def test_a_process_that_did_not_get_to_run_has_missed_ticks_and_its_clock_has_not_jumped() -> None:
    for simulated in (False, True):
        pacer = begun(simulated=simulated)
        later = START + 60 * S
        assert (pacer.advance(later, later, 60 * S) is not None) == simulated


def test_ticks_between_the_ends_of_a_jump_are_never_evaluated() -> None:
    pacer = begun()
    evaluated = run(pacer, START + S)
    later = START + 1000 * S
    assert pacer.advance(later, later) is not None
    assert list(pacer.due()) == [GRID.tick_at_or_after(later)]
    assert evaluated[-1] == GRID.tick_at_or_before(START + S)


def test_simulated_time_that_goes_back_by_a_nanosecond_has_jumped() -> None:
    pacer = begun(simulated=True)
    run(pacer, START + S, 7)
    again = pacer.advance(START + S - 1, 8)
    assert again is not None
    assert again.jump_ns == -1
    assert again.tick == GRID.tick_at_or_after(START + S - 1)


def test_system_time_that_slews_back_behind_the_last_tick_has_not_jumped() -> None:
    pacer = begun()
    run(pacer, START + S + PERIOD // 2)
    assert run(pacer, START + S + PERIOD // 4) == []
    assert run(pacer, START + S + PERIOD) == [GRID.tick_at_or_before(START + S + PERIOD)]
    assert pacer.jumps == 0


def test_system_time_that_goes_back_over_a_tick_has_jumped_and_ticks_count_from_there() -> None:
    pacer = begun()
    run(pacer, START + S)
    again = pacer.advance(START + S - PERIOD, START + S - PERIOD)
    assert again is not None
    assert again.jump_ns == -PERIOD
    assert again.tick == GRID.tick_at_or_after(START + S - PERIOD)
    assert pacer.last is None


def test_what_was_received_before_a_jump_belongs_nowhere() -> None:
    pacer = begun(simulated=True)
    run(pacer, START + S, 1000)
    assert pacer.advance(START, 2000) is not None
    assert arrival(pacer, 1999) is None
    assert arrival(pacer, 2000) == START


def test_what_had_come_when_the_clock_was_set_back_belongs_nowhere() -> None:
    pacer = begun()
    run(pacer, START + S)
    back = START - 3600 * S
    assert pacer.advance(back, back) is not None
    for received, found in ((START + S + 1, None), (back + 2, back + 2), (back + 3, back + 3)):
        assert pacer.arrival_ns(received, back + 3) == found
        assert pacer.received_ns(received, back + 3) == found


# What was sent again


@given(st.lists(st.integers(20, 29), min_size=1), st.integers(0, 9))
def test_what_was_sent_first_never_counts_as_newer(received: list[int], over: int) -> None:
    topic_input, taken_ns = Input("/speed", "", None, (None, None)), max(received)
    found = [topic_input.in_turn(time_ns, taken_ns) for time_ns in received]
    assert found == [max(received[: count + 1]) for count in range(len(received))]
    # Whatever is stamped ahead of the clock came before it was set back.
    assert topic_input.in_turn(taken_ns + 1, taken_ns) == taken_ns + 1
    back_ns = min(received) - 1
    assert topic_input.in_turn(back_ns - over, back_ns) == back_ns - over


# Arrivals under simulated time


def test_a_player_tells_arrivals_between_the_last_tick_and_the_clock() -> None:
    pacer = begun(simulated=True)
    run(pacer, START + PERIOD, 1000)
    assert pacer.advance(START + 2 * PERIOD, 2000) is None
    for told in (START + PERIOD + 1, START + PERIOD + 17, START + 2 * PERIOD):
        assert arrival(pacer, 1500, told) == told
    assert pacer.untimely == 0
    for told in (START + PERIOD, START + 2 * PERIOD + 1, 0, -5):
        assert arrival(pacer, 1500, told) == arrival(pacer, 1500)
    assert pacer.untimely == 4


def test_by_the_system_s_clock_nobody_tells_arrivals() -> None:
    pacer = begun()
    assert pacer.advance(START + PERIOD // 2, START + PERIOD // 2) is None
    assert arrival(pacer, START + 7, START + 3) == START + 7
    assert pacer.untimely == 0


@given(
    st.integers(PERIOD // 10, 3 * PERIOD),
    st.lists(st.integers(1, 10 * PERIOD), min_size=1, max_size=30).map(sorted),
)
def test_without_being_told_no_message_counts_later_than_it_arrived(
    period: int, arrivals: list[int]
) -> None:
    """So no age comes out too small: the true age is exceeded by less than a period of /clock."""
    pacer = begun(simulated=True)
    waiting, clock = list(arrivals), 0
    while waiting:
        clock += period
        # Here the clock of the system runs with that of the simulation.
        assert pacer.advance(START + clock, START + clock) is None
        due = list(pacer.due())
        if due:
            while waiting and waiting[0] < clock:
                true_ns = START + waiting.pop(0)
                found = arrival(pacer, true_ns)
                assert found is not None
                assert true_ns - period < found <= true_ns + 1
        for tick in due:
            pacer.evaluated(tick)


# Pauses


@given(st.integers(1, 10**12))
def test_a_clock_that_stands_still_evaluates_nothing_however_long(pause: int) -> None:
    pacer = begun(simulated=True)
    run(pacer, START + S, 1000)
    assert run(pacer, START + S, 1000 + pause) == []
    assert run(pacer, START + S + PERIOD, 1001 + pause) == [pacer.first + 11]
    assert pacer.jumps == 0


def test_messages_during_a_pause_count_at_the_time_that_stands() -> None:
    pacer = begun(simulated=True)
    run(pacer, START + S, 1000)
    tick_after = GRID.time_ns(GRID.tick_at_or_before(START + S)) + 1
    assert arrival(pacer, 50_000) == max(tick_after, START + S)


def test_nothing_begins_before_the_clock_speaks_and_a_switch_begins_anew() -> None:
    pacer = Pacer(GRID, 0, STEP)
    assert not pacer.started
    begun_at = pacer.advance(0, 5)
    assert begun_at is not None
    assert (begun_at.tick, begun_at.jump_ns) == (0, 0)
    pacer.switch(True)
    assert not pacer.started
    again = pacer.advance(START, 6)
    assert again is not None
    assert again.jump_ns == 0
    assert pacer.jumps == 0


# Large times


@pytest.mark.parametrize("now", [YEAR_2038 - S, YEAR_2038, (1 << 32) * S - S, LAST - 20 * S])
@pytest.mark.parametrize("rate", [0.1, 3.0, 10.0, 29.97, 1000.0])
def test_ticks_follow_each_other_in_2038_in_2106_and_at_the_end_of_64_bits(
    now: int, rate: float
) -> None:
    pacer = begun(now, rate=rate, settle=1_000_000)
    first, grid = pacer.first, Grid(rate)
    found: list[int] = []
    for step in range(1, 12):
        found += run(pacer, now + step * S // 2)
    assert found == list(range(first, first + len(found)))
    assert first + len(found) == grid.tick_at_or_before(now + 11 * S // 2 - 1_000_000) + 1
    assert pacer.jumps == 0


def test_a_stamp_holds_times_until_2038() -> None:
    last = YEAR_2038 - 1
    stamp = to_time(last)
    assert (stamp.sec, stamp.nanosec) == ((1 << 31) - 1, S - 1)
    assert from_time(stamp) == last


def test_later_stamps_wrap_as_those_of_all_of_ros_do() -> None:
    for seconds, wrapped in ((1 << 31, -(1 << 31)), ((1 << 32) - 1, -1), (1 << 32, 0)):
        sent = serialize_message(to_time(seconds * S + 7))
        assert from_time(deserialize_message(sent, Time)) == wrapped * S + 7


@given(
    st.lists(
        st.one_of(st.integers(0, 2 * S), st.integers(-20 * S, 20 * S)), min_size=1, max_size=30
    ),
    st.booleans(),
)
def test_between_two_starts_no_tick_is_left_out_or_comes_twice(
    steps: list[int], simulated: bool
) -> None:
    pacer = begun(simulated=simulated)
    now, expected = START, pacer.first
    for number, step in enumerate(steps, 1):
        now += step
        restart = pacer.advance(now, START + number)
        if restart is not None:
            expected = restart.tick
            assert restart.tick == GRID.tick_at_or_after(now)
        for tick in pacer.due():
            assert tick == expected
            assert GRID.time_ns(tick) <= now
            pacer.evaluated(tick)
            expected += 1
