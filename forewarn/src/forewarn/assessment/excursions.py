"""Which violations count, and from where an alert counts as a warning of one.

A breach counts as one violation until it has cleared; `monitoring.breach` says when, at each tick.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.history import Track
from forewarn.monitoring.policy import Broken

Bools = NDArray[np.bool_]
Rows = NDArray[np.int64]


class Excursions(NamedTuple):
    """The breaches of one property over one run of n ticks.

    `begins` (shape (n,)): a violation that counts: the first of a breach.
    `open` (shape (n,)): a breach has begun and not cleared.
    """

    begins: Bools
    open: Bools

    def base(self, start: Rows, row: Rows) -> Rows:
        """Return the rows from which alerts count as warnings of violations, each shape (m,).

        An alert counts from its start, but not from before the end of the breach that came last:
        until then it spoke of that one. An alert that began within a breach is an answer to it, and
        counts for nothing, nor does one that begins with the violation: then the base is the
        violation's own row.

        `start` (shape (m,)): first rows of the alerts.
        `row` (shape (m,)): rows of the violations that count, at which the alerts are on.
        """
        last_open = np.maximum.accumulate(np.where(self.open, np.arange(len(self.open)), -1))
        before = last_open[row - 1]  # row 0 has none before it, and is its own base anyhow
        found = np.maximum(start, before + 1)
        return np.where(self.open[start], row, np.minimum(found, row))


def find_excursions(run: Track | ScoredRun) -> Excursions:
    """Return the breaches of a property over a run."""
    begins = run.violation if run.counted is None else run.counted
    return Excursions(begins, begins if run.broken is None else run.broken != Broken.NO)
