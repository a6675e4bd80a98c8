"""Expressions over many moments at once, with the same bits as one moment after the other.

A column holds the values of one signal at the moments of a block: one number each, or all arrays
end to end with their lengths. An expression runs on columns by the very operators and functions
that it calls at one moment, for these work element by element. Whatever might differ (an expression
that splits arrays, a moment whose value is unknown, zeros of both signs under a minimum) is
left to the caller, who evaluates it moment by moment.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.expressions import call_trees as trees
from forewarn.expressions.compiler import Rewriter, compile_rewritten, read_names
from forewarn.expressions.functions import CONSTANTS, FUNCTIONS
from forewarn.expressions.operators import index
from forewarn.expressions.ragged import EXTREMES, REDUCTIONS, Unlike
from forewarn.expressions.syntax import Expression, called
from forewarn.expressions.values import Notes, Vector, is_unknown, to_value

#: Whole numbers up to here are floats as well: columns compare as floats do.
EXACT = 2**53
COUNTS = "_counts"
_DTYPES: Mapping[type, str] = {float: "f", bool: "b", int: "i"}
_TRUTHS = frozenset({"bool", "isnan", "isinf", "isfinite", "any", "all"})
_ASKS = frozenset({"isnan", "isinf", "isfinite"})
_WHOLE = frozenset({"count", "len"})

Kind = Literal["b", "i", "f", "mixed"]
#: What decides how an expression runs on a column: kind of numbers, and arrays or not.
Signature = tuple[str, bool]


class Column(NamedTuple):
    """One signal at the n moments of a block.

    `counts`, shape (n,): how many of the values are of each moment; None if it is one number each.
    """

    values: Vector  # shape (m,): bool, int64 or float64: what it is at the moments that are `known`
    counts: NDArray[np.int64] | None
    known: NDArray[np.bool_]  # shape (n,): the moments that the column speaks of

    def at(self, keep: NDArray[np.bool_]) -> Vector:
        """Return the values at some of the moments that are known."""
        kept = keep[self.known]
        if kept.all():
            return self.values
        if self.counts is None:
            return self.values[kept]
        chosen: Vector = self.values[np.repeat(kept, self.counts[self.known])]
        return chosen

    @property
    def signature(self) -> Signature:
        """Return the kind of its numbers, and whether it has arrays."""
        return self.values.dtype.kind, self.counts is not None

    def each(self) -> list[Any]:
        """Return the value at each moment that is known, as a signal has it."""
        if self.counts is None:
            plain: list[Any] = self.values.tolist()
            return plain
        ends = np.cumsum(self.counts[self.known]).tolist()
        return [self.values[a:b] for a, b in zip([0, *ends], ends, strict=False)]

    def some(self, keep: NDArray[np.bool_]) -> Iterable[Any]:
        """Return the value at each of some moments, all of them known."""
        return compress(self.each(), keep[self.known].tolist())


def column_of(values: Sequence[Any]) -> Column | None:
    """Return the column of a signal's values; None where they are not of one kind of numbers.

    A value None is unknown.
    """
    kinds = {*map(type, values)}
    whole = len(kinds) == 1
    kinds.discard(type(None))
    kind = kinds.pop() if len(kinds) == 1 else _kind_of(values)
    if kind is np.ndarray:
        return _column_of_arrays(values)
    if kind not in _DTYPES:
        return None
    known = np.array([whole or type(value) is kind for value in values], np.bool_)
    if not whole:
        values = [value for value in values if type(value) is kind]
    if kind is int and max(map(abs, values)) > EXACT:
        return None
    return Column(np.array(values), None, known)


def _kind_of(values: Sequence[Any]) -> type:
    """Return the type of the first value that is there."""
    return type(next((value for value in values if value is not None), None))


def _column_of_arrays(values: Sequence[Any]) -> Column | None:
    arrays = [value for value in values if type(value) is np.ndarray]
    dtype = arrays[0].dtype
    if dtype not in (np.float64, np.bool_, np.int64):
        return None
    if len(arrays) < len(values) or {*((a.dtype, a.ndim) for a in arrays)} != {(dtype, 1)}:
        fits = [type(v) is np.ndarray and v.dtype == dtype and v.ndim == 1 for v in values]
        arrays = [value for value, fit in zip(values, fits, strict=True) if fit]
        known = np.array(fits, np.bool_)
    else:
        known = np.ones(len(values), np.bool_)
    if not arrays:
        return None
    counts = np.zeros(len(values), np.int64)
    counts[known] = [*map(len, arrays)]
    return Column(np.concatenate(arrays), counts, known)


class Lifted(NamedTuple):
    """An expression that runs on columns; `arrays` tells whether its values are arrays."""

    function: Any
    kind: str
    arrays: bool

    def apply(self, columns: Sequence[Column]) -> Column | None:
        """Return its values, at the moments where they are certainly those of the step.

        `columns`: the signals in the order of names that `lift` was given, with the same
        signatures.
        """
        keep = np.logical_and.reduce([column.known for column in columns])
        counts: NDArray[np.int64] | None = None
        for column in columns:
            if column.counts is not None and counts is None:
                counts = column.counts
            elif column.counts is not None:
                keep &= column.counts == counts
        if not keep.any():
            return None
        lengths = None if counts is None else counts[keep]
        try:
            with np.errstate(all="ignore"):
                found = self.function(Notes(), *(column.at(keep) for column in columns), lengths)
        except Unlike:
            return None
        size = int(lengths.sum()) if self.arrays and lengths is not None else int(keep.sum())
        if not isinstance(found, np.ndarray) or len(found) != size or found.dtype.kind != self.kind:
            return None
        if self.arrays:
            assert counts is not None
            return Column(found, np.where(keep, counts, 0), keep)
        if self.kind == "f":
            has_value = ~np.isnan(found)
            if not has_value.all():
                found, keep = found[has_value], keep.copy()
                keep[keep] = has_value
        return Column(found, None, keep)


class Read(NamedTuple):
    """What an expression reads of a signal: all of it, or one element."""

    signal: str
    place: int | None

    @property
    def parameter(self) -> str:
        """The name of its column in what an expression is compiled to."""
        return self.signal if self.place is None else f"_{self.signal}_{self.place}"

    def of(self, value: Any) -> Any:
        """Return what is read of the value of a moment; None if there is no such element."""
        if self.place is None or value is None:
            return value
        element = index(Notes(), to_value(value), self.place)
        return None if is_unknown(element) else element


def reads_of(tree: ast.expr, signals: Collection[str]) -> list[Read]:
    """Return what an expression reads of signals, in a fixed order."""
    found, elements = set[Read](), set[ast.expr]()
    for node in ast.walk(tree):  # an element comes before the name in it
        if (one := _element(node)) is not None and one.signal in signals:
            found.add(one)
            elements.add(node.value)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Name) and node.id in signals and node not in elements:
            found.add(Read(node.id, None))
    return sorted(found, key=lambda read: read.parameter)


def _element(node: ast.AST) -> Read | None:
    """Return the element that a tree such as ``pose[2]`` reads."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if type(place) is int:
            return Read(node.value.id, place)
    return None


def lift(
    expression: Expression, names: Sequence[str], signatures: Sequence[Signature]
) -> Lifted | tuple[Lifted, ...] | None:
    """Compile an expression to run on columns; None if it must be evaluated moment by moment.

    A list gives what computes each of its elements.

    `names`: what it reads (`Read.parameter`).
    `signatures`: of their columns.
    """
    lifter = _Lifter(dict(zip(names, signatures, strict=True)))
    elements = expression.tree.elts if isinstance(expression.tree, ast.List) else ()
    try:
        if elements:
            return tuple(_compiled(lifter.made(node), names, expression) for node in elements)
        return _compiled(lifter.made(expression.tree), names, expression)
    except NotLifted:
        return None


def _compiled(made: _Made, names: Sequence[str], expression: Expression) -> Lifted:
    if made.level is None or made.kind == "mixed":
        raise NotLifted
    function = compile_rewritten(made.tree, [*names, COUNTS], f"block of {expression.source}")
    return Lifted(function, made.kind, made.level == 1)


class NotLifted(Exception):
    """An expression does not work element by element."""


class _Made(NamedTuple):
    """A tree over columns: `level` 0 for a number at each moment, 1 for arrays, None if constant.

    `kind` is that of the numbers: what a choice gives may depend on the branch.
    """

    tree: ast.expr
    level: int | None
    kind: Kind


class _Lifter:
    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._signatures = signatures
        self._holes = False

    def made(self, node: ast.expr) -> _Made:
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if (element := _element(node)) is not None:
            return self._name(trees.name(element.parameter))
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.IfExp):
            return self._choice(node, [node.test, node.body, node.orelse])
        if isinstance(node, ast.BoolOp):
            return self._elementwise(node, node.values, "b")
        if isinstance(node, ast.UnaryOp):
            kind: Kind = "b" if isinstance(node.op, ast.Not) else "f"
            return self._elementwise(node, [node.operand], kind)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Pow) and read_names(node.right):
                raise NotLifted  # a square is a product, but not among other powers
            return self._elementwise(node, [node.left, node.right], "f")
        raise NotLifted

    def _constant(self, node: ast.Constant) -> _Made:
        value: Any = node.value
        kind = _DTYPES.get(type(value))
        if kind is None or (kind == "i" and abs(value) > EXACT):
            raise NotLifted
        return _Made(Rewriter().rewrite(node), None, kind)  # type: ignore[arg-type]

    def _name(self, node: ast.Name) -> _Made:
        if node.id in self._signatures:
            kind, arrays = self._signatures[node.id]
            return _Made(Rewriter().rewrite(node), int(arrays), kind)  # type: ignore[arg-type]
        if node.id not in CONSTANTS:
            raise NotLifted
        kind = _DTYPES[type(CONSTANTS[node.id])]
        return _Made(Rewriter().rewrite(node), None, kind)  # type: ignore[arg-type]

    def _comparison(self, node: ast.Compare) -> _Made:
        values = [node.left]
        for operator, value in zip(node.ops, node.comparators, strict=True):
            if not isinstance(operator, (ast.In, ast.NotIn)):
                values.append(value)
            elif not isinstance(value, (ast.Tuple, ast.List)) or not all(
                isinstance(element, ast.Constant) and type(element.value) in _DTYPES
                for element in value.elts
            ):
                raise NotLifted
        return self._elementwise(node, values, "b")

    def _choice(self, node: ast.expr, parts: list[ast.expr]) -> _Made:
        test, *branches = made = [self.made(part) for part in parts]
        if test.level != 1 and any(branch.level == 1 for branch in branches):
            raise NotLifted  # a whole array is chosen, or a number
        kinds = {branch.kind for branch in branches}
        kind: Kind = "f" if test.level == 1 or kinds == {"f"} else "mixed"
        return self._joined(node, parts, made, kind)

    def _call(self, node: ast.Call) -> _Made:
        name = called(node)
        if name in REDUCTIONS and len(node.args) == 1:
            return self._reduction(node, name)
        least = FUNCTIONS[name].maps
        if least is None or len(node.args) < least or node.keywords:
            raise NotLifted
        if name == "where":
            return self._choice(node, node.args)
        made = self._elementwise(node, node.args, "b" if name in _TRUTHS else "f")
        if name in _ASKS and self._holes:
            raise NotLifted
        return made

    def _reduction(self, node: ast.Call, name: str) -> _Made:
        part = self.made(node.args[0])
        if part.level != 1 or (name == "nearest_beam" and part.kind != "f"):
            raise NotLifted
        values = part.tree
        arguments: list[ast.expr] = []
        for keyword in node.keywords:
            default = self.made(keyword.value)
            if default.level is not None:
                raise NotLifted
            if (default.kind, part.kind) == ("f", "f"):
                arguments = [ast.Constant(True), default.tree]
            else:
                self._holes = True  # an empty array gives another kind: left to the step
        if name in EXTREMES:
            values = trees.call("_one_zero", values)
        reduced = trees.noted(
            "_reduce_segments", ast.Constant(name), values, trees.name(COUNTS), *arguments
        )
        kind: Kind = "b" if name in _TRUTHS else "i" if name in _WHOLE else "f"
        return _Made(reduced, 0, part.kind if name in EXTREMES else kind)

    def _elementwise(self, node: ast.expr, parts: Sequence[ast.expr], kind: Kind) -> _Made:
        return self._joined(node, parts, [self.made(part) for part in parts], kind)

    @staticmethod
    def _joined(
        node: ast.expr, parts: Sequence[ast.expr], made: Sequence[_Made], kind: Kind
    ) -> _Made:
        levels = [part.level for part in made if part.level is not None]
        level = max(levels, default=None)
        given = {
            part: trees.call("_spread", one.tree, trees.name(COUNTS))
            if level == 1 and one.level == 0
            else one.tree
            for part, one in zip(parts, made, strict=True)
        }
        return _Made(Rewriter(given).rewrite(node), level, kind)
