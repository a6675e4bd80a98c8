"""From the name of a message or service type to the Python class that rclpy wants."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from forewarn.errors import InputError


class TypeNotInstalledError(InputError):
    """No installed package defines the type."""


def message_class(name: str, *, topic: str = "") -> Any:
    """Return the class of a message type such as ``nav_msgs/msg/Odometry``.

    Raises TypeNotInstalledError naming the package that is missing.
    """
    package, _, rest = name.partition("/")
    kind, _, base = rest.rpartition("/")
    where = f"topic {topic}" if topic else ""
    if kind in ("", "msg"):
        return interface_class(f"{package}/msg/{base}", where=where)
    # The messages of a service or an action are parts of its class.
    stem, _, part = base.partition("_")
    found = interface_class(f"{package}/{kind}/{stem}", where=where)
    for step in part.split("_"):
        inner = getattr(found, "Impl", found)
        found = getattr(inner, f"{step}Service", getattr(inner, step, getattr(found, step, None)))
        if found is None:
            raise TypeNotInstalledError(
                f"{package}/{kind}/{stem} has no message {base}",
                key=where,
                accepted=f"{stem}_FeedbackMessage" if kind == "action" else f"{stem}_Event",
            )
    return found


def interface_class(name: str, *, where: str = "") -> Any:
    """Return the class of a type: ``std_srvs/srv/SetBool``, ``nav2_msgs/action/NavigateToPose``.

    Raises TypeNotInstalledError naming the package that is missing.
    """
    package, kind, base = name.split("/")
    try:
        module = import_module(f"{package}.{kind}")
    except ImportError as error:
        raise TypeNotInstalledError(
            f"the type {name} cannot be used: {error}",
            key=where,
            accepted=f"an installed package {package} (apt install ros-$ROS_DISTRO-"
            f"{package.replace('_', '-')}, or source its workspace)",
        ) from error
    found = getattr(module, base, None)
    if found is None:
        word = {"msg": "message", "srv": "service"}.get(kind, kind)
        raise TypeNotInstalledError(
            f"the package {package} has no {word} {base}",
            key=where,
            accepted=", ".join(member for member in dir(module) if member[0].isupper()),
        )
    return found
