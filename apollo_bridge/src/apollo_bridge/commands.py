"""The commands that planning takes in each version of Apollo, and those of a monitor file it lacks.

Facts: modules/planning (pad, scenarios EmergencyStop and PullOver, frame.cc, the traffic rule
SpeedSetting) and modules/external_command of Apollo 7 to 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from forewarn.config.actions import ACTIONS, COMFORTABLE_STOP
from forewarn.config.file import MonitorSpec
from forewarn.config.sections import PropertySpec
from forewarn.errors import ConfigError, ConfigErrors, InputError

PAD = ("/apollo/planning/pad", "apollo.planning.PadMessage")
ACTION = ("/apollo/external_command/action", "apollo.external_command.ActionCommand")
PLANNING = ("/apollo/planning/command", "apollo.planning.PlanningCommand")
VERSIONS = (7, 8, 9, 10, 11)
FIRST_WITH_LIMITS = 9
STOPPING = {
    name: "PULL_OVER" if action.drives_on else "STOP"
    for name, action in ACTIONS.items()
    if action.stops
}
LIMITING = frozenset(name for name, action in ACTIONS.items() if action.limits)
NO_LIMITS = "planning has no command that carries a target speed before Apollo 9"
NEVER = {
    name: "planning makes its plans by itself, every 100 ms, and has no command for it"
    for name, action in ACTIONS.items()
    if action.effect in ("ask", "replace", "plan")
}
NO_PREEMPTION = "STOP cannot end a PULL_OVER that has begun: Apollo goes on pulling over"
NEEDS_ROUTE = "a limit of speed can be given only for a route that is sent while the bridge runs"


class Way(NamedTuple):
    """How stops reach planning."""

    target: str
    message: str
    numbers: Mapping[str, int]
    resume: str  # The action that ends the others
    service: bool  # Whether it is a service, which only Cyber RT itself can call, and no channel


WAYS = {
    "pad": Way(*PAD, {"PULL_OVER": 3, "STOP": 4, "RESUME_CRUISE": 5}, "RESUME_CRUISE", False),
    "action": Way(*ACTION, {"PULL_OVER": 4, "STOP": 5, "START": 6}, "START", True),
}


def way_of(version: int, way: str, transport: str = "cyber") -> Way:
    """Return how stops go to a version of Apollo."""
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
    if WAYS[way].service and transport == "tcp":
        raise ConfigError(
            f"{way!r} is a service of Cyber RT, and cyber_bridge carries channels only",
            key="parameter way",
            accepted="pad with the transport tcp",
        )
    return WAYS[way]


def asks_for_limits(spec: MonitorSpec) -> bool:
    """Tell whether a monitor file may ask for a limit of speed."""
    return any(
        not LIMITING.isdisjoint(_asked(section).values()) for section in spec.properties.values()
    )


def why_not(action: str, version: int) -> str:
    """Return why a version of Apollo cannot do an action; empty if it can."""
    if action in LIMITING and version < FIRST_WITH_LIMITS:
        return NO_LIMITS
    return NEVER.get(action, "")


def check(spec: MonitorSpec, version: int) -> list[str]:
    """Return what about the interventions of a monitor file is worth a warning."""
    errors: list[InputError] = []
    notes = []
    for name, section in spec.properties.items():
        asked = _asked(section)
        for key, action in asked.items():
            why = why_not(action, version)
            if why:
                errors.append(
                    ConfigError(
                        f"Apollo {version} cannot do {action}: {why}",
                        file=spec.file,
                        key=f"properties.{name}.{key}",
                        accepted=", ".join(_possible(version)),
                    )
                )
        notes += [f"{name}: {remark}" for remark in _remarks(list(asked.values()))]
    if errors:
        raise ConfigErrors(errors)
    return notes


def _asked(section: PropertySpec) -> dict[str, str]:
    asked: dict[str, str] = {"intervention": section.intervention}
    steps = enumerate(section.escalation)
    return asked | {f"escalation[{i}].action": step.action for i, step in steps}


def _possible(version: int) -> list[str]:
    return [n for n, action in ACTIONS.items() if action.askable and not why_not(n, version)]


def _remarks(wanted: list[str]) -> list[str]:
    remarks = []
    if COMFORTABLE_STOP in wanted:
        remarks.append("Apollo knows one kind of stop, with hazard lights")
    stops = [STOPPING[action] for action in wanted if action in STOPPING]
    if "PULL_OVER" in stops and "STOP" in stops[stops.index("PULL_OVER") :]:
        remarks.append(NO_PREEMPTION)
    if not LIMITING.isdisjoint(wanted):
        remarks.append(NEEDS_ROUTE)
    return remarks
