"""Parameters that are given at a start and that the node does not have; ROS says nothing of them.

They are told, not refused: a file may give a parameter to all nodes (``/**``), and to reject what
one does not know is bad practice in ROS (ros2/rclcpp#1587).
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from rclpy.node import Node

BY_CLOCK = "qos_overrides./clock."
"""What only a node under simulated time has; a file may give it to all."""


def tell_ignored(node: Node, among: Callable[[str], bool] = lambda name: True) -> None:
    """Warn of given parameters that a node has not declared, and say what is called alike.

    Parameters
    ----------
    node : Node
        It has declared all that it takes.
    among : callable
        Tells of a name whether it is looked at.
    """
    given: Any = getattr(node, "_parameter_overrides", {})  # rclpy has no other way to know
    known = sorted(node.get_parameters_by_prefix(""))
    ignored = [
        f"{name} (nearest: {get_close_matches(name, known, 1, 0.0)[0]})"
        for name in sorted(given)
        if among(name) and not node.has_parameter(name) and not name.startswith(BY_CLOCK)
    ]
    if ignored:
        node.get_logger().warning(f"ignored, no parameters of this node: {', '.join(ignored)}")
