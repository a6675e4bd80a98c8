"""A monitor file compiled as a whole: abstraction and automata over one vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from forewarn.config import MonitorSpec
from forewarn.config.sections import PropertySpec
from forewarn.errors import ConfigError, ConfigErrors, FormulaError, InputError
from forewarn.logic.automaton import Automaton
from forewarn.logic.compilation import compile_formula
from forewarn.logic.lexer import RESERVED
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import Atom, Constant, Formula, Not, atoms_of
from forewarn.signals.clock_kinds import clock_of
from forewarn.states.abstraction import Abstraction
from forewarn.states.kinds import build_states


@dataclass(frozen=True)
class CompiledSpec:
    """A monitor file, compiled: everything but the model.

    Attributes
    ----------
    automata : tuple of Automaton
        One for each property, over the names of the abstraction's vocabulary.
    """

    spec: MonitorSpec
    abstraction: Abstraction
    automata: tuple[Automaton, ...]


def compile_spec(spec: MonitorSpec) -> CompiledSpec:
    """Compile signals, predicates and properties.

    Raises
    ------
    ConfigError
        For everything that is wrong with expressions, names and formulas, all at once.
    """
    errors: list[InputError] = [
        ConfigError(
            f"{name!r} is a word of the formula language",
            file=spec.file,
            key=f"{section}.{name}",
            accepted="another name",
        )
        for section in ("predicates", "terminal")
        for name in getattr(spec, section)
        if name in RESERVED
    ]
    unit = clock_of(spec.rate).unit
    formulas: dict[str, Formula] = {}
    for name, section in spec.properties.items():
        try:
            formulas[name] = parse_formula(section.formula, unit)
        except FormulaError as error:
            errors.append(error.located(file=spec.file, key=f"properties.{name}.formula"))
    inline = [atom for formula in formulas.values() for atom in atoms_of(formula)]
    abstraction = None
    try:
        abstraction = build_states(spec, inline)
    except ConfigErrors as found:
        errors += found.errors
    if abstraction is None or errors:
        raise ConfigErrors(errors)
    automata = []
    for name, formula in formulas.items():
        key = f"properties.{name}.formula"
        unknown = [atom for atom in atoms_of(formula) if abstraction.resolve(atom) is None]
        known = abstraction.vocabulary.atoms
        errors += [
            ConfigError(
                f"unknown name {atom!r}", file=spec.file, key=key, accepted=", ".join(known)
            )
            for atom in unknown
        ]
        if unknown:
            continue
        try:
            automata.append(_automaton(spec, spec.properties[name], formula, abstraction))
        except FormulaError as error:
            errors.append(error.located(file=spec.file, key=key))
    if errors:
        raise ConfigErrors(errors)
    return CompiledSpec(spec, abstraction, tuple(automata))


def _automaton(
    spec: MonitorSpec, section: PropertySpec, formula: Formula, abstraction: Abstraction
) -> Automaton:
    names: dict[str, Formula] = {}
    for atom in atoms_of(formula):
        resolved = abstraction.resolve(atom)
        assert resolved is not None
        name, negated = resolved
        names[atom] = Not(Atom(name)) if negated else Atom(name)
    return compile_formula(
        with_atoms(formula, names), spec.rate, paper_counting=section.paper_counting
    )


def with_atoms(formula: Formula, names: Mapping[str, Formula]) -> Formula:
    """Return `formula` with each atom replaced by what `names` gives for it."""
    if isinstance(formula, Atom):
        return names[formula.text]
    if isinstance(formula, Constant):
        return formula
    changed: dict[str, Any] = {
        field.name: with_atoms(getattr(formula, field.name), names)
        for field in fields(formula)
        if field.name != "interval"
    }
    return replace(formula, **changed)
