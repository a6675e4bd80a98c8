"""The gate as a function: bounds hold for every sequence of commands, demands and delays."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.actuators import TwistSpec
from forewarn.monitoring.intervention import NOTHING, Intervention
from monitor_node.motion import REST, Pace, Rates, Velocity
from monitor_node.twist_gate import GateRules, GateState, Stop, idle, measure, receive, step

GREATEST = Pace(6.0, 6.0)
RULES = GateRules(
    GREATEST,
    comfortable=Stop(Rates(0.5, 1.0), 12.0),
    emergency=Stop(Rates(2.5, 5.0), 2.4),
    recovery=Rates(0.4, 0.8),
    command_timeout=0.5,
)
COMFORTABLE, EMERGENCY = Intervention("COMFORTABLE_STOP"), Intervention("EMERGENCY_STOP")
CLOSE = 1e-9

components = st.floats(-3, 3).map(lambda x: 0.0 if abs(x) < 1e-6 else x)
velocities = st.builds(Velocity, *[components] * 6)
demands = st.sampled_from(
    [
        NOTHING,
        Intervention("WARN"),
        COMFORTABLE,
        EMERGENCY,
        Intervention("PULL_OVER"),
        Intervention("REPLAN"),
    ]
) | st.builds(Intervention, st.just("LIMIT_SPEED"), st.floats(0, 2))
sequences = st.lists(
    st.tuples(st.none() | velocities, demands, st.floats(1e-3, 0.4)), min_size=1, max_size=30
)


def drive(
    state: GateState, now: float, seconds: float, demand: Intervention, command: Velocity
) -> list:
    """Step at 50 Hz with a command each time; return all states."""
    found = []
    for k in range(1, round(seconds * 50) + 1):
        time = now + k * 0.02
        state = step(RULES, receive(RULES, state, command, time), demand, time)
        found.append(state)
    return found


def test_without_a_demand_commands_pass_unchanged_and_at_once() -> None:
    state = GateState()
    for k, command in enumerate([Velocity(1.0, yaw=0.5), Velocity(-2.0), Velocity(yaw=3.0), REST]):
        state = step(RULES, receive(RULES, state, command, k * 0.1), NOTHING, k * 0.1)
        assert state.output == command
        assert not state.held


@pytest.mark.parametrize(("demand", "seconds"), [(COMFORTABLE, 2.0), (EMERGENCY, 0.4)])
def test_a_stop_takes_as_long_as_its_deceleration_says_and_keeps_the_curve(
    demand: Intervention, seconds: float
) -> None:
    command = Velocity(1.0, yaw=0.5)  # 1 m/s at 0.5 m/s^2: 2 s
    moving = drive(GateState(), 0.0, 0.2, NOTHING, command)[-1]
    states = drive(moving, 0.2, seconds + 0.2, demand, command)
    moving_for = sum(state.output != REST for state in states) * 0.02
    assert moving_for == pytest.approx(seconds, abs=0.021)
    for state in states:
        assert state.output.yaw == pytest.approx(state.output.x * 0.5)
    assert states[-1].output == REST


def test_a_turn_on_the_spot_is_stopped_as_gently() -> None:
    command = Velocity(yaw=2.0)
    moving = drive(GateState(), 0.0, 0.2, NOTHING, command)[-1]
    turns = [state.output.turn for state in drive(moving, 0.2, 2.2, COMFORTABLE, command)]
    drops = [a - b for a, b in zip([2.0, *turns], turns, strict=False)]
    assert max(drops) <= 1.0 * 0.02 + CLOSE
    assert turns[-1] == 0.0


def test_a_planner_that_brakes_harder_is_not_hindered() -> None:
    moving = drive(GateState(), 0.0, 0.2, NOTHING, Velocity(1.0))[-1]
    assert drive(moving, 0.2, 0.02, COMFORTABLE, REST)[-1].output == REST


def test_a_limit_scales_the_whole_command_and_leaves_slower_ones_alone() -> None:
    command = Velocity(1.0, yaw=0.5)
    moving = drive(GateState(), 0.0, 0.2, NOTHING, command)[-1]
    limited = drive(moving, 0.2, 3.0, Intervention("LIMIT_SPEED", 0.4), command)
    assert limited[-1].output == pytest.approx(Velocity(0.4, yaw=0.2))
    speeds = [1.0, *(state.output.speed for state in limited)]
    assert all(a - b <= 0.5 * 0.02 + CLOSE for a, b in itertools.pairwise(speeds))
    slow = Velocity(0.3, yaw=2.0)
    assert drive(limited[-1], 3.2, 0.1, Intervention("LIMIT_SPEED", 0.4), slow)[-1].output == slow


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
@pytest.mark.parametrize("command", [Velocity(1.0), Velocity(yaw=2.0)], ids=["on", "on the spot"])
def test_a_limit_of_nothing_or_of_no_number_is_a_stop(command: Velocity, limit: float) -> None:
    moving = drive(GateState(), 0.0, 0.2, NOTHING, command)[-1]
    end = drive(moving, 0.2, 2.2, Intervention("LIMIT_SPEED", limit), command)[-1]
    assert end.output == REST


def test_afterwards_the_speed_comes_back_gradually_and_fully() -> None:
    command = Velocity(1.0)
    stopped = drive(GateState(), 0.0, 1.0, COMFORTABLE, command)[-1]
    assert stopped.output == REST
    back = drive(stopped, 1.0, 3.0, NOTHING, command)
    speeds = [state.output.speed for state in back]
    assert all(b - a <= 0.4 * 0.02 + CLOSE for a, b in zip([0.0, *speeds], speeds, strict=False))
    assert back[-1].output == command
    assert not back[-1].held


def test_afterwards_the_curve_is_kept_as_well() -> None:
    command = Velocity(0.2, yaw=2.0)
    stopped = drive(GateState(), 0.0, 4.0, COMFORTABLE, command)[-1]
    back = drive(stopped, 4.0, 3.0, NOTHING, command)
    turns = [state.output.turn for state in back]
    assert all(b - a <= 0.8 * 0.02 + CLOSE for a, b in itertools.pairwise([0.0, *turns]))
    assert all(state.output.yaw == pytest.approx(state.output.x * 10) for state in back)
    assert back[-1].output == command


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_never_gets_through(bad: float) -> None:
    state = step(RULES, receive(RULES, GateState(), Velocity(bad), 0.0), NOTHING, 0.0)
    assert state.output == REST


def test_a_planner_that_falls_silent_does_not_drive_on() -> None:
    state = drive(GateState(), 0.0, 0.2, NOTHING, Velocity(1.0))[-1]
    now = 0.2
    while not idle(RULES, state, NOTHING, now):
        now += 0.02
        state = step(RULES, state, NOTHING, now)
        assert now < 5.0
    assert state.output == REST
    assert now == pytest.approx(0.2 + 0.5 + 2.0, abs=0.06)


def test_a_planner_that_saturates_is_stopped_as_one_that_does_not() -> None:
    """A hundred m/s let 94 through twelve seconds later, and 1e308 gave NaN for ever."""
    for wild in (Velocity(100.0), Velocity(1e308, yaw=-1e308), Velocity(y=-1e300)):
        moving = drive(GateState(), 0.0, 0.2, NOTHING, wild)[-1]
        assert moving.output.speed == pytest.approx(6.0)
        stopped = drive(moving, 0.2, 12.02, COMFORTABLE, wild)
        assert stopped[-1].output == REST
        assert stopped[299].output.speed == pytest.approx(3.0, abs=0.02)
        assert drive(moving, 0.2, 2.42, EMERGENCY, wild)[-1].output == REST


def test_what_is_too_fast_is_scaled_as_a_whole() -> None:
    for command, kept in (
        (Velocity(12.0, yaw=1.0), Velocity(6.0, yaw=0.5)),
        (Velocity(1.0, yaw=60.0), Velocity(0.1, yaw=6.0)),
        (Velocity(3.0, 4.0, 12.0), Velocity(3.0, 4.0, 12.0).scaled(6 / 13)),
        (Velocity(roll=9.0, pitch=12.0), Velocity(roll=3.6, pitch=4.8)),
    ):
        assert receive(RULES, GateState(), command, 0.0).command == pytest.approx(kept)


def test_a_stop_begins_at_the_measured_speed() -> None:
    """A robot that has not gained speed yet must not gain any during the stop."""
    command = Velocity(4.0, yaw=2.0)
    moving = measure(drive(GateState(), 0.0, 0.2, NOTHING, command)[-1], Velocity(1.0), 0.2)
    stopping = drive(moving, 0.2, 2.02, COMFORTABLE, command)
    assert stopping[0].output == pytest.approx(Velocity(0.99, yaw=0.495))
    assert stopping[-1].output == REST
    # Faster than commanded, too old, or no number: it counts from the command.
    for speed, at in ((9.0, 0.2), (1.0, -0.31), (math.nan, 0.2)):
        told = measure(drive(GateState(), 0.0, 0.2, NOTHING, command)[-1], Velocity(speed), at)
        first = drive(told, 0.2, 0.02, COMFORTABLE, command)[0]
        assert first.output.speed == pytest.approx(3.99)


def test_a_deadline_ends_a_stop_that_its_deceleration_would_not() -> None:
    short = dataclasses.replace(RULES, comfortable=Stop(Rates(0.5, 1.0), 1.0))
    command, state = Velocity(5.0), GateState()
    for k in range(1, 200):
        demand, now = COMFORTABLE if k > 50 else NOTHING, k * 0.02
        state = step(short, receive(short, state, command, now), demand, now)
        assert (state.output == REST) == (now - 51 * 0.02 >= 1.0 - CLOSE)


def test_a_milder_stop_does_not_put_off_the_end_of_a_harder_one() -> None:
    command = Velocity(6.0)
    moving = drive(GateState(), 0.0, 0.2, NOTHING, command)[-1]
    hard = drive(moving, 0.2, 0.02, EMERGENCY, command)[-1]
    assert drive(hard, 0.22, 2.42, COMFORTABLE, command)[-1].output == REST


def test_each_stop_has_a_deadline_of_its_own() -> None:
    command = Velocity(6.0)
    moving = drive(GateState(), 0.0, 0.2, NOTHING, command)[-1]
    hard = drive(moving, 0.2, 0.2, EMERGENCY, command)[-1]
    again = drive(hard, 0.4, 4.0, NOTHING, command)[-1]
    assert again.output == command
    assert drive(again, 4.4, 0.02, EMERGENCY, command)[-1].output.speed == pytest.approx(5.95)


extremes = st.floats(-1e308, 1e308) | st.sampled_from([math.nan, math.inf, -math.inf, 1.7e308])


@given(
    st.lists(
        st.tuples(st.none() | st.builds(Velocity, *[extremes] * 6), demands, st.floats(1e-3, 3)),
        min_size=1,
        max_size=40,
    ),
    st.none() | velocities,
)
@settings(max_examples=examples(100), deadline=None)
def test_after_its_deadline_a_stop_has_ended_whatever_comes(
    sequence: list, measured: Velocity | None
) -> None:
    state, now, rest_by = GateState(), 0.0, math.inf
    for command, demand, delay in sequence:
        now += delay
        if command is not None:
            state = receive(RULES, state, command, now)
        if measured is not None:
            state = measure(state, measured, now)
        state = step(RULES, state, demand, now)
        assert state.output.finite
        assert state.output.speed <= GREATEST.speed + CLOSE
        assert state.output.turn <= GREATEST.turn + CLOSE
        if not demand.stops:
            rest_by = math.inf
            continue
        rest_by = min(rest_by, now + RULES.stop(demand).deadline)
        assert state.output == REST or now < rest_by


@given(sequences)
@settings(max_examples=examples(100), deadline=None)
def test_bounds_hold_whatever_comes(sequence: list) -> None:
    state, now = GateState(), 0.0
    for command, demand, delay in sequence:
        now += delay
        elapsed = now - state.time if math.isfinite(state.time) else 0.0
        if command is not None:
            state = receive(RULES, state, command, now)
        before = state.output
        state = step(RULES, state, demand, now)
        output, asked = state.output, state.command
        assert output.finite
        # Never more than is commanded, unless the planner has fallen silent.
        quiet = now - state.received > RULES.command_timeout
        if not quiet:
            assert output.speed <= asked.speed + CLOSE
            assert output.turn <= asked.turn + CLOSE
        if demand.stops:
            rates = RULES.stop(demand).rates
            left = max(0.0, rates.time(before.pace) - elapsed)
            assert rates.time(output.pace) <= left + CLOSE
            assert output.speed <= before.speed + CLOSE
            if output.speed < asked.speed - CLOSE:  # it is the gate that brakes
                assert before.speed - output.speed <= rates.linear * elapsed + CLOSE
        if demand.limits and demand.speed_limit > 0 and not quiet:
            fallen = before.speed - RULES.comfortable.rates.linear * elapsed
            assert output.speed <= max(demand.speed_limit, fallen) + CLOSE


def test_a_measured_speed_counts_for_the_whole_timeout() -> None:
    moving = step(RULES, receive(RULES, GateState(), Velocity(4.0), 0.25), NOTHING, 0.25)
    moving = measure(moving, Velocity(1.0), 0.0)
    assert step(RULES, moving, EMERGENCY, 0.5).output.speed == pytest.approx(1.0 - 2.5 * 0.25)


def recovering() -> GateState:
    """Half a second after a stop: 0.2 m/s straight on, where 1 m/s is commanded."""
    stopped = drive(GateState(), 0.0, 1.0, COMFORTABLE, Velocity(1.0))[-1]
    return drive(stopped, 1.0, 0.5, NOTHING, Velocity(1.0))[-1]


def test_a_sharp_turn_while_the_speed_comes_back_does_not_brake_suddenly() -> None:
    before = recovering()
    assert before.output == pytest.approx(Velocity(0.2))
    now = before.time + 0.02
    after = step(RULES, receive(RULES, before, Velocity(0.5, yaw=6.0), now), NOTHING, now).output
    assert after.speed == pytest.approx(0.2 - 0.5 * 0.02)
    assert after.yaw == pytest.approx(0.8 * (0.5 + 0.02))  # as far from rest as the speed was


def test_a_command_counts_for_the_whole_timeout() -> None:
    command = Velocity(1.0)
    moving = receive(RULES, GateState(), command, 0.0)
    assert step(RULES, moving, NOTHING, 0.5).output == command


def test_a_stop_is_said_to_hold_back() -> None:
    stopping = drive(GateState(), 0.0, 0.1, COMFORTABLE, Velocity(1.0))[-1]
    assert stopping.held is True


def test_after_a_limit_the_speed_comes_back_gradually() -> None:
    command = Velocity(1.0)
    limited = drive(GateState(), 0.0, 0.2, Intervention("LIMIT_SPEED", 0.4), command)[-1]
    assert limited.held is True
    back = drive(limited, 0.2, 0.5, NOTHING, command)
    assert back[-1].output == pytest.approx(Velocity(0.4 + 0.4 * 0.5))


def test_where_a_limit_follows_a_stop_the_speed_comes_back_gradually() -> None:
    stopped = drive(GateState(), 0.0, 1.0, COMFORTABLE, Velocity(1.0))[-1]
    back = drive(stopped, 1.0, 0.5, Intervention("LIMIT_SPEED", 0.8), Velocity(1.0))
    assert back[-1].output == pytest.approx(Velocity(0.4 * 0.5))


def test_two_steps_at_the_same_time_are_one() -> None:
    stopped = drive(GateState(), 0.0, 1.0, COMFORTABLE, REST)[-1]
    assert step(RULES, stopped, COMFORTABLE, stopped.time).output == REST
    first = step(RULES, stopped, NOTHING, stopped.time)
    assert first.output == REST
    assert step(RULES, first, NOTHING, stopped.time) == first
    assert not first.stopped


LIMITS = {"max_speed": 6.0, "max_turn": 2.0}


def test_the_rules_are_those_of_the_monitor_file() -> None:
    spec = TwistSpec(
        input="/in",
        output="/out",
        **LIMITS,
        comfortable_deceleration=0.5,
        comfortable_angular_deceleration=0.1,
        comfortable_deadline=7.0,
        emergency_deceleration=3.0,
        emergency_angular_deceleration=4.0,
        emergency_deadline=1.5,
        acceleration=0.7,
        angular_acceleration=0.9,
        command_timeout=0.3,
    )
    assert GateRules.of(spec) == GateRules(
        Pace(6.0, 2.0),
        comfortable=Stop(Rates(0.5, 0.1), 7.0),
        emergency=Stop(Rates(3.0, 4.0), 1.5),
        recovery=Rates(0.7, 0.9),
        command_timeout=0.3,
    )


def test_without_a_deadline_a_stop_may_take_as_long_as_from_the_greatest_pace() -> None:
    rules = GateRules.of(TwistSpec(input="/in", output="/out", **LIMITS))
    assert rules.comfortable.deadline == pytest.approx(12.0)  # 6 m/s at 0.5 m/s^2
    assert rules.emergency.deadline == pytest.approx(2.4)  # 6 m/s at 2.5 m/s^2
