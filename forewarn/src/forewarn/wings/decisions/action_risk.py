"""Risks of a property in a decision process: of what is being done, and the least over all choices.

The risk of a state is that of the recorded mix of actions. Once the action is known, before what
comes of it is seen, the mix counts from the next step on only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forewarn.checking.interface import ProcessRisk, RiskOfActions
from forewarn.wings.decisions.process_product import product_of

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.models.counts import CountModel
    from forewarn.wings.decisions.process_bounds import CountedProcess


def risk_of_actions(
    model: CountModel, bounded: CountedProcess, automaton: Automaton, horizon: int | None
) -> RiskOfActions:
    """Return the risk of every action that was seen in a state, n states of the model times m.

    `bounded` is the process of the model (`process_of_model`); the automaton has m states. A
    `horizon` of None asks for the probability ever to violate.
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
    no recorded action helps any more, or where the best of them is not good enough.
    """
    product = product_of(bounded, automaton, model.vocabulary)
    return product.risk(product.value("least", horizon), model.size)
