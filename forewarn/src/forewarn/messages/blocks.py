"""Expressions over many messages of one type at once, with the same bits as one after the other.

All messages are decoded end to end. What an expression reads of them becomes columns: one number
for each message, or the elements of a sequence of each. On these the expression runs as one over
signals does (:mod:`forewarn.expressions.blocks`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.expressions.blocks import EXACT, Column, Lifted, lift
from forewarn.expressions.compiler import compile_tree, read_names
from forewarn.expressions.syntax import Expression, called
from forewarn.expressions.values import Notes
from forewarn.messages.columns import Columns, Pick, Place, flat, recipe_of_many, want
from forewarn.messages.definitions import MessageType
from forewarn.messages.foreign import ForeignType
from forewarn.messages.inference import ROOT, Typed, infer
from forewarn.messages.plan import ALL, Plan, Planner, Wants, decoder_of_many
from forewarn.messages.range_readings import RangeReadings, plain, readings_of
from forewarn.messages.schema import NUMBER, TEXT, Many
from forewarn.messages.vectorise import NotLifted, constant_index

_KINDS = {"f8": "f", "i8": "i", "?": "b"}


class Leaf(NamedTuple):
    """What an expression reads of each message.

    `loop`: the sequence that has an element for each value; None for one value a message.
    """

    place: Place  # where the value is, or the sequence whose elements are counted
    counted: bool  # whether the number of elements is asked for
    loop: Place | None
    test: str = ""  # what is asked of text, as an expression over ``_``; empty for numbers


class BlockExtractor:
    """Evaluates expressions over many messages; made by `block_extractor`."""

    def __init__(
        self,
        plan: Plan,
        leaves: Sequence[Leaf],
        lifted: Sequence[_Lifted],
        judged: tuple[int, ...] = (),
    ) -> None:
        self._judged = judged
        self._decode = decoder_of_many(plan)
        self._columns = [_reader(plan, leaf) for leaf in leaves]
        self._lifted = lifted

    def __call__(self, messages: list[Any]) -> list[tuple[Any, ...] | None]:
        """Return the values of the expressions for each message.

        Returns None for a message that must be evaluated alone: a value of it is unknown, say.
        """
        found: list[tuple[Any, ...] | None] = [None] * len(messages)
        with np.errstate(all="ignore"):
            columns = self._run(messages)
        if columns is None:
            return found
        known = np.logical_and.reduce([column.known for column in columns])
        if self._judged:
            *columns, clear = columns
            known &= clear.values | ~np.logical_or.reduce([_endless(one) for one in columns])
        rows = zip(*(column.some(known) for column in columns), strict=True)
        for at, row in zip(np.flatnonzero(known).tolist(), rows, strict=True):
            found[at] = row
        return found

    def _run(self, messages: list[Any]) -> list[Column] | None:
        try:
            decoded = self._decode(messages)
        except ValueError:
            return None  # one of them is damaged: which one shows when it is read alone
        leaves = [read(decoded) for read in self._columns]
        found = []
        for function, places in self._lifted:
            given = [column for at in places if (column := leaves[at]) is not None]
            column = function.apply(given) if len(given) == len(places) else None
            if column is None:
                return None
            found.append(column)
        if self._judged:
            plainly = _plain(*(leaves[at] for at in self._judged))
            if plainly is None:
                return None
            found.append(plainly)
        return found


class _Lifted(NamedTuple):
    """An expression on columns, and which leaves these are."""

    function: Lifted
    places: tuple[int, ...]


def block_extractor(mtype: MessageType, expressions: Sequence[Expression]) -> BlockExtractor | None:
    """Prepare the evaluation of `expressions` over many messages of type `mtype`.

    Returns None if one of the expressions cannot be evaluated so.
    """
    if isinstance(mtype, ForeignType) or not expressions:
        return None
    harvest = _Harvest()
    typed = [infer(expression, mtype.struct) for expression in expressions]
    readings = next((found for one in typed if (found := readings_of(mtype, one))), None)
    try:
        trees = [harvest.tree(one) for one in typed]
    except NotLifted:
        return None
    judged = () if readings is None else harvest.readings(readings)
    wants = Wants()
    for leaf in harvest.leaves:
        want(leaf.place, leaf.counted, wants)
        if leaf.loop is not None:
            want(leaf.loop, True, wants)
    plan = Planner().plan(mtype.struct, wants)
    kinds = [_kind(plan, leaf) for leaf in harvest.leaves]
    lifted = []
    for tree in trees:
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        places = [at for at in range(len(kinds)) if _name(at) in used]
        names = [_name(at) for at in places]
        signatures = [(kinds[at], harvest.leaves[at].loop is not None) for at in places]
        label = ast.unparse(tree)
        function = None
        if places and all(kind for kind, _ in signatures):
            function = lift(Expression(label, tree, frozenset(names)), names, signatures)
        if not isinstance(function, Lifted):
            return None
        lifted.append(_Lifted(function, tuple(places)))
    return BlockExtractor(plan, harvest.leaves, lifted, judged)


def _plain(beams: Column | None, low: Column | None) -> Column | None:
    """Return whether a reading is inf; known of messages whose readings mean what they say."""
    if beams is None or low is None or beams.counts is None or not low.known.all():
        return None
    known, clear = plain(beams.values, beams.counts, low.values)
    return Column(clear, None, known & beams.known)


def _endless(column: Column) -> NDArray[np.bool_]:
    """Tell at which messages a number is inf."""
    found = np.zeros(len(column.known), np.bool_)
    if column.counts is None and column.values.dtype.kind == "f":
        found[column.known] = np.isposinf(column.values)
    return found


def _name(leaf: int) -> str:
    return f"_{leaf}"


def _kind(plan: Plan, leaf: Leaf) -> str:
    """Return the kind of a leaf's numbers; empty if columns cannot have it."""
    if leaf.counted or leaf.test:
        return "i" if leaf.counted else "b"
    return _KINDS.get(plan.slots[plan.values[flat(leaf.place)]].kind, "")


def _reader(plan: Plan, leaf: Leaf) -> Callable[[Columns], Column | None]:
    """Return a function from what was decoded to the column of a leaf."""
    cook = recipe_of_many(plan, leaf.place, leaf.counted)
    count = None if leaf.loop is None else recipe_of_many(plan, leaf.loop, True)
    test = None
    if leaf.test:
        test = compile_tree(ast.parse(leaf.test, mode="eval").body, ["_"], leaf.test)

    def read(columns: Columns) -> Column | None:
        values, exist = cook(columns)
        if values is None:
            return None
        if test is not None:
            if not exist.all():
                return None
            values = test(Notes(), values) if len(values) else np.zeros(0, np.bool_)
        if values.dtype.kind == "i" and np.abs(values).max(initial=0) > EXACT:
            return None
        if count is None:
            known = exist if values.dtype.kind != "f" else exist & ~np.isnan(values)
            return Column(values[known], None, known)
        counts, there = count(columns)
        if counts is None or not there.all():
            return None
        # What a test of no text at all gives is no truth value.
        known = counts > 0 if test is not None else np.ones(len(counts), np.bool_)
        if not exist.all():
            known[np.repeat(np.arange(len(counts)), counts)[~exist]] = False
            values, counts = values[np.repeat(known, counts)], np.where(known, counts, 0)
        return Column(values, counts, known)

    return read


class _Harvest:
    """Turns expressions over messages into ones over leaves, which are gathered."""

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []

    def tree(self, typed: Typed) -> ast.expr:
        """Return the tree over leaves; raises NotLifted."""
        return _Harvester(typed, self).visit(typed.tree)

    def readings(self, readings: RangeReadings) -> tuple[int, ...]:
        """Return the leaves of all readings of a message, and of the least that is measured."""
        beams, low = readings.places
        for leaf in (found := (Leaf(beams, False, beams[:-1]), Leaf(low, False, None))):
            self.leaf(leaf)
        return tuple(self.leaves.index(leaf) for leaf in found)

    def leaf(self, leaf: Leaf) -> ast.expr:
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        return ast.Name(_name(self.leaves.index(leaf)), ast.Load())


class _Harvester:
    def __init__(self, typed: Typed, harvest: _Harvest) -> None:
        self._kinds = typed.kinds
        self._leaf = harvest.leaf
        self._loop: Place | None = None
        self._variable = ""

    def visit(self, node: ast.expr) -> ast.expr:
        """Return the tree over leaves."""
        place = self._place(node)
        if place is not None:
            return self._read(node, place)
        if isinstance(node, (ast.Constant, ast.Name)):
            return node
        if isinstance(node, ast.ListComp):
            return self._comprehension(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self.visit(node.left), node.op, self.visit(node.right))
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, self.visit(node.operand))
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, [self.visit(value) for value in node.values])
        if isinstance(node, ast.IfExp):
            return ast.IfExp(*map(self.visit, (node.test, node.body, node.orelse)))
        raise NotLifted(type(node).__name__)

    def _place(self, node: ast.expr) -> Place | None:
        """Return where in the message a node is, if it is a part of it."""
        if isinstance(node, ast.Name):
            if self._loop is not None and node.id == self._variable:
                return (*self._loop, ALL)
            return () if node.id == ROOT else None
        if isinstance(node, ast.Attribute):
            place = self._place(node.value)
            return None if place is None else (*place, node.attr)
        if isinstance(node, ast.Subscript) and isinstance(self._kinds[node.value], Many):
            place, index = self._place(node.value), constant_index(node.slice)
            return None if place is None or index is None else (*place, Pick(index))
        return None

    def _read(self, node: ast.expr, place: Place) -> ast.expr:
        kind, inside = self._kinds[node], self._inside(place)
        if kind == NUMBER:
            return self._leaf(Leaf(place, False, self._loop if inside else None))
        if kind == Many(NUMBER) and self._loop is None:
            return self._leaf(Leaf((*place, ALL), False, place))
        raise NotLifted("no number, nor an array of each message")

    def _inside(self, place: Place) -> bool:
        """Tell whether a place is one of each element of the loop."""
        return ALL in place

    def _comprehension(self, node: ast.ListComp) -> ast.expr:
        first = node.generators[0]
        place = self._place(first.iter)
        if self._loop is not None or place is None or len(node.generators) > 1 or first.ifs:
            raise NotLifted("no single loop over a sequence of the message")
        if self._kinds[node.elt] != NUMBER or not isinstance(first.target, ast.Name):
            raise NotLifted("an array, or text, for each element")
        if first.target.id not in read_names(node.elt):
            raise NotLifted("the same for each element")
        self._loop, self._variable = place, first.target.id
        try:
            return self.visit(node.elt)
        finally:
            self._loop = None

    def _call(self, node: ast.Call) -> ast.expr:
        if called(node) == "len" and len(node.args) == 1:
            place = self._place(node.args[0])
            if place is not None and isinstance(self._kinds[node.args[0]], Many):
                return self._leaf(Leaf(place, True, self._loop if self._inside(place) else None))
        arguments = [self.visit(argument) for argument in node.args]
        keywords = [ast.keyword(one.arg, self.visit(one.value)) for one in node.keywords]
        return ast.Call(node.func, arguments, keywords)

    def _comparison(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        texts = [operand for operand in operands if self._kinds.get(operand) == TEXT]
        place = self._place(node.left)
        if place is not None and self._kinds[node.left] == TEXT:
            return self._test(node, place)
        if texts:
            raise NotLifted("text on the right side")
        comparators = [
            right if isinstance(operator, (ast.In, ast.NotIn)) else self.visit(right)
            for operator, right in zip(node.ops, node.comparators, strict=True)
        ]
        return ast.Compare(self.visit(node.left), node.ops, comparators)

    def _test(self, node: ast.Compare, place: Place) -> ast.expr:
        """Return what a comparison of text with constants is."""
        right = node.comparators[0]
        elements = right.elts if isinstance(right, (ast.List, ast.Tuple)) else [right]
        if len(node.ops) > 1 or not all(isinstance(one, ast.Constant) for one in elements):
            raise NotLifted("text beside what is no constant")
        test = ast.unparse(ast.Compare(ast.Name("_", ast.Load()), node.ops, [right]))
        return self._leaf(Leaf(place, False, self._loop if self._inside(place) else None, test))
