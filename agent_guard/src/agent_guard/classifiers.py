"""Numbers that functions or models of the user give to the results of tools."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from agent_guard.outcomes import GuardError

MOST_REMEMBERED = 4_096
"""Texts of which the numbers are remembered, for each classifier."""


class Classified(NamedTuple):
    """Numbers of results by the classifier's name, and seconds that each took just now."""

    values: Mapping[str, list[float]]
    seconds: Mapping[str, float]


class Classifiers:
    """Asks each classifier about each text once; may be shared by runs and threads."""

    def __init__(self, functions: Mapping[str, Callable[[str], float]]) -> None:
        self._functions = dict(functions)
        self._known: dict[str, OrderedDict[str, float]] = {n: OrderedDict() for n in functions}
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._functions)

    def classify(self, texts: Sequence[str | None]) -> Classified:
        """Return what the classifiers say of texts; NaN for one that is not known.

        Raises GuardError if a classifier raises, or gives no number.
        """
        values, seconds = {}, {}
        for name in self._functions:
            began = time.perf_counter()
            values[name] = [self._of(name, text) for text in texts]
            seconds[name] = time.perf_counter() - began
        return Classified(values, seconds)

    def _of(self, name: str, text: str | None) -> float:
        if text is None:
            return math.nan
        known = self._known[name]
        with self._lock:
            if text in known:
                known.move_to_end(text)
                return known[text]
        try:
            given = self._functions[name](text)
        except Exception as error:
            raise GuardError(f"the classifier {name!r} failed: {error!r}") from error
        try:
            number = float(given)
        except (TypeError, ValueError) as error:
            said = f"the classifier {name!r} gave {given!r}"
            raise GuardError(said, accepted="a number") from error
        with self._lock:
            known[text] = number
            if len(known) > MOST_REMEMBERED:
                known.popitem(last=False)
        return number
