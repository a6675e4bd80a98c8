"""The node's parameters: what each means, its range, and when it takes effect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node

from forewarn.config.sections import PropertySpec
from forewarn_ros.lifecycle import EXECUTORS
from monitor_node.qos import AUTO, DURABILITY, RELIABILITY

PREFIX, QUALITY = "properties.", "qos_overrides."
CONFIGURED = (PREFIX, QUALITY)
"""How parameters begin that are declared at configure: the monitor file says which there are."""
LONGEST = 4096
"""Characters of a text that a parameter may have: as many as a path in Linux."""
NEXT_CONFIGURE = "Takes effect at the next configure transition."
NEXT_ACTIVATE = "Takes effect at the next activate transition."


class Parameter(NamedTuple):
    """One parameter: name, default and descriptor."""

    name: str
    default: Any
    descriptor: ParameterDescriptor


def _parameter(
    name: str,
    default: Any,
    text: str,
    *,
    between: tuple[float, float] | None = None,
    read_only: bool = False,
) -> Parameter:
    descriptor = ParameterDescriptor(description=text, read_only=read_only)
    if between is not None and isinstance(default, float):
        low, high = between
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    elif between is not None:
        least, most = map(int, between)
        descriptor.integer_range = [IntegerRange(from_value=least, to_value=most, step=1)]
    return Parameter(name, default, descriptor)


NODE_PARAMETERS = (
    _parameter("config", "", f"Monitor file (YAML). {NEXT_CONFIGURE}"),
    _parameter(
        "model",
        "",
        "Model file (JSON); empty: the one that the monitor file names. The service "
        f"~/load_model replaces it while running. {NEXT_CONFIGURE}",
    ),
    _parameter(
        "model_limit",
        32,
        "Megabytes that a model file may have; a larger one is refused before it is read.",
        between=(1, 256),
    ),
    _parameter(
        "mode",
        "observe",
        "'observe': interventions are published, none is active. 'act': they are active if "
        f"the monitor file says `mode: act` as well. {NEXT_CONFIGURE}",
    ),
    _parameter(
        "autostart",
        False,
        "Configure and activate at once, without a lifecycle manager.",
        read_only=True,
    ),
    _parameter(
        "record",
        "",
        "MCAP file to write all inputs and verdicts to, so that they can be replayed to the "
        f"same bits; empty: none. Where there is one it gets a number: NAME-2. {NEXT_ACTIVATE}",
    ),
    _parameter(
        "record_key",
        "",
        "File with the key of the chain of hashes beside `record`, 16 to 4,096 bytes; empty: "
        f"the chain has no key. {NEXT_ACTIVATE}",
    ),
    _parameter(
        "learn_to",
        "",
        "Model file to write at the end with all counts, where the monitor file has "
        "`learning: {online: true}`; empty: none. What is no model file is not written over. "
        f"{NEXT_ACTIVATE}",
    ),
    _parameter(
        "journal",
        "",
        "File that keeps pending obligations, alerts, and what actuators have in force, so "
        f"that they survive a crash; empty: none. {NEXT_ACTIVATE}",
    ),
    _parameter(
        "journal_max_age",
        60.0,
        "Seconds after which obligations and mutes in the journal count no more; alerts that "
        f"asked for something go on at any age. {NEXT_ACTIVATE}",
        between=(0.0, 86400.0),
    ),
    _parameter(
        "bond",
        False,
        "Form a bond with Nav2's lifecycle manager while active (needs the package bond); "
        f"without it the manager needs bond_timeout: 0.0. {NEXT_CONFIGURE}",
    ),
    _parameter(
        "background_bounds",
        True,
        "Begin without the credible bounds of the risk, which take seconds for a large model, "
        "and put them into force when they are computed. They come first in any case under "
        f"simulated time, and where a property's risk_measure is upper. {NEXT_CONFIGURE}",
    ),
    _parameter(
        "executor",
        "single",
        "'single' (rclpy's SingleThreadedExecutor) or 'events' (EventsExecutor: experimental, "
        "about half the CPU, absent on Humble, where 'single' stands in).",
        read_only=True,
    ),
    _parameter(
        "queue_depth",
        50,
        f"Messages that may wait on each input between two ticks. {NEXT_ACTIVATE}",
        between=(1, 10_000),
    ),
    _parameter(
        "shared_inputs",
        [""],
        "Topics that several publishers share on purpose; on any other input a second "
        "publisher is a WARN.",
    ),
    _parameter(
        "max_clock_step",
        5.0,
        "Seconds; a clock that moves on by more at once has jumped, and monitoring starts "
        f"again. Backward jumps always do that. {NEXT_ACTIVATE}",
        between=(0.1, 3600.0),
    ),
    _parameter(
        "diagnostics_period",
        0.5,
        "Seconds between two messages on /diagnostics; below 1, at which Autoware's graph "
        "takes them for stale.",
        between=(0.05, 0.9),
        read_only=True,
    ),
)

GATE_PARAMETERS = (
    _parameter(
        "config", "", "Monitor file (YAML); its actuators.twist describes the gate.", read_only=True
    ),
    _parameter(
        "open_for",
        0.0,
        "Setting it lets commands pass unchecked for that many seconds, so that a robot can "
        "be driven out of where it was stopped; 0 ends that.",
        between=(0.0, 600.0),
    ),
)

PLAYER_PARAMETERS = (
    _parameter("bag", "", "Recording to play.", read_only=True),
    _parameter(
        "topics", [""], "Topics to play, as the recording names them; none: all.", read_only=True
    ),
    _parameter(
        "lockstep",
        False,
        "Play as fast as the monitor decides: all messages up to a tick, then /clock, then "
        "wait for the verdict of that tick. Gives the same bits as `forewarn replay`. It waits "
        "for the monitor to be there, for as long as that takes.",
        read_only=True,
    ),
    _parameter(
        "rate",
        0.0,
        "Times real time, if above 0. At 0 it plays in real time, and in lock-step as fast as "
        "the monitor decides.",
        between=(0.0, 1000.0),
        read_only=True,
    ),
    _parameter("loop", False, "Begin again at the end.", read_only=True),
    _parameter(
        "start_offset",
        0.0,
        "Seconds to leave out at the beginning.",
        between=(0.0, 1e7),
        read_only=True,
    ),
    _parameter(
        "clock",
        True,
        "Publish /clock unless another node does; in lock-step it always does.",
        read_only=True,
    ),
    _parameter("monitor", "/monitor", "Full name of the monitor to wait for.", read_only=True),
    _parameter(
        "wait_for_monitor",
        False,
        "Do not begin before the monitor listens, however long that takes.",
        read_only=True,
    ),
    _parameter(
        "timeout",
        30.0,
        "Seconds to wait for an answer of the monitor, once it is there, before giving up.",
        between=(0.1, 3600.0),
        read_only=True,
    ),
)

POLICY_TEXTS: Mapping[str, str] = {
    "warn": "Figure at or above which WARN begins.",
    "act": "Figure at or above which the intervention is asked for; above release.",
    "release": "Figure below which an intervention may end; below act.",
    "enter": "Consecutive ticks at or above a threshold that begin an alert.",
    "exit": "Consecutive ticks below release that end an alert.",
    "hold": "Seconds that an alert lasts at the least.",
    "out_of_model": "Level in a state that the model has never seen: act, warn or ignore.",
    "out_of_model_timeout": "Seconds after which such a state asks for a limit or WARN at most.",
    "out_of_model_speed": "That speed limit in m/s, where an actuator can set one; else WARN.",
    "risk_measure": "What is compared with the thresholds: risk, upper (its upper bound), min_risk "
    "(the least risk over all ways to choose) or expected (the mean over what the state may be), "
    "both where the monitor file has them already.",
    "intervention": "What is asked for at act.",
    "speed_limit": "Upper limit of the speed in m/s, for LIMIT_SPEED; NaN: none.",
}
_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("warn", "act", "release"), (0.0, 1.0)),
    **dict.fromkeys(("hold", "out_of_model_timeout"), (0.0, 3600.0)),
    **dict.fromkeys(("enter", "exit"), (1, 100_000)),
}
_OPTIONAL = ("speed_limit",)


TOP_PARAMETERS = (
    _parameter("monitor", "/monitor", "The monitor to watch.", read_only=True),
    _parameter(
        "mute",
        60.0,
        "Seconds for which the key m mutes a property.",
        between=(0.1, 86_400.0),
        read_only=True,
    ),
)


def declare(node: Node, parameters: Iterable[Parameter]) -> None:
    """Declare parameters; those that are declared already are left as they are."""
    for parameter in parameters:
        if not node.has_parameter(parameter.name):
            node.declare_parameter(parameter.name, parameter.default, parameter.descriptor)


def policy_parameters(name: str, section: PropertySpec) -> tuple[Parameter, ...]:
    """Return the parameters of one property, with the values of the monitor file as defaults."""
    values = {**section.model_dump(), **section.thresholds.model_dump()}
    return tuple(
        _parameter(
            f"{PREFIX}{name}.{key}",
            math.nan if values[key] is None else values[key],
            f"{name}: {text}",
            between=_RANGES.get(key),
        )
        for key, text in POLICY_TEXTS.items()
    )


def policy_values(
    names: Iterable[str], value: Callable[[str], Any]
) -> dict[str, dict[str, object]]:
    """Return values by property and key from parameters named ``properties.NAME.KEY``."""
    found: dict[str, dict[str, object]] = {}
    for name in names:
        if not name.startswith(PREFIX):
            continue
        section, _, key = name.removeprefix(PREFIX).rpartition(".")
        given = value(name)
        if key in _OPTIONAL and isinstance(given, float) and math.isnan(given):
            given = None
        found.setdefault(section, {})[key] = given
    return found


def quality_parameters(topic: str) -> tuple[Parameter, ...]:
    """Return the parameters that prescribe an input's quality of service."""
    return tuple(
        _parameter(
            f"{QUALITY}{topic}.subscription.{policy}",
            AUTO,
            f"{policy} asked for on {topic}: {', '.join((AUTO, *choices))}; {AUTO} follows what "
            f"the publishers offer. {NEXT_ACTIVATE}",
        )
        for policy, choices in (("reliability", RELIABILITY), ("durability", DURABILITY))
    )


def fixed_quality(node: Node, topic: str) -> tuple[bool | None, bool | None]:
    """Return the prescribed reliability and durability of an input; None where it follows."""
    reliability, durability = (
        str(node.get_parameter(quality_parameter.name).value)
        for quality_parameter in quality_parameters(topic)
    )
    return RELIABILITY.get(reliability), DURABILITY.get(durability)


def refuse(name: str, value: Any) -> str:
    """Return why a value is refused that its descriptor allows; empty if it is not."""
    texts = value if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(text, str) and len(text) > LONGEST for text in texts):
        return f"{name}: a text of more than {LONGEST} characters (accepted: that many at most)"
    choices: tuple[str, ...] = ()
    if name == "executor":
        choices = EXECUTORS
    elif name == "mode":
        choices = ("observe", "act")
    elif name.startswith(QUALITY) and name.endswith(".subscription.reliability"):
        choices = (AUTO, *RELIABILITY)
    elif name.startswith(QUALITY) and name.endswith(".subscription.durability"):
        choices = (AUTO, *DURABILITY)
    if choices and value not in choices:
        return f"{name}: {value!r} (accepted: {', '.join(choices)})"
    return ""
