"""Signals that arrive, and the form in which their values are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forewarn.expressions import Expression, Unknown


@dataclass(frozen=True)
class SourceSignal:
    """A signal that arrives: from a topic, or by name where `topic` is empty.

    Attributes
    ----------
    timeout_ns : int
        Greatest age at which a sample still counts; negative for never stale.
    stale : str
        What an older one means: ``worst``, ``hold`` or ``ignore``.
    where : Expression or None
        Holds for the messages that are meant; None for all of the topic.
    """

    name: str
    topic: str
    message_type: str
    expression: Expression | None
    timeout_ns: int
    default: float | bool | str | list[float] | None
    stale: str = "worst"
    where: Expression | None = None


def stored_value(value: Any) -> Any:
    """Return a signal value in the form that is stored: Python scalar, array, list or None."""
    kind = type(value)
    if kind is float:
        return None if value != value else value
    if kind is bool or kind is int or kind is str or kind is list:
        return value
    if isinstance(value, Unknown):
        return None
    if isinstance(value, np.generic):
        return stored_value(value.item())
    return (
        stored_value(value.item()) if isinstance(value, np.ndarray) and value.ndim == 0 else value
    )
