"""The decision process of a model beside the automaton of a property."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from forewarn.checking.interface import ENDED, ProcessRisk, label_states
from forewarn.checking.numeric import entered_states
from forewarn.checking.sound import Intervals
from forewarn.models.process import ActionCounts, DecisionProcess, Mask
from forewarn.wings.decisions.process_bounds import BoundedValues, Choosing, CountedProcess, Query

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.states.interface import StateSpace


@dataclass(frozen=True, eq=False)
class ProcessProduct:
    """The product of a decision process and an automaton of m states (`columns`).

    ``s * m + q`` is state s of the process with the automaton in q. `violated` and `through`, shape
    (n * m,), tell where the property is violated, and where it may still be.
    """

    counted: CountedProcess
    violated: Mask
    through: Mask
    columns: int

    def value(self, choosing: Choosing, horizon: int | None) -> BoundedValues:
        """Return the probability of a violation, with bounds; raises CheckingError."""
        return self.counted.value(Query(self.violated, self.through, choosing, horizon))

    def risk(self, found: BoundedValues, size: int) -> ProcessRisk:
        """Return what was found of the first `size` states of the process: those of the model."""
        values, lower, upper = (
            np.ascontiguousarray(column.reshape(-1, self.columns)[:size])
            for column in (found.estimate, found.lower, found.upper)
        )
        return ProcessRisk(values, lower, upper, found.confidence, found.notes)


def product_of(
    bounded: CountedProcess, automaton: Automaton, vocabulary: StateSpace
) -> ProcessProduct:
    """Return the process with the automaton in its state.

    The intervals of a choice hold whatever the automaton has read: they are repeated, and their
    confidence stays.
    """
    counted, process, m = bounded.counted, bounded.process, automaton.n_states
    classes = label_states(automaton, vocabulary, counted.states)
    n = process.size
    sizes = np.repeat(np.diff(process.groups), m)
    groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    owner = np.repeat(np.arange(n * m), sizes)
    choice = process.groups[owner // m] + np.arange(owner.size) - groups[owner]
    entered = entered_states(automaton, classes)
    # A label that the formula does not name ends every obligation, wherever the automaton was.
    entered[classes == ENDED] = automaton.initial
    violated = np.zeros((n, m), dtype=bool)
    if automaton.violated is not None:
        violated[classes != ENDED, automaton.violated] = True

    def moved(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        """Repeat the rows of choices, and let the automaton read each successor."""
        rows = matrix[choice].tocoo()
        columns = rows.col * m + entered[rows.col, owner[rows.row] % m]
        shape = (owner.size, n * m)
        return sparse.csr_matrix((rows.data, (rows.row, columns)), shape=shape)

    intervals = bounded.intervals
    seen = np.arange(1, intervals.rows.size + 1), (intervals.rows, intervals.columns)
    places = moved(sparse.csr_matrix(seen, shape=(process.owner.size, n))).tocoo()
    states = tuple(state for state in counted.states for _ in range(m))
    actions = tuple(counted.actions[c] for c in choice.tolist())
    which = places.data - 1
    made = CountedProcess(
        ActionCounts(states, actions, groups, moved(counted.counts), counted.recorded[choice]),
        DecisionProcess(moved(process.matrix), groups, states, actions),
        Intervals(
            places.row.astype(np.int64),
            places.col.astype(np.int64),
            intervals.lower[which],
            intervals.upper[which],
            intervals.elsewhere[choice],
            owner.size,
        ),
        bounded.confidence,
        bounded.grown,
        bounded.origin,
    )
    return ProcessProduct(made, violated.ravel(), np.repeat(~counted.terminal, m), m)
