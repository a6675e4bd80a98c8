"""Comparisons of one signal with a number, recognised so that they can be reasoned about."""

from __future__ import annotations

import ast
import math
from typing import NamedTuple

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class Comparison(NamedTuple):
    """``signal operator threshold``."""

    signal: str
    operator: str
    threshold: float

    def negated(self) -> Comparison:
        """Return the comparison that holds exactly where this one does not."""
        return self._replace(operator=_NEGATED[self.operator])

    def __str__(self) -> str:
        return f"{self.signal} {self.operator} {self.threshold:.15g}"


def as_comparison(tree: ast.expr) -> Comparison | None:
    """Return the comparison that `tree` is, or None; ``0.5 < speed`` reads ``speed > 0.5``."""
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return None
    operator = _OPERATORS.get(type(tree.ops[0]))
    left, right = tree.left, tree.comparators[0]
    if isinstance(right, ast.Name) and not isinstance(left, ast.Name):
        left, right = right, left
        operator = operator and _MIRRORED[operator]
    threshold = number(right)
    if operator is None or not isinstance(left, ast.Name) or threshold is None:
        return None
    return Comparison(left.id, operator, threshold)


def number(tree: ast.expr) -> float | None:
    """Return the finite number that `tree` spells, or None."""
    sign = 1.0
    while isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
        sign = -sign if isinstance(tree.op, ast.USub) else sign
        tree = tree.operand
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float):
        return sign * float(tree.value) if math.isfinite(tree.value) else None
    return None
