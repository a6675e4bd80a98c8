"""What a tree may ask of the elements of a vector: its extremes, how many are large, each one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.learning.thresholds import thresholds_between, written

MOST_LEVELS = 8
"""Thresholds above which elements are counted."""

MOST_PLACES = 16
"""Elements that are asked about one by one, of vectors that have the same length everywhere."""

EXACT = 2.0**53
"""Whole numbers from here on are marks or times in nanoseconds, and no double holds them all."""

Floats = NDArray[np.float64]


class Measure(NamedTuple):
    """A number made of a vector or text: its expression, and its value in each example or NaN."""

    source: str
    values: Floats


def of_elements(name: str, values: Sequence[Any], deciding: Sequence[int]) -> list[Measure]:
    """Return what may be asked of the elements of collections; nothing where they are texts.

    The examples `deciding` decide above which thresholds elements are counted.
    """
    vectors = [_vector(value) for value in values]
    known = [vector for vector in vectors if vector is not None]
    kinds = {vector.dtype.kind for vector in known if len(vector)}
    if kinds == {"b"}:
        return [Measure(f"count({name})", _each(vectors, np.count_nonzero))]
    if not kinds or not kinds <= {"i", "u", "f"}:
        return []
    numbers = [None if vector is None else vector.astype(np.float64) for vector in vectors]
    if kinds != {"f"} and any(np.any(np.abs(v) >= EXACT) for v in numbers if v is not None):
        return []
    found = [
        Measure(f"max({name}, default=-inf)", _each(numbers, lambda v: v.max(initial=-np.inf))),
        Measure(f"min({name}, default=inf)", _each(numbers, lambda v: v.min(initial=np.inf))),
    ]
    lengths = {len(vector) for vector in known}
    if lengths <= {*range(1, MOST_PLACES + 1)} and len(lengths) == 1:
        return [*found, *_places(name, numbers, lengths.pop())]
    pooled = [v for row in deciding if (v := numbers[row]) is not None]
    pool = np.concatenate([*pooled, np.empty(0)])
    levels = thresholds_between(pool[~np.isnan(pool)], MOST_LEVELS).tolist()
    return found + [
        Measure(
            f"count({name} > {written(level)})",
            _each(numbers, lambda v, level=level: np.count_nonzero(v > level)),
        )
        for level in levels
    ]


def _vector(value: Any) -> NDArray[Any] | None:
    """Return a collection as a vector; None where it is unknown."""
    if value is None or isinstance(value, np.ndarray):
        return value
    items = list(value)
    kinds = {type(item) for item in items}
    if kinds <= {bool} or kinds <= {int, float}:
        return np.array(items)
    return np.empty(len(items), dtype=object)


def _each(vectors: Sequence[NDArray[Any] | None], measure: Any) -> Floats:
    """Return a number of each vector; with an unknown element it is unknown, as in expressions."""
    return np.array(
        [
            np.nan if v is None or (v.dtype.kind == "f" and np.isnan(v).any()) else measure(v)
            for v in vectors
        ],
        dtype=np.float64,
    )


def _places(name: str, numbers: Sequence[Floats | None], length: int) -> list[Measure]:
    table = np.array([np.full(length, np.nan) if v is None else v for v in numbers])
    return [Measure(f"{name}[{i}]", table[:, i]) for i in range(length)]
