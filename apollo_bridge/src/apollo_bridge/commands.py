"""From interventions to what Apollo's planning understands, version by version.

Facts: modules/planning (pad, scenario EmergencyStop and PullOver) and modules/external_command of
Apollo 7 to 11. A pad whose header equals that of the last one is ignored, its action stays in
force until the next, and STOP does not end a PULL_OVER that has begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from apollo_bridge.layouts import own_class
from forewarn.config import MonitorSpec
from forewarn.errors import ConfigError, ConfigErrors, InputError

PAD = ("/apollo/planning/pad", "apollo.planning.PadMessage")
ACTION = ("/apollo/external_command/action", "apollo.external_command.ActionCommand")
VERSIONS = (7, 8, 9, 10, 11)
STOPPING = {
    "COMFORTABLE_STOP": "STOP",
    "EMERGENCY_STOP": "STOP",
    "PULL_OVER": "PULL_OVER",
}
WHY_NOT = {
    "LIMIT_SPEED": "planning takes a target speed only together with a new route",
    "REPLAN": "planning makes a new plan every 100 ms and has no command for it",
}

NO_PREEMPTION = "STOP cannot end a PULL_OVER that has begun: Apollo goes on pulling over"


class Way(NamedTuple):
    """How commands reach planning: channel, message, numbers of the actions, name of the end."""

    channel: str
    message: str
    numbers: Mapping[str, int]
    resume: str


WAYS = {
    "pad": Way(*PAD, {"PULL_OVER": 3, "STOP": 4, "RESUME_CRUISE": 5}, "RESUME_CRUISE"),
    "action": Way(*ACTION, {"PULL_OVER": 4, "STOP": 5, "START": 6}, "START"),
}


def way_of(version: int, way: str) -> Way:
    """Return how commands go to a version of Apollo.

    Raises
    ------
    ConfigError
        If the version is not known, or does not have this way.
    """
    if version not in VERSIONS:
        raise ConfigError(
            f"{version} is no version of Apollo that is known",
            key="parameter version",
            accepted=", ".join(map(str, VERSIONS)),
        )
    if way not in WAYS or (way == "action" and version < 9):
        raise ConfigError(
            f"Apollo {version} takes no commands by {way!r}",
            key="parameter way",
            accepted="pad, or action from Apollo 9 on",
        )
    return WAYS[way]


def check(spec: MonitorSpec, version: int) -> list[str]:
    """Return what about the interventions of a monitor file is worth a warning.

    Raises
    ------
    ConfigErrors
        If a property asks for what no command of this version does.
    """
    errors: list[InputError] = []
    notes = []
    for name, section in spec.properties.items():
        asked = {"intervention": section.intervention}
        asked |= {f"escalation[{i}].action": s.action for i, s in enumerate(section.escalation)}
        for key, action in asked.items():
            if action in WHY_NOT:
                errors.append(
                    ConfigError(
                        f"Apollo {version} cannot do {action}: {WHY_NOT[action]}",
                        file=spec.file,
                        key=f"properties.{name}.{key}",
                        accepted=f"WARN, {', '.join(STOPPING)}",
                    )
                )
        wanted = list(asked.values())
        if "COMFORTABLE_STOP" in wanted:
            notes.append(f"{name}: Apollo knows one kind of stop, with hazard lights")
        if "PULL_OVER" in wanted and {"COMFORTABLE_STOP", "EMERGENCY_STOP"} & {
            *wanted[wanted.index("PULL_OVER") :]
        }:
            notes.append(f"{name}: {NO_PREEMPTION}")
    if errors:
        raise ConfigErrors(errors)
    return notes


class Command(NamedTuple):
    """A command: what it is called, the serialized message, and what must be said about it."""

    name: str
    data: bytes
    remark: str = ""


@dataclass
class Commander:
    """Turns the interventions that hold into commands.

    Attributes
    ----------
    way : Way
        How they reach planning.
    repeat_ns : int
        Nanoseconds after which a command in force is written again.
    current : str
        The command in force; empty while Apollo drives as it likes.
    """

    way: Way
    repeat_ns: int = 1_000_000_000
    current: str = ""
    _sent_ns: int = 0
    _number: int = 0
    _unwritten: bool = False

    def update(self, action: str, active: bool, now_ns: int) -> Command | None:
        """Return the command to write for the intervention that holds now, if any.

        Parameters
        ----------
        action : str
            Name of the constant of forewarn_msgs/msg/Intervention.
        active : bool
            Whether the planner is asked to do it.
        now_ns : int
            Time on the system's clock.
        """
        wanted = STOPPING.get(action, "") if active else ""
        if wanted == self.current:
            if self._unwritten:
                return self._command(wanted or self.way.resume, now_ns)
            if wanted and now_ns - self._sent_ns >= self.repeat_ns:
                return self._command(wanted, now_ns)
            return None
        before, self.current = self.current, wanted
        if not wanted:
            return self._command(self.way.resume, now_ns)
        remark = ""
        if before == "PULL_OVER" and wanted == "STOP":
            remark = NO_PREEMPTION
        return self._command(wanted, now_ns, remark)

    def not_written(self) -> None:
        """Take note that the last command did not get through: the next update repeats it."""
        self._unwritten = True

    def _command(self, name: str, now_ns: int, remark: str = "") -> Command:
        self._sent_ns = now_ns
        self._unwritten = False
        self._number += 1
        message = own_class(self.way.message)()
        message.header.timestamp_sec = now_ns / 1e9
        message.header.module_name = "forewarn"
        message.header.sequence_num = self._number
        if self.way.message == ACTION[1]:
            message.command_id = self._number
            message.command = self.way.numbers[name]
        else:
            message.action = self.way.numbers[name]
        return Command(name, message.SerializeToString(), remark)
