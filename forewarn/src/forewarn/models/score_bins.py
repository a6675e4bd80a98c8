"""Scores of moments as bins of their log-odds, which shards keep."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

UNKNOWN_BIN = -1
BINS = 101
BIN_WIDTH = 0.25
LEAST_SCORE = 1e-5
"""Scores nearer to 0 or 1 count as this near: an infinite logit would outweigh all else."""


def bin_of(score: NDArray[np.float64]) -> Counts:
    """Return the bins of scores in [0, 1] by their logit; `UNKNOWN_BIN` for all others."""
    known = (score >= 0) & (score <= 1)
    inner = np.clip(np.where(known, score, 0.5), LEAST_SCORE, 1 - LEAST_SCORE)
    logit = np.log(inner) - np.log1p(-inner)
    bins = np.rint(logit / BIN_WIDTH).astype(np.int64) + BINS // 2
    return np.asarray(np.where(known, bins, UNKNOWN_BIN), dtype=np.int64)


def logit_of(bins: Counts) -> NDArray[np.float64]:
    """Return the logit in the middle of each bin; NaN where the score is unknown."""
    known = bins != UNKNOWN_BIN
    return np.asarray(np.where(known, (bins - BINS // 2) * BIN_WIDTH, np.nan), dtype=np.float64)
