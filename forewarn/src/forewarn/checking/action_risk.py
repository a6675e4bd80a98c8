"""Risks of a property in a decision process: of what is being done, and the least over all choices.

The risk of a state is that of the recorded mix of actions. Once the action is known, before what
comes of it is seen, the mix counts from the next step on only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forewarn.checking.process_product import ProcessRisk, product_of

if TYPE_CHECKING:
    from forewarn.checking.process_bounds import CountedProcess
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Floats
    from forewarn.models.counts import CountModel


@dataclass(frozen=True, eq=False)
class RiskOfActions(ProcessRisk):
    """Probability of a violation with the recorded mix of actions, and after each action.

    Attributes
    ----------
    done_values, done_lower, done_upper : ndarray, shape (k, m)
        The same if one of the k actions that were seen in a state is taken first.
    done : mapping of (int, str) to int
        Row in these of a state and an action.
    visits : tuple of int, length k
        How often that was seen.
    """

    done_values: Floats
    done_lower: Floats
    done_upper: Floats
    done: Mapping[tuple[int, str], int]
    visits: tuple[int, ...]


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
    groups, owner = bounded.process.groups, bounded.process.owner
    seen = np.flatnonzero(bounded.counted.acted & (owner < model.size))
    # In the product the choices of (s, q) lie together: those of s, once for each q.
    begin = product.counted.process.groups[:-1].reshape(-1, product.columns)
    place = begin[owner[seen]] + (seen - groups[owner[seen]])[:, None]
    counts = np.asarray(bounded.counted.counts.sum(axis=1)).ravel()
    states = product.risk(found, model.size)
    return RiskOfActions(
        states.values,
        states.lower,
        states.upper,
        states.confidence,
        states.notes,
        found.choice_estimate[place],
        found.choice_lower[place],
        found.choice_upper[place],
        {
            (int(owner[choice]), bounded.counted.actions[choice]): row
            for row, choice in enumerate(seen.tolist())
        },
        tuple(counts[seen].astype(int).tolist()),
    )


def least_risk(
    model: CountModel, bounded: CountedProcess, automaton: Automaton, horizon: int | None
) -> ProcessRisk:
    """Return the least risk of all product states over all ways to choose (Pmin), n times m.

    What happens whatever is done: a policy that asks for an intervention because of it asks where
    no recorded action helps any more, or where the best of them is not good enough. Parameters and
    errors are those of `risk_of_actions`.
    """
    product = product_of(bounded, automaton, model.vocabulary)
    return product.risk(product.value("least", horizon), model.size)
