"""From a compiled monitor file and a model to a monitor: check that both fit, solve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

import numpy as np

from forewarn.checking.action_risk import RiskOfActions, least_risk, risk_of_actions
from forewarn.checking.credible import Question, credible_tables
from forewarn.checking.interface import Checker, RiskTable
from forewarn.checking.labels import label_states
from forewarn.checking.model_process import process_of_model
from forewarn.checking.numeric import risk_table
from forewarn.checking.process_bounds import CountedProcess
from forewarn.checking.process_product import ProcessRisk
from forewarn.checking.sound import sound_table
from forewarn.config import MonitorSpec
from forewarn.config.sections import BoundsSpec, PropertySpec
from forewarn.errors import CheckingError, ConfigError
from forewarn.learning.estimates.choice import in_words
from forewarn.logic import Automaton
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import Chain, CountModel, estimate_chain
from forewarn.models.calibration_map import Recalibration
from forewarn.models.estimates import Estimate
from forewarn.monitoring import shielding
from forewarn.monitoring.apply_calibration import calibrated, maps_of, unused
from forewarn.monitoring.belief import Filter
from forewarn.monitoring.estimated import (
    Estimated,
    clustered_chain,
    estimated_table,
    estimates_of,
    judged_property,
)
from forewarn.monitoring.likely_path import look_ahead
from forewarn.monitoring.model_fit import check_model
from forewarn.monitoring.policy import compile_rules
from forewarn.monitoring.scored import Scored
from forewarn.monitoring.shielding import build_shield
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.tables import CompiledProperty, LoadedModel, compile_property
from forewarn.signals.clock import horizon_ticks
from forewarn.states.condition import hold_conditions
from forewarn.states.interface import Admission, StateSpace
from forewarn.states.misreading import misreadings

__all__ = [
    "CompiledSpec",
    "build_for_decisions",
    "build_monitor",
    "build_without_bounds",
    "compile_for",
    "compile_spec",
    "with_estimates",
    "with_policies",
    "with_section",
]


def compile_for(spec: MonitorSpec, model: CountModel | None) -> CompiledSpec:
    """Compile a monitor file with the danger scores of its model; raises ConfigError."""
    return compile_spec(spec, () if model is None else model.danger)


def build_monitor(
    compiled: CompiledSpec, model: CountModel | None, solver: Checker | None = None
) -> Monitor:
    """Return a monitor whose risk tables are solved.

    Parameters
    ----------
    compiled : CompiledSpec
        The monitor file.
    model : CountModel or None
        Counts learned with the same abstraction; None for verdicts without risk.
    solver : callable, optional
        A checker (chain, automaton, letter classes and steps to `RiskTable`) to use instead of the
        numeric one; there are no bounds then.

    Raises
    ------
    ModelError
        If the model belongs to another abstraction or rate, or calibrates the risk of a formula or
        horizon that has changed since.
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
    questions = _questions(compiled, vocabulary, model.states if model else ())
    tables: Sequence[RiskTable | None] = [None] * len(questions)
    raw: Sequence[RiskTable | None] = tables
    estimates: Sequence[Estimate | None] = [None] * len(questions)
    scored: Sequence[Scored | None] = [None] * len(questions)
    chain = None
    if model is not None:
        maps, noun = maps_of(spec, model), abstraction.clock.noun
        estimates = estimates_of(compiled, model, questions)
        raw = _solve_all(compiled, model, questions, estimates, solver, validity)
        bounds = spec.bounds if solver is None else BoundsSpec(kind="none")
        made = [
            None
            if estimate is None or estimate.is_chain
            else estimated_table(model, question, estimate, table, bounds)
            for question, estimate, table in zip(questions, estimates, raw, strict=True)
        ]
        tables = [
            calibrated(table if one is None else one.table, calibration_map, noun)
            for table, one, calibration_map in zip(raw, made, maps.values(), strict=True)
        ]
        scored = [
            _scored(compiled, name, one, maps[name])
            for name, one in zip(spec.properties, made, strict=True)
        ]
        chain = estimate_chain(model)
    process = cache(lambda: _process(compiled, model))
    least = _of_process(compiled, questions, model, process, "figure", "pmin", least_risk)
    done = _of_process(compiled, questions, model, process, "risk_of", "action", risk_of_actions)
    holds = hold_conditions(spec, abstraction) if spec.mode == "act" else {}
    properties = tuple(
        replace(
            prop,
            hold_while=holds.get(prop.name),
            least=least.get(prop.name),
            of_actions=done.get(prop.name),
            scored=pushed,
            estimate=estimate,
        )
        for prop, pushed, estimate in zip(
            _properties(compiled, chain, questions, tables, raw), scored, estimates, strict=True
        )
    )
    remarks = tuple(
        f"{name}: {remark}"
        for name, table in zip(spec.properties, tables, strict=True)
        for remark in (table.remarks if table else ())
    )
    notes = _notes(spec, model, tables)
    notes += tuple(
        f"{one.judged.name}: the risk is {in_words(one)}"
        for one in estimates
        if one is not None and one.is_chain
    )
    notes += tuple(f"{name}: pmin: {note}" for name, one in least.items() for note in one.notes)
    notes += tuple(f"{name}: risk_of: {note}" for name, one in done.items() for note in one.notes)
    shield = build_shield(compiled, model, process)
    notes += shielding.notes(compiled, model, shield)
    asked = spec.noise is not None or any(p.figure == "expected" for p in spec.properties.values())
    filter_ = None
    if asked and loaded is not None and model is not None and chain is not None:
        filter_ = _filter(compiled, loaded, model, chain)
    return Monitor(
        spec, abstraction, properties, loaded, notes, remarks, shield=shield, filter=filter_
    )


def _filter(compiled: CompiledSpec, loaded: LoadedModel, model: CountModel, chain: Chain) -> Filter:
    """Return what beliefs are computed with."""
    spec = compiled.spec
    noise = misreadings(spec, compiled.abstraction)
    width = len(compiled.abstraction.vocabulary.present)
    remembered = sum(1 << number + width for number, _ in noise) if spec.history > 1 else 0
    # Where a recording ended or an episode began, a state was seen, too.
    seen = np.where(model.terminal, 0.0, (model.visits + model.starts).astype(np.float64))
    return Filter(loaded, chain, seen, noise, remembered)


def with_estimates(compiled: CompiledSpec, model: CountModel) -> CountModel:
    """Return the model with what the risks of the properties are made of, chosen once.

    Raises
    ------
    ModelError
        If the model does not tell what followed, as an estimator needs.
    """
    check_model(compiled, model)
    questions = _questions(compiled, model.vocabulary, model.states)
    found = estimates_of(compiled, model, questions)
    return replace(model, estimates=tuple(one for one in found if one is not None))


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


def _process(compiled: CompiledSpec, model: CountModel | None) -> CountedProcess:
    assert model is not None
    return process_of_model(model, confidence=compiled.spec.bounds.confidence)


Solved = TypeVar("Solved", ProcessRisk, RiskOfActions)


def _of_process(
    compiled: CompiledSpec,
    questions: Sequence[Question],
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
            try:
                found[name] = solve(model, process(), question.automaton, question.horizon)
            except CheckingError as error:
                raise error.located(file=spec.file, key=f"properties.{name}.{key}") from error
    return found


def build_without_bounds(compiled: CompiledSpec, model: CountModel | None) -> Monitor:
    """Return a monitor that tells what is likely, and not how sure that is."""
    spec = compiled.spec.model_copy(update={"bounds": BoundsSpec(kind="none")})
    return replace(build_monitor(replace(compiled, spec=spec), model), spec=compiled.spec)


def build_for_decisions(compiled: CompiledSpec, model: CountModel | None) -> Monitor:
    """Return a monitor that decides alike, with bounds only where a policy goes by them."""
    read = any(section.figure == "upper" for section in compiled.spec.properties.values())
    return (build_monitor if read else build_without_bounds)(compiled, model)


def _properties(
    compiled: CompiledSpec,
    chain: Chain | None,
    questions: Sequence[Question],
    tables: Sequence[RiskTable | None],
    raw: Sequence[RiskTable | None],
) -> Iterator[CompiledProperty]:
    """Yield each property with its table, and with the table before it was calibrated."""
    for (name, section), question, table, uncalibrated in zip(
        compiled.spec.properties.items(), questions, tables, raw, strict=True
    ):
        yield compile_property(
            name,
            section,
            question.automaton,
            compile_rules(section, compiled.abstraction.clock),
            compiled.abstraction.vocabulary,
            table,
            question.classes,
            look_ahead(chain, question.automaton, question.classes, uncalibrated)
            if chain is not None and uncalibrated is not None
            else None,
            uncalibrated,
        )


def _notes(
    spec: MonitorSpec, model: CountModel | None, tables: Sequence[RiskTable | None]
) -> tuple[str, ...]:
    """Return what is to be told: calibrations that nothing uses, then property by property."""
    notes: list[str] = []
    if model is not None:
        notes += [
            unused(calibration_map)
            for calibration_map in model.recalibration
            if calibration_map.name not in spec.properties
        ]
    for (name, section), table in zip(spec.properties.items(), tables, strict=True):
        notes += [f"{name}: {note}" for note in (table.notes if table else ())]
        if section.figure == "upper" and spec.bounds.kind == "none":
            notes.append(f"{name}: figure upper without bounds: only violations raise an alert")
    return tuple(notes)


def _questions(
    compiled: CompiledSpec, vocabulary: StateSpace, states: Sequence[int]
) -> list[Question]:
    clock = compiled.abstraction.clock
    sections = compiled.spec.properties.values()
    return [
        Question(
            automaton,
            label_states(automaton, vocabulary, states),
            horizon_ticks(clock, section.horizon),
        )
        for section, automaton in zip(sections, compiled.automata, strict=True)
    ]


def _solve_all(
    compiled: CompiledSpec,
    model: CountModel,
    questions: Sequence[Question],
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
    questions: Sequence[Question],
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


def with_section(monitor: Monitor, name: str, section: PropertySpec) -> Monitor:
    """Return the monitor with another policy for one property; tables and automata stay.

    Raises
    ------
    ConfigError
        If the section changes formula or horizon, which the tables depend on.
    """
    changed = []
    for compiled in monitor.properties:
        if compiled.name == name:
            before = compiled.spec
            if (section.formula, section.horizon) != (before.formula, before.horizon):
                raise ConfigError(
                    "formula and horizon cannot change while running", key=f"properties.{name}"
                )
            if section.figure == "pmin" and before.figure != "pmin":
                raise ConfigError(
                    "pmin is computed before the first tick, for properties whose figure it is "
                    "in the monitor file",
                    key=f"properties.{name}.figure",
                    accepted="risk or upper; or pmin in the file",
                )
            if section.figure == "expected" and not monitor.fresh(compiled).belief:
                raise ConfigError(
                    "expected is followed from the first tick on, for properties whose figure it "
                    "is in the monitor file, or for all where it has noise",
                    key=f"properties.{name}.figure",
                    accepted="risk or upper; or expected in the file, or noise: {}",
                )
            for key in ("risk_of", "hold_while"):
                if getattr(section, key) != getattr(before, key):
                    raise ConfigError(
                        f"{key} cannot change while running", key=f"properties.{name}.{key}"
                    )
            rules = compile_rules(section, monitor.clock)
            compiled = replace(compiled, spec=section, rules=rules)
        changed.append(compiled)
    spec = monitor.spec.model_copy(
        update={"properties": {**monitor.spec.properties, name: section}}
    )
    return replace(monitor, spec=spec, properties=tuple(changed))


def with_policies(monitor: Monitor, changes: Mapping[str, Mapping[str, object]]) -> Monitor:
    """Return `monitor` with other thresholds, by property.

    Raises
    ------
    ConfigError
        If a value is out of range.
    """
    for name, values in changes.items():
        section = monitor.spec.with_thresholds(name, values).properties[name]
        monitor = with_section(monitor, name, section)
    return monitor
