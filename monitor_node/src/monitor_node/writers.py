"""Who has published a message: the DDS identity, where rclpy tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from rclpy.subscription import MessageInfo

    TOLD = "publisher_gid" in MessageInfo.__annotations__
except ImportError:  # before Kilted
    TOLD = False

Callback = Callable[[Any, bytes], None]


def with_writer(callback: Callback) -> Callable[..., None]:
    """Return what to subscribe with so that `callback` gets the message and its writer's identity.

    The identity is empty where rclpy does not tell it, before Kilted. The events executor dies of
    such a callback: only for nodes that another one runs.
    """
    if not TOLD:
        return lambda message: callback(message, b"")
    return lambda message, info: callback(message, _identity(info))


def _identity(info: Any) -> bytes:
    gid = info.get("publisher_gid")
    return b"" if gid is None else bytes(gid["data"])
