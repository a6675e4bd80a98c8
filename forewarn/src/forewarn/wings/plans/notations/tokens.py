"""Text of any notation cut into tokens."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from forewarn.logic.parser import failure
from forewarn.logic.syntax import UNIT_OF, Bound, Interval
from forewarn.wings.plans.notations.tables import SPELLINGS, UNARY, operator_of

if TYPE_CHECKING:
    from forewarn.errors import FormulaError

_ANY = frozenset("swrp")
_MOST = 1_000_000.0
_SYMBOLS = sorted(
    {s for spellings in SPELLINGS.values() for s in spellings if not s[0].isalnum()}
    | {"<=", ">=", "==", "!=", "<", ">", "=", "(", ")", "[", "]", ",", ":", "+", "-", "*", "/"},
    key=len,
    reverse=True,
)
_TOKEN = re.compile(
    r"\s*(?:(?P<strong>X\[!\])"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>(?:[^\W\d]|_)[\w.]*)"
    r"|(?P<string>\"[^\"\n]+\"|'[^'\n]+')"
    rf"|(?P<symbol>{'|'.join(map(re.escape, _SYMBOLS))}))"
)
_INSIDE = r"[\w.,'\"\s:+*/-]*"
_ARGUMENTS = re.compile(rf"\({_INSIDE}(?:\({_INSIDE}\){_INSIDE})*\)")
_MOST_PARENTHESES = 8
_SPLIT = re.compile(r"([GFX]{1,8})([a-z_][\w.]*)?")
_LETTERS = {"G": "always", "F": "eventually", "X": "next"}
COMPARISONS = {"<=": "<=", ">=": ">=", "==": "==", "=": "==", "!=": "!=", "<": "<", ">": ">"}


class Token(NamedTuple):
    """A piece of a formula.

    `kind` is ``operator`` (then `text` is the operator's own word), ``atom``, ``number``,
    ``symbol`` or ``end``; `notations` are the letters of the notations that write it so.
    """

    kind: str
    text: str
    start: int
    end: int
    notations: frozenset[str] = _ANY


def cut(source: str, known: Collection[str] = ()) -> list[Token]:
    """Cut `source` into tokens, the last of kind ``end``; names that are `known` are atoms.

    Raises FormulaError with the position of what no notation writes.
    """
    tokens: list[Token] = []
    position, end = 0, len(source.rstrip())
    while position < end:
        match = _TOKEN.match(source, position)
        if match is None:
            at = position + len(source[position:]) - len(source[position:].lstrip())
            raise failure(source, at, f"{source[at]!r} has no meaning here", "names and operators")
        found = _tokens_of(source, match, known)
        tokens += found
        position = found[-1].end
    tokens.append(Token("end", "", end, end))
    return tokens


def _tokens_of(source: str, match: re.Match[str], known: Collection[str]) -> list[Token]:
    kind = match.lastgroup or ""
    text, start, end = match[kind], match.start(kind), match.end(kind)
    if kind == "strong":
        return [Token("operator", "next", start, end, frozenset("s"))]
    if kind == "number":
        return [Token("number", text, start, end)]
    if kind == "string":
        return [Token("atom", text[1:-1], start, end, frozenset("sp"))]
    if kind == "symbol":
        operator = operator_of(text)
        if operator is None:
            return [Token("symbol", text, start, end)]
        return [Token("operator", operator[0], start, end, operator[1])]
    return _named(source, text, start, end, known)


def _named(source: str, text: str, start: int, end: int, known: Collection[str]) -> list[Token]:
    """Return the token of a name: an atom, with its arguments, or one operator or several."""
    call = _ARGUMENTS.match(source, end) if source[end : end + 1] == "(" else None
    whole = text if call is None else _plain(text + call[0])
    operator = operator_of(text)
    if text == "Ff" or (text == "FF" and _begins_operand(source, end)):
        operator = None  # F of f, or of F: not the constant ff
    if whole in known or (text in known and (call is None or operator is not None)):
        end = end if call is None or whole not in known else call.end()
        return [Token("atom", whole if whole in known else text, start, end)]
    if operator is not None:
        return [Token("operator", operator[0], start, end, operator[1])]
    split = _SPLIT.fullmatch(text)
    if split is not None and _is_split(split[1], split[2] or "", known):
        letters = [
            Token("operator", _LETTERS[letter], start + at, start + at + 1, frozenset("s"))
            for at, letter in enumerate(split[1])
        ]
        if split[2]:
            letters.append(Token("atom", split[2], start + len(split[1]), end))
        return letters
    if call is not None:
        return [Token("atom", whole, start, call.end())]
    return [Token("atom", text, start, end)]


def _begins_operand(source: str, at: int) -> bool:
    """Tell whether what follows is what a prefix operator stands before."""
    match = _TOKEN.match(source, at)
    if match is None or match.lastgroup == "number":
        return False
    text = match[match.lastgroup or 0]
    operator = operator_of(text)
    if operator is not None:
        return operator[0] in UNARY or operator[0] in ("true", "false")
    return match.lastgroup != "symbol" or text == "("


def _is_split(letters: str, rest: str, known: Collection[str]) -> bool:
    """Tell whether ``GFa`` is G F a: by what is known, or where a name would be a strange one."""
    if not rest:
        return len(letters) > 1
    stems = {name.rstrip("0123456789") for name in known}
    if (letters + rest).rstrip("0123456789") in stems:
        return False
    if rest.rstrip("0123456789") in stems or len(rest.rstrip("0123456789")) == 1:
        return True
    return len(letters) > 1 and not known


def _plain(text: str) -> str:
    """Return a call without spaces and without empty parentheses: ``put(a,b)``."""
    return re.sub(r"\s*([(),:])\s*", r"\1", text).strip().removesuffix("()")


def comparison(tokens: list[Token], at: int) -> tuple[str, int] | None:
    """Return the text of a comparison that begins at a token, and where it ends.

    Sides are names and numbers joined by ``+``, ``-``, ``*`` and ``/``, with parentheses.
    """
    left = _side(tokens, at)
    if left is None:
        return None
    symbol = COMPARISONS.get(tokens[left[1]].text) if tokens[left[1]].kind == "symbol" else None
    right = _side(tokens, left[1] + 1) if symbol else None
    if right is None:
        return None
    return f"{left[0]} {symbol} {right[0]}", right[1]


def _side(tokens: list[Token], at: int, depth: int = 0) -> tuple[str, int] | None:
    texts: list[str] = []
    while True:
        term = _term(tokens, at, depth)
        if term is None:
            return None
        text, at = term
        texts.append(text)
        if tokens[at].kind != "symbol" or tokens[at].text not in ("+", "-", "*", "/"):
            return "".join(texts), at
        texts.append(f" {tokens[at].text} ")
        at += 1


def _term(tokens: list[Token], at: int, depth: int) -> tuple[str, int] | None:
    token = tokens[at]
    if token.kind in ("atom", "number"):
        return token.text, at + 1
    if token.kind != "symbol" or depth > _MOST_PARENTHESES:
        return None
    if token.text == "-":
        inner = _term(tokens, at + 1, depth + 1)
        return None if inner is None else (f"-{inner[0]}", inner[1])
    inner = _side(tokens, at + 1, depth + 1) if token.text == "(" else None
    if inner is None or tokens[inner[1]].text != ")":
        return None
    return f"({inner[0]})", inner[1] + 1


def ends_early(source: str, token: Token, accepted: str) -> FormulaError:
    """Return the error for a token that cannot stand where it stands."""
    written = source[token.start : token.end]
    problem = f"{written!r} was not expected" if written else "the formula ends too early"
    return failure(source, token.start, problem, accepted)


def interval_at(
    source: str, tokens: list[Token], at: int
) -> tuple[Interval | None, int, frozenset[str]]:
    """Return the bounds that begin at a token, what follows them, and who writes them so."""
    token = tokens[at]
    if token.kind != "symbol":
        return None, at, _ANY
    if token.text in ("<=", "<", ">=", ">", "="):
        found, after = _compared(source, tokens, at)
        return found, after, frozenset("p")
    if token.text != "[":
        return None, at, _ANY
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
