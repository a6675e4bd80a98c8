"""The way out of a stop: whatever comes in whatever order, the output is zero or within limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.actuators import TwistSpec, Ways
from forewarn.monitoring.intervention import NOTHING, Intervention
from monitor_node.escape import NEGLIGIBLE, STANDS, Account, account_of
from monitor_node.motion import REST, Pace, Velocity
from monitor_node.statements import Statement
from monitor_node.twist_gate import GateRules, GateState, measure, receive
from monitor_node.twist_gate import step as gate_step
from monitor_node.watchdog import Watchdog

PERIOD = 0.05
WAYS = {"reverse": {"when": "behind > 0.5", "speed": 0.1}, "turn": {"when": "true", "speed": 0.3}}
SECTION = {**WAYS, "distance": 0.3, "time": 4.0}
SPEC = TwistSpec(input="/in", output="/out", max_speed=2.0, max_turn=2.0, rate=20.0, escape=SECTION)
RULES = GateRules.of(SPEC)
assert RULES.escape is not None
LONGEST, RENEWED = RULES.escape.longest, RULES.escape.renewed_after
PLAIN = replace(RULES, escape=None)
STOP, BACK, TURN = Intervention("EMERGENCY_STOP", id=1), Velocity(-0.5), Velocity(yaw=-1.0)
CLOSE = 1e-9
BOTH = Ways(reverse=True, turn=True)


def run(
    state: GateState,
    now: float,
    seconds: float,
    command: Velocity,
    demand: Intervention = STOP,
    *,
    clear: Ways = BOTH,
    rules: GateRules = RULES,
) -> list[GateState]:
    """Step with a command each time; return all states."""
    found = []
    for k in range(1, round(seconds / PERIOD) + 1):
        time = now + k * PERIOD
        state = gate_step(rules, receive(rules, state, command, time), demand, time, clear)
        found.append(state)
    return found


def stopped(rules: GateRules = RULES) -> GateState:
    """Return a robot that drove on at 1 m/s and has stood for a second: it is 3.0."""
    moving = run(GateState(), -RENEWED, RENEWED + 1.0, Velocity(1.0), NOTHING, rules=rules)[-1]
    return run(moving, 1.0, 2.0, Velocity(1.0), rules=rules)[-1]


def outputs(states: list[GateState]) -> list[Velocity]:
    return [state.output for state in states]


def test_a_stopped_robot_backs_away_as_far_as_it_may_and_then_stands() -> None:
    found = outputs(run(stopped(), 3.0, 6.0, BACK))
    speeds = [-output.x for output in found]
    assert max(speeds) == pytest.approx(0.1)
    assert all(output == Velocity(output.x) for output in found)
    gained = [b - a for a, b in zip([0.0, *speeds], speeds, strict=False)]
    assert max(gained) <= 0.5 * PERIOD + CLOSE
    assert 0.3 - 0.1 * 2 * LONGEST <= sum(speeds) * PERIOD <= 0.3
    assert speeds[-1] == 0.0
    # It stays so until the stop is released, and for as long as that lasts too short.
    state = run(stopped(), 3.0, 6.0, BACK)[-1]
    state = run(state, 9.0, RENEWED - 1.0, Velocity(), NOTHING)[-1]
    assert {*outputs(run(state, 8.0 + RENEWED, 3.0, BACK))} == {REST}
    state = run(state, 8.0 + RENEWED, RENEWED + 0.5, Velocity(), NOTHING)[-1]
    again = outputs(run(state, 8.5 + 2 * RENEWED, 3.0, BACK))
    assert min(output.x for output in again) == pytest.approx(-0.1)


def test_it_turns_in_place_as_long_as_it_may() -> None:
    found = outputs(run(stopped(), 3.0, 6.0, TURN))
    turns = [-output.yaw for output in found]
    assert max(turns) == pytest.approx(0.3)
    assert all(output == Velocity(yaw=output.yaw) for output in found)
    assert 4.0 - 2 * LONGEST <= sum(turn > 0.0 for turn in turns) * PERIOD <= 4.0


@pytest.mark.parametrize(
    ("command", "passes"),
    [
        (Velocity(0.1), False),
        (Velocity(0.1, yaw=0.5), False),
        (Velocity(2e-3, yaw=0.5), False),
        (Velocity(-0.1, y=1e-9, pitch=-1e-9), True),
        (Velocity(-0.1, yaw=0.5), True),
        (Velocity(-0.1, y=0.1), False),
        (Velocity(y=0.1), False),
        (Velocity(z=-0.1), False),
        (Velocity(-0.1, z=0.1), False),
        (Velocity(yaw=0.5, y=0.01), False),
        (Velocity(roll=0.1), False),
        (Velocity(yaw=0.5, pitch=0.1), False),
        (Velocity(-math.inf), False),
        (Velocity(math.nan, yaw=0.5), False),
        (Velocity(-1e308), True),
        (Velocity(), False),
    ],
)
def test_only_a_turn_in_place_or_the_way_back_passes(command: Velocity, passes: bool) -> None:
    found = outputs(run(stopped(), 3.0, 1.0, command))
    assert any(output != REST for output in found) == passes
    if passes:  # the backward part alone
        assert found[-1] == pytest.approx(Velocity(-0.1))


@pytest.mark.parametrize("rest", [{"x": 1e-9}, {"x": -1e-9}, {"y": -1e-9}, {"roll": 1e-9}])
def test_what_a_planner_rounds_closes_no_turn_and_does_not_pass(rest: dict[str, float]) -> None:
    found = outputs(run(stopped(), 3.0, 1.0, Velocity(**rest, yaw=0.5), clear=Ways(turn=True)))
    assert found[-1] == pytest.approx(Velocity(yaw=0.3))
    assert all(output == Velocity(yaw=output.yaw) for output in found)


@pytest.mark.parametrize(
    ("way", "command"), [("reverse", BACK), ("turn", TURN)], ids=["back", "turn"]
)
def test_what_the_file_does_not_name_does_not_pass(way: str, command: Velocity) -> None:
    section = {key: value for key, value in SECTION.items() if key != way}
    rules = GateRules.of(TwistSpec(**{**SPEC.model_dump(), "escape": section}))
    assert {*outputs(run(stopped(rules), 3.0, 2.0, command, rules=rules))} == {REST}


@pytest.mark.parametrize(
    ("clear", "command", "passes"),
    [
        (Ways(reverse=True), BACK, True),
        (Ways(reverse=True), TURN, False),
        (Ways(reverse=True), Velocity(-0.5, yaw=1.0), True),
        (Ways(turn=True), TURN, True),
        (Ways(turn=True), BACK, False),
        (Ways(turn=True), Velocity(-0.5, yaw=1.0), False),
    ],
)
def test_a_way_that_is_not_clear_does_not_pass(
    clear: Ways, command: Velocity, passes: bool
) -> None:
    found = outputs(run(stopped(), 3.0, 2.0, command, clear=clear))
    assert any(output != REST for output in found) == passes


def test_nothing_passes_before_the_robot_stands() -> None:
    moving = run(GateState(escape=Account()), 0.0, 1.0, Velocity(1.0), NOTHING)[-1]
    states = run(moving, 1.0, 2.0, BACK)
    first_rest = next(i for i, state in enumerate(states) if state.output == REST)
    first_out = next(i for i, state in enumerate(states) if state.escape.moving)
    assert (first_out - first_rest) * PERIOD >= STANDS - CLOSE


@pytest.mark.parametrize("pace", [None, 0.2], ids=["silent", "rolling"])
def test_with_odometry_it_has_to_say_that_the_robot_stands(pace: float | None) -> None:
    rules = GateRules.of(TwistSpec(**{**SPEC.model_dump(), "odometry": "/odom"}))
    state, now = stopped(rules), 3.0
    if pace is not None:
        state = measure(state, Velocity(pace), now)
    assert not any(state.escape.moving for state in run(state, now, 0.4, BACK, rules=rules))
    standing = measure(state, Velocity(0.01), now)
    states = run(standing, now, 1.0, BACK, rules=rules)
    assert states[0].escape.moving
    assert not states[-1].escape.moving  # it was last heard of more than half a second ago


def test_a_way_that_closes_ends_it_at_once_and_forward_does_not_follow() -> None:
    backing = run(stopped(), 3.0, 1.0, BACK)[-1]
    assert backing.output.x < 0.0
    closed = Ways(turn=True)
    for demand, clear in (
        (STOP, closed),
        (Intervention("COMFORTABLE_STOP"), Ways()),
        (NOTHING, BOTH),
    ):
        after = run(backing, 4.0, PERIOD, Velocity(2.0), demand, clear=clear)[0].output
        assert 0.0 <= after.x <= 0.5 * PERIOD + CLOSE
        assert demand == NOTHING or after == REST


def test_a_planner_that_falls_silent_does_not_back_away() -> None:
    state, now = run(stopped(), 3.0, 1.0, BACK)[-1], 4.0
    for _ in range(12):
        now += PERIOD
        state = gate_step(RULES, state, STOP, now, BOTH)
    assert state.output == REST


def test_a_gate_that_did_not_look_lets_nothing_out_and_counts_what_was_in_force() -> None:
    backing = run(stopped(), 3.0, 1.0, BACK)[-1]
    late = gate_step(RULES, receive(RULES, backing, BACK, 5.0), STOP, 5.0, BOTH)
    assert late.output == REST
    assert late.escape.distance == pytest.approx(backing.escape.distance + 0.1)


def test_a_clock_that_goes_back_uses_everything_up() -> None:
    backing = run(stopped(), 3.0, 1.0, BACK)[-1]
    assert {*outputs(run(backing, 2.0, 4.0, BACK))} == {REST}


def test_a_limit_of_nothing_has_no_way_out() -> None:
    state = run(stopped(), 3.0, 3.0, BACK, Intervention("LIMIT_SPEED", 0.0))[-1]
    assert state.output == REST


def test_a_gate_that_starts_in_a_stop_lets_nothing_out_before_it_has_ended() -> None:
    """It let the whole distance out again at each start: 2.42 m instead of 0.48 m."""
    assert RULES.escape is not None
    state = run(GateState(), 0.0, 5.0, BACK)[-1]
    assert not state.escape.moving
    said = account_of(RULES.escape, state.escape, state.output, BOTH)
    assert said == "clear to reverse and turn; used up, until 5 s have passed without a stop"
    state = run(state, 5.0, RENEWED - 1.0, Velocity(), NOTHING)[-1]
    state = run(state, 4.0 + RENEWED, 2.0, BACK)[-1]
    assert not state.escape.moving
    state = run(state, 6.0 + RENEWED, RENEWED + 0.1, Velocity(), NOTHING)[-1]
    assert run(state, 6.1 + 2 * RENEWED, 2.0, BACK)[-1].escape.moving


def test_it_says_what_it_lets_out() -> None:
    assert RULES.escape is not None
    for command, clear, said in (
        (BACK, BOTH, "backs away; used 0.09 of 0.3 m, 1.0 of 4 s"),
        (TURN, BOTH, "turns in place; used 0.00 of 0.3 m, 1.0 of 4 s"),
        (Velocity(), BOTH, "clear to reverse and turn; used 0.00 of 0.3 m, 0.0 of 4 s"),
        (BACK, Ways(turn=True), "clear to turn; used 0.00 of 0.3 m, 0.0 of 4 s"),
        (BACK, Ways(), "closed; used 0.00 of 0.3 m, 0.0 of 4 s"),
    ):
        state = run(stopped(), 3.0, 1.0, command, clear=clear)[-1]
        told = account_of(RULES.escape, state.escape, state.output, clear)
        assert told.startswith(said)


# Laws, for any order of anything

components = st.sampled_from([0.0, 0.0, 1e-9, -0.5, -0.02, 0.4, -2.0, math.nan, math.inf])
commands = st.one_of(
    st.sampled_from([BACK, TURN, BACK, TURN, Velocity(-0.3, yaw=0.5), Velocity(1.0)]),
    st.builds(Velocity, *[components] * 6),
)
demands = st.sampled_from(
    [
        *(STOP, STOP, STOP, Intervention("COMFORTABLE_STOP"), Intervention("PULL_OVER")),
        *(
            NOTHING,
            Intervention("WARN"),
            Intervention("LIMIT_SPEED", 0.5),
            Intervention("LIMIT_SPEED", 0.0),
        ),
    ]
)
delays = st.sampled_from([PERIOD, PERIOD, 0.0, 0.01, 0.2, 0.3, 2.0, -1.0])
ways = st.sampled_from([BOTH, BOTH, Ways(reverse=True), Ways(turn=True), Ways()])
stretches = st.lists(
    st.tuples(st.none() | commands, demands, ways, delays, st.integers(1, 60)),
    min_size=1,
    max_size=12,
)


@dataclass
class Oracle:
    """Counts by itself what was let out: by stretches, of which a long pause begins another."""

    distance: float = 0.0
    time: float = 0.0
    overshoot: float = 0.0
    late: float = 0.0
    free: float = math.inf

    def hold(self, output: Velocity, seconds: float) -> None:
        """Take in that an output was in force."""
        self.distance += abs(output.x) * seconds
        self.time += seconds
        beyond = max(0.0, seconds - LONGEST)
        self.overshoot += abs(output.x) * beyond
        self.late += beyond

    def pause(self, seconds: float, *, stops: bool, stopped: bool) -> None:
        """Take in a time with or without a stop; a pause that is long enough ends the count."""
        self.free = 0.0 if stopped else self.free + min(max(seconds, 0.0), LONGEST)
        if stops and self.free >= RENEWED - CLOSE:
            self.distance = self.time = self.overshoot = self.late = 0.0

    def check(self) -> None:
        """Hold what is bounded against its bounds: nobody stops a gate that does not look."""
        assert self.distance <= SECTION["distance"] + self.overshoot + CLOSE
        assert self.time <= SECTION["time"] + self.late + CLOSE


@given(stretches)
@settings(max_examples=examples(100), deadline=None)
def test_the_output_is_that_of_a_gate_without_or_within_the_limits(sequence: list) -> None:
    """Where it differs at all, the other stands; in one stop, its path and time are bounded."""
    state, plain, now, oracle = GateState(escape=Account()), GateState(), 0.0, Oracle()
    stopped_before = False
    for command, demand, clear, delay, times in sequence:
        for _ in range(times):
            now += delay
            stops = demand.stops or (demand.limits and not demand.speed_limit > 0)
            if state.output != plain.output:
                oracle.hold(state.output, max(delay, 0.0))
            oracle.pause(delay, stops=stops, stopped=stopped_before)
            oracle.check()
            stopped_before = stops
            if command is not None:
                state = receive(RULES, state, command, now)
                plain = receive(PLAIN, plain, command, now)
            before = state.output
            state = gate_step(RULES, state, demand, now, clear)
            plain = gate_step(PLAIN, plain, demand, now, clear)
            output = state.output
            if output == plain.output:
                assert not state.escape.moving
                continue
            assert state.escape.moving and clear and demand.stops and plain.output == REST
            assert now - state.received <= RULES.command_timeout
            asked = state.command
            back, turn = Velocity(output.x), Velocity(yaw=output.yaw)
            assert output in (back, turn)
            assert output.finite and -0.1 <= output.x <= 0.0 and output.turn <= 0.3
            if output.x:
                assert clear.reverse
                assert asked.x <= output.x and max(map(abs, asked[1:5])) <= NEGLIGIBLE
            else:
                assert clear.turn
                assert max(map(abs, asked[:5])) <= NEGLIGIBLE
                assert asked.yaw * output.yaw > 0 and abs(output.yaw) <= abs(asked.yaw)
            assert output.speed <= before.speed + 0.5 * max(delay, 0.0) + CLOSE
            assert output.turn <= before.turn + 1.0 * max(delay, 0.0) + CLOSE


@given(stretches)
@settings(max_examples=examples(100), deadline=None)
def test_without_the_section_nothing_changes_to_the_bit(sequence: list) -> None:
    for rules in (PLAIN, RULES):
        told, untold, now = GateState(), GateState(), 0.0
        for command, demand, clear, delay, times in sequence:
            for _ in range(times):
                now += delay
                if command is not None:
                    told = receive(rules, told, command, now)
                    untold = receive(PLAIN, untold, command, now)
                # Without the section whatever is said of the way; with it, unless it is clear.
                told = gate_step(rules, told, demand, now, clear if rules is PLAIN else Ways())
                untold = gate_step(PLAIN, untold, demand, now)
                assert repr(told._replace(escape=untold.escape)) == repr(untold)


def test_a_stop_that_flaps_is_one_stop() -> None:
    state, now, way = stopped(), 3.0, 0.0
    for _ in range(40):
        states = run(state, now, 1.5, BACK)
        way -= sum(one.output.x for one in states) * PERIOD
        state = states[-1]
        state, now = run(state, now + 1.5, 0.5, REST, NOTHING)[-1], now + 2.0
    assert way <= 0.3 + CLOSE


def test_the_limits_are_those_of_the_monitor_file() -> None:
    assert RULES.escape is not None
    assert RULES.escape.greatest == Pace(0.1, 0.3)
    assert (RULES.escape.distance, RULES.escape.time) == (0.3, 4.0)
    assert (RULES.escape.renewed_after, RULES.escape.longest) == (5.0, 0.25)
    assert RULES.escape.gain == RULES.recovery
    assert not RULES.escape.measured
    assert GateRules.of(TwistSpec(**{**SPEC.model_dump(), "escape": None})).escape is None


# What the gate is told, and by whom

CLEAR = Statement("life", 1, id=1, action="EMERGENCY_STOP", active=True, escape=BOTH)
CLOSED = CLEAR._replace(escape=Ways())


def told(
    *said: Statement, at: float = 0.0, topics: tuple[str, ...] = ("intervene", "verdict")
) -> Watchdog:
    """Return a watchdog that has heard these in turn on both topics, 0.1 s apart."""
    watchdog, now = Watchdog(0.5, 0.1, 0.5), at
    for number, statement in enumerate(said):
        now = at + 0.1 * number
        for offset, topic in enumerate(topics):
            numbered = statement._replace(sequence=2 * number + offset + 1)
            getattr(watchdog, topic)(numbered, now)
    return watchdog


def test_the_monitor_says_on_both_topics_that_the_way_is_clear() -> None:
    assert told(CLEAR).way_out(0.0) == BOTH
    assert not told(CLOSED).way_out(0.0)
    assert told(CLOSED, CLEAR).way_out(0.1) == BOTH
    assert not told(CLEAR, CLOSED).way_out(0.1)
    assert not told(CLEAR, topics=("verdict",)).way_out(0.0)
    assert not Watchdog(0.5, 0.1, 0.5).way_out(0.0)
    one = told(CLOSED)
    one.verdict(CLEAR._replace(sequence=9), 0.1)
    assert not one.way_out(0.1)
    one.intervene(CLEAR._replace(sequence=10), 0.1)
    assert one.way_out(0.1) == BOTH


def test_only_a_way_that_both_topics_say_is_clear_is() -> None:
    one = told(CLEAR._replace(escape=Ways(turn=True)))
    assert one.way_out(0.0) == Ways(turn=True)
    one.verdict(CLEAR._replace(sequence=9), 0.1)
    assert one.way_out(0.1) == Ways(turn=True)
    one.intervene(CLEAR._replace(sequence=10, escape=Ways(reverse=True)), 0.1)
    assert one.way_out(0.1) == Ways(reverse=True)


def test_what_was_said_two_periods_ago_is_over() -> None:
    assert told(CLEAR).way_out(0.2)
    assert not told(CLEAR).way_out(0.21)
    one = told(CLEAR, CLEAR)
    one.verdict(CLEAR._replace(sequence=9), 0.4)
    assert not one.way_out(0.4)  # the intervention was not repeated


@pytest.mark.parametrize(
    ("event", "demanded"),
    [
        (lambda w: w.liveliness(0), "lost its liveliness"),
        (lambda w: w.liveliness(2), "another publisher"),
        (lambda w: w.verdict(CLEAR._replace(session="other"), 0.0), "another monitor"),
        (lambda w: w.verdict(CLEAR._replace(sequence=9, mode=""), 0.0), "unknown mode"),
        (lambda w: w.verdict(CLEAR._replace(sequence=9, action="FLY"), 0.0), "unknown action"),
        (lambda w: w.verdict(CLEAR._replace(sequence=9, writer=b"x"), 0.0), "in the name of"),
        (lambda w: w.verdict(CLEAR._replace(sequence=9, active=False), 0.0), "way out of no stop"),
    ],
)
def test_whatever_makes_the_gate_stop_by_itself_closes_the_way(
    event: Callable[[Watchdog], None], demanded: str
) -> None:
    watchdog = told(CLEAR)
    event(watchdog)
    assert not watchdog.way_out(0.0)
    assert demanded in watchdog.demand(0.0)[1]


@pytest.mark.parametrize("action", ["NONE", "WARN", "LIMIT_SPEED", "REPLAN"])
def test_a_way_out_of_no_stop_is_not_understood(action: str) -> None:
    said = CLEAR._replace(action=action, active=action != "NONE", speed_limit=0.0)
    assert said.problem == "a way out of no stop"
    assert said._replace(active=False, escape=Ways()).problem == ""
    assert not told(said).way_out(0.0)
