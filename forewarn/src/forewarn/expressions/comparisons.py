"""The comparisons of the language, and those of one signal with a number, to reason about."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple


class Comparator(NamedTuple):
    """One way to compare two values.

    `mirrored`, `negated`: symbols of what holds with the sides exchanged, and of what holds where
    this one does not.
    """

    name: str
    symbol: str
    node: type[ast.cmpop]
    holds: Callable[[Any, Any], Any]
    mirrored: str
    negated: str


COMPARATORS = (
    Comparator("equal", "==", ast.Eq, operator.eq, "==", "!="),
    Comparator("not_equal", "!=", ast.NotEq, operator.ne, "!=", "=="),
    Comparator("less", "<", ast.Lt, operator.lt, ">", ">="),
    Comparator("less_equal", "<=", ast.LtE, operator.le, ">=", ">"),
    Comparator("greater", ">", ast.Gt, operator.gt, "<", "<="),
    Comparator("greater_equal", ">=", ast.GtE, operator.ge, "<=", "<"),
)
BY_SYMBOL = {comparator.symbol: comparator for comparator in COMPARATORS}
BY_NODE = {comparator.node: comparator for comparator in COMPARATORS}


class Comparison(NamedTuple):
    """``signal operator threshold``."""

    signal: str
    operator: str
    threshold: float

    def negated(self) -> Comparison:
        """Return the comparison that holds exactly where this one does not."""
        return self._replace(operator=BY_SYMBOL[self.operator].negated)

    def holds(self, value: float) -> bool:
        """Tell whether it holds where the signal has a value."""
        return bool(BY_SYMBOL[self.operator].holds(value, self.threshold))

    def __str__(self) -> str:
        return f"{self.signal} {self.operator} {self.threshold:.15g}"


def as_comparison(tree: ast.expr) -> Comparison | None:
    """Return the comparison that `tree` is, or None; ``0.5 < speed`` reads ``speed > 0.5``."""
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return None
    comparator = BY_NODE.get(type(tree.ops[0]))
    if comparator is None:
        return None
    symbol, left, right = comparator.symbol, tree.left, tree.comparators[0]
    if isinstance(right, ast.Name) and not isinstance(left, ast.Name):
        symbol, left, right = comparator.mirrored, right, left
    threshold = number(right)
    if not isinstance(left, ast.Name) or threshold is None:
        return None
    return Comparison(left.id, symbol, threshold)


def number(tree: ast.expr) -> float | None:
    """Return the finite number that `tree` spells, or None."""
    sign = 1.0
    while isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
        sign = -sign if isinstance(tree.op, ast.USub) else sign
        tree = tree.operand
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float):
        return sign * float(tree.value) if math.isfinite(tree.value) else None
    return None
