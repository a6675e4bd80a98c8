"""The least risk of a property over all ways to choose: Pmin of the decision process.

What happens whatever is done: a policy that asks for an intervention because of it asks where no
recorded action helps any more, or where the best of them is not good enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forewarn.checking.process_bounds import CountedProcess
from forewarn.checking.process_product import product_of
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Floats
from forewarn.models.counts import CountModel


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
    product = product_of(bounded, automaton, model.vocabulary)
    found = product.value("least", horizon)
    shape = bounded.process.size, automaton.n_states
    values, lower, upper = (
        np.ascontiguousarray(column.reshape(shape)[: model.size])
        for column in (found.estimate, found.lower, found.upper)
    )
    return LeastRisk(values, lower, upper, bounded.confidence, found.notes)
