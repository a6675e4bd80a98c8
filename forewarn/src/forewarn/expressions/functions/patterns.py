"""Regular expressions whose time is linear in the text: those of RE2, which has no others."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from forewarn.errors import ExpressionError
from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.functions.texts import list_of_texts
from forewarn.expressions.values import NAN, Notes


def _matches(notes: Notes, text: Any, pattern: Any) -> Any:
    compiled = _compiled(pattern)
    if isinstance(text, str):
        return _found(compiled, text)
    texts = list_of_texts(notes, "matches", text)
    if texts is None:
        return NAN
    return np.array([_found(compiled, each) for each in texts], dtype=np.bool_)


LONGEST_REMEMBERED = 256
"""Texts up to this length are remembered with the answer: names and arguments come again."""


def _found(compiled: Any, text: str) -> bool:
    return (_remembered if len(text) <= LONGEST_REMEMBERED else _searched)(compiled, text)


def _searched(compiled: Any, text: str) -> bool:
    return compiled.search(text.encode("utf-8", "surrogatepass")) is not None


_remembered = lru_cache(maxsize=8192)(_searched)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    """Return a pattern of RE2; raises ExpressionError."""
    try:
        import re2
    except ImportError:
        raise ExpressionError(
            "matches() needs RE2, which is not installed",
            accepted="pip install './forewarn[re2]'; or like(TEXT, 'a*b')",
        ) from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0]
        why = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ExpressionError(
            f"{pattern!r} is no pattern of RE2: {why}",
            accepted="regular expressions without references and look-around: '(?i)curl.*[|] *sh'",
        ) from None


def _refusal(arguments: Sequence[ast.expr]) -> tuple[str, str] | None:
    pattern = arguments[1]
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
        return "matches() needs its pattern as written", "a text in quotes"
    try:
        _compiled(pattern.value)
    except ExpressionError as error:
        return error.problem, str(error.accepted)
    return None


register(
    {
        "matches": Function(
            _matches,
            2,
            2,
            "whether a regular expression (RE2) is found in a text, or in each of a list",
            refusal=_refusal,
        )
    }
)
