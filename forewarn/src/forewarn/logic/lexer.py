"""Formulas cut into tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from forewarn.errors import FormulaError

# RTAMT's words and symbols, by the operator's own word; `&&`, `||` and `!=` are ours.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "not": ("not", "!"),
    "and": ("and", "&", "&&"),
    "or": ("or", "|", "||"),
    "implies": ("implies", "->"),
    "iff": ("iff", "<->"),
    "xor": ("xor",),
    "always": ("always", "G"),
    "eventually": ("eventually", "F"),
    "historically": ("historically", "H"),
    "once": ("once", "O"),
    "until": ("until", "U"),
    "unless": ("unless", "W"),
    "since": ("since", "S"),
    "rise": ("rise",),
    "fall": ("fall",),
    "next": ("next", "X"),
    "prev": ("prev", "Y"),
    "s_next": ("s_next", "sX"),
    "s_prev": ("s_prev", "sY"),
    "true": ("true", "TRUE", "True"),
    "false": ("false", "FALSE", "False"),
    "!=": ("!==", "!="),
}
WORD_OF = {spelling: word for word, spellings in SPELLINGS.items() for spelling in spellings}
#: Names that no predicate may have, because they are operators.
RESERVED = frozenset(spelling for spelling in WORD_OF if spelling.isidentifier())

# Longer symbols come first.
_SYMBOLS = [
    *["<->", "!==", "->", "&&", "||", "<=", ">=", "==", "!=", "**", "//"],
    *"()[]:,.!&|<>+-*/%",
]
_SHOWN = 90
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<string>'[^'\n]*'|\"[^\"\n]*\")"
    rf"|(?P<symbol>{'|'.join(map(re.escape, _SYMBOLS))}))"
)


class Token(NamedTuple):
    """A piece of a formula.

    `kind` is ``number``, ``name``, ``string``, ``symbol``, ``operator`` or ``end``; `text` is
    the operator's own word for operators, else as written; `start` and `end` are offsets.
    """

    kind: str
    text: str
    start: int
    end: int


def tokenize(source: str) -> list[Token]:
    """Cut `source` into tokens, the last of kind ``end``; raises FormulaError."""
    tokens: list[Token] = []
    position = 0
    end = len(source.rstrip())
    while position < end:
        match = _TOKEN.match(source, position)
        if match is None:
            raise _unreadable(source, position)
        kind = match.lastgroup or ""
        text = match[kind]
        if text in WORD_OF and kind in ("name", "symbol"):
            kind, text = "operator" if text not in ("!=", "!==") else "symbol", WORD_OF[text]
        tokens.append(Token(kind, text, match.start(match.lastgroup or 0), match.end()))
        position = match.end()
    tokens.append(Token("end", "", end, end))
    return tokens


def _unreadable(source: str, position: int) -> FormulaError:
    position += len(source[position:]) - len(source[position:].lstrip())
    character = source[position]
    hint = {"=": "== to compare", "~": "not", "^": "and, or xor", ";": "the end"}.get(character)
    return failure(
        source, position, f"{character!r} has no meaning here", hint or "names, numbers, operators"
    )


def failure(source: str, position: int, problem: str, accepted: str) -> FormulaError:
    """Return the error that shows where in `source` the problem is."""
    before = source[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1)
    text = source.split("\n")[line - 1]
    where = f"column {column + 1}" if "\n" not in source.rstrip() else f"{line}:{column + 1}"
    first = max(0, column - _SHOWN // 2)
    text, column = text[first : first + _SHOWN], column - first
    marker = " " * column + "^"
    return FormulaError(f"{where}: {problem}\n  {text}\n  {marker}", accepted=accepted)
