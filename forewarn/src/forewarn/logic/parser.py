"""Formulas cut into tokens and parsed: operator precedence, with RTAMT's precedences.

From the tightest: comparison; ``not`` and the temporal prefixes; ``until``; ``unless``;
``since``; ``and``; ``or``; ``implies``; ``iff``; ``xor``. The operators that are not associative
(``until``, ``unless``, ``since``, ``implies``) do not chain without parentheses: RTAMT groups
them to the left, most logics to the right, and a safety rule must not depend on which one
its reader knows.
"""

from __future__ import annotations

import ast
import difflib
import re
from typing import NamedTuple

from forewarn.errors import ExpressionError, FormulaError
from forewarn.expressions.comparisons import BY_SYMBOL
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.syntax import (
    INFIX,
    NOT_CHAINED,
    POWER,
    PREFIX,
    TIMED_INFIX,
    TIMED_PREFIX,
    UNIT_OF,
    Atom,
    Bound,
    Constant,
    Formula,
    Interval,
    depth,
)

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


PREFIX_POWER = 90
_COMPARISON_POWER = 100
_ARITHMETIC_POWER = {"+": 110, "-": 110, "*": 120, "/": 120, "//": 120, "%": 120, "**": 140}
_MINUS_POWER = 130
_OPERAND = "a predicate, a comparison such as speed > 0.5, not, a temporal operator or '('"
_FORMULA_END = "and, or, implies, iff, xor, until, since, unless"
_MAX_DEPTH = 100
# Far above what any rate allows (`timing`), far below where steps would overflow.
_MAX_BOUND = 1e18


class _Term(NamedTuple):
    """A piece of source that may be a number: an operand of a comparison, or a predicate."""

    start: int
    end: int


_Value = Formula | _Term


def parse_formula(text: str, unit: str = "s") -> Formula:
    """Parse a property.

    `text`: RTAMT's syntax: ``always(a implies eventually[0:2](speed < 0.1))``. Bounds are in
    seconds, or have a unit: ``s``, ``ms``, ``us``, ``ns``, ``steps`` (ticks of the monitor); one
    unit serves both ends; ``inf`` is no upper end. A comparison is kept as one atom, whose text is
    its normal form (that of ``ast.unparse``).
    `unit`: unit of bounds without one: ``steps`` where the clock is steps.
    Raises FormulaError with the position and what could stand there.
    """
    if not text.strip():
        raise FormulaError("the formula is empty", accepted=_OPERAND)
    formula = _Parser(text, unit).formula()
    if depth(formula) > _MAX_DEPTH:
        raise FormulaError(f"nested more than {_MAX_DEPTH} deep", accepted="a shorter formula")
    return formula


class _Parser:
    def __init__(self, source: str, unit: str = "s") -> None:
        self.source = source
        self.unit = unit
        self.tokens = tokenize(source)
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def advance(self) -> Token:
        token = self.token
        self.index += token.kind != "end"
        return token

    def formula(self) -> Formula:
        result = self.as_formula(self.expression(0))
        if self.token.kind != "end":
            raise self.unexpected(f"{_FORMULA_END} or the end")
        return result

    def error(self, token: Token | _Term, problem: str, accepted: str) -> FormulaError:
        return failure(self.source, token.start, problem, accepted)

    def unexpected(self, accepted: str) -> FormulaError:
        token = self.token
        written = self.source[token.start : token.end]
        problem = f"{written!r} was not expected" if written else "the formula ends too early"
        if token.kind == "name" and accepted != _OPERAND:
            near = difflib.get_close_matches(written, RESERVED, 1)
            problem += f"; did you mean {near[0]!r}?" if near else ""
        return self.error(token, problem, accepted)

    def expect(self, symbol: str, accepted: str) -> Token:
        if self.token.kind != "symbol" or self.token.text != symbol:
            raise self.unexpected(accepted)
        return self.advance()

    def expression(self, power: int) -> _Value:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(self.token, f"nested more than {_MAX_DEPTH} deep", "less nesting")
        value = self.operand()
        while self.infix_power() > power:
            value = self.infix(value)
        self.depth -= 1
        return value

    def infix_power(self) -> int:
        kind, text = self.token.kind, self.token.text
        if kind == "operator":
            return POWER.get(text, 0)
        if kind != "symbol":
            return 0
        if text in BY_SYMBOL:
            return _COMPARISON_POWER
        return _ARITHMETIC_POWER.get(text, 0)

    def operand(self) -> _Value:
        token = self.token
        if token.kind == "operator":
            return self.prefix(self.advance())
        if token.kind in ("number", "string"):
            self.advance()
            return _Term(token.start, token.end)
        if token.kind == "name":
            return self.name()
        if token.text == "(":
            return self.parenthesis()
        if token.text in ("-", "+"):
            self.advance()
            operand = self.term(self.expression(_MINUS_POWER), token)
            return _Term(token.start, operand.end)
        raise self.unexpected(_OPERAND)

    def prefix(self, token: Token) -> Formula:
        word = token.text
        if word in ("true", "false"):
            return Constant(word == "true")
        if word in PREFIX:
            return PREFIX[word](self.as_formula(self.expression(PREFIX_POWER)))
        if word in TIMED_PREFIX:
            interval = self.interval()
            return TIMED_PREFIX[word](self.as_formula(self.expression(PREFIX_POWER)), interval)
        self.index -= 1
        raise self.unexpected(_OPERAND)

    def name(self) -> _Term:
        start = self.advance()
        end = start.end
        while self.token.kind == "symbol" and self.token.text in ("(", "[", "."):
            end = self.member() if self.token.text == "." else self.brackets()
        return _Term(start.start, end)

    def member(self) -> int:
        self.advance()
        token = self.token
        if not self.source[token.start : token.end].isidentifier():
            raise self.unexpected("the name of a field")
        return self.advance().end

    def brackets(self) -> int:
        """Skip a call or an index up to its closing bracket: the expression parser reads it."""
        opening = self.token
        open_ones: list[str] = []
        while True:
            token = self.advance()
            if token.kind == "end":
                raise self.error(opening, f"{opening.text!r} is never closed", "')' or ']'")
            if token.text in ("(", "["):
                open_ones.append(")" if token.text == "(" else "]")
            elif token.text in (")", "]"):
                if open_ones.pop() != token.text:
                    raise self.error(token, f"{token.text!r} closes nothing", "its opening first")
                if not open_ones:
                    return token.end

    def parenthesis(self) -> _Value:
        opening = self.advance()
        value = self.expression(0)
        if self.token.kind == "end":
            raise self.error(opening, "'(' is never closed", f"{_FORMULA_END} or ')'")
        closing = self.expect(")", f"{_FORMULA_END} or ')'")
        return _Term(opening.start, closing.end) if isinstance(value, _Term) else value

    def infix(self, left: _Value) -> _Value:
        token = self.advance()
        power = _ARITHMETIC_POWER.get(token.text)
        if token.kind == "symbol" and power is not None:
            first = self.term(left, token)
            right = self.term(self.expression(power - (token.text == "**")), token)
            return _Term(first.start, right.end)
        if token.kind == "symbol":
            return self.comparison(left, token)
        word = token.text
        kind = TIMED_INFIX.get(word)
        interval = self.interval() if kind else None
        first_side = self.as_formula(left)
        second_side = self.as_formula(self.expression(POWER[word]))
        if word in NOT_CHAINED and self.token.kind == "operator" and self.token.text == word:
            raise self.error(
                self.token, f"{word!r} twice in a row can be read in two ways", "parentheses"
            )
        if kind:
            return kind(first_side, second_side, interval)
        return INFIX[word](first_side, second_side)

    def comparison(self, left: _Value, token: Token) -> Atom:
        first = last = self.term(left, token)
        while True:
            last = self.term(self.expression(_COMPARISON_POWER), token)
            if self.infix_power() != _COMPARISON_POWER:
                return Atom(self.normal_form(_Term(first.start, last.end)))
            token = self.advance()

    def term(self, value: _Value, operator: Token) -> _Term:
        if isinstance(value, _Term):
            return value
        problem = f"{operator.text!r} needs numbers or signals on both sides, not a formula"
        raise self.error(operator, problem, "a signal, a number or an arithmetic expression")

    def as_formula(self, value: _Value) -> Formula:
        if not isinstance(value, _Term):
            return value
        text = self.normal_form(value)
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            return Atom(text)
        raise self.error(value, f"{text} is a value, not a predicate", "a comparison: <, <=, > ...")

    def normal_form(self, term: _Term) -> str:
        text = self.source[term.start : term.end].replace("!==", "!=").replace("\n", " ")
        shown = text if len(text) < 50 else text[:47] + "..."
        try:
            normal = ast.unparse(ast.parse(f"({text})", mode="eval").body)
            parse_expression(normal)
        except ExpressionError as error:
            # `eventualy[0:2](p)` reads as a call: most likely a temporal operator misspelt.
            near = difflib.get_close_matches(re.split(r"\W", text)[0], RESERVED, 1)
            hint = f"{near[0]!r}" if near else error.accepted
            problem = f"{shown!r} is neither an operator nor an expression"
            raise self.error(term, problem, hint) from None
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise self.error(term, f"{shown!r} is no expression", "an expression") from None
        return normal

    def interval(self) -> Interval | None:
        if self.token.kind != "symbol" or self.token.text != "[":
            return None
        opening = self.advance()
        lower, lower_unit = self.bound(may_be_infinite=False)
        if self.token.text not in (":", ","):
            raise self.unexpected("a unit (s, ms, us, ns, steps), ':' or ','")
        self.advance()
        upper, upper_unit = self.bound(may_be_infinite=True)
        self.expect("]", "a unit (s, ms, us, ns, steps) or ']'")
        begin = Bound(lower or 0.0, lower_unit or upper_unit or self.unit)
        if upper is None:
            return Interval(begin, None)
        end = Bound(upper, upper_unit or lower_unit or self.unit)
        if begin.unit == end.unit and begin.value > end.value:
            raise self.error(opening, "the interval ends before it begins", "lower <= upper")
        return Interval(begin, end)

    def bound(self, *, may_be_infinite: bool) -> tuple[float | None, str | None]:
        token = self.token
        if may_be_infinite and token.kind == "name" and token.text == "inf":
            self.advance()
            return None, None
        if token.kind != "number":
            raise self.unexpected("a number >= 0" + (" or inf" if may_be_infinite else ""))
        value = float(self.advance().text)
        if value > _MAX_BOUND:
            raise self.error(token, "the bound is too large", f"at most {_MAX_BOUND:g}")
        unit = UNIT_OF.get(self.token.text) if self.token.kind == "name" else None
        if unit:
            self.advance()
        return value, unit
