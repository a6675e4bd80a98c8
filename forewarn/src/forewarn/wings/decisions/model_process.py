"""The decision process of a model, with the bounds that its counts leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forewarn.checking.sound import CONFIDENCE, universe_of
from forewarn.errors import CheckingError
from forewarn.models.estimation import smoothed_process
from forewarn.models.process import count_actions
from forewarn.states.interface import PREDICATES
from forewarn.wings.decisions.process_bounds import CountedProcess, counted_process

if TYPE_CHECKING:
    from forewarn.models.counts import CountModel, Smoothing

SHOWN = 3


def process_of_model(
    model: CountModel,
    *,
    smoothing: Smoothing | None = None,
    confidence: float = CONFIDENCE,
    grown: bool = False,
) -> CountedProcess:
    """Return the decision processes that a model's counts of actions allow; its states come first.

    `smoothing` is that of the estimate, instead of the model's own choice; the bounds hold for all
    states and actions at once at the `confidence`. `grown` says that the states were learned from
    the traces that the model counts; that is known also where the model names recordings that it
    counts as ones that the states were learned from. Raises CheckingError if the model counts no
    actions.
    """
    need_actions(model)
    counted = count_actions(model.steps, model.states)
    return counted_process(
        counted,
        max(universe_of(model), len(counted.states)),
        confidence=confidence,
        grown=grown or bool(model.state_source_provenance),
        origin=notes_of_origin(model),
        process=smoothed_process(model, smoothing),
    )


def notes_of_origin(model: CountModel) -> tuple[str, ...]:
    """Say whether the recordings that are counted made the states, as far as that is known."""
    if model.vocabulary.kind == PREDICATES and not model.state_source_recordings:
        return ()
    counted = f"the {len(model.provenance)} recordings that are counted"
    if model.state_source_provenance:
        names = [one.recording for one in model.state_source_provenance]
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        return (f"{len(names)} of {counted} made the states: bounds are not sound ({shown})",)
    if model.state_source_recordings:
        return (f"none of {counted} made the states, as their digests tell",)
    return (
        "the model does not tell which recordings its states were learned from: bounds are sound "
        "only if none of these are counted here",
    )


def need_actions(model: CountModel) -> None:
    """Raise CheckingError if a model counts no actions."""
    if not model.steps:
        raise CheckingError(
            "the model counts no actions, so that there is nothing to choose",
            accepted="a model learned with `action:` in the monitor file",
        )
