"""Whether predicates of the ego's braking make the demo's risks right: how that is judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation.sumo.ablation import BROKEN_BY, UNKNOWN, Run, count, truth_of
from evaluation.sumo.braking import (
    IN_STATES,
    VARIANTS,
    Learned,
    Visits,
    chained,
    remembering,
    visited,
    with_candidates,
)
from evaluation.sumo.judging import (
    Told,
    brier_difference,
    by_past,
    judge_ticks,
)
from forewarn.config import load_spec
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import Smoothing
from forewarn.monitoring.verdict import Status

COLLIDED = -1


@pytest.fixture(scope="module")
def compiled(repository: Path) -> CompiledSpec:
    return compile_spec(with_candidates(load_spec(repository / "config" / "demo.yaml")))


@pytest.fixture(scope="module")
def jumped(compiled: CompiledSpec) -> int:
    return 1 << compiled.abstraction.vocabulary.predicates.index("ran_red")


def run_of(*states: int) -> Run:
    return Run(0, np.array(states, dtype=np.int64))


def three_columns(states: list[int], risk: list[float]) -> Learned:
    return Learned(np.array(states), np.repeat(np.array(risk)[:, None], 3, axis=1))


def test_a_state_remembers_the_tick_before() -> None:
    states = np.array([1, 2, UNKNOWN, 3, 1, COLLIDED, 2, 0])
    assert remembering(states, 2).tolist() == [
        *(1 | 1 << 2, 2 | 1 << 2, UNKNOWN, UNKNOWN, 1 | 3 << 2),
        *(COLLIDED, 2 | 2 << 2, 0 | 2 << 2),
    ]


def test_rules_are_broken_where_their_condition_begins(compiled: CompiledSpec, jumped: int) -> None:
    run = run_of(0, jumped, jumped, 0, COLLIDED, COLLIDED, UNKNOWN, 0)
    red, hit = (truth_of(run, rule, compiled) for rule in BROKEN_BY)
    assert red.violation.nonzero()[0].tolist() == [1]
    assert hit.violation.nonzero()[0].tolist() == [4]
    assert (red.horizon, hit.horizon) == (50, 20)
    assert red.status[4] == Status.ENDED and hit.status[4] == Status.VIOLATED
    assert red.status[6] == hit.status[6] == Status.UNKNOWN


def test_counting_asks_what_followed_the_visits_themselves(
    compiled: CompiledSpec, jumped: int
) -> None:
    # One state follows both 1 and 2; what comes after it differs. A chain cannot tell them apart.
    first, second, between = 1, 2, 16
    runs = [run_of(*[first] * 3, between, jumped, *[0] * 60)] * 20
    runs += [run_of(*[second] * 3, between, *[0] * 61)] * 20
    truth = [truth_of(run, "red_light", compiled) for run in runs]
    states = [run.states for run in runs]
    direct = visited(states, truth).share()
    asked = np.array([first, second, between, 77])
    assert direct.of(asked)[:, 1].tolist()[:3] == [1.0, 0.0, 0.5]
    assert np.isnan(direct.of(asked)[3]).all()
    vocabulary = compiled.abstraction.vocabulary
    counts = [count(state, vocabulary) for state in states]
    none = Smoothing(alpha="none")
    chain = chained(counts, vocabulary, compiled, none)["red_light"].of(asked)
    assert chain[:3, 1] == pytest.approx(0.5, abs=1e-6)
    smooth = chained(counts, vocabulary, compiled, bounds=True)["red_light"].of(asked)
    assert (smooth[:3, 0] < smooth[:3, 1]).all() and (smooth[:3, 1] < smooth[:3, 2]).all()


def test_few_visits_leave_a_prior_its_weight() -> None:
    visits = Visits(np.array([3, 5]), np.array([10, 990]), np.array([10.0, 0.0]))
    mixed = visits.share(three_columns([3, 5], [0.2, 0.2]), 10.0)
    assert mixed.of(np.array([3, 5]))[:, 1] == pytest.approx([0.6, 0.002])


def test_figures_are_of_the_ticks_whose_outcome_is_known(
    compiled: CompiledSpec, jumped: int
) -> None:
    run = run_of(*[0] * 60, *[1] * 10, jumped, *[0] * 50)
    truth = truth_of(run, "red_light", compiled)
    # Right at all ticks but those from which the red light lies 11 to 50 ticks ahead.
    risk = three_columns([0, 1], [0.0, 1.0])
    told = Told([truth], [risk.of(run.states)])
    found = told.figures(compiled.spec.properties["red_light"])
    # 60 + 10 ticks before, of those after only the first has a horizon's length of ticks behind it.
    assert found["brier"] == pytest.approx(40 / 70, abs=1e-6)
    assert (found["violations"], found["foreseen"], found["median_lead"]) == (1, 1, 1.0)
    assert found["false_alarms_per_hour"] == 0
    assert found["unknown_ticks"] == 0
    assert found["width_before_violations"] == 0
    followed, _ = judge_ticks(truth)
    perfect = Told([truth], [np.repeat(followed[:, None].astype(float), 3, axis=1)])
    difference = brier_difference(told, perfect)
    assert difference == pytest.approx([found["brier"]] * 3, abs=1e-6)


def test_the_past_of_a_state_is_what_happened_up_to_three_seconds_ago(
    compiled: CompiledSpec, jumped: int
) -> None:
    index = compiled.abstraction.vocabulary.predicates.index
    bits = {name: 1 << index(name) for name in ("yellow", "red", "must_brake_firmly", "braking")}
    yellow = bits["yellow"] | bits["must_brake_firmly"]
    red = bits["red"] | bits["must_brake_firmly"] | 1 << index("time_to_line<2")
    red |= 1 << index("red_for<8")
    runs = [
        run_of(*[yellow] * 2, *[red] * 31, jumped, *[0] * 60),
        run_of(*[red | bits["braking"]] * 4, *[0] * 60),
    ]
    found = {(row["firmly_at_yellow"], row["braking"]): row for row in by_past(runs, compiled)}
    told = {key: (row["ticks"], row["followed"]) for key, row in found.items()}
    assert told == {
        (True, False): (30, 30),
        (False, False): (1, 1),
        (False, True): (4, 0),
        (True, True): (0, 0),
    }


def test_the_figures_are_of_the_variants_that_are_declared(repository: Path) -> None:
    report = json.loads((repository / "evaluation" / "sumo" / "braking.json").read_text())
    assert list(report["variants"]) == list(VARIANTS)
    shipped = compile_spec(load_spec(repository / "config" / "demo.yaml")).abstraction.vocabulary
    for name, variant in VARIANTS.items():
        predicates = variant.history * (len(shipped.predicates) + len(variant.added))
        assert report["variants"][name]["predicates"] == predicates
    assert all(row["predicted"].keys() == set(IN_STATES) for row in report["states"]["red_light"])
    ablation = json.loads((repository / "evaluation" / "sumo" / "ablation.json").read_text())
    known, same = report["variants"]["as shipped"], ablation["left_out"]["nothing"]
    assert known["predicates"] == same["predicates"]
    ours = known["ways"]["chain"]["collision"]
    assert known["states"] == same["states"]
    assert ours["average_precision"] == pytest.approx(same["area"]["unseen"], abs=1e-4)
