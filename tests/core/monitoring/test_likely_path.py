from __future__ import annotations

import math

import numpy as np
import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models.estimation import estimate_chain
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.risk_rows import risk_rows
from forewarn.signals.snapshots import Snapshot

TEXT = """
rate: 10
startup_grace: 0
signals: {x: {timeout: never}}
predicates: {near: x > 1, nearer: x > 2}
terminal: {hit: x > 3}
properties:
  hit: {formula: always(not hit), horizon: 2, thresholds: {warn: 0.2, act: 0.9, release: 0.1}}
  leave: {formula: "always(nearer implies eventually[0:0.3](not near))", horizon: 2}
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(3)
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    following = {
        0: ([0, 1], [0.9, 0.1]),
        1: ([0, 1, 3], [0.3, 0.5, 0.2]),
        3: ([1, 3, -1], [0.3, 0.5, 0.2]),
    }
    tick = 0
    for _ in range(60):
        state = 0
        while state >= 0 and tick < 20_000:
            counter.add(tick, state)
            tick += 1
            states, weights = following[state]
            state = int(rng.choice(states, p=weights))
        counter.add(tick, state)
        tick += 1
    model = build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)
    return model, build_monitor(COMPILED, model)


def test_each_step_is_the_likeliest_after_which_a_violation_follows(learned) -> None:
    model, monitor = learned
    chain = estimate_chain(model)
    matrix = chain.to_csr().toarray()
    for compiled in monitor.properties:
        automaton, table = compiled.automaton, compiled.table.values
        for row in range(model.size):
            for state in range(len(automaton.transitions) - 1):
                found = compiled.outlook.path(row, state)
                if not table[row, state] > 0:
                    assert found.rows == ()
                    continue
                assert found.rows[0] == row
                assert len(found.shares) == len(found.rows) - 1
                for a, b, share in zip(found.rows, found.rows[1:], found.shares, strict=False):
                    assert share == pytest.approx(matrix[a, b])
                # the first step, by enumeration
                best, step = 0.0, None
                for target in range(model.size):
                    cls = compiled.row_classes[target]
                    if cls < 0:
                        continue
                    after = automaton.transitions[state, cls]
                    if target == row and after == state:
                        continue
                    weight = matrix[row, target] * table[target, after]
                    if weight > best:
                        best, step = weight, target
                if step != row and step is not None:
                    assert found.rows[1] == step


def test_the_way_to_a_collision_leads_through_near_and_nearer(learned) -> None:
    model, monitor = learned
    found = monitor.properties[0].outlook.path(model.index[0], 0)
    assert [model.name(row) for row in found.rows] == ["(none)", "near", "near & nearer", "hit"]


def test_what_is_published_looks_ahead(learned) -> None:
    _, monitor = learned
    state, verdict = monitor.step(monitor.start(), Snapshot(0, (2.5,)))
    calm = risk_rows(monitor, verdict, [0, 0], ())[0]
    assert calm.most_likely_path == ()  # no warning yet
    assert 0.1 < calm.expected_time_to_violation < 2.0
    _, verdict = monitor.step(state, Snapshot(1, (2.5,)))
    warned = risk_rows(monitor, verdict, [0, 0], ())[0]
    assert warned.level >= 1
    assert warned.most_likely_path == ("near & nearer", "hit")
    _, verdict = monitor.step(state, Snapshot(1, (None,)))
    assert math.isnan(risk_rows(monitor, verdict, [0, 0], ())[0].expected_time_to_violation)
