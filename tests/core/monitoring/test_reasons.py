from __future__ import annotations

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.reasons import explain_risk, in_words
from forewarn.signals.clock_kinds import Grid

TEXT = """
rate: 10
signals: {x: {timeout: never}}
predicates: {near: x > 1}
terminal: {hit: x > 3}
properties: {hit: {formula: always(not hit), horizon: 0.2}}
learning: {alpha: none}
"""


@pytest.fixture(scope="module")
def monitor():
    """Return a chain with known numbers: far -> near 1/2, near -> hit 1/4 and far 3/4."""
    compiled = compile_spec(parse_spec(parse_document(TEXT)))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    runs = [[0, 1, -1]] + [[0, 1, 0]] * 3 + [[0, 0]] * 1
    tick = 0
    for run in runs:
        for state in run:
            counter.add(tick, state)
            tick += 1
        counter.end_recording()
        tick = 0
    from forewarn.models.counts import Smoothing

    model = build_model(
        counter, rate=10.0, digest=compiled.abstraction.digest, smoothing=Smoothing("none")
    )
    return build_monitor(compiled, model)


def test_two_steps_ahead_by_hand(monitor) -> None:
    # from far: 4/5 to near, then 1/4 to hit; from near: 1/4 at once, or back and too late
    far = explain_risk(monitor, "hit", 0, 0)
    assert far is not None
    assert far.risk == pytest.approx(0.8 * 0.25)
    assert far.expected_time == pytest.approx(0.2)
    assert [way.states for way in far.ways] == [("(none)", "near", "hit")]
    assert far.ways[0].share == pytest.approx(1.0)
    near = explain_risk(monitor, "hit", 1, 0)
    assert near is not None
    assert near.risk == pytest.approx(0.25)
    assert near.expected_time == pytest.approx(0.1)
    assert near.changes[0].predicate == "near"
    assert near.changes[0].value is False
    assert "(none) > near > hit, 100 % of the risk, in about 0.2 s" in in_words(far, Grid(10.0))[0]
    assert any("if 'near' became false" in text for text in in_words(near, Grid(10.0)))


def test_a_state_that_the_model_does_not_know_has_no_reasons(monitor) -> None:
    assert explain_risk(monitor, "hit", 5, 0) is None
