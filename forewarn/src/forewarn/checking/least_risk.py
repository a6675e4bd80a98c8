"""The least risk of a property over all ways to choose: Pmin of the decision process.

What happens whatever is done: a policy that asks for an intervention because of it asks where no
recorded action helps any more, or where the best of them is not good enough.
"""

from __future__ import annotations

from forewarn.checking.process_bounds import CountedProcess
from forewarn.checking.process_product import ProcessRisk, product_of
from forewarn.logic.automaton import Automaton
from forewarn.models.counts import CountModel


def least_risk(
    model: CountModel, bounded: CountedProcess, automaton: Automaton, horizon: int | None
) -> ProcessRisk:
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
    return product.risk(product.value("least", horizon), model.size)
