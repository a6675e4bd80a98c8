"""The feed that a monitor file asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from forewarn.errors import located
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.feed import NO_READERS, Feed, Reader

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.messages.definitions import MessageType
    from forewarn.states.abstraction import Abstraction


def open_feed(
    spec: MonitorSpec,
    abstraction: Abstraction,
    message_types: Mapping[str, MessageType],
    readers: Mapping[str, Reader] = NO_READERS,
) -> Feed:
    """Return a feed for the sources of `abstraction`; `readers` are those of `Feed`.

    Raises FieldError if an expression reads a field that its message does not have; names the file.
    """
    stamped = spec.timestamp_source == "header"
    with located(file=spec.file):
        return Feed(
            abstraction.sources,
            message_types,
            abstraction.clock,
            stamped=stamped,
            settle_ns=round(spec.settle * NANOSECONDS) if stamped else 0,
            readers=readers,
        )
