"""From a compiled monitor file and a model to a monitor: check that both fit, solve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from forewarn.checking.action_risk import RiskOfActions, risk_of_actions
from forewarn.checking.credible import Question, credible_tables
from forewarn.checking.interface import Checker, RiskTable
from forewarn.checking.labels import label_states
from forewarn.checking.least_risk import LeastRisk, least_risk
from forewarn.checking.model_process import process_of_model
from forewarn.checking.numeric import risk_table
from forewarn.checking.process_bounds import CountedProcess
from forewarn.checking.sound import sound_table
from forewarn.config import MonitorSpec
from forewarn.config.sections import BoundsSpec, PropertySpec
from forewarn.errors import CheckingError, ConfigError, ModelError
from forewarn.logic import Automaton
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import Chain, CountModel, estimate_chain
from forewarn.models.counts import END_LABEL
from forewarn.monitoring import shielding
from forewarn.monitoring.apply_calibration import calibrated, maps_of, unused
from forewarn.monitoring.likely_path import look_ahead
from forewarn.monitoring.policy import compile_rules
from forewarn.monitoring.shielding import build_shield
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.tables import CompiledProperty, LoadedModel, compile_property
from forewarn.signals.clock_kinds import by_clock
from forewarn.states.interface import Admission, StateSpace

__all__ = [
    "CompiledSpec",
    "build_monitor",
    "build_without_bounds",
    "check_model",
    "compile_spec",
    "with_policies",
    "with_section",
]


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
    chain = None
    if model is not None:
        maps = maps_of(spec, model)
        raw = _solve(model, questions, spec.bounds, solver, validity)
        tables = [
            calibrated(table, calibration_map)
            for table, calibration_map in zip(raw, maps.values(), strict=True)
        ]
        chain = estimate_chain(model)
    process = cache(lambda: _process(compiled, model))
    least = _of_process(compiled, questions, model, process, "figure", "pmin", least_risk)
    done = _of_process(compiled, questions, model, process, "risk_of", "action", risk_of_actions)
    properties = tuple(
        replace(prop, least=least.get(prop.name), of_actions=done.get(prop.name))
        for prop in _properties(compiled, chain, questions, tables, raw)
    )
    notes = _notes(spec, model, tables)
    notes += tuple(f"{name}: pmin: {note}" for name, one in least.items() for note in one.notes)
    notes += tuple(f"{name}: risk_of: {note}" for name, one in done.items() for note in one.notes)
    shield = build_shield(compiled, model, process)
    notes += shielding.notes(compiled, model, shield)
    return Monitor(spec, abstraction, properties, loaded, notes, shield=shield)


def _process(compiled: CompiledSpec, model: CountModel | None) -> CountedProcess:
    assert model is not None
    return process_of_model(model, confidence=compiled.spec.bounds.confidence)


Solved = TypeVar("Solved", LeastRisk, RiskOfActions)


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
            None if section.horizon == math.inf else clock.ticks(section.horizon),
        )
        for section, automaton in zip(sections, compiled.automata, strict=True)
    ]


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


def check_model(compiled: CompiledSpec, model: CountModel) -> None:
    """Check that `model` fits this abstraction; raises ModelError saying what differs."""
    for problem in _differences(compiled, model):
        raise problem


def _differences(compiled: CompiledSpec, model: CountModel) -> Iterator[ModelError]:
    vocabulary = compiled.abstraction.vocabulary
    if not model.observed.any():
        yield ModelError(
            "the model has no visited state: nothing was learned",
            key="states",
            accepted="a model learned from recordings in which all predicates are known at times",
        )
    if model.rate != compiled.spec.rate:
        yield ModelError(
            f"the model was learned {by_clock(model.rate)}, the monitor file runs "
            f"{by_clock(compiled.spec.rate)}",
            key="rate",
            accepted="equal clocks: learn again, or change clock or rate",
        )
    if model.vocabulary.kind != vocabulary.kind:
        yield ModelError(
            f"the model was learned with states of the kind {model.vocabulary.kind}",
            key="space.kind",
            accepted=f"{vocabulary.kind}, as the monitor file says: learn again",
        )
    for key, theirs, ours in (
        ("predicates", model.vocabulary.predicates, vocabulary.predicates),
        ("terminal", _declared_terminals(model), vocabulary.terminals),
    ):
        if theirs != ours:
            missing = [n for n in ours if n not in theirs]
            extra = [n for n in theirs if n not in ours]
            detail = "; ".join(
                f"{what} {', '.join(names)}"
                for what, names in (("it lacks", missing), ("it has", extra))
                if names
            )
            yield ModelError(
                f"the model was learned with other {key}: {detail or 'in another order'}",
                key=key,
                accepted=", ".join(ours),
            )
    if model.digest != compiled.abstraction.digest:
        yield ModelError(
            f"the model was learned with another abstraction (digest {model.digest[:12]}, the "
            f"monitor file has {compiled.abstraction.digest[:12]}): a signal, predicate, "
            "constraint or timeout differs",
            key="digest",
            accepted="a model learned with this monitor file: learn again",
        )


def _declared_terminals(model: CountModel) -> tuple[str, ...]:
    terminals = model.vocabulary.terminals
    return terminals[:-1] if model.end == "absorb" and terminals[-1:] == (END_LABEL,) else terminals


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
            if section.risk_of != before.risk_of:
                raise ConfigError(
                    "risk_of cannot change while running", key=f"properties.{name}.risk_of"
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
