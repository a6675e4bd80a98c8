"""The values of all signals over a run, for pictures."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NAN = float("nan")


class SignalSeries(NamedTuple):
    """One signal over a run.

    `values` (shape (n,)): one value a tick, NaN where unknown; the length of an array; the position
        of a text in `texts`.
    `kind`: ``number``, ``truth``, ``text`` or ``array`` (its length is shown).
    """

    name: str
    values: NDArray[np.float64]
    kind: str
    texts: tuple[str, ...]


class SignalLog:
    """Collects the values of all signals, tick by tick.

    `names`: signals in slot order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._columns = tuple(array("d") for _ in names)
        self._kinds = ["number"] * len(self._names)
        self._texts: list[dict[str, int]] = [{} for _ in names]

    def add(self, values: Sequence[Any], times: int = 1) -> None:
        """Take in the values of some ticks that are the same; None is unknown."""
        for slot, value in enumerate(values):
            self._columns[slot].extend((self._number(slot, value),) * times)

    def _number(self, slot: int, value: Any) -> float:
        if value is None:
            return NAN
        if isinstance(value, bool):
            self._kinds[slot] = "truth"
            return float(value)
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str):
            self._kinds[slot] = "text"
            return float(self._texts[slot].setdefault(value, len(self._texts[slot])))
        self._kinds[slot] = "array"
        return float(len(value))

    def series(self) -> tuple[SignalSeries, ...]:
        """Return all signals in slot order."""
        return tuple(
            SignalSeries(name, np.array(column, dtype=np.float64), kind, tuple(texts))
            for name, column, kind, texts in zip(
                self._names, self._columns, self._kinds, self._texts, strict=True
            )
        )
