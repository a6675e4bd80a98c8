"""The least risk of a property over all ways to choose: Pmin of the decision process.

What happens whatever is done: a policy that asks for an intervention because of it asks where no
recorded action helps any more, or where the best of them is not good enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.labels import ENDED, label_states
from forewarn.checking.process_bounds import CountedProcess, Query
from forewarn.checking.product import entered_states
from forewarn.checking.sound import Intervals
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Floats
from forewarn.models.counts import CountModel
from forewarn.models.process import ActionCounts, DecisionProcess


@dataclass(frozen=True, eq=False)
class LeastRisk:
    """Least probability of a violation for every state of the product of process and automaton.

    Attributes
    ----------
    values : ndarray, shape (n, m)
        ``values[s, q]``: the least probability, over all ways to choose among the actions that
        were seen, to reach `violated` within the horizon, given that the process is in state s,
        the automaton has read it and is in q. NaN where nothing was seen done.
    lower, upper : ndarray, shape (n, m)
        Bounds of it, by intervals of all transitions; [0, 1] where nothing was seen done.
    confidence : float
        Probability that the bounds hold for all states at once.
    notes : tuple of str
        What a user should know of these numbers.
    """

    values: Floats
    lower: Floats
    upper: Floats
    confidence: float
    notes: tuple[str, ...] = ()


def least_risk(
    model: CountModel, bounded: CountedProcess, automaton: Automaton, horizon: int | None
) -> LeastRisk:
    """Return the least risk of all product states, n states of the model times m.

    Parameters
    ----------
    model : CountModel
        A model with counts of actions.
    bounded : CountedProcess
        Its decision process (`process_of_model`).
    automaton : Automaton
        The property's monitor, m states.
    horizon : int or None
        Steps; None for the probability ever to violate.

    Raises
    ------
    CheckingError
        If the accuracy cannot be assured.
    """
    counted = bounded.counted
    classes = label_states(automaton, model.vocabulary, counted.states)
    product = _product(bounded, automaton, classes)
    m = automaton.n_states
    violated = np.zeros((len(classes), m), dtype=bool)
    if automaton.violated is not None:
        violated[classes != ENDED, automaton.violated] = True
    through = np.repeat(~counted.terminal, m)
    found = product.value(Query(violated.ravel(), through, "least", horizon))
    shape = len(classes), m
    values, lower, upper = (
        np.ascontiguousarray(column.reshape(shape)[: model.size])
        for column in (found.estimate, found.lower, found.upper)
    )
    return LeastRisk(values, lower, upper, bounded.confidence, found.notes)


def _product(
    bounded: CountedProcess, automaton: Automaton, classes: NDArray[np.int64]
) -> CountedProcess:
    """Return the process with the automaton in its state: ``s * m + q`` for s and q.

    The intervals of a choice hold whatever the automaton has read: they are repeated, and their
    confidence stays.
    """
    counted, process, m = bounded.counted, bounded.process, automaton.n_states
    n = process.size
    sizes = np.repeat(np.diff(process.groups), m)
    groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    owner = np.repeat(np.arange(n * m), sizes)
    choice = process.groups[owner // m] + np.arange(owner.size) - groups[owner]
    entered = entered_states(automaton, classes)
    # A label that the formula does not name ends every obligation, wherever the automaton was.
    entered[classes == ENDED] = automaton.initial

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
    return CountedProcess(
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
