"""What the model of a group takes from the recordings of all others: a prior for its rows.

A row of the group's counts is joined by the row of the others, which counts for `strength` visits
at most, and for no more than the others have:

    P[i, j] ~ n[i, j] + min(strength, N[i]) N[i, j] / N[i] + smoothing

It is the posterior mean of a Dirichlet-multinomial model whose prior mean is what the others do,
and `strength` its concentration. Without visits of its own the group does what the others do; with
many, the others no longer matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import ModelError, plural
from forewarn.signals.clock_kinds import clock_of

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader
    from forewarn.models.counts import CountModel

MAX_COUNT = 1 << 40


@dataclass(frozen=True, eq=False)
class HierarchicalPrior:
    """The transitions of other groups, and what they count for.

    `counts` (shape (n, n)): transitions of the recordings of other groups.
    `strength`: visits that a row of theirs is worth at most.
    `group`: the group that borrows.
    `recordings`: how many recordings the others have.
    `duration`: their length, in seconds or steps.
    """

    counts: sparse.csr_matrix
    strength: float
    group: str = ""
    recordings: int = 0
    duration: float = 0.0

    @cached_property
    def worth(self) -> NDArray[np.float64]:
        """Visits that each row is worth, shape (n,)."""
        return np.minimum(_totals(self.counts), self.strength)

    @cached_property
    def weights(self) -> sparse.csr_matrix:
        """Weight of each transition in visits, shape (n, n)."""
        totals = _totals(self.counts)
        scale = np.divide(self.worth, totals, out=np.zeros(len(totals)), where=totals > 0)
        return sparse.csr_matrix(sparse.diags(scale) @ self.counts.astype(np.float64))

    def share(self, visits: NDArray[np.int64]) -> float:
        """Return which share of its weight a row borrows, mean over `visits` of the group itself.

        Smoothing is left out. It is 1 for a group that has no visits.
        """
        total = visits.sum()
        if not total:
            return 1.0
        parts = np.divide(
            self.worth, visits + self.worth, out=np.zeros(len(visits)), where=visits > 0
        )
        return float((visits * parts).sum() / total)

    def moved(self, target: NDArray[np.int64], n: int) -> HierarchicalPrior:
        """Return the same over `n` states, of which i is called ``target[i]``."""
        coo = self.counts.tocoo()
        places = target[coo.row], target[coo.col]
        counts = sparse.csr_matrix((coo.data, places), shape=(n, n), dtype=np.int64)
        return replace(self, counts=counts)


def _totals(counts: sparse.csr_matrix) -> NDArray[np.float64]:
    return np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()


def check(borrowed: HierarchicalPrior, terminal: NDArray[np.bool_]) -> None:
    """Check what is borrowed for a model with these states, terminal or not; raises ModelError."""
    n = len(terminal)
    if borrowed.counts.shape != (n, n):
        raise ModelError(
            f"borrowed counts of shape {borrowed.counts.shape} for {n} states",
            accepted=f"shape ({n}, {n})",
            key="hierarchical_prior",
        )
    if borrowed.counts[terminal].nnz:
        raise ModelError(
            "transitions out of a terminal state",
            accepted="none: a terminal state absorbs",
            key="hierarchical_prior",
        )
    if not 0 <= borrowed.strength < float("inf"):
        raise ModelError(
            f"{borrowed.strength!r} is not accepted",
            accepted="visits, 0 or more",
            key="hierarchical_prior.strength",
        )


def dump(borrowed: HierarchicalPrior, rows: Sequence[list[Any]]) -> dict[str, Any]:
    """Return what is borrowed as JSON can hold it; `rows` are its counts."""
    return {
        "group": borrowed.group,
        "strength": borrowed.strength,
        "recordings": borrowed.recordings,
        "duration": borrowed.duration,
        "transitions": rows,
    }


def parse(reader: Reader, n: int) -> HierarchicalPrior:
    """Return what a model of `n` states borrows; raises ModelError."""
    return HierarchicalPrior(
        reader.counts("transitions", n, MAX_COUNT),
        reader.number("strength"),
        reader.text("group"),
        reader.integer("recordings", 0, MAX_COUNT),
        reader.number("duration"),
    )


def prior_in_words(model: CountModel) -> str:
    """Say what a model borrows; empty if it borrows nothing."""
    others = model.hierarchical_prior
    if others is None:
        return ""
    return (
        f"model of {others.group}: {100 * others.share(model.visits):.1f} % of what its states "
        f"rest on is borrowed from {plural(others.recordings, 'recording')} of other groups "
        f"({clock_of(model.rate).span(others.duration)}), {others.strength:g} visits a row at most"
    )


def prior_record(model: CountModel) -> dict[str, Any] | None:
    """Return what a model borrows, for ``--json``."""
    borrowed = model.hierarchical_prior
    if borrowed is None:
        return None
    return {
        "group": borrowed.group,
        "share": borrowed.share(model.visits),
        "strength": borrowed.strength,
        "recordings": borrowed.recordings,
        "duration": borrowed.duration,
    }
