"""From the intervention that holds to the messages that planning is to get.

A pad whose header equals that of the last one is ignored, its action stays in force until the next,
and STOP does not end a PULL_OVER that has begun.

A speed limit goes to Apollo 9 and later as the planning command that planning has already: the same
route, which is no new motion, with a lower ``target_speed`` that every frame of planning reads
again. Where Apollo's traffic rule SpeedSetting is switched on, which goes by a ``SpeedCommand``
instead, the same message carries that as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from apollo_bridge.commands import (
    LIMITING,
    NEEDS_ROUTE,
    NO_PREEMPTION,
    PAD,
    PLANNING,
    STOPPING,
    Way,
)
from apollo_bridge.layouts import own_class
from apollo_bridge.messages import DAMAGE
from forewarn.config.actions import ACTIONS, NO_ACTION

MODULE = "forewarn"
SPEED_COMMAND = "apollo.external_command.SpeedCommand"
# Planning takes a command with the number that it saw last for an old one, from any sender. Those
# who
# send routes count from one.
FIRST_NUMBER = 1 << 30
CLEAR_PLANNING = 6
REPEAT_NS = 1_000_000_000
LEAST_LIMIT = 0.1
"""m/s. Planning ignores a target speed of 0 and drives at its default."""


class Command(NamedTuple):
    """Something for planning."""

    name: str
    target: str
    # The serialized message; None if there is none to write now, for the reason in `remark`
    data: bytes | None
    remark: str = ""


@dataclass
class Latch:
    """Something that is written when it changes, and again and again while it holds."""

    current: Any = None
    repeat_ns: int = REPEAT_NS  # Nanoseconds after which what is in force is written again
    ends_again: int = 0  # How many times more the end of it is written
    _sent_ns: int = 0
    _unwritten: bool = False

    def update(self, wanted: Any, now_ns: int) -> bool:
        """Tell whether what is wanted now is to be written."""
        # A clock that was set back must not end the repetition.
        old = not 0 <= now_ns - self._sent_ns < self.repeat_ns
        again = old and (wanted is not None or self.ends_again > 0)
        due = wanted != self.current or self._unwritten or again
        self.current = wanted
        if due and wanted is None and self.ends_again:
            self.ends_again -= 1
        elif wanted is not None:
            self.ends_again = 0
        if due:
            self._sent_ns, self._unwritten = now_ns, False
        return due

    def not_written(self) -> None:
        """Take note that the last message did not get through: the next update repeats it."""
        self._unwritten = True


class Stops:
    """STOP, PULL_OVER, and their end."""

    def __init__(self, way: Way, repeat_ns: int) -> None:
        self.way = way
        self.target = way.target
        self.latch = Latch(repeat_ns=repeat_ns)
        self._number = 0
        self._pulling_over = False

    @property
    def in_force(self) -> str | None:
        """The last command to Apollo, if it is not over."""
        current: str | None = self.latch.current
        return current

    def update(self, wanted: str | None, now_ns: int) -> Command | None:
        """Return the command to write, if any."""
        self._pulling_over |= self.latch.current == "PULL_OVER"
        if not self.latch.update(wanted, now_ns):
            return None
        name = wanted or self.way.resume
        self._pulling_over &= wanted is not None
        remark = NO_PREEMPTION if self._pulling_over and wanted == "STOP" else ""
        self._number += 1
        message = own_class(self.way.message)()
        _fill(message.header, self._number, now_ns)
        if self.way.service:
            message.command_id = self._number
            message.command = self.way.numbers[name]
        else:
            message.action = self.way.numbers[name]
        return Command(name, self.target, message.SerializeToString(), remark)


class Limits:
    """A limit of the speed, and its end."""

    target = PLANNING[0]

    def __init__(self, repeat_ns: int) -> None:
        self.latch = Latch(repeat_ns=repeat_ns)
        self._number = FIRST_NUMBER
        self._route: bytes | None = None
        self._limited = self._ended = False

    @property
    def in_force(self) -> float | None:
        """The limit, in m/s, if one was written and not ended."""
        current: float | None = self.latch.current
        return current if self._limited else None

    def recall(self, limit: float) -> None:
        """Take over a limit that was given in a former life."""
        self.latch.current, self._limited = limit, True

    @property
    def listeners(self) -> dict[tuple[str, str], Callable[[bytes], None]]:
        """The channels to read, with their message, and the function that takes it."""
        return {PLANNING: self.heard, PAD: self.heard_pad}

    def heard_pad(self, data: bytes) -> None:
        """Forget a route that was cleared: writing it again would bring it back."""
        try:
            action = own_class(PAD[1]).FromString(data).action
        except DAMAGE:  # planning cannot read it either
            return
        if action == CLEAR_PLANNING:
            self._route, self._limited, self._ended = None, False, False

    def heard(self, data: bytes) -> None:
        """Take note of a planning command; a new route comes without the limit in force."""
        try:
            message = own_class(PLANNING[1]).FromString(data)
        except DAMAGE:  # planning cannot read it either
            return
        if message.header.module_name != MODULE and message.is_motion_command:
            self._route = data
            if self.latch.current is not None:
                self.latch.not_written()

    def update(self, wanted: float | None, now_ns: int) -> Command | None:
        """Return the command to write, if any."""
        due = self.latch.update(wanted, now_ns)
        if not due or (wanted is None and not self._limited and not self._ended):
            return None
        name = "the end of the speed limit" if wanted is None else f"a limit of {wanted:g} m/s"
        if self._route is None:
            return Command(name, self.target, None, NEEDS_ROUTE)
        message = own_class(PLANNING[1]).FromString(self._route)
        if message.HasField("parking_command"):
            return Command(name, self.target, None, "a limit of speed would end the parking")
        speed = own_class(SPEED_COMMAND)()
        if wanted is None:
            speed.is_restore_target_speed = True
        else:
            limit = min(wanted, message.target_speed) if message.target_speed > 0 else wanted
            speed.target_speed = message.target_speed = limit
        self._limited, self._ended = wanted is not None, wanted is None
        self._number += 1
        _fill(message.header, self._number, now_ns)
        message.is_motion_command = False
        message.custom_command.type_url = f"type.googleapis.com/{SPEED_COMMAND}"
        message.custom_command.value = speed.SerializeToString()
        return Command(name, self.target, message.SerializeToString())


def _fill(header: Any, number: int, now_ns: int) -> None:
    header.timestamp_sec = now_ns / 1e9
    header.module_name = MODULE
    header.sequence_num = number


class Commander:
    """Turns the interventions that hold into commands."""

    def __init__(self, way: Way, *, limits: bool = False, repeat_ns: int = REPEAT_NS) -> None:
        self.way = way
        self.stops = Stops(way, repeat_ns)
        self.limits = Limits(repeat_ns) if limits else None

    def update(self, action: str, active: bool, speed_limit: float, now_ns: int) -> list[Command]:
        """Return the commands to write for the intervention that holds now, stops first."""
        stop = STOPPING.get(action) if active else None
        limit: float | None = None
        if active and (action not in ACTIONS or action == NO_ACTION):
            stop = "STOP"  # what is not understood may be anything
        elif active and action in LIMITING and self.limits is not None:
            # Planning cannot drive by a limit that is no number: stop instead.
            limit = speed_limit if LEAST_LIMIT <= speed_limit < math.inf else None
            stop = "STOP" if limit is None else None
        if stop is not None and self.limits is not None:
            # A stop may be refused, and who pulls over drives to his place: no faster than before.
            limit = self.limits.in_force
        commands = [self.stops.update(stop, now_ns)]
        if self.limits is not None:
            commands.append(self.limits.update(limit, now_ns))
        return [command for command in commands if command is not None]

    def not_written(self, target: str) -> None:
        """Take note that the last command to a channel or service did not get through."""
        for part in (self.stops, self.limits):
            if part is not None and part.target == target:
                part.latch.not_written()

    def repeat_end(self, target: str, times: int) -> None:
        """Write the end of what was asked for on a channel or service several times more."""
        for part in (self.stops, self.limits):
            if part is not None and part.target == target:
                part.latch.ends_again = times

    @property
    def in_force(self) -> dict[str, Any]:
        """The commands to Apollo that are not taken back, by channel or service."""
        return {
            part.target: part.in_force
            for part in (self.stops, self.limits)
            if part is not None and part.in_force is not None
        }

    @property
    def described(self) -> str:
        """What is in force, for people; empty if nothing is."""
        return " and ".join(
            demand if isinstance(demand, str) else f"a limit of {demand:g} m/s"
            for demand in self.in_force.values()
        )

    def recall(self, left: Mapping[str, Any]) -> None:
        """Take over what a former life left in force, as far as this one can end it."""
        stop = left.get(self.stops.target)
        if stop in self.way.numbers and stop != self.way.resume:
            self.stops.latch.current = stop
        limit = left.get(Limits.target)
        if self.limits is not None and isinstance(limit, (int, float)):
            self.limits.recall(float(limit))
