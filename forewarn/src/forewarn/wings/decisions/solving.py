"""What the decision process of a model says, before the first tick.

The shield recommends; what the policy asks for stays as it is. Nothing is recommended in a state
that is not known, in which nothing was seen done, or that would be less than what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from forewarn.checking.interface import ProcessRisk, RiskOfActions
from forewarn.errors import CheckingError, InputError, located
from forewarn.monitoring.advice import ProcessRisks
from forewarn.signals.clock import horizon_ticks
from forewarn.wings.decisions.action_risk import least_risk, risk_of_actions
from forewarn.wings.decisions.model_process import notes_of_origin, process_of_model
from forewarn.wings.decisions.process_query import state_mask
from forewarn.wings.decisions.shield import ShieldTable, shield_table

if TYPE_CHECKING:
    from forewarn.checking.credible import RiskQuery
    from forewarn.logic.automaton import Automaton
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.counts import CountModel
    from forewarn.models.process import Mask
    from forewarn.states.interface import StateSpace
    from forewarn.wings.decisions.process_bounds import CountedProcess

Solved = TypeVar("Solved", ProcessRisk, RiskOfActions)


def process_risks(
    compiled: CompiledSpec, model: CountModel | None, questions: Sequence[RiskQuery]
) -> ProcessRisks:
    """Return what the process says of properties, and the shield; raises CheckingError."""
    process = cache(lambda: _process(compiled, model))
    least = _of_process(compiled, questions, model, process, "risk_measure", "min_risk", least_risk)
    done = _of_process(compiled, questions, model, process, "risk_of", "action", risk_of_actions)
    shield = _shield(compiled, model, process)
    return ProcessRisks(least, done, shield, _notes(compiled, model, shield))


def _process(compiled: CompiledSpec, model: CountModel | None) -> CountedProcess:
    assert model is not None
    return process_of_model(model, confidence=compiled.spec.bounds.confidence)


def _of_process(
    compiled: CompiledSpec,
    questions: Sequence[RiskQuery],
    model: CountModel | None,
    process: Callable[[], CountedProcess],
    key: str,
    value: str,
    solve: Callable[[CountModel, CountedProcess, Automaton, int | None], Solved],
) -> dict[str, Solved]:
    """Return what the process says of each property that asks for it; raises CheckingError."""
    spec = compiled.spec
    found: dict[str, Solved] = {}
    for (name, section), question in zip(spec.properties.items(), questions, strict=True):
        if getattr(section, key) == value and model is not None:
            with located(CheckingError, file=spec.file, key=f"properties.{name}.{key}"):
                found[name] = solve(model, process(), question.automaton, question.horizon)
    return found


def _shield(
    compiled: CompiledSpec, model: CountModel | None, process: Callable[[], CountedProcess]
) -> ShieldTable | None:
    """Return the decisions for all states of a model; None without a section or a model.

    Raises CheckingError if the model counts no actions, a name is unknown, or a state is failure
    and success.
    """
    spec, abstraction = compiled.spec, compiled.abstraction
    section = spec.shield
    if section is None:
        return None
    space = abstraction.vocabulary if model is None else model.vocabulary
    with located(CheckingError, file=spec.file, key="shield"):
        bounds = None if model is None else process()
        states = () if bounds is None else bounds.counted.states
        failure = _mask(compiled, "failure", section.failure, space, states)
        success = _mask(compiled, "success", section.success, space, states)
        if bounds is None:
            return None
        both = np.flatnonzero(failure & success)
        if both.size:
            raise CheckingError(
                f"the state {space.name(states[both[0]])!r} is failure and success",
                accepted="formulas that never hold together",
            )
        steps = horizon_ticks(abstraction.clock, section.horizon)
        return shield_table(bounds, failure, success, section.at_least, steps)


def _mask(
    compiled: CompiledSpec, key: str, text: str, space: StateSpace, states: tuple[int, ...]
) -> Mask:
    try:
        return state_mask(text, space, states)
    except InputError as error:
        raise CheckingError(
            error.problem, accepted=error.accepted, file=compiled.spec.file, key=f"shield.{key}"
        ) from error


def _notes(
    compiled: CompiledSpec, model: CountModel | None, table: ShieldTable | None
) -> tuple[str, ...]:
    """Return what a user should know of a shield."""
    if compiled.spec.shield is None:
        return ()
    if model is None or table is None:
        return ("shield: without a model nothing is recommended",)
    if table.sound and model.state_source_recordings:
        return ()
    return tuple(f"shield: {note}" for note in notes_of_origin(model))
