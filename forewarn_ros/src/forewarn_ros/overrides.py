"""Parameters that are given at a start and that no node takes; ROS says nothing of them.

The node warns of them and goes on: a file may give a parameter to all nodes (``/**``), and to
reject
one does not know is bad practice in ROS (ros2/rclcpp#1587).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from rclpy.node import Node

BY_CLOCK = "qos_overrides./clock."
"""What only a node under simulated time has; a file may give it to all."""


def tell_ignored(node: Node, among: Callable[[str], bool] = lambda name: True) -> None:
    """Warn of given parameters that a node has not declared, and say what is called alike."""
    given: Any = getattr(node, "_parameter_overrides", {})  # rclpy has no other way to know
    known = sorted(node.get_parameters_by_prefix(""))
    ignored = [
        f"{name} (nearest: {get_close_matches(name, known, 1, 0.0)[0]})"
        for name in sorted(given)
        if among(name) and not node.has_parameter(name) and not name.startswith(BY_CLOCK)
    ]
    if ignored:
        node.get_logger().warning(f"ignored, no parameters of this node: {', '.join(ignored)}")


def tell_unaddressed(node: Node) -> None:
    """Warn of each file of parameters that this process was given and that has none for a node."""
    for file in _files(sys.argv):
        if warning := unaddressed(node.get_fully_qualified_name(), Path(file)):
            node.get_logger().warning(warning)


def unaddressed(own: str, file: Path) -> str:
    """Say whose parameters a file has, if none of them are a node's; empty if some are."""
    try:
        documents = list(yaml.compose_all(file.read_bytes(), yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:  # rcl has read it, with a parser of its own
        return f"{file}: not read, so its parameters have no effect: {' '.join(str(error).split())}"
    names = list(dict.fromkeys(name for document in documents for name in _names(document)))
    if any(re.fullmatch(_pattern(name), own) for name in names):
        return ""
    found = f"its parameters are for {', '.join(names)}" if names else "it names no node"
    return f"{file}: no parameters for this node, {own}: {found}"


def _files(arguments: Sequence[str]) -> list[str]:
    """Return the files of parameters among a process's arguments, the same one once."""
    found, of_ros = dict[str, None](), False
    for argument, following in zip(arguments, (*arguments[1:], ""), strict=True):
        if argument in ("--ros-args", "--"):
            of_ros = argument == "--ros-args"
        elif of_ros and argument == "--params-file":
            found[following] = None
    return list(found)


def _names(tree: yaml.Node, of: str = "") -> Iterator[str]:
    """Yield the names of nodes in a file of parameters; namespaces may be nested."""
    if not isinstance(tree, yaml.MappingNode):
        return
    for key, value in tree.value:
        if key.value == "ros__parameters":
            yield of
        else:
            yield from _names(value, f"{of}/{key.value.strip('/')}".replace("//", "/"))


def _pattern(name: str) -> str:
    """Return what a name matches: ``*`` stands for one part of a name, ``**`` for any number."""
    parts = {"/**": r"(/\w+)*", "/*": r"/\w+"}
    return re.sub(r"/\*\*?", lambda wildcard: parts[wildcard[0]], name)
