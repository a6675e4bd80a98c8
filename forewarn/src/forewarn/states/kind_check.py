"""Do conditions fit the kinds of their signals? Decided from message types, before any message.

What is a number, text or an array follows from the definition of each topic's messages, through
derived signals, to predicates, terminal labels and phases. Where a signal's kind cannot be known
(a type that is not installed, a value that comes by name), nothing that uses it is judged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from forewarn.errors import FieldError
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.functions.memory import Memory
from forewarn.expressions.syntax import called, shown
from forewarn.messages.inference import infer
from forewarn.messages.schema import (
    NUMBER,
    TEXT,
    FieldType,
    Kind,
    Many,
    Primitive,
    SequenceOf,
    Struct,
    describe,
    kind_of,
)
from forewarn.signals.frames import value_type
from forewarn.states.learned_signal import LearnedSignal

if TYPE_CHECKING:
    from forewarn.expressions.syntax import Expression
    from forewarn.messages.definitions import MessageType
    from forewarn.states.abstraction import Abstraction, DerivedSignal


class Misuse(NamedTuple):
    """An expression that its signals do not fit.

    `place`: ``signals``, ``learned_score``, ``predicates``, ``terminal``, or the key of a phase.
    """

    place: str
    name: str  # whose expression; empty for a phase
    error: FieldError  # what is wrong


def find_misuse(abstraction: Abstraction, types: Mapping[str, MessageType]) -> Iterator[Misuse]:
    """Yield every expression over signals that cannot have a value, or no truth value."""
    fields = dict(_sources(abstraction, types))
    for derived in abstraction.derived:
        if isinstance(derived.memory, LearnedSignal):
            yield from _not_numbers(derived.memory, fields)
            fields[derived.name] = _field(NUMBER)
        elif _can_tell(derived.expression, fields):
            try:
                kind = infer(derived.expression, Struct("the signals", fields)).kind
                fields[derived.name] = _field(_remembered(derived, kind))
            except FieldError as error:
                place, _, name = (derived.key or f"signals.{derived.name}").partition(".")
                yield Misuse(place, name.removesuffix(".value"), error)
    fields |= dict.fromkeys(abstraction.vocabulary.predicates, Primitive("bool"))
    struct = Struct("the signals", fields)
    for place, name, expression in _conditions(abstraction):
        if _can_tell(expression, fields):
            error_found = _condition(expression, struct)
            if error_found is not None:
                yield Misuse(place, name, error_found)


def _not_numbers(score: LearnedSignal, fields: Mapping[str, FieldType]) -> Iterator[Misuse]:
    """Yield the signals of a learned score that the monitor file names and that are no numbers."""
    for index, name in enumerate(score.signals if score.named else ()):
        kind = kind_of(fields[name]) if name in fields else NUMBER
        if kind != NUMBER:
            error = FieldError(f"{name!r} is {describe(kind)}", accepted="signals that are numbers")
            yield Misuse("learned_score", f"{score.name}.from[{index}]", error)


def _remembered(signal: DerivedSignal, kind: Kind) -> Kind:
    """Return the kind of a signal whose expression has this kind; raises FieldError."""
    if not isinstance(signal.memory, Memory) or signal.memory.function == "previous":
        return kind
    if kind != NUMBER:
        raise FieldError(
            f"{signal.memory.function}() of {describe(kind)}, in {shown(signal.name)}",
            accepted="a condition" if signal.memory.judges else "a number",
        )
    return NUMBER


def _sources(
    abstraction: Abstraction, types: Mapping[str, MessageType]
) -> Iterator[tuple[str, FieldType]]:
    for source in abstraction.sources:
        mtype = value_type(source, types)
        if mtype is not None and source.expression is not None:
            try:
                yield source.name, _field(infer(source.expression, mtype.struct).kind)
            except FieldError:
                continue  # the check of message fields reports it


def _conditions(abstraction: Abstraction) -> Iterator[tuple[str, str, Expression]]:
    for key, expression in {**abstraction.conditions, **abstraction.phases}.items():
        place, _, name = key.partition(".")
        yield place, name, expression


def _can_tell(expression: Expression, fields: Mapping[str, FieldType]) -> bool:
    calls = {called(node) for node in ast.walk(expression.tree) if isinstance(node, ast.Call)}
    return not any(FUNCTIONS[name].needs for name in calls) and expression.names <= fields.keys()


def _condition(expression: Expression, struct: Struct) -> FieldError | None:
    try:
        kind = infer(expression, struct).kind
    except FieldError as error:
        return error
    if kind == NUMBER:
        return None
    accepted = "a comparison: mode == 'auto'" if kind == TEXT else "any(...) or all(...) of it"
    return FieldError(
        f"{describe(kind)} is neither true nor false, in {shown(expression.source)}",
        accepted=accepted,
    )


def _field(kind: Kind) -> FieldType:
    if isinstance(kind, Many):
        return SequenceOf(_field(kind.element), 0)
    return Primitive("string" if kind == TEXT else "float64")
