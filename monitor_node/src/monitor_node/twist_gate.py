"""What a gate between two topics of velocity commands lets through: pure, without ROS.

A stop is measured by the time that it takes: T(v, w) = max(v / deceleration, w / angular
deceleration) for a speed v and a turn rate w. Nothing faster than the robot's greatest speed and
turn rate passes, so that T is bounded. While stopping, T falls by at least one second a second, v
never rises, and from a deadline on the output is zero, whatever is commanded. Commands are scaled
as a whole, which keeps the curvature of their path, and neither deceleration exceeds its bound
unless the commands themselves, or the deadline, brake harder. The one exception to zero is a way
out that the monitor file declares; see `escape`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from forewarn.config.actuators import NO_WAY, TwistSpec, Ways
from forewarn.monitoring.intervention import Intervention
from monitor_node.escape import USED_UP, Account, Limits, charged, let_out, stands
from monitor_node.motion import REST, Pace, Rates, Velocity


class Stop(NamedTuple):
    """One kind of stop: decelerations, and the seconds after which it has ended whatever comes."""

    rates: Rates
    deadline: float


@dataclass(frozen=True)
class GateRules:
    """Bounds of the gate."""

    greatest: Pace
    comfortable: Stop
    emergency: Stop
    recovery: Rates
    command_timeout: float  # Seconds after which a command, or a measured speed, counts no more
    escape: Limits | None = None

    @classmethod
    def of(cls, spec: TwistSpec) -> GateRules:
        """Return the rules of a monitor file."""
        greatest = Pace(spec.max_speed, spec.max_turn)
        gentle = Rates(spec.comfortable_deceleration, spec.comfortable_angular_deceleration)
        hard = Rates(spec.emergency_deceleration, spec.emergency_angular_deceleration)
        recovery = Rates(spec.acceleration, spec.angular_acceleration)
        escape = None
        if spec.escape is not None:
            measured = spec.odometry is not None
            escape = Limits.of(spec.escape, spec.rate, recovery, measured=measured)
        return cls(
            greatest,
            Stop(gentle, spec.comfortable_deadline or gentle.time(greatest)),
            Stop(hard, spec.emergency_deadline or hard.time(greatest)),
            recovery,
            spec.command_timeout,
            escape,
        )

    def stop(self, demand: Intervention) -> Stop:
        """Return how to stop for a demand."""
        return self.emergency if demand.hard else self.comfortable


class GateState(NamedTuple):
    """What is remembered."""

    output: Velocity = REST
    time: float = -math.inf
    command: Velocity = REST
    received: float = -math.inf  # When it came; minus infinity before the first
    held: bool = False  # The output is less than what is commanded: it has to rise gently
    # There was a stop, and the output has not risen since to what is let through
    stopped: bool = False
    # When the present stop has to have ended; infinite while there is none
    rest_by: float = math.inf
    measured: Pace = Pace(0.0, 0.0)
    measured_at: float = -math.inf  # When it came; minus infinity before the first
    escape: Account = USED_UP


def receive(rules: GateRules, state: GateState, command: Velocity, now: float) -> GateState:
    """Take in a command: one that is too fast is scaled down, one that is no number means rest."""
    speed, turn = rules.greatest
    if not command.finite:
        command = REST
    share = min(speed / max(command.speed, speed), turn / max(command.turn, turn))
    return state._replace(command=command.scaled(share), received=now)


def measure(state: GateState, measured: Velocity, now: float) -> GateState:
    """Take in what odometry says; what is no number is left out."""
    if not measured.finite:
        return state
    return state._replace(measured=measured.pace, measured_at=now)


def silent(rules: GateRules, state: GateState, now: float) -> bool:
    """Tell whether commands have ceased to come."""
    return now - state.received > rules.command_timeout


def idle(rules: GateRules, state: GateState, demand: Intervention, now: float) -> bool:
    """Tell whether the gate may be silent: no command, no motion, no request."""
    return silent(rules, state, now) and state.output == REST and not demand.moves


def step(
    rules: GateRules, state: GateState, demand: Intervention, now: float, clear: Ways = NO_WAY
) -> GateState:
    """Return the state with what may be let through at `now`."""
    limits, before, elapsed = rules.escape, state.output, now - state.time
    if limits is None:
        return _step(rules, state, demand, now)
    account = charged(limits, state.escape, before, elapsed, stopping=_stops(demand))
    if account.moving or state.escape.moving:
        state = state._replace(output=REST)  # whatever follows begins at rest
    after = _step(rules, state, demand, now)
    output = REST
    if clear and demand.stops and after.output == REST and not silent(rules, state, now):
        fresh = now - state.measured_at <= rules.command_timeout
        if stands(limits, account, state.measured if fresh else None):
            output = let_out(limits, account, state.command, before, elapsed, clear)
    if output == REST:
        stood = 0.0 if account.moving else account.stood
        return after._replace(escape=account._replace(moving=False, stood=stood))
    return after._replace(output=output, escape=account._replace(moving=True))


def _stops(demand: Intervention) -> bool:
    """Tell whether the robot is to stand; a limit of nothing, or of no number, says so, too."""
    return demand.stops or (demand.limits and not demand.speed_limit > 0.0)


def _step(rules: GateRules, state: GateState, demand: Intervention, now: float) -> GateState:
    """Return the state with what may be let through where there is no way out."""
    elapsed = _elapsed(state, now)
    if _stops(demand):
        return _stop(rules, state, rules.stop(demand), state.command, now)
    if silent(rules, state, now):
        # Its last command must not stay in force, or a planner that died would drive on.
        return _stop(rules, state, rules.comfortable, state.output, now)
    allowed = state.command
    if demand.limits:
        slowed = state.output.speed - rules.comfortable.rates.linear * elapsed
        allowed = _capped(allowed, max(demand.speed_limit, slowed), math.inf)
    output = allowed
    if state.stopped or (state.held and not demand.limits):
        output = _recover(rules, state, allowed, elapsed)
    return state._replace(
        output=output,
        time=now,
        held=output != state.command,
        stopped=state.stopped and output != allowed,
        rest_by=math.inf,
    )


def _stop(
    rules: GateRules, state: GateState, stop: Stop, command: Velocity, now: float
) -> GateState:
    """Go on stopping, or begin: the output is nearer to rest by the time that has passed."""
    pace = state.output.pace
    if math.isinf(state.rest_by) and now - state.measured_at <= rules.command_timeout:
        pace = Pace(min(pace.speed, state.measured.speed), min(pace.turn, state.measured.turn))
    # A milder stop that follows a harder one does not put off the end.
    rest_by = min(state.rest_by, now + stop.deadline)
    before = stop.rates.time(pace)
    left = before - _elapsed(state, now)
    output = REST
    if left > 0.0 and now < rest_by:
        output = _capped(command, pace.speed * left / before, left * stop.rates.angular)
    return state._replace(output=output, time=now, held=True, stopped=True, rest_by=rest_by)


def _elapsed(state: GateState, now: float) -> float:
    """Return the seconds since the last step: none if the clock went back, all at the first one."""
    return max(0.0, now - state.time)


def _recover(rules: GateRules, state: GateState, command: Velocity, elapsed: float) -> Velocity:
    """Return the command, as a whole, no further from rest than may be reached by now."""
    needed = rules.recovery.time(command.pace)
    reached = rules.recovery.time(state.output.pace) + elapsed
    if needed <= reached:
        return command
    # A command that turns sharply, all of a sudden, must not brake the robot just as suddenly.
    slowed = state.output.speed - rules.comfortable.rates.linear * elapsed
    speed = max(command.speed * reached / needed, slowed)
    return _capped(command, speed, command.turn * reached / needed)


def _capped(command: Velocity, speed: float, turn: float) -> Velocity:
    """Return the command, slowed down as a whole to `speed`, and turning no faster than `turn`."""
    if command.speed > speed:
        command = command.scaled(speed / command.speed)
    if command.turn > turn:
        factor = turn / command.turn
        command = command._replace(
            roll=command.roll * factor, pitch=command.pitch * factor, yaw=command.yaw * factor
        )
    return command
