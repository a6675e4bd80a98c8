"""The decision process of a model, with the bounds that its counts leave open."""

from __future__ import annotations

from forewarn.checking.process_bounds import CountedProcess, counted_process
from forewarn.checking.sound import CONFIDENCE, universe_of
from forewarn.errors import CheckingError
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import smoothed_process
from forewarn.models.process import count_actions


def process_of_model(
    model: CountModel,
    *,
    smoothing: Smoothing | None = None,
    confidence: float = CONFIDENCE,
    grown: bool = False,
) -> CountedProcess:
    """Return the decision processes that a model's counts allow.

    Parameters
    ----------
    model : CountModel
        A model with counts of actions. Its states come first in the process.
    smoothing : Smoothing, optional
        Of the estimate, instead of the model's own choice.
    confidence : float
        Probability that the bounds hold for all states and actions at once.
    grown : bool
        Whether the states were learned from the traces that the model counts.

    Raises
    ------
    CheckingError
        If the model counts no actions.
    """
    need_actions(model)
    counted = count_actions(model.steps, model.states)
    return counted_process(
        counted,
        max(universe_of(model), len(counted.states)),
        confidence=confidence,
        grown=grown,
        process=smoothed_process(model, smoothing),
    )


def need_actions(model: CountModel) -> None:
    """Raise CheckingError if a model counts no actions."""
    if not model.steps:
        raise CheckingError(
            "the model counts no actions, so that there is nothing to choose",
            accepted="a model learned with `action:` in the monitor file",
        )
