"""Expressions: whatever is written, an ExpressionError or a value."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from mutations import changed_text, soup

from forewarn.errors import ForewarnError
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import CONSTANTS, FUNCTIONS
from forewarn.expressions.syntax import normal_form, parse_expression
from forewarn.expressions.values import Unknown

SIGNALS = ("a", "b", "xs", "ys", "name")
EXAMPLES = (
    "a > 0.5 and not b <= 3",
    "min(hypot(xs - a, ys - b), default=inf)",
    "[x * a for x in xs if x > 0]",
    "[x + y for x, y in zip(xs, ys)]",
    "[i * v for i, v in enumerate(xs)][-1]",
    "any(x > a for x in xs) or name == 'stop'",
    "xs[int(a)] if len(xs) > 2 else xs[1:3][0]",
    "a ** b % 7 // 2 + sum(xs) / count(xs > 0)",
    "clamp(a, 0, 1) + wrap_angle(b) * where(a > b, 1, 2)",
    "range(3)[int(b)]",
    "[x * y for x in xs for y in ys]",
    "[[y for y in ys if y > x] for x in xs]",
    "0 < a < b != 3 and name in ('a', 'b')",
)
WORDS = (
    *SIGNALS, *FUNCTIONS, *CONSTANTS, "(", ")", "[", "]", ",", ":", ".", "+", "-", "*", "/", "//",
    "%", "**", "<", "<=", "==", "!=", "and", "or", "not", "in", "if", "else", "for", "lambda", ":=",
    "0", "1", "-1", "1e308", "2", "1e-320", "999999999", "18446744073709551615", "'text'", "''",
    "{", "}", "f'{a}'", "\\", "\u212a", "\x00", "=", "default=", "*xs", "**", "yield", "await",
)  # fmt: skip

NUMBERS = st.one_of(
    st.floats(), st.integers(-(2**70), 2**70), st.booleans(), st.sampled_from([0.0, 1.0, -1, 3])
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    NUMBERS,
    st.lists(st.floats(), max_size=5).map(lambda v: np.array(v, dtype=np.float64)),
    st.lists(st.integers(-9, 2**63 - 1), max_size=5).map(lambda v: np.array(v, dtype=np.int64)),
    st.lists(st.booleans(), max_size=5).map(lambda v: np.array(v, dtype=np.bool_)),
    st.text(max_size=5),
    st.lists(st.text(max_size=3), max_size=3),
    st.just(Unknown("no message yet")),
    st.just([np.array([1.0, 2.0]), np.array([])]),
)


def tree(random: Random, depth: int = 4) -> str:
    """Return an expression that has the grammar of the language, if not always its sense."""
    kind = random.randrange(10) if depth else 0
    if kind <= 1:
        return random.choice((*SIGNALS, "x", "0", "2", "1.5", "-1", "'t'", "inf", "nan"))
    one, two, three = below = [tree(random, depth - 1) for _ in range(3)]
    name = random.choice(sorted(FUNCTIONS))
    count = random.randrange(4)
    operator = random.choice(
        ["+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", "and", "or", "in"]
    )
    forms = {
        2: f"({one} {operator} {two})",
        3: f"{name}({', '.join(below[:count])})",
        4: f"[{one} for x in {two} if {three}]",
        5: f"({one})[{two}]",
        6: f"({one} if {two} else {three})",
        7: f"[{one}, {two}]",
        8: f"({one} {operator} {two} {operator} {three})",
        9: f"(not {one})",
    }
    return forms[kind]


TREES = st.randoms(use_true_random=True).map(tree)  # drawing each node would be ten times slower
CASES = st.tuples(
    st.one_of(TREES, changed_text(EXAMPLES, WORDS), soup(WORDS), st.text(max_size=40)),
    st.tuples(*[VALUES] * len(SIGNALS)),
)


def check(case: tuple[str, tuple[Any, ...]]) -> None:
    source, values = case
    try:
        expression = parse_expression(source)
        evaluate = compile_expression(expression, SIGNALS)
    except ForewarnError as error:
        assert str(error)
        return
    again = parse_expression(normal_form(expression))
    assert normal_form(again) == normal_form(expression)
    result = evaluate(values)
    assert isinstance(result, (float, int, bool, str, np.ndarray, list, Unknown)), repr(result)


def test_expressions(fuzz):
    fuzz(CASES, check)
