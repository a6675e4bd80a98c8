"""What /diagnostics has to remember from one report to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Lasting:
    """Since when signals have no value, and whether time jumps since several publish it.

    Attributes
    ----------
    unknown : mapping of str to int
        Tick at which a signal was first seen without a value, for those that have none.
    quarrels : bool
        The clock has jumped while it had several publishers.
    """

    def __init__(self) -> None:
        self.unknown: Mapping[str, int] = {}
        self.quarrels = False
        self._first: int | None = None
        self._calm_jumps = 0

    def signals(self, first: int, tick: int, values: Iterable[tuple[str, Any]]) -> None:
        """Take in the values at `tick`, where ticks began at `first`."""
        before = self.unknown if first == self._first else {}
        self._first = first
        self.unknown = {name: before.get(name, tick) for name, value in values if value is None}

    def clocks(self, publishers: int, jumps: int) -> None:
        """Take in how many publish the simulated time, and how often it has jumped so far."""
        if publishers < 2:
            self._calm_jumps = jumps
        self.quarrels = jumps > self._calm_jumps
