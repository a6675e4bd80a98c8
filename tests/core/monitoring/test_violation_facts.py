"""What a rule saw when it was broken."""

from __future__ import annotations

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.composition import values_in_words, violation_facts, violation_values
from forewarn.signals.snapshots import Snapshot

TEXT = """
rate: 1
startup_grace: 0
signals: {gap: {timeout: never}, lead: {timeout: never}, speed: {timeout: never}}
predicates: {near: gap < 1 + lead, fast: speed > 2}
properties:
  slow_when_near: {formula: always(near implies not fast), horizon: 5}
  in_lane: {formula: always(lead > -3), horizon: 5}
"""


def test_a_violation_names_the_signals_of_its_rule_and_what_they_were() -> None:
    monitor = build_monitor(compile_spec(parse_spec(parse_document(TEXT))), None)
    state, verdict = monitor.step(monitor.start(), Snapshot(1, (0.305, 0.0, 3.25)))
    rule, lane = monitor.properties
    assert violation_values(monitor, rule, verdict) == {"gap": 0.305, "lead": 0.0, "speed": 3.25}
    told = violation_facts(monitor, verdict, "slow_when_near")
    assert told == ("slow_when_near is violated: gap 0.305, lead 0, speed 3.25",)
    assert violation_facts(monitor, verdict, "in_lane") == ()
    _, verdict = monitor.step(state, Snapshot(2, (9.0, -4.0, 1.0)))
    assert violation_values(monitor, lane, verdict) == {"lead": -4.0}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, ""),
        ({"a": None, "b": True}, "a unknown, b true"),
        ({"a": "x" * 40}, "a 'xxxxxxxxxxxxxxxxxxxx..."),
        ({"a": [1, 2]}, "a list of 2"),
        ({"a": float("inf")}, "a inf"),
        (dict.fromkeys("abcdef", 1), "a 1, b 1, c 1, d 1"),
    ],
)
def test_values_are_short(values: dict[str, object], said: str) -> None:
    assert values_in_words(values) == said
