"""From the bytes of a message to the values of its expressions.

When a monitor file is loaded, expressions and the definition of the message become one plan that
reads only what the expressions touch (:mod:`forewarn.messages.plan`), and one function for each
expression. Live messages and recorded ones go through the same code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from forewarn.errors import DecodeError
from forewarn.expressions.compiler import compile_rewritten, compile_tree, settle
from forewarn.expressions.syntax import Expression, bound_names, called, shown
from forewarn.expressions.values import Notes, Unknown, Value, Vector
from forewarn.messages.columns import direct_slot, open_with, recipe, shelve, want
from forewarn.messages.definitions import MessageType
from forewarn.messages.foreign import ForeignExtractor, ForeignType
from forewarn.messages.inference import ROOT, Typed, infer
from forewarn.messages.plan import ALL, Decode, Path, Plan, Planner, Wants, decoder
from forewarn.messages.range_readings import (
    TYPES,
    RangeReadings,
    judged,
    note_elsewhere,
    readings_of,
)
from forewarn.messages.schema import NUMBER, TEXT, Group, Many
from forewarn.messages.vectorise import Lifted, NotLifted, Source, lift

Columns: TypeAlias = "list[Any]"

# Measured by benchmarks/extraction.py on a 3 GHz core: microseconds for one operation of one
# element where an expression is computed element by element.
MICROSECONDS_PER_OPERATION = 1.0


class Evaluation(NamedTuple):
    """How the value of one expression comes from the columns of a message.

    `columns` are the places of the arguments; None: the whole message, as a record. `readings` are
    those that it chooses among.
    """

    function: Callable[..., Any]
    columns: tuple[int, ...] | None
    readings: RangeReadings | None = None


class Extractor:
    """Evaluates expressions over the bytes of messages of one type.

    `message_type`: the type.
    `plan`: what is read from each message.
    `notes`: which expressions could not be planned, and what that costs.
    """

    def __init__(
        self,
        mtype: MessageType,
        plan: Plan,
        recipes: Sequence[Callable[[Columns], tuple[Any, str]]],
        evaluations: Sequence[Evaluation],
        decode: Decode,
        notes: tuple[str, ...],
    ) -> None:
        self.message_type = mtype
        self.plan = plan
        self.notes = notes
        self._decode = decode
        self._recipes = recipes
        self._evaluations = evaluations
        whole = any(evaluation.columns is None for evaluation in evaluations)
        self._shelf = shelve(mtype.struct, plan) if whole else None

    def __call__(self, data: bytes | memoryview) -> list[Value | Unknown]:
        """Return the value of each expression.

        `data`: a serialized message: plain CDR of either endianness with its encapsulation header.
        Returns one value per expression: bool, int, float, str, vector or list; NaN or
        :class:`Unknown` where there is none.
        Raises DecodeError if the bytes do not have the layout of the message type. The whole layout
        is checked, of what is not read as well.
        """
        try:
            columns = self._decode(data)
        except ValueError as error:
            raise DecodeError(
                f"{len(data)} bytes are no {self.message_type.name}: {error}",
                accepted="a message with the layout of the definition that the monitor uses",
            ) from error
        with np.errstate(all="ignore"):
            reasons = {}
            for recipe in self._recipes:
                value, reason = recipe(columns)
                if reason:
                    reasons[len(columns)] = reason
                columns.append(value)
            return [
                self._evaluate(evaluation, columns, reasons) for evaluation in self._evaluations
            ]

    def _evaluate(
        self, evaluation: Evaluation, columns: Columns, reasons: dict[int, str]
    ) -> Value | Unknown:
        if evaluation.readings is None:
            return self._value(evaluation, columns, reasons)
        beams, low = (self.plan.values[place] for place in evaluation.readings.places)

        def evaluate(readings: Vector) -> Value | Unknown:
            replaced = [*columns[:beams], readings, *columns[beams + 1 :]]
            return self._value(evaluation, replaced, reasons)

        return judged(columns[beams], columns[low], evaluate)

    def _value(
        self, evaluation: Evaluation, columns: Columns, reasons: dict[int, str]
    ) -> Value | Unknown:
        notes = Notes()
        if evaluation.columns is None:
            assert self._shelf is not None
            record = open_with(self._shelf, columns)
            return settle(evaluation.function(notes, record), notes)
        for at in reasons:
            if at in evaluation.columns:
                notes.unknown(reasons[at])
        arguments = [columns[at] for at in evaluation.columns]
        return settle(evaluation.function(notes, *arguments), notes)


def compile_extractor(
    mtype: MessageType,
    expressions: Sequence[Expression],
    decoded_by: Callable[[Plan], Decode] = decoder,
) -> Extractor | ForeignExtractor:
    """Prepare the evaluation of `expressions` over messages of type `mtype`.

    `mtype`: type of the messages.
    `expressions`: in each, the fields of the message are names (``twist.twist.linear.x``), its
    constants too, and ``msg`` is the whole message.
    `decoded_by`: makes a function from bytes to columns of a plan.
    Returns a function from bytes to one value for each expression, in their order.
    Raises FieldError if an expression reads a field that the type does not have, or uses one in a
    way that its type does not allow.
    """
    if isinstance(mtype, ForeignType):
        return ForeignExtractor(mtype, expressions)
    typed = [infer(expression, mtype.struct) for expression in expressions]
    ways = [_lift(expression) for expression in typed]
    readings = [readings_of(mtype, one) for one in typed]
    known = mtype.name in TYPES
    known_notes = [of.note(one) if of else "" for one, of in zip(typed, readings, strict=True)]
    notes = [text for text in (known_notes if known else map(note_elsewhere, typed)) if text]
    wants = Wants()
    for place in {place for of in readings if of is not None for place in of.places}:
        wants.add(place, False)
    for expression, way in zip(typed, ways, strict=True):
        if isinstance(way, Lifted):
            for source in way.sources:
                want(source.place, source.counted, wants)
        else:
            touch(expression, wants)
            notes.append(_cost(expression, way))
    plan = Planner().plan(mtype.struct, wants)
    kitchen = _Kitchen(plan)
    evaluations = [
        (
            kitchen.evaluation(expression, way)
            if isinstance(way, Lifted)
            else _element_by_element(expression)
        )._replace(readings=of)
        for expression, way, of in zip(typed, ways, readings, strict=True)
    ]
    return Extractor(mtype, plan, kitchen.recipes, evaluations, decoded_by(plan), tuple(notes))


def _lift(typed: Typed) -> Lifted | str:
    """Plan an expression on whole arrays, or say why that cannot be done."""
    try:
        return lift(typed)
    except NotLifted as reason:
        return str(reason)


def _element_by_element(typed: Typed) -> Evaluation:
    return Evaluation(compile_tree(typed.tree, [ROOT], typed.expression.source), None)


class _Kitchen:
    """Gathers the recipes that all expressions of a message need, each once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.recipes: list[Callable[[Columns], tuple[Any, str]]] = []
        self.places: dict[Source, int] = {}

    def place(self, source: Source) -> int:
        if source not in self.places:
            slot = direct_slot(self.plan, source.place, source.counted)
            if slot is None:
                slot = len(self.plan.slots) + len(self.recipes)
                self.recipes.append(recipe(self.plan, source.place, source.counted))
            self.places[source] = slot
        return self.places[source]

    def evaluation(self, typed: Typed, lifted: Lifted) -> Evaluation:
        parameters = [f"_{at}" for at in range(len(lifted.sources))]
        function = compile_rewritten(lifted.tree, parameters, typed.expression.source)
        return Evaluation(function, tuple(self.place(source) for source in lifted.sources))


def _cost(typed: Typed, reason: str) -> str:
    """Say what an expression costs that is computed element by element."""
    bodies = [node for node in ast.walk(typed.tree) if isinstance(node, ast.ListComp)]
    operations = max((sum(1 for _ in ast.walk(body)) for body in bodies), default=0) // 2
    price = f"about {MICROSECONDS_PER_OPERATION * operations:.0f} us for each element"
    return (
        f"{shown(typed.expression.source)} is computed element by element, "
        f"{price if bodies else 'a few us for each message'}: {reason}"
    )


Paths = frozenset[Path]
NOWHERE: Paths = frozenset()


def touch(typed: Typed, wants: Wants) -> None:
    """Ask for all that evaluating `typed` can read."""
    _Toucher(typed, wants).visit(typed.tree, {})


class _Toucher:
    """Finds where in the message a node's value may lie; for an array, where its elements lie."""

    def __init__(self, typed: Typed, wants: Wants) -> None:
        self.kinds = typed.kinds
        self.wants = wants

    def visit(self, node: ast.expr, scope: Mapping[str, Paths]) -> Paths:
        if isinstance(node, ast.Name):
            return frozenset({()}) if node.id == ROOT else scope.get(node.id, NOWHERE)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, scope)
        if isinstance(node, ast.ListComp):
            return self._comprehension(node, scope)
        places = [self.visit(child, scope) for child in _children(node)]
        if isinstance(node, ast.Subscript):
            return places[0]
        if isinstance(node, (ast.IfExp, ast.List)):
            return frozenset().union(*places)
        return NOWHERE

    def _attribute(self, node: ast.Attribute, scope: Mapping[str, Paths]) -> Paths:
        kind = self.kinds[node]
        found = set()
        for place in self.visit(node.value, scope):
            path = (*place, node.attr)
            if isinstance(kind, Many):
                self.wants.add(path, True)
                path = (*path, ALL)
            if kind in (NUMBER, TEXT, Many(NUMBER), Many(TEXT)):
                self.wants.add(path, False)
            found.add(path)
        return frozenset(found)

    def _comprehension(self, node: ast.ListComp, scope: Mapping[str, Paths]) -> Paths:
        for generator in node.generators:
            scope = {**scope, **self._bind(generator, scope)}
            for condition in generator.ifs:
                self.visit(condition, scope)
        return self.visit(node.elt, scope)

    def _bind(self, generator: ast.comprehension, scope: Mapping[str, Paths]) -> dict[str, Paths]:
        names = bound_names(generator.target)
        kind = self.kinds[generator.iter]
        if isinstance(kind, Many) and isinstance(kind.element, Group):
            assert isinstance(generator.iter, ast.Call)
            places = [self.visit(argument, scope) for argument in generator.iter.args]
            first = [NOWHERE] if called(generator.iter) == "enumerate" else []
            return dict(zip(names, [*first, *places], strict=True))
        return {names[0]: self.visit(generator.iter, scope)}


def _children(node: ast.AST) -> list[ast.expr]:
    """Return the expressions right below a node."""
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not isinstance(child, ast.Slice):
            found.append(child)
        elif isinstance(child, (ast.keyword, ast.Slice)):
            found += _children(child)
    return found
