"""One reader for formulas as many tools write them, which says whose notation it took."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.parser import failure
from forewarn.logic.syntax import Atom, Constant, Formula, Interval, substituted
from forewarn.wings.plans.notations.declare import TEMPLATES, without_templates
from forewarn.wings.plans.notations.tables import (
    DECLARE,
    FRET,
    INFIX,
    MIXED,
    PREFIX,
    PREFIX_LETTERS,
    SPOT,
    TIMED,
    UNARY,
    Notation,
)
from forewarn.wings.plans.notations.tokens import Token, comparison, cut, ends_early, interval_at

MAX_LENGTH = 200_000
MAX_NESTING = 200
_OPERAND = "a name, not, a temporal operator or '('"
_AFTER = "and, or, implies, iff, until or the end"
_PROBABILITY = re.compile(r"\s*P\s*>=\s*1(?:\.0*)?\s*\[(.*)\]\s*$", re.S)


class TooLargeError(FormulaError):
    """A formula is longer or deeper than what is read: it is not judged."""


class Reading(NamedTuple):
    """A formula as read, its notation, and other notations that would group it otherwise."""

    formula: Formula
    notation: str
    otherwise: tuple[str, ...] = ()


def read_formula(text: str, known: Collection[str] = (), notation: str | None = None) -> Reading:
    """Read a formula in whatever notation it is written.

    Bounds without a unit are steps. ``X`` is the strong next: on a finite trace, there must be a
    next step. ``a R b`` becomes ``b unless (b and a)``, ``a M b`` the same with `until`. Names that
    are `known` are atoms whatever else they could be: ``Fork``, ``X1``, ``i``; with them,
    ``Xready`` is read as ``X ready`` if only ``ready`` is known. Raises TooLargeError, or
    FormulaError with the position of what was not expected.
    """
    if len(text) > MAX_LENGTH:
        raise TooLargeError(f"{len(text)} characters", accepted=f"at most {MAX_LENGTH}")
    if not text.strip():
        raise FormulaError("the formula is empty", accepted=_OPERAND)
    inner = _PROBABILITY.fullmatch(text)
    if inner is not None:
        text, notation = inner[1], notation or "prism"
    if notation in (None, DECLARE):
        plain, templates = without_templates(text, known)
        if templates:
            read = read_formula(plain, (*known, *templates), notation=SPOT.name)
            return Reading(substituted(read.formula, templates), DECLARE)
        if notation == DECLARE:
            raise FormulaError("no template of Declare", accepted=", ".join(TEMPLATES))
    tokens = cut(text, known)
    if notation == PREFIX:
        return Reading(_read_prefix(text, tokens, known), PREFIX)
    try:
        return _read_infix(text, tokens, notation)
    except TooLargeError:
        raise
    except FormulaError:
        if notation is None and not any(token.text in ("(", ")") for token in tokens):
            with suppress(FormulaError):  # the error of the usual notation says more
                return Reading(_read_prefix(text, tokens, known), PREFIX)
        raise


def _read_infix(text: str, tokens: list[Token], name: str | None) -> Reading:
    if name is not None:
        chosen = next(notation for notation in (*INFIX, FRET) if notation.name == name)
        return Reading(_Infix(text, tokens, chosen).read(), name)
    first = _Infix(text, tokens, SPOT)
    formula = first.read()
    fitting = [notation for notation in INFIX if notation.letter in first.notations]
    if not fitting:
        return Reading(formula, MIXED)
    if fitting[0] is not SPOT:
        first = _Infix(text, tokens, fitting[0])
        formula = first.read()
    others = [n.name for n in fitting[1:] if _grouping(text, tokens, n) != first.postfix]
    return Reading(formula, fitting[0].name, tuple(others))


def _grouping(text: str, tokens: list[Token], notation: Notation) -> list[tuple[str, int]]:
    """Return the operators as a notation applies them, one after the other."""
    parser = _Infix(text, tokens, notation)
    with suppress(TooLargeError):
        parser.read()
    return parser.postfix


class _Infix:
    """Reads by precedence: what binds more tightly is read further down."""

    def __init__(self, source: str, tokens: list[Token], notation: Notation) -> None:
        self.source = source
        self.tokens = tokens
        self.notation = notation
        self.at = 0
        self.notations = frozenset("swrp")
        #: The operators in the order in which they were applied: equal for equal groupings.
        self.postfix: list[tuple[str, int]] = []
        self._level = 0

    def read(self) -> Formula:
        formula, _ = self._formula(0)
        token = self.tokens[self.at]
        if token.kind == "symbol" and token.text == ")":
            raise failure(self.source, token.start, "')' closes nothing", "'(' before it")
        if token.kind != "end":
            raise ends_early(self.source, token, _AFTER)
        return formula

    def _formula(self, least: int) -> tuple[Formula, int]:
        """Read operands and what binds them at least so tightly; return also how deep it is."""
        self._level += 1
        if self._level > MAX_NESTING:
            raise _too_deep()
        left, depth = self._operand()
        while True:
            token = self.tokens[self.at]
            power = self.notation.power.get(token.text) if token.kind == "operator" else None
            if power is None or power < least:
                self._level -= 1
                return left, depth
            interval = self._taken(token)
            right, below = self._formula(power + (token.text not in self.notation.to_the_right))
            formula = binary(token.text, left, right, interval)
            chained = token.text in ("and", "or") and type(left) is type(formula)
            left, depth = formula, self._deeper(token, max(depth - chained, below))

    def _operand(self) -> tuple[Formula, int]:
        token = self.tokens[self.at]
        if token.kind == "operator" and token.text in UNARY:
            interval = self._taken(token)
            power = self.notation.not_power if token.text == "not" else self.notation.prefix
            inner, depth = self._formula(power + 1)
            return unary(token.text, inner, interval), self._deeper(token, depth)
        compared = comparison(self.tokens, self.at)
        if compared is not None:
            self.at = compared[1]
            return Atom(compared[0]), 0
        self.at += 1
        if token.kind == "symbol" and token.text == "(":
            return self._closed(token)
        if token.kind == "atom":
            return Atom(token.text), 0
        if token.kind == "number" and token.text in ("0", "1"):
            return Constant(token.text == "1"), 0
        if token.kind == "operator" and token.text in ("true", "false"):
            return Constant(token.text == "true"), 0
        raise ends_early(self.source, token, _OPERAND)

    def _closed(self, opening: Token) -> tuple[Formula, int]:
        inner = self._formula(0)
        token = self.tokens[self.at]
        if token.kind == "end":
            raise failure(self.source, opening.start, "'(' is never closed", "')'")
        if token.text != ")":
            raise ends_early(self.source, token, _AFTER)
        self.at += 1
        return inner

    def _taken(self, token: Token) -> Interval | None:
        """Take an operator with its bounds."""
        self.notations &= token.notations
        self.at += 1
        if token.text not in TIMED:
            return None
        interval, self.at, letters = interval_at(self.source, self.tokens, self.at)
        self.notations &= letters
        return interval

    def _deeper(self, token: Token, depth: int) -> int:
        self.postfix.append((token.text, token.start))
        if depth >= MAX_NESTING:
            raise _too_deep()
        return depth + 1


def _too_deep() -> TooLargeError:
    return TooLargeError(f"nested more than {MAX_NESTING} deep", accepted="less nesting")


def _read_prefix(source: str, tokens: list[Token], known: Collection[str]) -> Formula:
    """Read Polish notation from its end."""
    values: list[tuple[Formula, int]] = []
    for token in reversed(tokens[:-1]):
        word = token.text if token.kind == "operator" else ""
        if token.kind == "atom" and token.text not in known:
            word = PREFIX_LETTERS.get(token.text, "")
        wanted = 0 if word in ("", "true", "false") else 1 if word in UNARY else 2
        if len(values) < wanted or token.kind in ("symbol", "number"):
            raise ends_early(source, token, "an operator before its operands")
        sides = [values.pop() for _ in range(wanted)]
        depth = max((depth for _, depth in sides), default=-1) + 1
        if depth > MAX_NESTING:
            raise _too_deep()
        formula: Formula
        if not wanted:
            formula = Constant(word == "true") if word else Atom(token.text)
        elif wanted == 1:
            formula = unary(word, sides[0][0], None)
        else:
            formula = binary(word, sides[0][0], sides[1][0], None)
        values.append((formula, depth))
    if len(values) != 1:
        raise failure(source, tokens[-1].start, f"{len(values)} formulas in a row", "one formula")
    return values[0][0]


def unary(word: str, operand: Formula, interval: Interval | None) -> Formula:
    """Return the formula of an operator before its operand."""
    if word == "weak_next":
        return syntax.Not(syntax.Next(syntax.Not(operand)))
    if word == "next" and interval is not None:
        for _ in range(_nexts(interval)):
            operand = syntax.Next(operand)
        return operand
    if word in syntax.TIMED_PREFIX:
        return syntax.TIMED_PREFIX[word](operand, interval)
    return syntax.PREFIX[word](operand)


def _nexts(interval: Interval) -> int:
    """Return how many steps ``X[3] a`` looks ahead."""
    steps = interval.lower.value
    if interval.upper != interval.lower or interval.lower.unit != "steps" or steps != int(steps):
        raise FormulaError("next has no window", accepted="X[3] a: so many steps later")
    if steps > MAX_NESTING:
        raise TooLargeError(f"next by {steps:g} steps", accepted=f"at most {MAX_NESTING}")
    return int(steps)


def binary(word: str, left: Formula, right: Formula, interval: Interval | None) -> Formula:
    """Return the formula of an operator between its operands."""
    if word == "release":
        return syntax.Unless(right, syntax.And(right, left))
    if word == "strong_release":
        return syntax.Until(right, syntax.And(right, left))
    if word in syntax.TIMED_INFIX:
        return syntax.TIMED_INFIX[word](left, right, interval)
    return syntax.INFIX[word](left, right)
