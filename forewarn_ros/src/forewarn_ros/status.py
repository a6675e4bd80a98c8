"""What goes to /diagnostics, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple


class Severity(IntEnum):
    """Levels of diagnostic_msgs/msg/DiagnosticStatus.

    Autoware's diagnostic graph takes a mode away at WARN as well as at ERROR: WARN says that the
    monitor cannot vouch for this part yet or for the moment, ERROR that an operator has to act.
    """

    OK = 0
    WARN = 1
    ERROR = 2


class Status(NamedTuple):
    """One subcomponent: `name` follows the node's name in the message."""

    name: str
    level: Severity
    message: str
    values: Mapping[str, Any]
