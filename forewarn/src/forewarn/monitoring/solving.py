"""The risk of each property, from a model: solved, estimated, and calibrated.

The map of a calibrated model changes a table once, before the first tick. So the node, a replay, a
verification and a report all look up the same calibrated risk, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forewarn.checking.credible import RiskQuery, credible_tables
from forewarn.checking.interface import label_states
from forewarn.checking.numeric import risk_table
from forewarn.checking.sound import sound_table
from forewarn.config.sections import BoundsSpec
from forewarn.errors import ModelError
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain
from forewarn.monitoring.estimated import (
    Estimated,
    clustered_chain,
    estimated_table,
    estimates_of,
    judged_property,
)
from forewarn.monitoring.scored import Scored
from forewarn.signals.clock import Clock, horizon_ticks, within
from forewarn.signals.clock_kinds import clock_of

if TYPE_CHECKING:
    from forewarn.checking.interface import Checker, RiskTable
    from forewarn.config.file import MonitorSpec
    from forewarn.config.sections import PropertySpec
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.calibration_map import Recalibration
    from forewarn.models.estimates import Estimate
    from forewarn.states.interface import Admission, StateSpace


class SolvedRisk(NamedTuple):
    """What is known of one property's risk before the first tick; nothing without a model."""

    table: RiskTable | None = None  # What the monitor looks up
    uncalibrated: RiskTable | None = None  # The chain's own, before any calibration
    estimate: Estimate | None = None  # What the risk is made of
    scored: Scored | None = None  # What the step adds to the table by learned scores


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

    `solver`: a checker to use instead of the numeric one; there are no bounds then.

    Raises ModelError if the model calibrates the risk of a formula or horizon that has changed
    since.
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
    compiled: CompiledSpec, name: str, made: Estimated | None, calibration: Recalibration | None
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


def maps_of(spec: MonitorSpec, model: CountModel) -> Mapping[str, Recalibration | None]:
    """Return the map of every property; raises ModelError if one belongs to another formula."""
    clock = clock_of(model.rate)
    maps = {calibration_map.name: calibration_map for calibration_map in model.recalibration}
    for name, section in spec.properties.items():
        found = maps.get(name)
        if found is not None and not found.fits(section.formula, section.horizon):
            raise ModelError(
                f"the model calibrates the risk of {name!r} for {_asked(found, clock)}; "
                f"the monitor file says {_asked(section, clock)}",
                key=f"properties.{name}",
                accepted="the formula and horizon it was fitted for; or learn and calibrate again; "
                "or `forewarn merge MODEL -o FILE`, which leaves calibrations out",
            )
    return {name: maps.get(name) for name in spec.properties}


def _asked(asked: Recalibration | PropertySpec, clock: Clock) -> str:
    return f"{asked.formula!r} {within(clock, asked.horizon)}"


def unused(found: Recalibration) -> str:
    """Say that the monitor file has no such property."""
    return f"{found.name}: the model calibrates a property that the monitor file does not have"


def calibrated(table: RiskTable, found: Recalibration | None, noun: str = "tick") -> RiskTable:
    """Return the table with the risk mapped; the expected time to a violation stays.

    Clustered bounds are of what follows, whatever the estimate of it: they are widened to hold the
    mapped risk, where other bounds are mapped as well.
    """
    if found is None:
        return table
    values, lower, upper = found(table.values), table.lower, table.upper
    by = f"({found.method}, {found.ticks} {noun}s of {len(found.recordings)} held-out recordings)"
    if table.kind == "clustered":
        note = f"the risk is calibrated {by}; its bounds are widened to hold it"
    else:
        lower, upper = (None if part is None else found(part) for part in (lower, upper))
        note = (
            f"risk and bounds are calibrated {by}; the bounds are those of the chain, mapped: "
            "they leave the uncertainty of the map out"
        )
    return replace(
        table,
        values=values,
        # The logistic curve may fall by a last bit where its logarithm does.
        lower=None if lower is None else np.fmin(lower, values),
        upper=None if upper is None else np.fmax(upper, values),
        notes=(*table.notes, note),
    )
