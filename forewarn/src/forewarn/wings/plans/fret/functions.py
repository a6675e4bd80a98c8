"""FRET's functions of several moments: read from conditions, and what they mean.

Where FRET counts from the beginning of the scope's interval ("temporal_condition_explanations" of
its manual, and the formulas in its ``xform.js``), so do these. Numbers are moments.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from forewarn.errors import FormulaError
from forewarn.logic.syntax import (
    And,
    Bound,
    Constant,
    Formula,
    Historically,
    Interval,
    Not,
    Once,
    Or,
    Previous,
    Since,
    StrongPrevious,
    atoms_of,
)
from forewarn.wings.plans.fret.requirement import FretFunction

LONGEST = 10_000
"""Moments that a function may look back."""
DEEPEST = 10
_WORDS = (
    "preBool", "preInt", "preReal", "persisted", "persists", "occurred", "occurs", "prevOcc",
    "nextOcc",
)  # fmt: skip
_CALL = re.compile(rf"\b((?i:{'|'.join(_WORDS)}))\s*\(|\bFTP\b")
_SPELLED = {word.lower(): word for word in _WORDS}
_ACCEPTED = {
    "preBool": "preBool(false, p)",
    "persisted": "persisted(2, p) or persisted(1, 2, p)",
    "occurred": "occurred(2, p) or occurred(1, 2, p)",
    "prevOcc": "prevOcc(p, q)",
}
_TRUE = Constant(True)


class Functions:
    """Takes functions out of texts, and puts the names of atoms in their places.

    `read` reads a condition in which no function is left.
    """

    def __init__(self, read: Callable[[str], Formula]) -> None:
        self.read = read
        self.found: dict[str, FretFunction] = {}
        self._depth = 0

    def taken_out(self, text: str) -> str:
        """Return a text with a quoted atom for each function in it; raises FormulaError."""
        parts, at = [], 0
        while (call := _CALL.search(text, at)) is not None:
            parts.append(text[at : call.start()])
            word, at = _SPELLED.get((call[1] or "").lower(), "FTP"), call.end()
            operands: list[str] = []
            if word != "FTP":
                operands, at = _operands(text, at, word)
            function = self._function(word, operands)
            self.found[function.text] = function
            parts.append(f'"{function.text}"')
        return "".join([*parts, text[at:]])

    def check_scope(self, mode: Formula) -> None:
        """Refuse functions in the condition of a scope that count from its beginning."""
        pending = list(atoms_of(mode))
        while pending:
            function = self.found.get(pending.pop())
            if function is None:
                continue
            if function.word not in ("preBool", "FTP"):
                raise FormulaError(
                    f"scope: {function.text} counts from the beginning of the scope",
                    accepted="preBool, FTP, or a condition about one moment",
                )
            pending += [name for operand in function.operands for name in atoms_of(operand)]

    def _function(self, word: str, operands: list[str]) -> FretFunction:
        if word == "FTP":
            return FretFunction("FTP", word)
        if word not in _ACCEPTED:
            number = word in ("preInt", "preReal")
            raise FormulaError(
                f"{word}(...) is a number" if number else f"{word}(...) looks ahead",
                accepted="a signal of the monitor file that keeps it"
                if number
                else "what has been: persisted, occurred, prevOcc",
            )
        numbers, conditions = operands[:-1], operands[-1:]
        if word in ("preBool", "prevOcc"):
            numbers, conditions = [], operands
        fits = len(conditions) == 2 if word in ("preBool", "prevOcc") else 1 <= len(numbers) <= 2
        if not fits or not all(re.fullmatch(r"\d{1,6}", number) for number in numbers):
            raise FormulaError(f"{word}({', '.join(operands)[:60]})", accepted=_ACCEPTED[word])
        first, last = ([0, *map(int, numbers)] if numbers else [0, 0])[-2:]
        if first > last or last > LONGEST:
            raise FormulaError(
                f"{word}: {first} to {last} moments", accepted=f"up to {LONGEST}, the fewer first"
            )
        self._depth += 1
        if self._depth > DEEPEST:
            raise FormulaError(f"{word}(...)", accepted=f"at most {DEEPEST} within each other")
        formulas = tuple(self.read(self.taken_out(condition)) for condition in conditions)
        self._depth -= 1
        text = f"{word}({', '.join(' '.join(operand.split()) for operand in operands)})"
        return FretFunction(text.replace('"', ""), word, first, last, formulas)


def _operands(text: str, at: int, word: str) -> tuple[list[str], int]:
    """Return the operands up to the closing parenthesis, and what follows it."""
    depth, begun, operands = 0, at, []
    for place in range(at, len(text)):
        character = text[place]
        if character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
        elif character == ")" or (character == "," and not depth):
            operands.append(text[begun:place].strip())
            begun = place + 1
            if character == ")":
                return operands, begun
    raise FormulaError(f"{word}( is never closed", accepted="')'")


def meaning(function: FretFunction, operands: tuple[Formula, ...], inside: Formula) -> Formula:
    """Return what a function says at a moment of a scope, at whose moments `inside` holds."""
    word, first, last = function.word, function.first, function.last
    whole = inside == _TRUE
    if word == "FTP":
        return Not(StrongPrevious(_TRUE))
    if word == "preBool":
        initial, condition = operands
        if isinstance(initial, Constant):
            return (Previous if initial.value else StrongPrevious)(condition)
        return Or(And(Not(StrongPrevious(_TRUE)), initial), StrongPrevious(condition))
    if word == "prevOcc":
        occasion, condition = operands
        quiet: Formula = Not(occasion)
        wrong: Formula = And(occasion, Not(condition))
        if not whole:
            quiet, wrong = And(inside, quiet), And(inside, wrong)
        return Not(StrongPrevious(Since(quiet, wrong)))
    condition = operands[0]
    window = Interval(Bound(float(first), "steps"), Bound(float(last), "steps"))
    if word == "occurred":
        if whole:
            return Once(condition, window)
        return Since(inside, And(inside, condition), window)
    beginning = Interval(Bound(float(last), "steps"), Bound(float(last), "steps"))
    begun = Once(_TRUE, beginning) if whole else Since(inside, inside, beginning)
    return And(Historically(condition, window), begun)
