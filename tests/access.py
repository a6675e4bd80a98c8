"""The example policy of SROS 2, compared with what a node publishes, subscribes to and offers.

Not a conftest: imported by name, for the bridge's tests compare with it as well.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Other distributions publish and serve these as well, or not; topics of inputs are the user's.
OPTIONAL = {"/clock", "/bond", "/odom", "/scan", "/monitor/input/signals"}
VARYING = ("get_type_description", "get_logger_levels", "set_logger_levels")
KINDS = (
    ("topic", "publish", "get_publisher_names_and_types_by_node"),
    ("topic", "subscribe", "get_subscriber_names_and_types_by_node"),
    ("service", "reply", "get_service_names_and_types_by_node"),
    ("service", "request", "get_client_names_and_types_by_node"),
)


def policy(repository: Path) -> ET.Element:
    """Return the root of the policy."""
    return ET.parse(repository / "config" / "sros2" / "policy.xml").getroot()


def allowed(repository: Path, node: str, section: str, right: str) -> set[str]:
    """Return the full names of what one profile allows."""
    (profile,) = policy(repository).findall(f".//profile[@node='{node}']")
    return {
        (entry.text or "").replace("~", f"/{node}")
        for part in profile.findall(f"{section}s[@{right}='ALLOW']")
        for entry in part.findall(section)
        if not (entry.text or "").endswith(VARYING)
    }


def names(found: Iterable[tuple[str, list[str]]]) -> set[str]:
    """Return the names of topics or services that every distribution has."""
    return {name for name, _ in found if not name.endswith(VARYING)}


def compare(
    repository: Path, graph: Any, wait: Callable[..., Any], node: str, inputs: set[str]
) -> None:
    """Wait until a running node does what its profile allows, no less and no more.

    Parameters
    ----------
    graph : Node
        One that sees the ROS graph.
    wait : callable
        Waits for a condition, with what to say in vain.
    inputs : set of str
        Topics that this node's monitor file or recording brings with it.
    """
    wait(lambda: node in graph.get_node_names(), f"the node {node}")
    for section, right, look_up in KINDS:
        granted = allowed(repository, node, section, right)

        def differences(granted: set[str] = granted, look_up: str = look_up) -> set[str]:
            used = names(getattr(graph, look_up)(node, "/"))
            return (used - granted - inputs - OPTIONAL) | (granted - used - OPTIONAL)

        wait(
            lambda check=differences: not check(),
            lambda check=differences, what=f"{section} {right}": f"{node} {what}: {check()}",
        )
