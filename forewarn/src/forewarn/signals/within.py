"""What several messages of one tick come to: the last of them, or all of them together.

Without a message in a tick, `max`, `min` and `any` give what the last one says alone, and `count`
is 0. An unknown value among several makes the result unknown, unless it is decided all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec

FASTER = 1.2
"""Messages for each tick from which on a topic is named: clocks are not quite alike."""


def _any(one: Any, other: Any) -> Any:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False


def _known(both: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return what is unknown where one of two values is."""
    return lambda one, other: None if one is None or other is None else both(one, other)


TOGETHER: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "max": _known(lambda one, other: other if other > one else one),
        "min": _known(lambda one, other: other if other < one else one),
        "any": _any,
        "count": _known(lambda one, other: one + other),
    }
)


def _one(value: Any) -> int:
    return int(bool(value))


ALONE: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"any": bool, "count": _one})
"""What one message says alone, where that is not its value."""


class Within:
    """The messages of a tick, for one signal.

    `within`: a key of `TOGETHER`.
    """

    def __init__(self, within: str) -> None:
        self._within = within
        self._tick: int | None = None
        self._last: Any = None
        self._result: Any = None

    def alone(self, value: Any) -> Any:
        """Return what one message says alone; None is unknown."""
        alone = ALONE.get(self._within)
        return value if value is None or alone is None else alone(value)

    def add(self, tick: int, value: Any) -> None:
        """Take in what a message says alone that belongs to a tick; ticks do not fall."""
        begun, self._tick, self._last = self._tick == tick, tick, value
        self._result = TOGETHER[self._within](self._result, value) if begun else value

    def at(self, tick: int) -> Any:
        """Return the value at a tick; messages of earlier ones are no part of it."""
        if self._tick == tick:
            return self._result
        return 0 if self._within == "count" else self._last


def note_of_faster_topics(spec: MonitorSpec, rates: Mapping[str, float]) -> str:
    """Name the topics whose signals leave messages out because the file gives no `within`.

    `rates`: messages of each topic in a second.
    """
    if spec.rate == "steps":
        return ""
    read = {signal.topic for signal in spec.signals.values() if signal.reads_last}
    fast = [
        f"{topic} ({rate:.3g} Hz)"
        for topic, rate in sorted(rates.items())
        if topic in read and rate > FASTER * spec.rate
    ]
    if not fast:
        return ""
    return (
        f"faster than the ticks ({spec.rate:g} Hz): {', '.join(fast)}. Only the newest message of "
        "a tick is read, so a short event may be missed (accepted: within: max, min, any or "
        "count; or last)"
    )
