"""From the name of a message type to the Python class that rclpy wants."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from forewarn.errors import InputError


class TypeNotInstalledError(InputError):
    """No installed package defines the message type."""


def message_class(name: str, *, topic: str = "") -> Any:
    """Return the class of a message type such as ``nav_msgs/msg/Odometry``.

    Parameters
    ----------
    name : str
        Full name of the type.
    topic : str
        Where it is wanted, for the error.

    Raises
    ------
    TypeNotInstalledError
        Naming the package that is missing.
    """
    package, _, base = name.replace("/msg/", "/").partition("/")
    where = f"topic {topic}" if topic else ""
    try:
        module = import_module(f"{package}.msg")
    except ImportError as error:
        raise TypeNotInstalledError(
            f"the message type {name} cannot be used: {error}",
            key=where,
            accepted=f"an installed package {package} (apt install ros-$ROS_DISTRO-"
            f"{package.replace('_', '-')}, or source its workspace)",
        ) from error
    found = getattr(module, base, None)
    if found is None:
        raise TypeNotInstalledError(
            f"the package {package} has no message {base}",
            key=where,
            accepted=", ".join(each for each in dir(module) if each[0].isupper()),
        )
    return found
