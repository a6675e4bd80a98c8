"""Truth tables of propositional formulas over all letters."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from forewarn.logic.syntax import And, Atom, Binary, Constant, Formula, Iff, Implies, Not, Or, Unary

Table = NDArray[np.bool_]


def truth_table(formula: Formula, atoms: tuple[str, ...]) -> Table:
    """Return the value of a propositional formula at each letter, shape (2 ** len(atoms),)."""
    return _table(formula, atoms)


@singledispatch
def _table(formula: Formula, atoms: tuple[str, ...]) -> Table:
    raise TypeError(f"{type(formula).__name__} has no truth table")


@_table.register
def _(formula: Constant, atoms: tuple[str, ...]) -> Table:
    return np.full(1 << len(atoms), formula.value)


@_table.register
def _(formula: Atom, atoms: tuple[str, ...]) -> Table:
    letters = np.arange(1 << len(atoms))
    return (letters >> atoms.index(formula.text) & 1).astype(np.bool_)


@_table.register
def _(formula: Unary, atoms: tuple[str, ...]) -> Table:
    if not isinstance(formula, Not):
        raise TypeError(f"{formula.word} has no truth table")
    return ~_table(formula.operand, atoms)


@_table.register
def _(formula: Binary, atoms: tuple[str, ...]) -> Table:
    left, right = _table(formula.left, atoms), _table(formula.right, atoms)
    if isinstance(formula, And):
        return left & right
    if isinstance(formula, Or):
        return left | right
    if isinstance(formula, Implies):
        return ~left | right
    different: Table = left ^ right
    return ~different if isinstance(formula, Iff) else different
