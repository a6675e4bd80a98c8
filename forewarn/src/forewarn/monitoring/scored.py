"""Risks that scores of the moment push up or down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import exp, log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forewarn.models.score_bins import LEAST_SCORE

if TYPE_CHECKING:
    from forewarn.checking.interface import RiskTable
    from forewarn.models.calibration_map import Recalibration

MOST_SCORE = 1.0 - LEAST_SCORE
LARGEST = 300.0
"""Greatest log-odds: those of a greater sum are infinite in floating point."""


@dataclass(frozen=True)
class Scored:
    """A risk that scores of the moment push up or down."""

    table: RiskTable  # Risk of all product states, all scores being at even odds
    slots: tuple[int, ...]  # Where the scores are among the values of signals
    weights: tuple[float, ...]  # Of their log-odds
    calibration: Recalibration | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what is computed from the fields: views cannot travel."""
        return fields_of(self)

    @cached_property
    def views(self) -> tuple[memoryview, memoryview | None, memoryview | None, int]:
        """The table and its bounds, for the loop, and the length of a row."""
        lower, upper = (view_of(part) for part in (self.table.lower, self.table.upper))
        values = view_of(self.table.values)
        assert values is not None
        return values, lower, upper, self.table.values.shape[1]

    @cached_property
    def _pairs(self) -> tuple[tuple[int, float], ...]:
        return tuple(zip(self.slots, self.weights, strict=True))

    def odds(self, values: Sequence[Any] | Mapping[int, Any]) -> float | None:
        """Return what scores among the values of signals multiply odds by.

        None unless all of them are known numbers within [0, 1].
        """
        total = 0.0
        for slot, weight in self._pairs:
            score = values[slot]
            if not isinstance(score, (int, float)) or not 0.0 <= score <= 1.0:
                return None
            if score < LEAST_SCORE:
                score = LEAST_SCORE
            elif score > MOST_SCORE:
                score = MOST_SCORE
            total += weight * log(score / (1.0 - score))
        return exp(total) if -LARGEST < total < LARGEST else exp(math.copysign(LARGEST, total))

    def terms(self, values: Sequence[Any] | Mapping[int, Any]) -> list[tuple[float, float]]:
        """Return the weight and the log-odds of each score, all of which are known."""
        found = []
        for slot, weight in self._pairs:
            score = min(max(float(values[slot]), LEAST_SCORE), MOST_SCORE)
            found.append((weight, log(score / (1.0 - score))))
        return found

    def alone(self, odds: float) -> float:
        """Return the risk by the scores without a state: the weighted mean of their log-odds.

        NaN if none of them weighs anything.
        """
        weight = sum(self.weights)
        if not weight > 0.0:
            return math.nan
        logit = min(max(log(odds) / weight, -LARGEST), LARGEST)
        value = 1.0 / (1.0 + exp(-logit))
        return value if self.calibration is None else self.calibration.at(value)


def view_of(array: NDArray[np.float64] | None) -> memoryview | None:
    """Return the numbers of an array in rows, for a loop: they are looked up faster there."""
    return None if array is None else memoryview(np.ascontiguousarray(array).ravel().data)


def fields_of(one: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, and nothing that is computed from them."""
    return {item.name: getattr(one, item.name) for item in fields(one)}
