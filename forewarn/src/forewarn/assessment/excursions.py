"""Which violations are one breach, and how far an alert foresaw it: the one definition of both.

An automaton starts again after each violation. A rule that stays broken is so violated again and
again, and a quantity that flickers about its limit breaks the rule once for each flicker. Such
violations are one *excursion*, and count once: until the breach has cleared.

It lasts while the present state, if it went on, would violate the rule. It has cleared after
`clear` ticks in a row at which it is known not to last, those apart at which nothing is known; and
at once where an episode ends with a terminal label, and where the rule is not active.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.history import Track
from forewarn.monitoring.verdict import PropertyStatus

Bools = NDArray[np.bool_]
Rows = NDArray[np.int64]


class Excursions(NamedTuple):
    """The breaches of one property over one run of n ticks.

    Attributes
    ----------
    begins : ndarray of bool, shape (n,)
        A violation that counts: the first of an excursion.
    open : ndarray of bool, shape (n,)
        An excursion has begun and not cleared.
    """

    begins: Bools
    open: Bools

    def base(self, start: Rows, row: Rows) -> Rows:
        """Return the rows from which alerts count as warnings of violations, each shape (m,).

        An alert counts from its start, but not from before the end of the excursion that came
        last: until then it spoke of that one. An alert that began within an excursion is an answer
        to it, and counts for nothing, nor does one that begins with the violation: then the base
        is the violation's own row.

        Parameters
        ----------
        start : ndarray of int, shape (m,)
            First rows of the alerts.
        row : ndarray of int, shape (m,)
            Rows of the violations that count, at which the alerts are on.
        """
        before = _last(self.open)[row - 1]  # row 0 has none before it, and is its own base anyhow
        found = np.maximum(start, before + 1)
        return np.where(self.open[start], row, np.minimum(found, row))


def find_excursions(run: Track | ScoredRun) -> Excursions:
    """Return the excursions of a property over a run."""
    lasting = run.status == PropertyStatus.VIOLATED if run.lasting is None else run.lasting
    known = np.ones(len(run.ticks), dtype=bool) if run.unsure is None else ~run.unsure
    fresh = np.isin(run.status, (PropertyStatus.INACTIVE, PropertyStatus.ENDED))
    if run.terminal is not None:  # the tick after one that the rule names begins a new episode
        fresh = fresh | (_before(run.terminal) & ~run.terminal)
    breach = run.violation | (lasting & known)
    quiet = np.cumsum(known & ~breach)
    # Before the first breach this says nothing, and there is nothing to clear.
    cleared = quiet - quiet[_last(breach)] >= max(run.clear, 1)
    is_open = _last(run.violation) > _last(cleared | (fresh & ~run.violation))
    return Excursions(run.violation & (fresh | ~_before(is_open)), is_open)


def _last(marked: Bools) -> Rows:
    """Return for every row the last marked one up to it, or -1."""
    return np.maximum.accumulate(np.where(marked, np.arange(len(marked)), -1))


def _before(marked: Bools) -> Bools:
    """Return what the row before says; False for the first."""
    return np.concatenate(([False], marked[:-1]))[: len(marked)]
