"""The shield in the loop: what is tried, what is counted of it, and who does what is advised."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evaluation.harness.advice import (
    DRIVE_ON,
    Advised,
    Exploring,
    as_driven_on,
    held_process,
    learned_on,
    with_shield,
)
from evaluation.harness.page import replaced
from evaluation.irsim.closed_loop import HERE, JUDGED, acting
from evaluation.irsim.governors import STOP, Governed, Steering
from evaluation.irsim.messages import write_bag
from evaluation.irsim.planner import TEMPERS, Planner
from evaluation.irsim.robot import Frame
from evaluation.irsim.shield import ASKED, LIMIT, REPLAN, SHIELD, summary, table_of
from forewarn.config import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel
from forewarn.states.interface import terminal_code
from monitor_node.actuators.interface import NOTHING
from tests.evaluation.test_irsim import frame, towards

SPEC = load_spec(HERE / "monitor.yaml")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CountModel:
    """Return what follows from driving at a disc twice: once into it, once past."""
    folder, compiled = tmp_path_factory.mktemp("runs"), acting(SPEC)
    ended = [frame(40, 0.4, collided=True)], [frame(40, 3.0, arrived=True)]
    bags = [folder / f"episode_{at}" for at in range(2)]
    for bag, last in zip(bags, ended, strict=True):
        write_bag(bag, [(one, (0.8, 0.0), None) for one in [*towards(40), *last]])
    return learn(bags, compiled.spec, compiled.abstraction).model


def planner() -> Planner:
    return Planner(TEMPERS["hasty"], (10.0, 0.0), seed=1)


def driven(governed: Governed, frames: list[Frame]) -> None:
    governed.begin(planner())
    for one in frames:
        governed.govern(one, (0.8, 0.0))


def test_where_nobody_intervened_all_that_was_done_is_to_drive_on(model: CountModel) -> None:
    known = as_driven_on(model)
    counts = model.counts.tocoo()
    expected = {
        (model.states[i], model.states[j]): n
        for i, j, n in zip(counts.row, counts.col, counts.data, strict=True)
    }
    assert {(step.state, step.following): n for step, n in known.steps} == expected
    assert {(step.action, step.imposed) for step, _ in known.steps} == {(DRIVE_ON, False)}
    assert sum(expected.values()) > 50


def test_what_is_tried_depends_on_the_seed_alone_and_is_counted_once(model: CountModel) -> None:
    trying = Exploring(acting(SPEC), model, ASKED)
    governed, frames = Governed(trying, Steering()), towards(60, start=6.0)
    logs = []
    for seed in (5, 6, 5):
        trying.seed = seed
        driven(governed, frames)
        logs.append(trying.log)
    assert logs[0] == logs[2] != logs[1]
    done = Counter(action for log in logs for _, action in log)
    assert set(done) > {DRIVE_ON} and set(done) <= {DRIVE_ON, *(one.action for one in ASKED)}
    learned = Counter()
    for step, count in learned_on(acting(SPEC), model, logs).steps:
        learned[step.action, step.imposed] += count
    for step, count in as_driven_on(model).steps:
        learned[step.action, step.imposed] -= count
    pairs = Counter(
        (action, action != DRIVE_ON)
        for log in logs
        for (state, action), (following, after) in pairwise(log)
        # A tick of driving on that ends in an intervention counts for neither.
        if None not in (state, following) and (action == after or action != DRIVE_ON)
    )
    assert +learned == pairs
    assert learned_on(acting(SPEC), model, []).steps == as_driven_on(model).steps


def test_actions_that_are_held_count_from_one_decision_to_the_next(model: CountModel) -> None:
    a, b, end = (model.states[i] for i in (0, 1, -1))
    stop = "EMERGENCY_STOP"
    logs = [
        [*[(a, stop)] * 5, *[(b, DRIVE_ON)] * 5, *[(a, DRIVE_ON)] * 2, (end, DRIVE_ON)],
        [*[(a, stop)] * 5, (a, DRIVE_ON)],
    ]
    compiled = with_shield(SPEC, SHIELD, 0.2, 0.18, JUDGED)
    found = held_process(compiled, logs, 5)
    assert found.compiled.spec.rate == 2.0
    told = {
        state: {one.action: one.visits for one in decision.alternatives}
        for state, decision in found.table.decisions.items()
    }
    # The first log's ticks 0 (stop), 5 and 6 (whole steps) and 7 to 11, which end with the episode;
    # of the second, whose end is none, tick 0 alone.
    assert told == {a: {stop: 2, DRIVE_ON: 2}, b: {DRIVE_ON: 5}}


def shielded(model: CountModel, action: str) -> tuple[CompiledSpec, list[Any]]:
    """Return a monitor file and logs by which all but an action leads into a contact."""
    compiled = with_shield(SPEC, SHIELD, 0.2, 0.18, JUDGED)
    labels = compiled.abstraction.vocabulary.terminals
    contact, goal = (terminal_code(labels.index(name)) for name in ("contact", "arrived"))
    inner = [state for state in model.states if state not in (contact, goal)]
    tried = [(DRIVE_ON, contact), (action, goal)]
    logs = [[(state, a), (after, DRIVE_ON)] for state in inner for a, after in tried * 20]
    return compiled, logs


@pytest.mark.parametrize("asked", [REPLAN, LIMIT])
def test_who_is_advised_does_it_for_as_long_as_it_was_tried(model: CountModel, asked: Any) -> None:
    compiled, logs = shielded(model, asked.action)
    held = held_process(compiled, logs, 5)
    advised = Advised(compiled, as_driven_on(model), ASKED, held)
    governed = Governed(advised, Steering())
    governed.begin(planner())
    demands = []
    for one in towards(40):
        governed.govern(one, (0.8, 0.0))
        demands.append(advised._demand)
    first = demands.index(asked)
    assert set(demands[:first]) == {NOTHING}
    assert all(demand == asked for demand in demands[first : first + 5])
    assert governed.ticks_acting == len(demands) - demands.count(NOTHING)


@pytest.mark.parametrize(("stops", "expected"), [(0, STOP), (9, STOP), (10, LIMIT)])
def test_what_the_policy_demands_stands_until_it_was_tried(
    model: CountModel, stops: int, expected: Any
) -> None:
    compiled, logs = shielded(model, LIMIT.action)
    contact = logs[0][-1][0]
    begun = {log[0][0] for log in logs}
    logs += [[(state, STOP.action), (contact, DRIVE_ON)] for state in begun] * stops
    compiled = with_shield(SPEC, SHIELD, 0.2, 0.18, JUDGED, stops=True)
    held = held_process(compiled, logs, 5)
    advised = Advised(compiled, as_driven_on(model), ASKED, held, visits=10)
    governed = Governed(advised, Steering())
    governed.begin(planner())
    demands = []
    for one in towards(40):
        governed.govern(one, (0.8, 0.0))
        demands.append(advised._demand._replace(id=0))
    assert set(demands) == {NOTHING, expected._replace(id=0)}


def test_a_failure_that_lasts_for_a_tick_ends_a_step() -> None:
    failing = SHIELD.model_copy(update={"failure": "too_near"})
    compiled = with_shield(SPEC, failing, 0.2, 0.18, JUDGED)
    space = compiled.abstraction.vocabulary
    close = sum(1 << space.atoms.index(name) for name in ("clearance<0.2", "clearance<0.4"))
    touching = close | 1 << space.atoms.index("too_near")
    assert space.holds("too_near", touching) and not space.holds("too_near", close)
    logs = [[*[(close, DRIVE_ON)] * 3, (touching, DRIVE_ON), *[(close, DRIVE_ON)] * 8]] * 5
    (drive_on,) = held_process(compiled, logs, 5).table.decisions[close].alternatives
    # Of each log the first three ticks, which end in it, and three of five that do not.
    assert drive_on.visits == 5 * (3 + 3)
    # Every other step fails, and six of them are the three seconds of the horizon.
    assert drive_on.failure.estimate == pytest.approx(1 - 0.5**6, abs=0.01)


def test_another_plan_is_a_careful_ones_and_begins_at_once() -> None:
    hasty, means = planner(), Steering()
    means.begin(hasty)
    for demand, wanted in ((NOTHING, False), (REPLAN, True), (LIMIT, False)):
        means.apply(demand, (0.7, 0.0), 0.0)
        assert hasty.asked is wanted
    assert hasty.limit == LIMIT.speed_limit


def test_contacts_avoided_and_time_lost_are_of_the_same_seeds() -> None:
    def episode(collided: bool, arrived: bool, duration: float) -> dict[str, Any]:
        return {"collided": collided, "arrived": arrived, "duration": duration, "acting": 1.0}

    before = [episode(True, False, 5.0), episode(True, False, 6.0), episode(False, True, 10.0)]
    after = [episode(False, True, 9.0), episode(True, False, 6.0), episode(False, True, 12.0)]
    found = summary(list(zip(after, before, strict=True)))
    assert (found["contacts"], found["avoided"], found["lost"]) == (1, 0.5, 2.0)
    assert found["arrived"] == pytest.approx(2 / 3, abs=1e-4)
    assert "| somebody | 3 | 1 | 50%" in table_of({"somebody": found})


@pytest.mark.parametrize(
    ("key", "mark"),
    [("shield", "evaluation.irsim.shield"), ("shield_first", "evaluation.irsim.shield, first")],
)
def test_the_page_shows_what_the_shield_did(repository: Path, key: str, mark: str) -> None:
    found = json.loads((HERE / "results.json").read_text(encoding="utf-8"))[key]
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    assert replaced(page, mark, table_of(found["arms"])) == page
    assert {row["episodes"] for row in found["arms"].values()} == {len(found["seeds"])}


def test_the_page_says_what_was_tried(repository: Path) -> None:
    tried = json.loads((HERE / "results.json").read_text(encoding="utf-8"))["shield"]["tried"]
    page = " ".join((repository / "evaluation" / "RESULTS.md").read_text("utf-8").split())
    said = (
        "{REPLAN:,} ticks with another plan, {LIMIT_SPEED:,} with a speed limit of 0.1 m/s, "
        "{EMERGENCY_STOP:,} with a stop of the gate"
    )
    assert said.format(**tried) in page
