"""Signals that arrive, and the form in which their values are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from forewarn.errors import FieldError, located
from forewarn.expressions.syntax import Expression
from forewarn.expressions.values import Unknown
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import Extractor, compile_extractor
from forewarn.messages.foreign import ForeignExtractor
from forewarn.signals.snapshots import Snapshot, StaleSignal

if TYPE_CHECKING:
    from forewarn.config.signals import FrameSpec


@dataclass(frozen=True)
class SourceSignal:
    """A signal that arrives: from a topic, or by name where `topic` is empty.

    `where`: holds for the messages that are meant; None for all of the topic.
    `frame`: the signal is a value of this pose, and `topic` is that of its transforms.
    `within`: which messages of a tick count: ``last``, or all of them as `within.TOGETHER` says.
    """

    name: str
    topic: str
    message_type: str
    expression: Expression | None
    timeout_ns: int  # greatest age at which a sample still counts; negative for never stale
    default: float | bool | str | list[float] | None
    stale: str = "worst"  # what an older one means: ``worst``, ``hold`` or ``ignore``
    where: Expression | None = None
    frame: FrameSpec | None = None
    within: str = "last"

    @property
    def by_platform(self) -> bool:
        """Tell whether the last bits are those of the processor at hand."""
        used = [one for one in (self.expression, self.where) if one is not None]
        return self.frame is not None or any(one.by_platform for one in used)


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


def extractor_of(
    mtype: MessageType, sources: Sequence[SourceSignal]
) -> Extractor | ForeignExtractor:
    """Return what reads the values of signals from messages of one type, all at once.

    Raises FieldError if an expression does not fit the type; names the signal.
    """
    expressions = [source.expression for source in sources if source.expression is not None]
    try:
        return compile_extractor(mtype, expressions)
    except FieldError:
        for source, expression in zip(sources, expressions, strict=True):
            with located(FieldError, key=f"signals.{source.name}.value"):
                compile_extractor(mtype, [expression])
        raise


def snapshot_of(
    sources: Sequence[SourceSignal],
    values: Mapping[str, Any],
    tick: int,
    time_ns: int,
    action: str | None = None,
) -> Snapshot:
    """Return the snapshot of a moment at which these values arrived, and nothing else ever did."""
    found = tuple([stored_value(values.get(s.name, s.default)) for s in sources])
    missing = [s.name for s in sources if s.name not in values and s.default is None]
    stale = tuple([StaleSignal(name, None) for name in missing])
    return Snapshot(tick, found, stale, (), False, time_ns, action)
