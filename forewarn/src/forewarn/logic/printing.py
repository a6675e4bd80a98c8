"""Formulas as text that parses back to the same formula."""

from __future__ import annotations

from functools import singledispatch

from forewarn.logic.parser import NOT_CHAINED, POWER
from forewarn.logic.syntax import (
    Atom,
    Binary,
    Bound,
    Constant,
    Formula,
    Interval,
    TimedBinary,
    TimedUnary,
    Unary,
)


@singledispatch
def format_formula(formula: Formula) -> str:
    """Return the text of `formula`; ``parse_formula`` turns it back into an equal one."""
    raise TypeError(f"{type(formula).__name__} is no formula")


@format_formula.register
def _(formula: Constant) -> str:
    return "true" if formula.value else "false"


@format_formula.register
def _(formula: Atom) -> str:
    return formula.text


@format_formula.register
def _(formula: Unary) -> str:
    return f"{formula.word}({format_formula(formula.operand)})"


@format_formula.register
def _(formula: TimedUnary) -> str:
    return f"{formula.word}{format_interval(formula.interval)}({format_formula(formula.operand)})"


@format_formula.register
def _(formula: Binary) -> str:
    left, right = _side(formula.left, formula, True), _side(formula.right, formula, False)
    return f"{left} {formula.word} {right}"


@format_formula.register
def _(formula: TimedBinary) -> str:
    left, right = _side(formula.left, formula, True), _side(formula.right, formula, False)
    return f"{left} {formula.word}{format_interval(formula.interval)} {right}"


def _side(side: Formula, parent: Binary | TimedBinary, is_left: bool) -> str:
    text = format_formula(side)
    if not isinstance(side, (Binary, TimedBinary)):
        return text
    chained = side.word == parent.word and (not is_left or side.word in NOT_CHAINED)
    return f"({text})" if chained or POWER[side.word] < POWER[parent.word] else text


def format_interval(interval: Interval | None) -> str:
    """Return ``[0:2]``, ``[500 ms:2 s]``, ``[1:inf]`` or nothing."""
    if interval is None:
        return ""
    lower, upper = interval.lower, interval.upper
    if upper is None:
        return f"[{_bound(lower)}:inf]"
    if lower.unit == upper.unit:
        return f"[{_number(lower.value)}:{_bound(upper)}]"
    # Both units are written: a missing one would be taken from the other end.
    return f"[{_number(lower.value)} {lower.unit}:{_number(upper.value)} {upper.unit}]"


def _bound(bound: Bound) -> str:
    return _number(bound.value) + ("" if bound.unit == "s" else f" {bound.unit}")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and value < 1e15 else repr(value)
