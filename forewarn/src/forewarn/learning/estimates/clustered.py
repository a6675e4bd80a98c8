"""Bounds of an estimate from recordings drawn with replacement.

Recordings are what varies: ticks of one resemble each other. Each drawn set of recordings gives a
table with the same weights and settings; the spread of their logits gives the interval, with
Student's quantile for as many recordings as have a violation. It leaves out that weights and
settings were chosen, and what no recording shows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from forewarn.learning.estimates.choice import mixture_table
from forewarn.learning.estimates.problem import Floats, Problem
from forewarn.models.estimates import Line, Mixture

LEAST = 1e-9


def clustered_bounds(
    problem: Problem,
    mixtures: tuple[tuple[Mixture, Line], ...],
    tables: tuple[Floats, ...],
    *,
    samples: int,
    confidence: float,
) -> list[tuple[Floats, Floats]]:
    """Return lower and upper bounds of tables, shape (n, m) each.

    Parameters
    ----------
    mixtures : tuple of (Mixture, Line)
        What the tables are made of.
    tables : tuple of ndarray, shape (n, m)
        The estimates; what is certain in them is certain.
    samples : int
        How often recordings are drawn.
    confidence : float
        Of the interval, half of the rest on either side.
    """
    count = problem.recordings
    rng = np.random.default_rng(int(problem.model.seed[:16], 16))
    total = [np.zeros(table.shape) for table in tables]
    squares = [np.zeros(table.shape) for table in tables]
    centres = [_logit(table) for table in tables]
    for _ in range(samples):
        sample = problem.sample(rng.multinomial(count, np.full(count, 1 / count)))
        for i, (mixture, line) in enumerate(mixtures):
            table = mixture_table(sample, mixture, line)
            away = _logit(np.where(np.isnan(table), tables[i], table)) - centres[i]
            total[i] += away
            squares[i] += away * away
    rows = problem.rows
    clusters = len(np.unique(rows.recording[rows.followed > 0]))
    quantile = float(stdtrit(max(1, clusters - 1), 0.5 + confidence / 2))
    found = []
    for table, centre, sums, sums_of_squares in zip(tables, centres, total, squares, strict=True):
        variance = (sums_of_squares - sums * sums / samples) / max(1, samples - 1)
        half = quantile * np.sqrt(np.maximum(variance, 0.0))
        decided = ~((table > 0) & (table < 1))
        if clusters < 2:
            half = np.full(table.shape, np.inf)  # one recording says nothing of how they differ
        lower, upper = (_share(centre + sign * half) for sign in (-1, 1))
        unknown = np.isnan(table)
        found.append(
            (
                np.where(unknown, 0.0, np.where(decided, table, np.minimum(lower, table))),
                np.where(unknown, 1.0, np.where(decided, table, np.maximum(upper, table))),
            )
        )
    return found


def _logit(table: Floats) -> Floats:
    inner = np.clip(np.nan_to_num(table, nan=0.5), LEAST, 1 - LEAST)
    return np.asarray(np.log(inner) - np.log1p(-inner))


def _share(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))
