"""Three-valued evaluation against the textbook: and is min, or is max, not is 1 - x."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.states.predicates.kleene import KleeneCompiler

NAMES = ("a", "b", "c", "d")
SLOTS = {name: i for i, name in enumerate(NAMES)}
HALF = 0.5


def evaluate(text: str, values: list[object]) -> bool | None:
    compiler = KleeneCompiler(SLOTS)
    source = f"def f(v):\n    return {compiler.emit(parse_expression(text).tree)}\n"
    return compiler.compile(source, "f")(values)


def leaves() -> st.SearchStrategy[tuple[str, object]]:
    operators = {
        "<": lambda x, t: x < t,
        ">=": lambda x, t: x >= t,
        "==": lambda x, t: x == t,
        "!=": lambda x, t: x != t,
    }

    def leaf(name: str, operator: str, threshold: int, doubled: bool) -> tuple[str, object]:
        text = (
            f"{name} * 2 {operator} {2 * threshold}"
            if doubled
            else f"{name} {operator} {threshold}"
        )

        def oracle(values: dict[str, float | None]) -> float:
            value = values[name]
            return HALF if value is None else float(operators[operator](value, threshold))

        return f"({text})", oracle

    return st.builds(
        leaf,
        st.sampled_from(NAMES),
        st.sampled_from(sorted(operators)),
        st.integers(0, 2),
        st.booleans(),
    )


def combine(children: st.SearchStrategy) -> st.SearchStrategy:
    def junction(word: str, parts: list) -> tuple[str, object]:
        pick = min if word == "and" else max
        return (
            "(" + f" {word} ".join(text for text, _ in parts) + ")",
            lambda values: pick(oracle(values) for _, oracle in parts),
        )

    def negation(part: tuple) -> tuple[str, object]:
        return f"(not {part[0]})", lambda values: 1 - part[1](values)

    return st.one_of(
        st.builds(
            junction, st.sampled_from(["and", "or"]), st.lists(children, min_size=2, max_size=3)
        ),
        st.builds(negation, children),
    )


@given(
    st.recursive(leaves(), combine, max_leaves=8),
    st.fixed_dictionaries({n: st.none() | st.integers(0, 2).map(float) for n in NAMES}),
)
def test_agrees_with_strong_kleene_logic(expression: tuple, values: dict) -> None:
    text, oracle = expression
    expected = {0.0: False, HALF: None, 1.0: True}[oracle(values)]
    assert evaluate(text, [values[n] for n in NAMES]) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a / b > 1", None),  # 0 / 0 has no value, so nothing is true of it
        ("a / b > 1 or c > 0", True),
        ("a / b > 1 and c < 0", False),
        ("c / b > 1", True),  # 1 / 0 is infinite
        ("0 < c < 2", True),
        ("d > 1", None),  # a vector has no truth value
        ("d > 1 or c > 0", True),
        ("any(d > 2)", True),
        ("c == 'red'", None),  # text against a number is a mistake, not a falsehood
        ("c != 'red'", None),
        ("'red' == 'red'", True),
    ],
)
def test_numbers_without_value_are_unknown(text: str, expected: bool | None) -> None:
    values = [0.0, 0.0, 1.0, np.array([1.0, 3.0])]
    assert evaluate(text, values) is expected


def test_infinity_is_a_value() -> None:
    assert evaluate("a > 1", [math.inf, 0.0, 0.0, 0.0]) is True


SIGNALS = st.one_of(
    st.sampled_from(["", "red", "rred"]),
    st.lists(st.sampled_from(["", "red", 1.0, True]), max_size=3),
    st.none() | st.booleans() | st.integers(0, 2) | st.floats(allow_nan=True),
    st.just(np.array([1.0, 2.0])) | st.just(np.array([])) | st.just(Unknown("it is gone")),
)


@given(
    st.sampled_from(
        ["a == 'red'", "a != 'red'", "'red' == a", "'red' in a", "'red' not in a", "a in 'red'"]
    ),
    SIGNALS,
)
def test_a_signal_against_a_text_is_what_the_language_says(text: str, value: object) -> None:
    # The short way for texts against the general one, which takes any expression.
    compiler = KleeneCompiler(SLOTS)
    general = compiler._comparison(parse_expression(text).tree)
    assert evaluate(text, [value, None, None, None]) is general([value, None, None, None])
