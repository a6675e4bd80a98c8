"""What names of topics and values tell about what they hold: a guess, for a first file."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from forewarn.cli.init.catalogue import Role

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_COMMANDS = frozenset([
    "cmd", "cmds", "command", "commands", "commanded", "setpoint", "target", "desired", "ref",
    "reference", "teleop", "joy",
])  # fmt: skip
_MEASURED = frozenset([
    "measured", "actual", "odom", "odometry", "vehicle", "status", "state", "feedback",
    "report", "current", "estimate", "estimated", "gps", "gnss", "imu", "localization",
    "sensing", "sensor",
])  # fmt: skip
_DISTANCES = frozenset([
    "dist", "distance", "distances", "clearance", "gap", "headway", "nearest", "proximity",
])  # fmt: skip
_NO_DISTANCES = frozenset([
    "age", "time", "travelled", "traveled", "driven", "total", "odometer", "limit", "max",
    "threshold",
])  # fmt: skip
_SPEEDS = frozenset([
    "speed", "velocity", "vel",
])  # fmt: skip
_NO_SPEEDS = frozenset([
    "limit", "max", "min", "angular", "ang", "yaw", "lateral", "wind", "x", "y", "z",
]).union(_COMMANDS)  # fmt: skip
_PLACES = frozenset([
    "x", "y", "z", "lat", "lon", "latitude", "longitude", "altitude", "position", "pose",
    "heading", "yaw", "time", "stamp", "age", "id", "index", "seq", "count", "run", "step",
    "frame", "qx", "qy", "qz", "qw",
])  # fmt: skip
_ENDS = {
    **dict.fromkeys(("collision", "collided", "collide", "collides", "hit"), "collision"),
    **dict.fromkeys(("crash", "crashed"), "crash"),
    **dict.fromkeys(("fall", "fell", "fallen", "toppled"), "fall"),
}
_NO_ENDS = frozenset([
    "no", "not", "near", "free", "warning", "alert", "imminent", "risk", "predicted", "avoidance",
    "monitor", "checker", "detector", "detection", "enabled", "active",
])  # fmt: skip
_GOALS = frozenset([
    "reward", "rewards", "score", "scores", "return", "returns", "done", "success", "successes",
    "successful", "succeeded", "solved", "passed", "utility", "goal", "arrived", "finished",
    "completed", "accomplished",
])  # fmt: skip
_ARRIVALS = frozenset([
    "arrived", "finished", "completed", "accomplished", "done", "succeeded", "solved",
])  # fmt: skip
_TIMES_TO = frozenset(["ttc", "ttx", "tta", "thw"])
_NO_GOALS = frozenset([
    "attack", "attacker", "injection", "danger", "risk", "harm", "unsafe", "violation", "anomaly",
    "fail", "failed", "failure", "error", "errors", "distance", "dist",
]).union(_ENDS)  # fmt: skip


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name such as ``/base/cmd_vel`` or ``minDistToEgo``, in lower case."""
    return tuple(word.lower() for word in _WORD.findall(name))


def is_truth(name: str) -> bool:
    """Tell whether only a simulator or a test knows the value: the ground truth."""
    found = words(name)
    joined = "_".join(found)
    return "groundtruth" in joined.replace("_", "") or not {"gt", "truth"}.isdisjoint(found)


def is_command(topic: str, *, stamped: bool) -> bool:
    """Tell whether a twist is asked for; a measured one has a stamp, or a name that says so."""
    found = set(words(topic))
    if found & _COMMANDS:
        return True
    return not stamped and not found & _MEASURED


def is_place(name: str) -> bool:
    """Tell whether a number is a place, a time or a count, of which none is too high."""
    return words(name)[-1:] != () and words(name)[-1] in _PLACES


def end_of(name: str) -> str:
    """Return the terminal label that a truth value of this name is; empty without one."""
    found = words(name)
    if not _NO_ENDS.isdisjoint(found):
        return ""
    return next((_ENDS[word] for word in found if word in _ENDS), "")


def is_goal(name: str) -> bool:
    """Tell whether a value says how well a run went, such as ``reward``: it is no hazard."""
    found = set(words(name))
    return bool(found & _GOALS) and not found & _NO_GOALS


def is_arrival(name: str) -> bool:
    """Tell whether a truth value says that a run has come to its end: no state to go on from."""
    return is_goal(name) and not _ARRIVALS.isdisjoint(words(name))


def is_time_to(name: str) -> bool:
    """Tell whether a number says how soon something comes, such as ``time_to_collision``."""
    found = words(name)
    return not _TIMES_TO.isdisjoint(found) or ("time", "to") in pairwise(found)


def role_of(name: str, values: Sequence[Any]) -> Role:
    """Return what a value is good for, by its name and what it was.

    A number that is infinite at times and never below 0 is a distance, or a time until something:
    infinite while nothing is ahead. The smaller, the nearer.
    """
    if not values:
        return Role.OTHER
    if all(isinstance(value, bool) for value in values):
        return Role.FLAG
    found = set(words(name))
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        return Role.OTHER
    if (found & _DISTANCES and not found & _NO_DISTANCES) or is_time_to(name):
        return Role.DISTANCE
    if math.inf in values and 0 <= min(value for value in values if value == value) < math.inf:
        return Role.DISTANCE
    if found & _SPEEDS and not found & _NO_SPEEDS:
        return Role.SPEED
    return Role.OTHER
