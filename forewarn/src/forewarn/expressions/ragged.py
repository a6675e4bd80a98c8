"""Functions that planned expressions call: work on all elements of nested arrays at once.

A nested array is one flat vector of its elements and the number of them in each segment.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.operators import truth
from forewarn.expressions.values import NAN, Notes, Vector, is_unknown, vector

EXTREMES = {"min": np.minimum, "max": np.maximum, "nearest_beam": np.fmin}
REDUCTIONS = ("min", "max", "nearest_beam", "sum", "mean", "any", "all", "count", "len")


def spread(values: Any, counts: Any) -> Any:
    """Repeat the value of each segment for all of its elements."""
    if isinstance(counts, np.ndarray):
        if isinstance(values, np.ndarray):
            return np.repeat(values, _present(counts))
        if isinstance(values, list):
            places = np.repeat(np.arange(len(values)), _present(counts))
            return [values[i] for i in places.tolist()]
    return values


def _present(counts: Vector) -> Vector:
    """Return numbers of elements, 0 for a sequence that is not there (NaN)."""
    if counts.dtype.kind == "f":
        return np.where(np.isnan(counts), 0, counts).astype(np.int64)
    return counts


class Unlike(Exception):
    """Segments computed together might differ in some bits from those computed one by one."""


def one_zero(values: Vector) -> Vector:
    """Return the values; raises Unlike if -0.0 is among them: either zero may be the least."""
    if values.dtype.kind == "f" and np.signbit(values[values == 0.0]).any():
        raise Unlike
    return values


def merge_counts(outer: Any, inner: Any) -> Any:
    """Return how many elements each outer segment has below all its inner segments."""
    if not isinstance(inner, np.ndarray):
        return NAN
    lost = np.isnan(inner)
    if not isinstance(outer, np.ndarray):
        return NAN if is_unknown(outer) or lost.any() else int(inner.sum())
    merged = segment_sums(_present(inner), _present(outer))
    gone = np.isnan(outer) | (segment_sums(lost, _present(outer)) > 0)
    return np.where(gone, NAN, merged) if gone.any() else merged


def segment_sums(values: Vector, counts: Vector) -> Vector:
    """Return the sum of each segment of whole numbers."""
    ends = np.cumsum(counts)
    totals = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    sums: Vector = totals[ends] - totals[ends - counts]
    return sums


def widen(value: Any, count: int) -> Any:
    """Return a column of `count` equal values for a single one."""
    if isinstance(value, (np.ndarray, list)):
        return value
    return vector([value] * count)


def collect(notes: Notes, values: Any, count: Any, condition: Any, *outer: Any) -> Any:
    """Return the elements of a comprehension: those of `count` for which the condition holds.

    `outer` are the conditions of the loops outside the innermost; all must be known.
    """
    if is_unknown(count):
        return NAN
    column = widen(values, count)
    for truth_value in outer if condition is True else (*outer, condition):
        known = widen(truth(notes, truth_value), count)
        if len(known) and known.dtype != np.bool_:
            return notes.unknown("the 'if' of a comprehension is unknown for an element")
    if condition is True:
        return column
    return _kept(column, known)


def _kept(column: Any, known: Any) -> Any:
    known = np.asarray(known, dtype=np.bool_)
    if isinstance(column, list):
        return [element for element, keep in zip(column, known.tolist(), strict=True) if keep]
    return column[known]


def reduce_segments(
    notes: Notes, name: str, values: Any, counts: Any, condition: Any = True, default: Any = None
) -> Any:
    """Apply a function of arrays to each segment.

    `name`: one of `REDUCTIONS`.
    `values`: the elements of all segments, one after the other; a scalar stands for all of them.
    `counts`, shape (n,): how many elements each segment has. NaN: that is not known.
    `condition`, shape (elements,): which elements count. Where it is unknown, so is the result of
    the segment.
    `default`: what ``min`` and ``max`` give for an empty segment.
    Returns shape (n,): one result for each segment.
    """
    if is_unknown(counts):
        return NAN
    unknown = np.isnan(counts)
    counts = _present(counts)
    column = widen(values, int(counts.sum()))
    if condition is not True:
        kept = widen(truth(notes, condition), len(column))
        if len(kept) and kept.dtype != np.bool_:
            notes.unknown("the 'if' of a comprehension is unknown for an element")
            unknown = unknown | (segment_sums(np.isnan(kept), counts) > 0)
            kept = kept == 1
        column = _kept(column, kept)
        counts = segment_sums(np.asarray(kept, dtype=np.bool_), counts)
    result = _reduce(name, notes, column, counts, default)
    return np.where(unknown, NAN, result) if unknown.any() else result


def _reduce(name: str, notes: Notes, column: Any, counts: Vector, default: Any) -> Any:
    if name == "len":
        return counts
    if isinstance(column, list):
        column = np.full(len(column), NAN)
        notes.unknown("text where a number is needed")
    if name in EXTREMES:
        return _extreme(name, EXTREMES[name], notes, column, counts, default)
    if name in ("sum", "mean"):
        function = FUNCTIONS[name].call
        bounds = [0, *np.cumsum(counts).tolist()]
        return vector([function(notes, column[a:b]) for a, b in pairwise(bounds)])
    known = truth(notes, column)
    holds, fails = segment_sums(known == 1, counts), segment_sums(known == 0, counts)
    if name == "any":
        answer, decided = holds > 0, (holds > 0) | (fails == counts)
    elif name == "all":
        answer, decided = fails == 0, (fails > 0) | (holds == counts)
    else:
        answer, decided = holds, holds + fails == counts
    return answer if decided.all() else np.where(decided, answer, NAN)


def _extreme(
    name: str, ufunc: np.ufunc, notes: Notes, column: Vector, counts: Vector, default: Any
) -> Any:
    filled = counts > 0
    starts = (np.cumsum(counts) - counts)[filled]
    found = ufunc.reduceat(column, starts) if len(starts) else column[:0]
    if filled.all():
        return found
    if default is None:
        if name != "nearest_beam":
            notes.unknown(f"{name}() of an empty array; give it a default=")
        default = NAN
    result = np.full(len(counts), float(default))
    result[filled] = found
    return result
