"""From a compiled monitor file and a model to a monitor: check that both fit, solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forewarn.config.sections import BoundsSpec
from forewarn.learning.estimates.choice import in_words
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain
from forewarn.monitoring.advice import ProcessRisks
from forewarn.monitoring.belief import Filter
from forewarn.monitoring.branches import live_automaton
from forewarn.monitoring.estimated import estimates_of
from forewarn.monitoring.likely_path import look_ahead
from forewarn.monitoring.model_fit import check_model
from forewarn.monitoring.policy import compile_rules, needs_bounds
from forewarn.monitoring.solving import SolvedRisk, questions_of, solve, unused
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.tables import CompiledProperty, LoadedModel
from forewarn.registry import part
from forewarn.states.condition import hold_conditions
from forewarn.states.observation_error import observation_errors

if TYPE_CHECKING:
    from forewarn.checking.credible import RiskQuery
    from forewarn.checking.interface import Checker
    from forewarn.config.file import MonitorSpec
    from forewarn.states.interface import StateSpace

__all__ = [
    "CompiledSpec",
    "build_for_decisions",
    "build_monitor",
    "build_without_bounds",
    "compile_for",
    "compile_spec",
    "with_estimates",
]


def compile_for(spec: MonitorSpec, model: CountModel | None) -> CompiledSpec:
    """Compile a monitor file with the learned scores of its model; raises ConfigError."""
    return compile_spec(spec, () if model is None else model.learned_score)


def build_monitor(
    compiled: CompiledSpec, model: CountModel | None, solver: Checker | None = None
) -> Monitor:
    """Return a monitor whose risk tables are solved.

    `model`: counts learned with the same abstraction; None for verdicts without risk.
    `solver`: a checker (chain, automaton, letter classes and steps to `RiskTable`) to use instead
    of the numeric one; there are no bounds then.

    Raises ModelError if the model belongs to another abstraction or rate, or calibrates the risk of
    a formula or horizon that has changed since.
    """
    spec, abstraction = compiled.spec, compiled.abstraction
    loaded = None
    vocabulary: StateSpace = abstraction.vocabulary
    if model is not None:
        check_model(compiled, model)
        vocabulary = model.vocabulary  # it may end with one more terminal label, `end`
        validity = abstraction.validity(spec)
        loaded = LoadedModel(model.fingerprint, vocabulary, model.index, model.states, validity)
        loaded.prepare()
    questions = questions_of(compiled, vocabulary, model.states if model else ())
    risks: Sequence[SolvedRisk] = [SolvedRisk()] * len(questions)
    chain = None
    if model is not None:
        risks = solve(compiled, model, questions, solver, validity)
        chain = estimate_chain(model)
    decided = _decided(compiled, model, questions)
    holds = hold_conditions(spec, abstraction) if spec.mode == "act" else {}
    sections = zip(spec.properties, questions, risks, strict=True)
    properties = tuple(
        replace(
            _property(compiled, name, question, risk, chain),
            least=decided.least.get(name),
            of_actions=decided.of_actions.get(name),
            hold_while=holds.get(name),
        )
        for name, question, risk in sections
    )
    remarks = tuple(
        f"{prop.name}: {remark}"
        for prop in properties
        for remark in (prop.table.remarks if prop.table else ())
    )
    notes = (*_notes(spec, model, properties), *decided.notes)
    beliefs = _filter(compiled, loaded, model, chain)
    return Monitor(
        spec, abstraction, properties, loaded, notes, remarks, shield=decided.shield, filter=beliefs
    )


def _filter(
    compiled: CompiledSpec,
    loaded: LoadedModel | None,
    model: CountModel | None,
    chain: Chain | None,
) -> Filter | None:
    """Return the filter that computes beliefs; None without a model, or if no key asks for it."""
    spec = compiled.spec
    asked = spec.observation_error is not None or any(
        p.risk_measure == "expected" for p in spec.properties.values()
    )
    if not asked or loaded is None or model is None or chain is None:
        return None
    observation_error = observation_errors(spec, compiled.abstraction)
    width = len(compiled.abstraction.vocabulary.present)
    remembered = (
        sum(1 << number + width for number, _ in observation_error) if spec.history > 1 else 0
    )
    # A moment was seen as the state that a transition led to, or that an episode began in.
    arrivals = np.asarray(model.counts.sum(axis=0)).ravel()
    seen = np.where(model.terminal, 0.0, (arrivals + model.starts).astype(np.float64))
    return Filter(loaded, chain, seen, observation_error, remembered)


def with_estimates(compiled: CompiledSpec, model: CountModel) -> CountModel:
    """Return the model with what the risks of the properties are made of, chosen once.

    Raises ModelError if the model does not tell what followed, as an estimator needs.
    """
    check_model(compiled, model)
    questions = questions_of(compiled, model.vocabulary, model.states)
    found = estimates_of(compiled, model, questions)
    return replace(model, estimates=tuple(one for one in found if one is not None))


def _decided(
    compiled: CompiledSpec, model: CountModel | None, questions: Sequence[RiskQuery]
) -> ProcessRisks:
    """Return what the decision process says, where the monitor file asks for any of it."""
    spec = compiled.spec
    if spec.shield is None and not any(
        p.risk_measure == "min_risk" or p.risk_of == "action" for p in spec.properties.values()
    ):
        return ProcessRisks({}, {})
    asked = "a shield, risk_measure: min_risk or risk_of: action"
    found: ProcessRisks = part("decisions", "solving", asked).process_risks(
        compiled, model, questions
    )
    return found


def build_without_bounds(compiled: CompiledSpec, model: CountModel | None) -> Monitor:
    """Return a monitor that tells what is likely, and not how sure that is."""
    spec = compiled.spec.model_copy(update={"bounds": BoundsSpec(kind="none")})
    return replace(build_monitor(replace(compiled, spec=spec), model), spec=compiled.spec)


def build_for_decisions(compiled: CompiledSpec, model: CountModel | None) -> Monitor:
    """Return a monitor that decides alike, with bounds only where a policy goes by them."""
    build = build_monitor if needs_bounds(compiled.spec) else build_without_bounds
    return build(compiled, model)


def _property(
    compiled: CompiledSpec, name: str, question: RiskQuery, risk: SolvedRisk, chain: Chain | None
) -> CompiledProperty:
    """Return a property with its risk."""
    section, abstraction = compiled.spec.properties[name], compiled.abstraction
    automaton, classes, raw = question.automaton, question.classes, risk.uncalibrated
    return CompiledProperty(
        name=name,
        spec=section,
        automaton=automaton,
        rules=compile_rules(section, abstraction.clock),
        vocabulary=abstraction.vocabulary,
        table=risk.table,
        row_classes=classes,
        live=live_automaton(automaton, abstraction.vocabulary),
        outlook=None
        if chain is None or raw is None
        else look_ahead(chain, automaton, classes, raw),
        raw=risk.table if raw is None else raw,
        scored=risk.scored,
        estimate=risk.estimate,
    )


def _notes(
    spec: MonitorSpec, model: CountModel | None, properties: Sequence[CompiledProperty]
) -> list[str]:
    """Return notes for the user: calibrations that nothing uses, then property by property."""
    notes: list[str] = []
    if model is not None:
        notes += [
            unused(calibration_map)
            for calibration_map in model.recalibration
            if calibration_map.name not in spec.properties
        ]
    for one in properties:
        notes += [f"{one.name}: {note}" for note in (one.table.notes if one.table else ())]
        if one.spec.risk_measure == "upper" and spec.bounds.kind == "none":
            notes.append(
                f"{one.name}: risk_measure upper without bounds: only violations raise an alert"
            )
    notes += [
        f"{one.estimate.judged.name}: {in_words(one.estimate)}"
        for one in properties
        if one.estimate is not None and one.estimate.is_chain
    ]
    notes += [f"{p.name}: min_risk: {n}" for p in properties if p.least for n in p.least.notes]
    done = [(p.name, p.of_actions) for p in properties if p.of_actions]
    notes += [f"{name}: risk_of: {note}" for name, one in done for note in one.notes]
    return notes
