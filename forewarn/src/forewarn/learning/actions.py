"""What was done at each tick of a recording, for the decision process."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from forewarn.config.file import MonitorSpec
from forewarn.errors import RecordingError
from forewarn.recordings.interface import Sample
from forewarn.signals.clock import Moments
from forewarn.states.abstraction import Abstraction

KEY = "action"
"""Key of a trace's line that names what was done after the state."""


class ActionReader:
    """Reads actions: by the expression of the monitor file, or else from the lines of a trace.

    A line's action is in force from its moment until the next line. A trace whose monitor file
    declares a signal of that name has no actions of its own.
    """

    def __init__(self, spec: MonitorSpec, abstraction: Abstraction) -> None:
        self._abstraction = abstraction
        self._listens = spec.action is None and KEY not in spec.signals
        self._waiting: deque[tuple[int, str | None]] = deque()
        self._action: str | None = None

    def listen(self, samples: Iterable[Sample], moments: Moments) -> Iterator[Sample]:
        """Pass samples on, and take note of what the lines of a trace say.

        Raises RecordingError if an action is no text.
        """
        for sample in samples:
            if self._listens and not isinstance(sample.data, (bytes, memoryview)):
                action = sample.data.get(KEY)
                if action is None or action != action:
                    action = None
                elif not isinstance(action, str):
                    raise RecordingError(
                        f"{KEY}: {action!r} at {sample.time_ns / 1e9:g} s",
                        accepted="a text, or null; or a signal of that name in the monitor file",
                    )
                self._waiting.append((moments.following(sample.time_ns), action))
            yield sample

    def at(self, tick: int, values: Sequence[Any]) -> tuple[str | None, str]:
        """Return the action at a tick, None if unknown, and why it is unknown."""
        if self._abstraction.action is not None:
            return self._abstraction.done(values)
        while self._waiting and self._waiting[0][0] <= tick:
            self._action = self._waiting.popleft()[1]
        return self._action, ""
