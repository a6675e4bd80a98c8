"""Bounds of temporal operators: ``[0:5]``, ``[0,5]``, ``[<=5]``, ``[3]`` and ``<=5``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forewarn.logic.parser import failure
from forewarn.logic.syntax import UNIT_OF, Bound, Interval
from forewarn.wings.plans.notations.tokens import Token, ends_early

if TYPE_CHECKING:
    from forewarn.errors import FormulaError

_ALL = frozenset("swrp")
_MOST = 1_000_000.0


def interval(
    source: str, tokens: list[Token], at: int
) -> tuple[Interval | None, int, frozenset[str]]:
    """Return the bounds that begin at a token, what follows them, and who writes them so."""
    token = tokens[at]
    if token.kind != "symbol":
        return None, at, _ALL
    if token.text in ("<=", "<", ">=", ">", "="):
        found, after = _compared(source, tokens, at)
        return found, after, frozenset("p")
    if token.text != "[":
        return None, at, _ALL
    letters = frozenset("")
    if tokens[at + 1].kind == "symbol":
        found, after = _compared(source, tokens, at + 1)
    else:
        found, after, letters = _between(source, tokens, at + 1)
    if tokens[after].text != "]":
        raise ends_early(source, tokens[after], "a unit (s, ms, us, ns, steps) or ']'")
    return found, after + 1, letters


def _compared(source: str, tokens: list[Token], at: int) -> tuple[Interval, int]:
    symbol = tokens[at].text
    bound, after = _bound(source, tokens, at + 1)
    if symbol == "<" and bound.value < 1:
        raise failure(source, tokens[at].start, "no step lies before it", "<=")
    step = Bound(bound.value + {"<": -1, ">": 1}.get(symbol, 0), bound.unit)
    if symbol in ("<=", "<"):
        return Interval(Bound(0.0, bound.unit), step), after
    if symbol in (">=", ">"):
        return Interval(step, None), after
    return Interval(bound, bound), after


def _between(source: str, tokens: list[Token], at: int) -> tuple[Interval, int, frozenset[str]]:
    lower, after = _bound(source, tokens, at)
    if tokens[after].text == "]":
        return Interval(lower, lower), after, frozenset("s")
    if tokens[after].text not in (":", ","):
        raise ends_early(source, tokens[after], "a unit (s, ms, us, ns, steps), ':' or ','")
    letters = frozenset("sr" if tokens[after].text == ":" else "r")
    if tokens[after + 1].text in ("inf", "$"):
        return Interval(lower, None), after + 2, letters
    upper, end = _bound(source, tokens, after + 1)
    if lower.unit == "steps" != upper.unit:
        lower = Bound(lower.value, upper.unit)
    if lower.value > upper.value and lower.unit == upper.unit:
        raise failure(
            source, tokens[at].start, "the interval ends before it begins", "lower <= upper"
        )
    return Interval(lower, upper), end, letters


def _bound(source: str, tokens: list[Token], at: int) -> tuple[Bound, int]:
    token = tokens[at]
    if token.kind != "number":
        raise _no_number(source, token)
    value = float(token.text)
    if value > _MOST:
        raise failure(source, token.start, "the bound is too large", f"at most {_MOST:g}")
    unit = UNIT_OF.get(tokens[at + 1].text) if tokens[at + 1].kind == "atom" else None
    return Bound(value, unit or "steps"), at + 1 + (unit is not None)


def _no_number(source: str, token: Token) -> FormulaError:
    return ends_early(source, token, "a number of steps >= 0")
