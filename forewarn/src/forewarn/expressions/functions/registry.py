"""What a function of the language is, and the one table of them; each part puts its own in."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from forewarn.expressions.values import Notes

CONSTANTS: Mapping[str, float | bool] = MappingProxyType(
    {"inf": math.inf, "nan": math.nan, "pi": math.pi, "true": True, "false": False}
)


class Function(NamedTuple):
    """A function of the language.

    `call`: takes the notes of the evaluation and then `low` to `high` arguments (None: any number).
    `maps`: from how many arguments on it works element by element; None for never.
    `fields`: it may be given one message with these fields instead of that many arguments.
    `by_platform`: its last bits are those of the C library's or numpy's code for the processor at
    hand.
    `refusal`: takes the arguments as they are written, and returns what is wrong with them and what
    would be accepted, or None.
    `remembers`: its value depends on earlier moments, too; see
    `forewarn.expressions.functions.memory`.
    """

    call: Callable[..., Any]
    low: int
    high: int | None
    summary: str
    maps: int | None = None
    keywords: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    by_platform: bool = False
    iterated: bool = False  # it stands after ``in`` only
    needs: str = ""  # what it takes that no message holds; empty for plain values
    refusal: Callable[[Sequence[ast.expr]], tuple[str, str] | None] | None = None
    remembers: bool = False

    def __call__(self, *values: Any, **options: Any) -> Any:
        """Apply the function to values outside of any expression."""
        return self.call(Notes(), *values, **options)


_TABLE: dict[str, Function] = {}
FUNCTIONS: Mapping[str, Function] = MappingProxyType(_TABLE)


def register(functions: Mapping[str, Function]) -> None:
    """Add functions to the language; each name once."""
    for name, function in functions.items():
        if _TABLE.setdefault(name, function) is not function:
            raise ValueError(f"there is a function {name!r} already")


def arity_problem(name: str, given: int, keywords: list[str]) -> tuple[str, str] | None:
    """Return what is wrong with a call and what would be accepted, or None."""
    function = FUNCTIONS[name]
    wrong = [word for word in keywords if word not in function.keywords]
    if wrong:
        allowed = f"{name}(..., {function.keywords[0]}=...)" if function.keywords else "none"
        return f"{name}() takes no argument {wrong[0]!r}", f"named arguments: {allowed}"
    if keywords and given != 1:
        return f"{name}() takes {keywords[0]}= only with one array", f"{name}(array, default=0)"
    low = 1 if function.fields else function.low
    if given < low or (function.high is not None and given > function.high):
        most = "or more" if function.high is None else f"to {function.high}"
        expected = f"{low}" if function.high == low else f"{low} {most}"
        return f"{name}() is given {given} arguments", f"{expected}: {function.summary}"
    return None
