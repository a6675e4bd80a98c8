"""Conditions that cannot be true or false are told from message types alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import MessageType, message_type
from forewarn.states.kind_check import find_misuse

TYPE = message_type("x/msg/All", "float64 speed\nstring mode\nfloat64[] ranges\n", "ros2msg")
TEXT = """\
version: 1
rate: 10
signals:
  speed: {{topic: /a, type: x/msg/All, value: speed}}
  mode: {{topic: /a, type: x/msg/All, value: mode}}
  ranges: {{topic: /a, type: x/msg/All, value: ranges}}
  named: {{}}
  near: {{value: min(ranges)}}
  close: {{value: "[each for each in ranges if each < 2]"}}
  strange: {{value: named + 1}}
{signals}
predicates:
  fast: speed > 0.3
{predicates}
{more}
properties:
  calm: {{formula: always({formula})}}
"""


def misuse(
    predicates: str = "", signals: str = "", more: str = "", formula: str = "not fast",
    types: dict[str, MessageType] | None = None,
) -> list[tuple[str, str, str]]:  # fmt: skip
    text = TEXT.format(predicates=predicates, signals=signals, more=more, formula=formula)
    compiled = compile_spec(parse_spec(parse_document(text)))
    found = find_misuse(compiled.abstraction, {"/a": TYPE} if types is None else types)
    return [(item.place, item.name, str(item.error)) for item in found]


@pytest.mark.parametrize(
    ("predicate", "told"),
    [
        ("speed > 'a lot'", "a number compared with text"),
        ("mode > 3", "text compared with a number"),
        ("mode", "text is neither true nor false"),
        ("ranges < 2", "an array of numbers is neither true nor false"),
        ("close", "an array of numbers is neither true nor false"),
        ("near < 2 and mode", "'and' or 'or' of text"),
        ("len(speed) > 2", "len() of a number"),
        ("'a' in ranges", "'in' between text and an array of numbers"),
    ],
)
def test_what_is_never_true_or_false_is_refused(predicate: str, told: str) -> None:
    ((place, name, error),) = misuse(f'  bad: "{predicate}"')
    assert (place, name) == ("predicates", "bad")
    assert told in error
    assert "accepted:" in error


@pytest.mark.parametrize(
    "predicate",
    [
        "mode == 'auto'",
        "mode in ('auto', 'manual')",
        "any(ranges < 2)",
        "min(close, default=inf) < 2",
        "near < 2 and fast",
        "speed",
        "not fast",
        "len(mode) > 2 and len(close) > 1",
        "named > 'what nobody knows'",
        "strange < 3 and speed < 3",
    ],
)
def test_what_can_be_true_or_false_is_not(predicate: str) -> None:
    assert misuse(f'  good: "{predicate}"') == []


def test_every_place_of_a_condition_is_looked_at() -> None:
    found = misuse(
        signals='  total: {value: "speed + mode"}',
        more="terminal:\n  done: mode\nactive_when: ranges\nbins: {mode: [1, 2]}",
        formula="not fast and speed > 3 and ranges < 2",
    )
    assert {(place, name) for place, name, _ in found} == {
        ("signals", "total"), ("terminal", "done"), ("active_when", ""),
        ("predicates", "mode<1"), ("predicates", "mode<2"), ("predicates", "ranges < 2"),
    }  # fmt: skip


def test_without_a_type_nothing_is_judged() -> None:
    assert misuse("  bad: speed > 'a lot'", types={}) == []


PARTS = st.sampled_from(["speed", "mode", "ranges", "near", "close", "1.5", "'a'"])
TESTS = st.builds("{} {} {}".format, PARTS, st.sampled_from(["<", "==", ">="]), PARTS)
CONDITIONS = st.recursive(
    TESTS | PARTS | st.just("fast"),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("(not {})".format, inner)
    ),
    max_leaves=4,
)


@given(CONDITIONS)
def test_what_passes_has_a_truth_value_and_what_is_refused_has_none(condition: str) -> None:
    """Against the evaluation itself, all signals being known."""
    values: dict[str, Any] = {
        "speed": 1.0, "mode": "a", "ranges": np.array([1.0, 3.0]), "near": 1.0,
        "close": np.array([1.0]), "fast": True,
    }  # fmt: skip
    expression = parse_expression(condition)
    if not expression.names:
        return  # a constant: refused for another reason
    refused = misuse(f'  x: "{condition}"')
    names = sorted(expression.names)
    value = compile_expression(expression, names)([values[name] for name in names])
    if not refused:
        assert isinstance(value, bool | int | float)
    elif " and " not in condition and " or " not in condition:
        assert isinstance(value, Unknown | np.ndarray | list | str) or value != value
