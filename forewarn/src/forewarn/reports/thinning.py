"""Fewer points for pictures of long runs, without losing a peak or a change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


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
