"""What a gate between two topics of velocity commands lets through: pure, without ROS.

A stop is measured by the time that it takes: T(v, w) = max(v / deceleration, w / angular
deceleration) for a speed v and a turn rate w. While stopping, T falls by at least one second a
second and v never rises. Commands are scaled as a whole, which keeps the curvature of their path,
and neither deceleration exceeds its bound unless the commands themselves brake harder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from forewarn.actuation import TwistSpec
from monitor_node.actuators.interface import Demand


class Velocity(NamedTuple):
    """A command: m/s along x, y, z, and rad/s about x, y, z."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0

    @property
    def speed(self) -> float:
        """Speed over ground in m/s."""
        return math.hypot(self.x, self.y, self.z)

    @property
    def turn(self) -> float:
        """Turn rate in rad/s."""
        return math.hypot(self.roll, self.pitch, self.yaw)

    @property
    def finite(self) -> bool:
        """Tell whether all components are numbers."""
        return all(math.isfinite(each) for each in self)

    def scaled(self, factor: float) -> Velocity:
        """Return the command times a factor."""
        return self if factor == 1.0 else Velocity(*(each * factor for each in self))


REST = Velocity()


class Rates(NamedTuple):
    """Bounds of a change of velocity: m/s^2 and rad/s^2."""

    linear: float
    angular: float

    def time(self, velocity: Velocity) -> float:
        """Return how many seconds it takes to come to rest, or to reach `velocity` from it."""
        return max(velocity.speed / self.linear, velocity.turn / self.angular)


@dataclass(frozen=True)
class GateRules:
    """Bounds of the gate.

    Attributes
    ----------
    comfortable, emergency : Rates
        Decelerations.
    recovery : Rates
        Accelerations once an intervention is over.
    command_timeout : float
        Seconds after which a command counts no more.
    """

    comfortable: Rates
    emergency: Rates
    recovery: Rates
    command_timeout: float

    @classmethod
    def of(cls, spec: TwistSpec) -> GateRules:
        """Return the rules of a monitor file."""
        return cls(
            Rates(spec.comfortable_deceleration, spec.comfortable_angular_deceleration),
            Rates(spec.emergency_deceleration, spec.emergency_angular_deceleration),
            Rates(spec.acceleration, spec.angular_acceleration),
            spec.command_timeout,
        )

    def braking(self, demand: Demand) -> Rates:
        """Return how hard to brake for a demand."""
        return self.emergency if demand.action == "EMERGENCY_STOP" else self.comfortable


class GateState(NamedTuple):
    """What is remembered.

    Attributes
    ----------
    output : Velocity
        What was let through last.
    time : float
        When that was, in seconds.
    command : Velocity
        The newest command.
    received : float
        When it came; minus infinity before the first.
    held : bool
        The output is less than what is commanded: it has to rise gently.
    stopped : bool
        There was a stop, and the output has not risen since to what is let through.
    """

    output: Velocity = REST
    time: float = -math.inf
    command: Velocity = REST
    received: float = -math.inf
    held: bool = False
    stopped: bool = False


def receive(state: GateState, command: Velocity, now: float) -> GateState:
    """Take in a command; one that is no number asks for rest."""
    return state._replace(command=command if command.finite else REST, received=now)


def silent(rules: GateRules, state: GateState, now: float) -> bool:
    """Tell whether commands have ceased to come."""
    return now - state.received > rules.command_timeout


def idle(rules: GateRules, state: GateState, demand: Demand, now: float) -> bool:
    """Tell whether nothing need be said: nobody commands, nothing moves, nothing is asked for."""
    return silent(rules, state, now) and state.output == REST and not demand.moves


def step(rules: GateRules, state: GateState, demand: Demand, now: float) -> GateState:
    """Return the state with what may be let through at `now`.

    Parameters
    ----------
    rules : GateRules
        Bounds.
    state : GateState
        What the step before left.
    demand : Demand
        What the monitor asks for, or its watchdog.
    now : float
        Seconds of a steady clock.
    """
    elapsed = now - state.time if math.isfinite(state.time) else 0.0
    if demand.stops or (demand.limits and not demand.speed_limit > 0.0):
        output = _stop(rules.braking(demand), state, state.command, elapsed)
        return state._replace(output=output, time=now, held=True, stopped=True)
    if silent(rules, state, now):
        # Its last command must not stay in force, or a planner that died would drive on.
        output = _stop(rules.comfortable, state, state.output, elapsed)
        return state._replace(output=output, time=now, held=True, stopped=True)
    allowed = state.command
    if demand.limits:
        slowed = state.output.speed - rules.comfortable.linear * elapsed
        allowed = _capped(allowed, max(demand.speed_limit, slowed), math.inf)
    output = allowed
    if state.stopped or (state.held and not demand.limits):
        output = _recover(rules, state, allowed, elapsed)
    return state._replace(
        output=output,
        time=now,
        held=output != state.command,
        stopped=state.stopped and output != allowed,
    )


def _stop(rates: Rates, state: GateState, command: Velocity, elapsed: float) -> Velocity:
    """Return what of the command lets the robot rest `elapsed` nearer than it did."""
    before = rates.time(state.output)
    left = before - elapsed
    if left <= 0.0:
        return REST
    return _capped(command, state.output.speed * left / before, left * rates.angular)


def _recover(rules: GateRules, state: GateState, command: Velocity, elapsed: float) -> Velocity:
    """Return the command, as a whole, no further from rest than may be reached by now."""
    needed = rules.recovery.time(command)
    reached = rules.recovery.time(state.output) + elapsed
    if needed <= reached:
        return command
    # A command that turns sharply, all of a sudden, must not brake the robot just as suddenly.
    slowed = state.output.speed - rules.comfortable.linear * elapsed
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
