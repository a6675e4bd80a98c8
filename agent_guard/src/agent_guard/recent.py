"""Plain data that was made a moment ago, and the values that it was made from."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

Value = TypeVar("Value")
MOST = 256


class Recent(Generic[Value]):
    """Remembers values of objects by their identity; an equal object is another one.

    A framework hands plain data back as it got them, unless it has written them down in between.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[object, Value]] = {}
        self._lock = threading.Lock()

    def keep(self, data: object, value: Value) -> None:
        """Remember what an object was made from."""
        with self._lock:
            self._kept[id(data)] = data, value
            if len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]

    def find(self, data: object) -> Value | None:
        """Return what an object was made from; None if that is not known."""
        kept = self._kept.get(id(data))
        return kept[1] if kept is not None and kept[0] is data else None
