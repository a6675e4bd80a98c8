"""The page about topics, services, parameters and messages, from what the nodes create."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import rclpy
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy

from forewarn.config.sections import PropertySpec
from forewarn.signals.clock_kinds import clock_of
from monitor_node import parameters
from monitor_node.outputs import Outputs
from monitor_node.services import Services

ROOT = Path(__file__).resolve().parents[1]
MESSAGES = ROOT / "ros2_ws" / "src" / "forewarn_msgs"
ENTRY = re.compile(r"^(?P<name>\w+) : Publisher.*\n(?P<text>(?: {4}.*\n)+)", re.M)
TAKEN = re.compile(r"Takes effect at the next (\w+) transition\.")
RATE = 10.0
HEAD = """\
# Topics, services, parameters, messages

`~` is the name of the node, `/monitor` unless a launch file says otherwise. Each field of a message
is described in its file, which the type links to; `ros2 interface show forewarn_msgs/msg/Risk`
shows the same.

## What the monitor publishes

"""
INPUTS = """
Every `diagnostics_period` it also reports on `/diagnostics` (diagnostic_msgs/msg/DiagnosticArray).

A subscription matches if it asks for no more: `best_effort` or `reliable`, and no shorter deadline.
Figures are for 10 ticks a second: the deadline is two periods, the lease of liveliness five, at
least 0.2 s. Under `clock: steps` there is no deadline.

## What the monitor subscribes to

| Topic | Type | |
|---|---|---|
| topics of signals | as the monitor file says | QoS as the publishers offer it; `qos_overrides` |
| `~/input/signals` | {signals} | signals without a topic, by name |
| `~/input/arrivals` | {arrivals} | from a player: when they arrived |
| `/clock` | rosgraph_msgs/msg/Clock | with `use_sim_time` |

## Services of the monitor

"""
PROPERTIES = """\
They change a running monitor, and mean what [the keys of the property](monitor-file.md#properties)
mean; NaN is none. Values that only fit together are set together.
"""


def page() -> str:
    """Return the page in Markdown."""
    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    try:
        node = LifecycleNode("reference", context=context, enable_rosout=False)
        topics = list(_topics(node))
        services = list(_services(node))
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
    lines = ["| Topic | Type | When | Quality of service |", "|---|---|---|---|", *topics]
    signals, arrivals = (_link(MESSAGES / "msg" / f"{one}.msg") for one in ("Signals", "Arrivals"))
    inputs = INPUTS.format(signals=signals, arrivals=arrivals).rstrip()
    lines += [inputs, "", "| Service | Type | |", "|---|---|---|", *services]
    return HEAD + "\n".join([*lines, *_parameters(), *_messages("\n".join(lines))])


def _topics(node: LifecycleNode) -> Iterator[str]:
    outputs = Outputs(node, clock_of(RATE), "observe", anomalies=True, guards=True)
    described = (inspect.getdoc(Outputs) or "").partition("Attributes\n----------\n")[2] + "\n"
    for entry in ENTRY.finditer(described):
        publisher = getattr(outputs, entry["name"])
        topic = publisher.topic_name.replace("/reference/", "~/")
        text = " ".join(entry["text"].split()).replace("``", "`")
        kind = _linked(publisher.msg_type)
        yield f"| `{topic}` | {kind} | {text} | {_quality(publisher.qos_profile)} |"
    outputs.close()


def _services(node: Any) -> Iterator[str]:
    services = Services(node)
    for service in node.services:
        kind = service.srv_type
        if kind.__module__.startswith("forewarn_msgs"):
            text = _first(MESSAGES / "srv" / f"{kind.__name__}.srv")
            name = service.srv_name.replace("/reference/", "~/")
            yield f"| `{name}` | {_linked(kind)} | {text} |"
    services.close()


def _first(path: Path) -> str:
    """Return the comment at the head of a file, which says what it is about."""
    head = path.read_text(encoding="utf-8").split("\n\n")[0]
    return " ".join(line.lstrip("# ") for line in head.splitlines())


def _linked(kind: Any) -> str:
    package, folder = kind.__module__.split(".")[:2]
    name = f"{package}/{folder}/{kind.__name__}"
    if package != "forewarn_msgs":
        return name
    return _link(MESSAGES / folder / f"{kind.__name__}.{folder}")


def _link(path: Path) -> str:
    """Return a type of ours with a link to its file, from docs/reference."""
    return f"[{path.stem}](../../{path.relative_to(ROOT)})"


def _quality(profile: QoSProfile) -> str:
    words = [
        "reliable" if profile.reliability == ReliabilityPolicy.RELIABLE else "best effort",
        f"keeps {profile.depth}",
    ]
    if profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
        words.insert(1, "transient local")
    if 0 < profile.deadline.nanoseconds < 1e15:
        words.append(f"deadline {profile.deadline.nanoseconds / 1e9:g} s")
    if profile.liveliness == LivelinessPolicy.MANUAL_BY_TOPIC:
        lease = profile.liveliness_lease_duration.nanoseconds / 1e9
        words.append(f"liveliness manual by topic, {lease:g} s")
    return ", ".join(words)


def _parameters() -> Iterator[str]:
    sections = {
        "Parameters of monitor_node": parameters.NODE_PARAMETERS,
        "Parameters of each property": (),
        "Parameters of each input": parameters.quality_parameters("TOPIC"),
        "Parameters of bag_player_node": parameters.PLAYER_PARAMETERS,
        "Parameters of twist_gate_node": parameters.GATE_PARAMETERS,
        "Parameters of monitor_top": parameters.TOP_PARAMETERS,
    }
    for title, table in sections.items():
        yield from ("", f"## {title}", "")
        if title.endswith("monitor_node"):
            yield "[configure] and [activate] name the transition at which a change takes effect.\n"
        if title.endswith("property"):
            yield PROPERTIES
            yield ", ".join(f"`{entry.name}`" for entry in _of_properties())
        for entry in table:
            accepted = _accepted(entry)
            text = TAKEN.sub(r"[\1]", entry.descriptor.description.replace("NAME: ", "", 1))
            given = "; ".join(filter(None, (accepted, _default(entry.default))))
            yield f"- **`{entry.name}`** ({given}): {text}"


def _of_properties() -> Iterable[parameters.Parameter]:
    return parameters.policy_parameters("NAME", PropertySpec(formula="true"))


def _default(value: Any) -> str:
    if value in ("", [""]) or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"default `{str(value).lower() if isinstance(value, bool) else value}`"


def _accepted(entry: parameters.Parameter) -> str:
    descriptor = entry.descriptor
    kinds = {bool: "`true`, `false`", int: "whole number", float: "number", str: "text"}
    kind = "list of text" if isinstance(entry.default, list) else kinds[type(entry.default)]
    for bounds in (*descriptor.floating_point_range, *descriptor.integer_range):
        kind += f" from {bounds.from_value:g} up to {bounds.to_value:g}"
    return kind + ("; at the start" if descriptor.read_only else "")


def _messages(above: str) -> Iterator[str]:
    """Yield the messages and actions that the tables above do not name."""
    yield from ("", "## Other messages and actions", "")
    for folder in ("msg", "action"):
        for path in sorted((MESSAGES / folder).glob(f"*.{folder}")):
            if (link := _link(path)) not in above:
                sentence = _first(path).partition(". ")[0].rstrip(".")
                yield f"- {link}: {sentence}."
    yield ""
