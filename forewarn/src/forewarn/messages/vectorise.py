"""Planning an expression: which columns it needs, and how to compute it on whole arrays.

Inside ``[m.pose.x - m.size for m in markers]`` each field of ``m`` becomes the column of that field
over all markers, and operators work on columns. With a second ``for``, or with a
comprehension inside a function such as ``min(...)``, columns of nested sequences are flat, and the
number of elements in each segment puts them together again. What does not fit this is
computed element by element (:mod:`forewarn.messages.extraction`).
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from forewarn.expressions import call_trees as trees
from forewarn.expressions.compiler import Rewriter, read_names
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.ragged import REDUCTIONS
from forewarn.expressions.syntax import called
from forewarn.messages.columns import Pick, Place
from forewarn.messages.inference import ROOT, Typed
from forewarn.messages.plan import ALL
from forewarn.messages.schema import NUMBER, TEXT, Many, Struct


class NotLifted(Exception):
    """An expression cannot be computed on whole arrays; the text says why."""


class Source(NamedTuple):
    """A column that an expression needs: the values at a place, or the numbers of elements."""

    place: Place
    counted: bool


@dataclass(frozen=True)
class Lifted:
    """An expression as a tree over columns: `sources` are its parameters ``_0``, ``_1``, ..."""

    tree: ast.expr
    sources: tuple[Source, ...]


class At(NamedTuple):
    """A part of the message that is not a value yet; `level` loops run over its place."""

    place: Place
    level: int


class Made(NamedTuple):
    """A tree that computes a column with an item for each element of `level` nested loops."""

    tree: ast.expr
    level: int


class Nested(NamedTuple):
    """A comprehension inside loops: the elements, and how many each round of the loops has."""

    values: ast.expr
    counts: ast.expr
    condition: ast.expr
    level: int


Part: TypeAlias = "At | Made | Nested"


@dataclass(frozen=True)
class Loops:
    """The loops around a node: where each runs, and what the variables stand for."""

    places: tuple[Place, ...] = ()
    variables: dict[str, Part] = field(default_factory=dict)


def lift(typed: Typed) -> Lifted:
    """Plan an expression on whole arrays.

    Raises NotLifted if it cannot be done.
    """
    lifter = _Lifter(typed)
    part = lifter.visit(typed.tree, Loops())
    tree = lifter.code(part, typed.tree).tree
    return Lifted(tree, tuple(lifter.sources))


class _Lifter:
    def __init__(self, typed: Typed) -> None:
        self.kinds = typed.kinds
        self.sources: list[Source] = []

    def source(self, place: Place, counted: bool) -> ast.expr:
        """Return the parameter that gets this column."""
        wanted = Source(place, counted)
        if wanted not in self.sources:
            self.sources.append(wanted)
        return trees.name(f"_{self.sources.index(wanted)}")

    def visit(self, node: ast.expr, loops: Loops) -> Part:
        """Return what a node stands for inside `loops`."""
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            return self._elementwise(node, loops)
        part: Part = method(node, loops)
        return part

    def code(self, part: Part, node: ast.expr) -> Made:
        """Return the tree that computes a part."""
        if isinstance(part, Made):
            return part
        if isinstance(part, Nested):
            raise NotLifted("it makes an array for each element")
        kind = self.kinds[node]
        if kind in (NUMBER, TEXT):
            return Made(self.source(part.place, False), part.level)
        if isinstance(kind, Many) and kind.element in (NUMBER, TEXT) and part.level == 0:
            return Made(self.source((*part.place, ALL), False), 0)
        whole = "used as a whole" if part.level == 0 else "an array for each element"
        raise NotLifted(f"{text(node)} is {whole}")

    def made(self, node: ast.expr, loops: Loops) -> Made:
        """Visit a node that must be a value."""
        return self.code(self.visit(node, loops), node)

    # -- places in the message

    def _Name(self, node: ast.Name, loops: Loops) -> Part:
        if node.id in loops.variables:
            return loops.variables[node.id]
        if node.id == ROOT:
            return At((), 0)
        return Made(Rewriter().rewrite(node), 0)

    def _Attribute(self, node: ast.Attribute, loops: Loops) -> Part:
        part = self.visit(node.value, loops)
        if not isinstance(part, At):
            raise NotLifted(f"{text(node.value)} is a message chosen by the data")
        return At((*part.place, node.attr), part.level)

    def _Subscript(self, node: ast.Subscript, loops: Loops) -> Part:
        part = self.visit(node.value, loops)
        index = constant_index(node.slice)
        if isinstance(part, At) and index is not None and isinstance(self.kinds[node.value], Many):
            return At((*part.place, Pick(index)), part.level)
        if isinstance(part, At) and part.level > 0:
            raise NotLifted(f"the index of {text(node)} differs from element to element")
        items = self.code(part, node.value)
        if items.level > 0:
            raise NotLifted(f"{text(node)} indexes text of each element")
        if isinstance(node.slice, ast.Slice):
            bounds = (node.slice.lower, node.slice.upper, node.slice.step)
            ends = [ast.Constant(None) if b is None else self._single(b, loops) for b in bounds]
            return Made(trees.noted("_cut", items.tree, *ends), 0)
        return Made(trees.noted("_index", items.tree, self._single(node.slice, loops)), 0)

    def _single(self, node: ast.expr, loops: Loops) -> ast.expr:
        made = self.made(node, loops)
        if made.level > 0:
            raise NotLifted(f"the index {text(node)} differs from element to element")
        return made.tree

    # -- operators and functions that work element by element

    def _elementwise(self, node: ast.expr, loops: Loops) -> Made:
        """Rewrite an operator over the columns of its operands, all at the deepest level."""
        children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return self._apply(node, children, loops)

    def _apply(self, node: ast.expr, children: list[ast.expr], loops: Loops) -> Made:
        parts = [self.made(child, loops) for child in children]
        level = max((part.level for part in parts), default=0)
        if level > 0:
            self._refuse_arrays(node, children)
        columns = [self.at_level(part, level, loops) for part in parts]
        return Made(Rewriter(dict(zip(children, columns, strict=True))).rewrite(node), level)

    def _refuse_arrays(self, node: ast.expr, children: list[ast.expr]) -> None:
        """Refuse arrays next to columns: they would be taken for columns."""
        for child in children:
            if isinstance(self.kinds[child], Many) and not _is_choice(node, child):
                raise NotLifted(f"the array {text(child)} is combined with each element")

    def at_level(self, part: Made, level: int, loops: Loops) -> ast.expr:
        """Repeat a column of an outer loop for the elements of the loops inside it."""
        tree = part.tree
        if part.level == 0:
            return tree
        for depth in range(part.level, level):
            tree = trees.call("_spread", tree, self.source(loops.places[depth], True))
        return tree

    def _List(self, node: ast.List, loops: Loops) -> Made:
        parts = [self.made(element, loops) for element in node.elts]
        if any(part.level for part in parts):
            raise NotLifted("it makes an array for each element")
        return Made(trees.call("_vector", *(part.tree for part in parts)), 0)

    def _Compare(self, node: ast.Compare, loops: Loops) -> Made:
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, (ast.In, ast.NotIn)) and loops.places:
                constant = isinstance(right, ast.List) and all(
                    isinstance(element, ast.Constant) for element in right.elts
                )
                if not constant:
                    raise NotLifted(f"'in {text(right)}' is not a list of constants")
        return self._elementwise(node, loops)

    def _Call(self, node: ast.Call, loops: Loops) -> Part:
        function = called(node)
        if function in REDUCTIONS and len(node.args) == 1:
            part = self.visit(node.args[0], loops)
            if isinstance(part, Nested):
                return self._reduced(node, part, loops)
            if isinstance(part, At) and isinstance(self.kinds[node.args[0]], Many):
                return self._over_place(node, part, loops)
        elif function in ("zip", "enumerate"):
            raise NotLifted(f"{function}() goes from element to element")
        least = FUNCTIONS[function].maps
        children = [*node.args, *(keyword.value for keyword in node.keywords)]
        made = self._apply(node, children, loops)
        if made.level > 0 and (least is None or len(node.args) < least):
            raise NotLifted(f"{function}() of each element")
        return made

    def _over_place(self, node: ast.Call, part: At, loops: Loops) -> Part:
        """Reduce a sequence of the message: ``len(m.points)``, ``max(m.ranges)``."""
        if called(node) == "len":
            return Made(self.source(part.place, True), part.level)
        if part.level == 0:
            return self._apply(node, [*node.args, *(k.value for k in node.keywords)], loops)
        values = self.source((*part.place, ALL), False)
        counts = self.source(part.place, True)
        nested = Nested(values, counts, ast.Constant(True), part.level)
        return self._reduced(node, nested, loops)

    def _reduced(self, node: ast.Call, part: Nested, loops: Loops) -> Made:
        arguments = [part.values, part.counts, part.condition]
        for keyword in node.keywords:
            default = self.made(keyword.value, loops)
            if default.level > 0:
                raise NotLifted("a default= that differs from element to element")
            arguments.append(default.tree)
        return Made(
            trees.noted("_reduce_segments", ast.Constant(called(node)), *arguments), part.level
        )

    # -- comprehensions

    def _ListComp(self, node: ast.ListComp, loops: Loops) -> Part:
        if loops.places and not read_names(node) & loops.variables.keys():
            loops = Loops()
        outside = len(loops.places)
        inner, conditions = loops, []
        condition: Made | None = None
        for generator in node.generators:
            inner = self._enter(generator, inner)
            if generator.ifs:
                condition = self._both(generator.ifs, condition, inner)
                conditions.append(condition)
        depth = len(inner.places)
        element = self._element(node.elt, inner)
        values = self.at_level(element, depth, inner)
        last = ast.Constant(True) if condition is None else self.at_level(condition, depth, inner)
        counts = self.source(inner.places[outside], True)
        for place in inner.places[outside + 1 :]:
            counts = trees.call("_merge_counts", counts, self.source(place, True))
        if outside == 0:
            outer = [condition.tree for condition in conditions[:-1]]
            return Made(trees.noted("_collect", values, counts, last, *outer), 0)
        if any(generator.ifs for generator in node.generators[:-1]):
            raise NotLifted("an inner comprehension has an 'if' between its loops")
        return Nested(values, counts, last, outside)

    def _element(self, node: ast.expr, loops: Loops) -> Made:
        kind = self.kinds[node]
        if isinstance(kind, Struct):  # only their number can matter here
            return Made(ast.Constant(0), 0)
        if isinstance(kind, Many):
            raise NotLifted("it makes an array for each element")
        return self.made(node, loops)

    def _both(self, nodes: list[ast.expr], before: Made | None, loops: Loops) -> Made:
        """Return the condition of the innermost loop, given that of the loops outside it."""
        depth = len(loops.places)
        parts = [self.made(node, loops) for node in nodes]
        if before is not None:
            parts.insert(0, before)
        level = max(part.level for part in parts)
        columns = [self.at_level(part, level, loops) for part in parts]
        return Made(trees.noted("_both", *columns), min(level, depth))

    def _enter(self, generator: ast.comprehension, loops: Loops) -> Loops:
        """Add the loop over a sequence of the message."""
        part = self.visit(generator.iter, loops)
        kind = self.kinds[generator.iter]
        if not isinstance(part, At) or not isinstance(kind, Many):
            raise NotLifted(f"it runs over {text(generator.iter)}, which is computed")
        if part.level != len(loops.places):
            raise NotLifted("it pairs all elements of two sequences")
        assert isinstance(generator.target, ast.Name)
        element = At((*part.place, ALL), part.level + 1)
        variables = {**loops.variables, generator.target.id: element}
        return Loops((*loops.places, part.place), variables)


def text(node: ast.expr) -> str:
    """Write a resolved tree as the user did."""
    return re.sub(rf"\b{ROOT}\.", "", ast.unparse(node))


def _is_choice(node: ast.expr, child: ast.expr) -> bool:
    """Tell whether `child` is the list of constants in ``x in (1, 2)``."""
    return isinstance(node, ast.Compare) and isinstance(child, ast.List)


def constant_index(node: ast.expr) -> int | None:
    """Return the whole number that an index spells, or None."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return sign * node.value
    return None
