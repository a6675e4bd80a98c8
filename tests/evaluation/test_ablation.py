"""What the ablation of the demo's predicates computes, and that its figures are of what ships."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation.sumo.ablation import (
    LEFT_OUT,
    UNKNOWN,
    Run,
    chosen,
    count,
    kept_predicates,
    learned_risk,
    project,
    trace,
)
from forewarn.assessment.tradeoff import AlertRule, trade_off
from forewarn.config import load_spec
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import load_model
from forewarn.monitoring.verdict import Status
from forewarn.states.vocabulary import Vocabulary

WORDS = Vocabulary(("near", "gap<1", "gap<2", "fast"), ("collision",))


@pytest.fixture(scope="module")
def compiled(repository: Path) -> CompiledSpec:
    return compile_spec(load_spec(repository / "config" / "demo.yaml"))


def test_bins_are_left_out_by_the_name_of_their_signal() -> None:
    assert kept_predicates(WORDS, ()) == [0, 1, 2, 3]
    assert kept_predicates(WORDS, ("gap",)) == [0, 3]
    with pytest.raises(ValueError, match="no predicate is called slow"):
        kept_predicates(WORDS, ("slow", "near"))


def test_states_lose_the_bits_of_what_is_left_out() -> None:
    states = np.array([0b1111, 0b0110, 0b1000, -1, UNKNOWN])
    assert project(states, [0, 3]).tolist() == [0b11, 0b00, 0b10, -1, UNKNOWN]


def test_the_risk_is_that_of_the_counts(compiled: CompiledSpec) -> None:
    # From 0 one in two goes to 1 and one stays; from 1 all collide: within 20 steps nearly all do.
    runs = [np.array([0, 0, 1, -1] * 200), np.array([UNKNOWN, 2, 2, UNKNOWN])]
    words = Vocabulary(("a", "b"), ("collision",))
    risk = learned_risk([count(states, words) for states in runs], words, compiled)
    assert risk[-1] == 1.0
    assert risk[1] > risk[0] > 0.99
    assert risk[2] < risk[0]  # nothing but the prior leads away from there


def test_thresholds_are_chosen_among_those_that_meet_the_demand(compiled: CompiledSpec) -> None:
    states = np.array([0, 0, 1, 1, 1, -1, -1, 0, 0, 0] + [0] * 30 + [1] + [0] * 29)
    run = Run(7, states)
    found = trace(run, states, {0: 0.01, 1: 0.4, -1: 1.0}, compiled)
    assert found.violation.nonzero()[0].tolist() == [5]
    assert (found.status[5], found.status[6]) == (Status.VIOLATED, Status.ENDED)
    points = trade_off([found], [0.005, 0.3, 0.9], rule=AlertRule(hold=0.1))
    assert [point.false_alarms for point in points] == [0, 1, 0]
    assert chosen(points, 0.8, 0.3) is None  # alerts last for more than a tenth of the time
    longer = [
        found,
        *[found._replace(violation=found.violation & False, score=found.score * 0)] * 9,
    ]
    points = trade_off(longer, [0.3, 0.9], rule=AlertRule(hold=0.1))
    point = chosen(points, 0.8, 0.3)
    assert point is not None and point.threshold == 0.3
    assert chosen(points, 0.8, 0.4) is None


def test_the_figures_are_of_what_ships(repository: Path, compiled: CompiledSpec) -> None:
    report = json.loads((repository / "evaluation" / "sumo" / "ablation.json").read_text())
    assert list(report["left_out"]) == list(LEFT_OUT)
    whole = compiled.abstraction.vocabulary
    for name, left_out in LEFT_OUT.items():
        predicates = report["left_out"][name]["predicates"]
        assert predicates == len(kept_predicates(whole, left_out))
    model = load_model(repository / "config" / "demo.model.json")
    assert report["left_out"]["nothing"]["states"] == len(model.states)
