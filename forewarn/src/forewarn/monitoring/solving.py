"""The risk of each property, from a model: solved, estimated, and calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from forewarn.checking.credible import RiskQuery, credible_tables
from forewarn.checking.interface import label_states
from forewarn.checking.numeric import risk_table
from forewarn.checking.sound import sound_table
from forewarn.config.sections import BoundsSpec
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain
from forewarn.monitoring.apply_calibration import calibrated, maps_of
from forewarn.monitoring.estimated import (
    Estimated,
    clustered_chain,
    estimated_table,
    estimates_of,
    judged_property,
)
from forewarn.monitoring.scored import Scored
from forewarn.signals.clock import horizon_ticks

if TYPE_CHECKING:
    from forewarn.checking.interface import Checker, RiskTable
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.calibration_map import Recalibration
    from forewarn.models.estimates import Estimate
    from forewarn.states.interface import Admission, StateSpace


class SolvedRisk(NamedTuple):
    """What is known of one property's risk before the first tick; nothing without a model.

    Attributes
    ----------
    table : RiskTable or None
        What the monitor looks up.
    uncalibrated : RiskTable or None
        The chain's own, before any calibration.
    estimate : Estimate or None
        What the risk is made of.
    scored : Scored or None
        What the step adds to the table by learned scores.
    """

    table: RiskTable | None = None
    uncalibrated: RiskTable | None = None
    estimate: Estimate | None = None
    scored: Scored | None = None


def questions_of(
    compiled: CompiledSpec, vocabulary: StateSpace, states: Sequence[int]
) -> list[RiskQuery]:
    """Return what is asked of a model with these states, property by property."""
    clock = compiled.abstraction.clock
    sections = compiled.spec.properties.values()
    return [
        RiskQuery(
            automaton,
            label_states(automaton, vocabulary, states),
            horizon_ticks(clock, section.horizon),
        )
        for section, automaton in zip(sections, compiled.automata, strict=True)
    ]


def solve(
    compiled: CompiledSpec,
    model: CountModel,
    questions: Sequence[RiskQuery],
    solver: Checker | None,
    validity: Admission,
) -> list[SolvedRisk]:
    """Return the risk of each property.

    Parameters
    ----------
    compiled : CompiledSpec
        The monitor file.
    model : CountModel
        Counts that fit it.
    questions : sequence of RiskQuery
        What is asked of the model, in the order of the properties.
    solver : callable or None
        A checker to use instead of the numeric one; there are no bounds then.
    validity : Admission
        Which states are admissible.

    Raises
    ------
    ModelError
        If the model calibrates the risk of a formula or horizon that has changed since.
    """
    spec, noun = compiled.spec, compiled.abstraction.clock.noun
    maps = maps_of(spec, model)
    estimates = estimates_of(compiled, model, questions)
    chains = _solve_all(compiled, model, questions, estimates, solver, validity)
    bounds = spec.bounds if solver is None else BoundsSpec(kind="none")
    found = []
    for name, question, one, chain in zip(
        spec.properties, questions, estimates, chains, strict=True
    ):
        made = None
        if one is not None and not one.is_chain:
            made = estimated_table(model, question, one, chain, bounds)
        table = calibrated(chain if made is None else made.table, maps[name], noun)
        found.append(SolvedRisk(table, chain, one, _scored(compiled, name, made, maps[name])))
    return found


def _scored(
    compiled: CompiledSpec,
    name: str,
    made: Estimated | None,
    calibration: Recalibration | None,
) -> Scored | None:
    if made is None or made.scored is None:
        return None
    signals = compiled.abstraction.signals
    slots = tuple(map(signals.index, compiled.spec.scores_of(name)))
    return Scored(made.scored, slots, made.weights, calibration)


def _solve_all(
    compiled: CompiledSpec,
    model: CountModel,
    questions: Sequence[RiskQuery],
    estimates: Sequence[Estimate | None],
    solver: Checker | None,
    validity: Admission,
) -> list[RiskTable]:
    """Return the chain's risks, without bounds where the risk is not the chain's."""
    bounds, none = compiled.spec.bounds, BoundsSpec(kind="none")
    if bounds.kind == "clustered" and solver is None:
        return [
            table
            if one is not None and not one.is_chain
            else clustered_chain(
                model,
                question,
                judged_property(compiled.spec, name, question.automaton),
                table,
                bounds,
            )
            for name, question, one, table in zip(
                compiled.spec.properties,
                questions,
                estimates,
                _solve(model, questions, none, None, validity),
                strict=True,
            )
        ]
    alone = [one is None or one.is_chain for one in estimates]
    asked = [question for question, is_chain in zip(questions, alone, strict=True) if is_chain]
    others = [question for question, is_chain in zip(questions, alone, strict=True) if not is_chain]
    bounded = iter(_solve(model, asked, bounds, solver, validity))
    point = iter(_solve(model, others, none, solver, validity))
    return [next(bounded if is_chain else point) for is_chain in alone]


def _solve(
    model: CountModel,
    questions: Sequence[RiskQuery],
    bounds: BoundsSpec,
    solver: Checker | None,
    validity: Admission,
) -> list[RiskTable]:
    if solver is not None or bounds.kind == "none":
        chain = estimate_chain(model)
        return [(solver or risk_table)(chain, *question) for question in questions]
    if bounds.kind == "sound":
        return [sound_table(model, *q, confidence=bounds.confidence) for q in questions]
    return credible_tables(
        model,
        questions,
        samples=bounds.samples,
        confidence=bounds.confidence,
        complete=validity.is_covered(model.states),
    )
