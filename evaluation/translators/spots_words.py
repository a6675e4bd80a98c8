"""Formulas without past operators in Spot's syntax, for comparisons with Spot."""

from __future__ import annotations

import re

from forewarn.logic import syntax
from forewarn.logic.syntax import Atom, Constant

INFIX = {syntax.And: "&", syntax.Or: "|", syntax.Implies: "->", syntax.Iff: "<->",
         syntax.Xor: "xor"}  # fmt: skip


def in_spots_words(formula, *, finite: bool = False) -> str:
    """Return a formula in Spot's syntax; `finite` is for its ``from_ltlf``."""
    if isinstance(formula, Atom):
        return '"' + formula.text.replace('"', "") + '"'
    if isinstance(formula, Constant):
        return "1" if formula.value else "0"
    parts = [in_spots_words(part, finite=finite) for part in syntax.operands(formula)]
    if isinstance(formula, syntax.Not):
        return f"!({parts[0]})"
    if isinstance(formula, (syntax.Next, syntax.StrongNext)):
        return _next(parts[0], finite)
    if type(formula) in INFIX:
        return f"({parts[0]}) {INFIX[type(formula)]} ({parts[1]})"
    if formula.interval is None:
        if isinstance(formula, (syntax.Always, syntax.Eventually)):
            return f"{'G' if isinstance(formula, syntax.Always) else 'F'}({parts[0]})"
        word = "W" if isinstance(formula, syntax.Unless) else "U"
        return f"({parts[0]}) {word} ({parts[1]})"
    lower, upper = (int(end.value) for end in (formula.interval.lower, formula.interval.upper))
    if isinstance(formula, syntax.Always):
        return f"!({_until('1', f'!({parts[0]})', lower, upper, finite)})"
    if isinstance(formula, syntax.Eventually):
        return _until("1", parts[0], lower, upper, finite)
    until = _until(*parts, lower, upper, finite)
    if isinstance(formula, syntax.Until):
        return until
    always = _until("1", f"!({parts[0]})", 0, upper, finite)
    return f"!({always}) | ({until})"


def _next(text: str, finite: bool) -> str:
    return f"X[!]({text})" if finite else f"X({text})"


def _until(left: str, right: str, lower: int, upper: int, finite: bool) -> str:
    """Spell out a bounded until, which Spot does not have."""
    text = f"({right})"
    for tick in reversed(range(upper)):
        later = f"(({left}) & {_next(text, finite)})"
        text = f"(({right}) | {later})" if tick >= lower else later
    return text


_WORDS = {
    "globally": "G", "always": "G", "finally": "F", "eventually": "F", "next": "X", "until": "U",
    "and": "&", "or": "|", "not": "!", "implies": "->", "double_implies": "<->", "iff": "<->",
    "release": "R", "unless": "W", "weak_until": "W", "xor": "xor",
    "true": "1", "false": "0", **{letter: letter for letter in "GFXURWMV"},
}  # fmt: skip
_SIGNS = {"⇒": "->", "→": "->", "⇔": "<->", "↔": "<->", "∧": "&", "∨": "|", "¬": "!"}  # noqa: RUF001
_PIECE = re.compile(r"([A-Za-z_][\w.]*)(\((?:[\w.,:'\" -]|\([\w.,:'\" -]*\))*\))?")


def words_replaced(text: str) -> str:
    """Return a text with words for operators in Spot's syntax, without parsing it.

    Every name that is no operator is quoted, with the arguments that follow it.
    """

    def replaced(found: re.Match[str]) -> str:
        name, arguments = found[1], found[2] or ""
        operator = _WORDS.get(name) or (_WORDS.get(name.lower()) if len(name) > 1 else None)
        if operator is not None:
            return f" {operator} " + (words_replaced(arguments) if arguments else "")
        split = re.fullmatch(r"([GFX]+)(prop_\d+|[a-z])?", name)
        if split is not None and (len(split[1]) > 1 or split[2]):
            return " ".join(split[1]) + (f' "{split[2]}"' if split[2] else " ") + arguments
        plain = re.sub(r"\s*([(),:])\s*", r"\1", name + arguments).removesuffix("()")
        return '"' + plain.replace('"', "") + '"'

    for sign, word in _SIGNS.items():
        text = text.replace(sign, f" {word} ")
    return _PIECE.sub(replaced, text)
