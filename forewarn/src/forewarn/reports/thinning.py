"""Fewer points for pictures of long runs, without losing a peak or a change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def changes(values: NDArray[np.float64]) -> Rows:
    """Return the rows at which a column differs from the row before, and the first and last."""
    if not len(values):
        return np.zeros(0, dtype=np.intp)
    both_unknown = np.isnan(values[1:]) & np.isnan(values[:-1])
    different = (values[1:] != values[:-1]) & ~both_unknown
    rows: Rows = np.concatenate(([0], np.flatnonzero(different) + 1, [len(values) - 1]))
    return np.unique(rows)


def extremes(values: NDArray[np.float64], limit: int) -> Rows:
    """Return rows that show a column with at most about `limit` points.

    Every bucket of neighbouring rows keeps its least and its greatest value, its first row, and
    the first row without a value.
    """
    count = len(values)
    if count <= limit:
        return np.arange(count, dtype=np.intp)
    bounds = np.linspace(0, count, max(limit // 4, 1) + 1).astype(np.intp)
    kept = [0, count - 1]
    for start, end in pairwise(bounds.tolist()):
        part = values[start:end]
        unknown = np.isnan(part)
        kept.append(start)
        if unknown.any():
            kept.append(start + int(unknown.argmax()))
        if not unknown.all():
            kept.append(start + int(np.nanargmin(part)))
            kept.append(start + int(np.nanargmax(part)))
    return np.unique(np.array(kept, dtype=np.intp))


def buckets(count: int, limit: int) -> list[tuple[int, int]]:
    """Return at most `limit` ranges (start, end) of neighbouring rows that cover `count` rows."""
    bounds = np.linspace(0, count, min(count, limit) + 1).astype(np.intp).tolist()
    return list(pairwise(bounds))
