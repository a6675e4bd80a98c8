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


class _Pending(NamedTuple):
    """An operator, or an opening parenthesis (power -1), that waits for its right side."""

    word: str
    power: int
    interval: Interval | None
    token: Token
    is_prefix: bool


class _Infix:
    """Operator precedence with two stacks: nesting costs no recursion."""

    def __init__(self, source: str, tokens: list[Token], notation: Notation) -> None:
        self.source = source
        self.tokens = tokens
        self.notation = notation
        self.at = 0
        self.notations = frozenset("swrp")
        #: The operators in the order in which they were applied: equal for equal groupings.
        self.postfix: list[tuple[str, int]] = []
        self._values: list[tuple[Formula, int]] = []
        self._pending: list[_Pending] = []

    def read(self) -> Formula:
        while True:
            self._operand()
            if not self._operator():
                return self._values[0][0]

    def _operand(self) -> None:
        """Take prefixes and parentheses up to an operand, and the operand."""
        while True:
            token = self.tokens[self.at]
            if token.kind == "operator" and token.text in UNARY:
                power = self.notation.not_power if token.text == "not" else self.notation.prefix
                self._push(token, power, is_prefix=True)
            elif self._opens(token):
                self._pending.append(_Pending("(", -1, None, token, False))
                self.at += 1
            else:
                break
        compared = comparison(self.tokens, self.at)
        if compared is not None:
            self._value(Atom(compared[0]), compared[1])
        elif token.kind == "atom":
            self._value(Atom(token.text), self.at + 1)
        elif token.kind == "number" and token.text in ("0", "1"):
            self._value(Constant(token.text == "1"), self.at + 1)
        elif token.kind == "operator" and token.text in ("true", "false"):
            self._value(Constant(token.text == "true"), self.at + 1)
        else:
            raise ends_early(self.source, token, _OPERAND)

    def _opens(self, token: Token) -> bool:
        """Tell whether a parenthesis begins a formula, and not one side of a comparison."""
        opens = token.kind == "symbol" and token.text == "("
        return opens and comparison(self.tokens, self.at) is None

    def _value(self, formula: Formula, after: int) -> None:
        self._values.append((formula, 0))
        self.at = after

    def _push(self, token: Token, power: int, *, is_prefix: bool) -> None:
        self.notations &= token.notations
        interval, after, letters = None, self.at + 1, self.notations
        if token.text in TIMED:
            interval, after, letters = interval_at(self.source, self.tokens, after)
        self.notations &= letters
        self._pending.append(_Pending(token.text, power, interval, token, is_prefix))
        self.at = after

    def _operator(self) -> bool:
        """Take closing parentheses and one infix operator; tell whether an operand follows."""
        while True:
            token = self.tokens[self.at]
            if token.kind == "end":
                self._reduce(0)
                if self._pending:
                    opening = self._pending[-1].token
                    raise failure(self.source, opening.start, "'(' is never closed", "')'")
                return False
            if token.kind == "symbol" and token.text == ")":
                self._reduce(0)
                if not self._pending:
                    raise failure(self.source, token.start, "')' closes nothing", "'(' before it")
                self._pending.pop()
                self.at += 1
                continue
            power = self.notation.power.get(token.text) if token.kind == "operator" else None
            if power is None:
                raise ends_early(self.source, token, _AFTER)
            right = token.text in self.notation.to_the_right
            self._reduce(power, beyond=right)
            self._push(token, power, is_prefix=False)
            return True

    def _reduce(self, power: int, *, beyond: bool = False) -> None:
        """Apply what binds at least as tightly as `power` (`beyond`: infixes only if tighter)."""
        while self._pending:
            top = self._pending[-1]
            if top.power < power or (top.power == power and beyond and not top.is_prefix):
                return
            if top.power < 0:
                return
            self._pending.pop()
            self._apply(top)

    def _apply(self, pending: _Pending) -> None:
        self.postfix.append((pending.word, pending.token.start))
        right, depth = self._values.pop()
        if pending.is_prefix:
            formula = unary(pending.word, right, pending.interval)
        else:
            left, left_depth = self._values.pop()
            formula = binary(pending.word, left, right, pending.interval)
            chained = pending.word in ("and", "or") and type(left) is type(formula)
            depth = max(left_depth - chained, depth)
        if depth >= MAX_NESTING:
            raise TooLargeError(f"nested more than {MAX_NESTING} deep", accepted="less nesting")
        self._values.append((formula, depth + 1))


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
            raise TooLargeError(f"nested more than {MAX_NESTING} deep", accepted="less nesting")
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
