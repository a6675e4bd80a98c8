"""The risk of what is being done: of an action in a state, before what comes of it is seen.

The risk of a state is that of the recorded mix of actions. Once the action is known, the mix
counts from the next step on only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from forewarn.checking.process_bounds import CountedProcess
from forewarn.checking.process_product import product_of
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Floats
from forewarn.models.counts import CountModel


@dataclass(frozen=True, eq=False)
class RiskOfActions:
    """Probability of a violation for every state of the product of process and automaton.

    Attributes
    ----------
    values, lower, upper : ndarray, shape (n, m)
        ``values[s, q]``: with the recorded mix of actions, given that the process is in state s,
        the automaton has read it and is in q. NaN where nothing was seen done. The bounds rest on
        intervals of all transitions.
    done_values, done_lower, done_upper : ndarray, shape (k, m)
        The same if one of the k actions that were seen in a state is taken first.
    done : mapping of (int, str) to int
        Row in these of a state and an action.
    visits : tuple of int, length k
        How often that was seen.
    confidence : float
        Probability that the bounds hold for all states at once.
    notes : tuple of str
        What a user should know of these numbers.
    """

    values: Floats
    lower: Floats
    upper: Floats
    done_values: Floats
    done_lower: Floats
    done_upper: Floats
    done: Mapping[tuple[int, str], int]
    visits: tuple[int, ...]
    confidence: float
    notes: tuple[str, ...] = ()


def risk_of_actions(
    model: CountModel, bounded: CountedProcess, automaton: Automaton, horizon: int | None
) -> RiskOfActions:
    """Return the risk of every action that was seen in a state, n states of the model times m.

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
    found = product.value("recorded", horizon)
    n, m = bounded.process.size, automaton.n_states
    groups, owner = bounded.process.groups, bounded.process.owner
    seen = np.flatnonzero(bounded.counted.acted & (owner < model.size))
    # In the product the choices of (s, q) lie together: those of s, once for each q.
    begin = product.counted.process.groups[:-1].reshape(n, m)
    place = begin[owner[seen]] + (seen - groups[owner[seen]])[:, None]
    counts = np.asarray(bounded.counted.counts.sum(axis=1)).ravel()
    values, lower, upper = (
        np.ascontiguousarray(column.reshape(n, m)[: model.size])
        for column in (found.estimate, found.lower, found.upper)
    )
    return RiskOfActions(
        values,
        lower,
        upper,
        found.choice_estimate[place],
        found.choice_lower[place],
        found.choice_upper[place],
        {
            (int(owner[choice]), bounded.counted.actions[choice]): row
            for row, choice in enumerate(seen.tolist())
        },
        tuple(counts[seen].astype(int).tolist()),
        bounded.confidence,
        found.notes,
    )
