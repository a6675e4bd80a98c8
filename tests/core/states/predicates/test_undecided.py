"""Conditions that have no truth value although every signal in them has one are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError
from forewarn.states.predicates.compile import build_abstraction

TEXT = """
rate: 10
signals: {{x: {{timeout: 1}}, y: {{timeout: 1}}}}
predicates: {{a: "{predicate}", b: not a}}
terminal: {{over: "{terminal}"}}
active_when: "{phase}"
properties: {{p: {{formula: always(a)}}}}
"""


def undecided(
    values: list[Any], predicate: str = "x > 1", terminal: str = "y > 9", phase: str = "y > 0"
) -> dict[str, str]:
    text = TEXT.format(predicate=predicate, terminal=terminal, phase=phase)
    abstraction = build_abstraction(parse_spec(parse_document(text)))
    return dict(abstraction.undecided(values, abstraction.evaluate(values)))


def test_nothing_is_said_where_all_is_known_or_a_signal_is_missing() -> None:
    assert undecided([2.0, 1.0]) == {}
    assert undecided([None, 1.0]) == {}
    assert undecided([None, None]) == {}


@pytest.mark.parametrize(
    ("predicate", "x", "what"),
    [
        ("x > 'fast'", 2.0, "x is a number"),
        ("x > 1", "fast", "x is text"),
        ("x > 1", np.array([1.0, 2.0]), "x is an array"),
        ("x - x > 1", float("inf"), "x is infinite"),
    ],
)
def test_a_predicate_is_named_once_with_what_it_read(predicate: str, x: Any, what: str) -> None:
    """`b`, which is unknown only because `a` is, is not named as well."""
    found = undecided([x, 1.0], predicate)
    assert list(found) == ["predicates.a"]
    assert predicate in found["predicates.a"]
    assert f"where {what}:" in found["predicates.a"]


def test_terminal_labels_and_phases_are_named_too() -> None:
    found = undecided([2.0, 1.0], terminal="y > 'end'", phase="y == y < 'on'")
    assert list(found) == ["terminal.over", "active_when"]


@pytest.mark.parametrize(("phase", "active"), [("nan", None), ("pi", True), ("not inf", False)])
def test_a_condition_may_be_a_constant(phase: str, active: bool | None) -> None:
    text = "rate: 10\nsignals: {a: {}}\npredicates: {p: a, q: pi}\nproperties: {r: {formula: p}}\n"
    spec = parse_spec(parse_document(f"{text}active_when: {phase}\n"))
    found = build_abstraction(spec).evaluate([1.0])
    assert found.active is active
    assert (found.mask, found.known) == (3, 3)


def test_more_predicates_than_python_can_compile_are_refused() -> None:
    text = "rate: 10\nsignals: {a: {}}\nproperties: {r: {formula: a<1}}\n"
    spec = parse_spec(parse_document(f"{text}bins: {{a: {list(range(1001))}}}\n"))
    with pytest.raises(ConfigError, match="predicates: there are 1001"):
        build_abstraction(spec)
    spec = parse_spec(parse_document(f"{text}bins: {{a: {list(range(1000))}}}\n"))
    assert len(build_abstraction(spec).vocabulary.predicates) == 1000
