"""A monitor file compiled as a whole, and all its problems found in one pass.

A file is checked in stages: its keys and values, then its names and expressions, then its formulas.
So whatever is wrong is taken out and the rest is checked again, until nothing more is found. What
then speaks of a part that was taken out is no finding.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forewarn.config.file import parse_spec
from forewarn.config.includes import with_fragments
from forewarn.config.yaml_text import Document, load_document
from forewarn.errors import ConfigError, ConfigErrors, FormulaError, InputError, suggestion
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import RESERVED, parse_formula
from forewarn.logic.syntax import Atom, Constant, Formula, Not, atoms_of
from forewarn.signals.clock_kinds import clock_of
from forewarn.states.condition import clear_ways, hold_conditions
from forewarn.states.kinds import build_states
from forewarn.states.observation_error import observation_errors

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.config.sections import PropertySpec
    from forewarn.logic.automaton import Automaton
    from forewarn.states.abstraction import Abstraction
    from forewarn.states.learned_signal import SignalFit


@dataclass(frozen=True)
class CompiledSpec:
    """A monitor file, compiled: everything but the model.

    `automata`: one for each property, over the names of the abstraction's vocabulary.
    """

    spec: MonitorSpec
    abstraction: Abstraction
    automata: tuple[Automaton, ...]


def compile_spec(spec: MonitorSpec, fitted: Sequence[SignalFit] = ()) -> CompiledSpec:
    """Compile signals, predicates and properties.

    `fitted`: learned scores of the model; others are unknown at every moment.
    Raises ConfigError for everything that is wrong with expressions, names and formulas, all at
    once.
    """
    errors: list[InputError] = [*_reserved(spec)]
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
        abstraction = build_states(spec, inline, fitted)
    except ConfigErrors as found:
        errors += found.errors
    if abstraction is None or errors:
        raise ConfigErrors(errors)
    errors += _circular(spec, abstraction, formulas)
    try:
        observation_errors(spec, abstraction)
    except ConfigErrors as found:
        errors += found.errors
    for conditions in (clear_ways, hold_conditions):
        try:
            conditions(spec, abstraction)
        except ConfigErrors as found:
            errors += found.errors
    automata, problems = _automata(spec, abstraction, formulas)
    errors += problems
    errors += _estimators(spec, abstraction)
    if errors:
        raise ConfigErrors(errors)
    return CompiledSpec(spec, abstraction, tuple(automata))


def _reserved(spec: MonitorSpec) -> Iterator[ConfigError]:
    """Yield an error for each name that formulas would read as a word of their language."""
    for section in ("predicates", "terminal"):
        for name in getattr(spec, section):
            if name in RESERVED:
                yield ConfigError(
                    f"{name!r} is a word of the formula language",
                    file=spec.file,
                    key=f"{section}.{name}",
                    accepted="another name",
                )


def _automata(
    spec: MonitorSpec, abstraction: Abstraction, formulas: Mapping[str, Formula]
) -> tuple[list[Automaton], list[InputError]]:
    """Return the automata of the formulas, and what is wrong with those that have none."""
    found: list[Automaton] = []
    errors: list[InputError] = []
    known = abstraction.vocabulary.atoms
    for name, formula in formulas.items():
        key = f"properties.{name}.formula"
        unknown = [atom for atom in atoms_of(formula) if abstraction.resolve(atom) is None]
        errors += [
            ConfigError(
                f"unknown name {atom!r}{suggestion(atom, known)}",
                file=spec.file,
                key=key,
                accepted=", ".join(known),
            )
            for atom in unknown
        ]
        if unknown:
            continue
        try:
            found.append(_automaton(spec, spec.properties[name], formula, abstraction))
        except FormulaError as error:
            errors.append(error.located(file=spec.file, key=key))
    return found, errors


def _estimators(spec: MonitorSpec, abstraction: Abstraction) -> Iterator[ConfigError]:
    for name, section in spec.properties.items():
        if section.estimator != "chain" and spec.bounds.kind == "sound":
            yield ConfigError(
                f"sound bounds are the chain's, and the estimator is {section.estimator}",
                file=spec.file,
                key=f"properties.{name}.estimator",
                accepted="chain; or bounds of the kind clustered or none",
            )
        for score in section.scores:
            if score not in abstraction.signals:
                yield ConfigError(
                    f"there is no signal {score!r}",
                    file=spec.file,
                    key=f"properties.{name}.scores",
                    accepted=", ".join(abstraction.signals),
                )


def _circular(
    spec: MonitorSpec, abstraction: Abstraction, formulas: Mapping[str, Formula]
) -> Iterator[InputError]:
    """Yield what a learned score decides although it decides what the score is fitted to."""
    learned = abstraction.learned
    if not learned:
        return
    for name, score in spec.learned_score.items():
        atoms = atoms_of(formulas[score.property])
        resolved = [abstraction.resolve(atom) for atom in atoms]
        judged = [f"predicates.{found[0]}" for found in resolved if found is not None]
        ends = [key for key in abstraction.conditions if key.startswith("terminal.")]
        for key in (*judged, *ends, *abstraction.phases):
            if key in learned:
                yield ConfigError(
                    f"{key} depends on a learned score, and the violations of {score.property} "
                    "depend on it",
                    file=spec.file,
                    key=f"learned_score.{name}.for",
                    accepted="a property whose formula, with terminal labels, active_when and "
                    "intervened_when, depends on no learned score",
                )


def _automaton(
    spec: MonitorSpec, section: PropertySpec, formula: Formula, abstraction: Abstraction
) -> Automaton:
    names: dict[str, Formula] = {}
    for atom in atoms_of(formula):
        resolved = abstraction.resolve(atom)
        assert resolved is not None
        name, negated = resolved
        names[atom] = Not(Atom(name)) if negated else Atom(name)
    return compile_formula(with_atoms(formula, names), spec.rate)


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


Path_ = tuple[object, ...]
Check = Callable[[CompiledSpec], object]

MOST_ROUNDS = 100
#: The parts of which a file has several by name.
NAMED = frozenset(
    {"signals", "shapes", "predicates", "bins", "learned_score", "terminal", "properties", "guards"}
)


@contextmanager
def all_problems(path: Path | str, *checks: Check) -> Iterator[None]:
    """Turn the first ConfigError that is raised within into one that has all problems of a file.

    `path`: the monitor file that is read within.
    `checks`: called with what was compiled, to raise ConfigError for what else may be wrong.
    Raises ConfigError with everything that is wrong.
    """
    try:
        yield
    except ConfigError as error:
        try:
            document = with_fragments(load_document(Path(path)))
        except ConfigError:
            raise error from None
        raise ConfigErrors(list(_all_problems(document, error, checks))) from error


def _all_problems(
    document: Document, error: ConfigError, checks: Sequence[Check]
) -> Iterator[InputError]:
    removed: set[Path_] = set()
    for _ in range(MOST_ROUNDS):
        found = error.errors if isinstance(error, ConfigErrors) else [error]
        paths = [_path(problem.key) for problem in found]
        for problem, path in zip(found, paths, strict=True):
            if not _follows(problem, path, removed):
                yield problem
        before = len(removed)
        for path in paths:
            document = _without(document, path, removed)
        if len(removed) == before:
            return
        try:
            compiled = compile_spec(parse_spec(document))
            for check in checks:
                check(compiled)
        except ConfigError as next_error:
            error = next_error
        else:
            return


def _path(key: str) -> Path_:
    """Return the parts of a key path as errors tell it: ``line 7: properties.stop.bounds[0]``."""
    text = re.sub(r"\Aline \d+: ", "", key).partition(":")[0]
    parts: list[object] = []
    for part in text.split("."):
        name, *indices = part.split("[")
        parts += [name, *(int(index.rstrip("]")) for index in indices if index[:-1].isdigit())]
    return tuple(parts)


def _follows(problem: InputError, path: Path_, removed: set[Path_]) -> bool:
    """Tell whether a problem is there only because something was taken out."""
    if any(path[: len(gone)] == gone[: len(path)] for gone in removed):
        return True
    lost = {str(gone[1]) for gone in removed if len(gone) == 2}
    return bool(lost & set(re.findall(r"\w+", problem.problem)))


def _without(document: Document, path: Path_, removed: set[Path_]) -> Document:
    """Take out as little as may be: a key of a named part, then the part, then the section."""
    for length in (3, 2, 1):
        gone = path[:length]
        if len(gone) < length or (length == 2 and path[0] not in NAMED) or gone in removed:
            continue
        data = copy.deepcopy(document.data)
        holder: Any = data
        for part in gone[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and gone[-1] in holder:
            del holder[gone[-1]]
            removed.add(gone)
            return replace(document, data=data)
    return document
