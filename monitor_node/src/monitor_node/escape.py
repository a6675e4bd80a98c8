"""What a gate lets out of a stop, which ways the monitor says are clear: pure, without ROS.

This is the one exception to an output of zero. Of what the planner commands, a turn in place
passes, or the backward part of a command that is directed backwards; never both, and nothing else.
It is slow, gains speed as gently as after a stop, and each stop has a distance and a time that are
used up by what was let out, as long as it was in force, by the gate's own clock. A stop that comes
back soon is the same stop.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from forewarn.config.actuators import HELD_PERIODS, EscapeSpec, Ways
from monitor_node.motion import REST, Pace, Rates, Velocity

STANDS = 0.5
"""Seconds for which the output has to have been zero before anything is let out."""

STILL = Pace(0.05, 0.05)
"""What odometry may measure of a robot that stands, in m/s and rad/s."""


NEGLIGIBLE = 1e-3
"""How much a command may have beside its way out, in m/s and rad/s. It is left out and does not
close the way: what a planner computes is rarely exactly zero."""


class Limits(NamedTuple):
    """Bounds of what is let out."""

    greatest: Pace  # Speed backwards in m/s, and turn rate in place in rad/s
    distance: float  # distance, time: metres backwards and seconds of motion in one stop
    time: float
    renewed_after: float  # Seconds without a stop after which the next one is another one
    # Seconds for which an output may be in force before the next one; as much is kept in reserve of
    # distance and time
    longest: float
    gain: Rates  # Accelerations
    measured: bool  # Odometry has to say that the robot stands before it may move

    @classmethod
    def of(cls, spec: EscapeSpec, rate: float, gain: Rates, *, measured: bool) -> Limits:
        """Return the limits of a monitor file, for a gate with so many outputs a second."""
        return cls(
            Pace(*spec.greatest),
            spec.distance,
            spec.time,
            spec.renewed_after,
            HELD_PERIODS / rate,
            gain,
            measured,
        )


class Account(NamedTuple):
    """What was let out of the present stop, or of the last one."""

    distance: float = 0.0  # distance, time: metres backwards, and seconds of motion
    time: float = 0.0
    free: float = -1.0  # Seconds without a stop since then; negative while there is one
    stood: float = 0.0  # Seconds for which the output has been zero in the present stop
    moving: bool = False  # The last output was let out


USED_UP = Account(math.inf, math.inf)
"""The account of a gate that starts: it may have restarted in the middle of a stop, and does not
know what was let out of it. So nothing is left until that stop has ended."""


def charged(
    limits: Limits, account: Account, output: Velocity, elapsed: float, *, stopping: bool
) -> Account:
    """Return the account after `output` was in force for `elapsed` seconds.

    `elapsed`: seconds since then; infinite at the first step.
    """
    distance, time, free, stood, moving = account
    if elapsed < 0.0:
        time, elapsed = math.inf, 0.0  # a clock that goes back measures nothing
    if moving:
        distance, time = distance + output.speed * elapsed, time + elapsed
    seen = min(elapsed, limits.longest)  # the gate was not looking for longer than that
    if not stopping:
        free = 0.0 if free < 0.0 else free + seen
        if free >= limits.renewed_after:
            distance = time = 0.0
        return Account(distance, time, free, 0.0, False)
    if not moving:
        stood = stood + seen if free < 0.0 and output == REST else 0.0
    return Account(distance, time, -1.0, stood, moving)


def let_out(
    limits: Limits,
    account: Account,
    wanted: Velocity,
    before: Velocity,
    elapsed: float,
    clear: Ways,
) -> Velocity:
    """Return what passes of a command where some ways out are clear."""
    motion = _component(limits.greatest, wanted)
    if not (clear.reverse if motion.x else clear.turn):
        return REST
    if motion == REST or account.stood < STANDS or not 0.0 <= elapsed <= limits.longest:
        return REST
    start = Pace(0.0, 0.0)
    if account.moving and (before.x * motion.x > 0.0 or before.yaw * motion.yaw > 0.0):
        start = before.pace
    speed = min(motion.speed, start.speed + limits.gain.linear * elapsed)
    turn = min(motion.turn, start.turn + limits.gain.angular * elapsed)
    if account.time + limits.longest > limits.time:
        return REST
    if motion.x == 0.0:
        return Velocity(yaw=math.copysign(turn, motion.yaw))
    # By the greatest speed: what is left at the end must not pass in ever smaller bits.
    used_up = account.distance + limits.greatest.speed * limits.longest > limits.distance
    return REST if used_up else Velocity(x=-speed)


def _component(greatest: Pace, wanted: Velocity) -> Velocity:
    """Return a pure turn, or the backward part of a command that is one, within bounds."""
    sideways = (wanted.y, wanted.z, wanted.roll, wanted.pitch)
    if not wanted.finite or max(map(abs, sideways)) > NEGLIGIBLE or wanted.x > NEGLIGIBLE:
        return REST
    if wanted.x < (-NEGLIGIBLE if wanted.yaw else 0.0):
        return Velocity(x=max(wanted.x, -greatest.speed))
    return Velocity(yaw=math.copysign(min(wanted.turn, greatest.turn), wanted.yaw))


def stands(limits: Limits, account: Account, measured: Pace | None) -> bool:
    """Tell whether odometry has nothing against it: None where nothing fresh is measured."""
    if not limits.measured:
        return True
    if measured is None:
        return False
    return account.moving or (measured.speed <= STILL.speed and measured.turn <= STILL.turn)


def account_of(limits: Limits, account: Account, output: Velocity, clear: Ways) -> str:
    """Return in words what is let out, and how much of it was used up."""
    used = (
        f"{account.distance:.2f} of {limits.distance:g} m, {account.time:.1f} of {limits.time:g} s"
    )
    if math.isinf(account.time):
        used = f"up, until {limits.renewed_after:g} s have passed without a stop"
    if account.moving:
        return f"{'backs away' if output.x < 0.0 else 'turns in place'}; used {used}"
    ways = " and ".join(name for name, open_ in clear._asdict().items() if open_)
    return f"{f'clear to {ways}' if ways else 'closed'}; used {used}"
