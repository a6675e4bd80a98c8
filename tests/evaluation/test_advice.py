"""The shield in the loop: what is tried, what is counted of it, and who does what is advised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from evaluation.harness.advice import DRIVE_ON, Advised, Exploring, Process, held_process
from evaluation.harness.messages import EPOCH_NS, Message, Topic, message, write_bag
from forewarn.config.file import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn.wings.decisions.section import ShieldSpec

GAP = Topic("/gap", "std_msgs/msg/Float64")
STOP, LIMIT = Intervention("EMERGENCY_STOP"), Intervention("LIMIT_SPEED", 0.1, id=1)
ASKED = (LIMIT, STOP)
MONITOR = {
    "version": 1,
    "rate": 10,
    "mode": "act",
    "signals": {"gap": {"topic": GAP.name, "type": GAP.type, "value": "data", "timeout": 0.5}},
    "bins": {"gap": [1, 2]},
    "terminal": {"hit": "gap <= 0", "arrived": "gap > 9"},
    "properties": {
        "clear": {
            "formula": "always(not hit)",
            "horizon": 1.0,
            "thresholds": {"warn": 0.3, "act": 0.3, "release": 0.1},
            "enter": 1,
            "intervention": "EMERGENCY_STOP",
        }
    },
    "bounds": {"kind": "none"},
}
SHIELD = ShieldSpec(failure="hit", success="arrived", at_least=0.9, horizon=3.0)


def approach(last: float) -> Iterator[Message]:
    """Yield the gap at each tick: from 3 m down, and what comes in the end."""
    for tick, gap in enumerate([*(3 - 0.1 * tick for tick in range(30)), last]):
        yield Message(EPOCH_NS + tick * 100_000_000, GAP, message(GAP.type, {"data": gap}))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledSpec:
    file = tmp_path_factory.mktemp("monitor") / "gap.yaml"
    file.write_text(yaml.safe_dump(MONITOR, sort_keys=False), encoding="utf-8")
    return compile_spec(load_spec(file))


@pytest.fixture(scope="module")
def model(compiled: CompiledSpec, tmp_path_factory: pytest.TempPathFactory) -> CountModel:
    """Return what follows from going at something twice: once into it, once past."""
    folder = tmp_path_factory.mktemp("runs")
    bags = [folder / "hit", folder / "past"]
    for bag, last in zip(bags, (0.0, 9.5), strict=True):
        write_bag(bag, [GAP], approach(last))
    return learn(bags, compiled.spec, compiled.abstraction).model


def held(compiled: CompiledSpec, logs: Any) -> Process:
    """Return what followed actions that were held for half a second."""
    with_shield = compiled.spec.model_copy(update={"shield": SHIELD})
    return held_process(compile_spec(with_shield), logs, 5)


def states(compiled: CompiledSpec, model: CountModel) -> dict[str, int]:
    return {compiled.abstraction.vocabulary.name(state): state for state in model.states}


def driven(one: Advised | Exploring) -> list[Intervention]:
    """Let a bag's messages arrive, and return what is demanded at each tick."""
    one.begin()
    demands = []
    for sent in approach(0.05):
        one.accept(sent)
        demands.append(one.tick(sent.time_ns // 100_000_000)._replace(id=0))
    return demands


def test_what_is_tried_depends_on_the_seed_alone(compiled: CompiledSpec, model: CountModel) -> None:
    trying = Exploring(compiled, model, ASKED)
    logs = []
    for seed in (5, 6, 5):
        trying.seed = seed
        driven(trying)
        logs.append(trying.log)
    assert logs[0] == logs[2] != logs[1]
    done = {action for log in logs for _, action in log}
    assert DRIVE_ON in done and done <= {DRIVE_ON, *(one.action for one in ASKED)}


def test_actions_that_are_held_count_from_one_decision_to_the_next(
    compiled: CompiledSpec, model: CountModel
) -> None:
    a, b, end = (model.states[i] for i in (0, 1, -1))
    stop = STOP.action
    logs = [
        [*[(a, stop)] * 5, *[(b, DRIVE_ON)] * 5, *[(a, DRIVE_ON)] * 2, (end, DRIVE_ON)],
        [*[(a, stop)] * 5, (a, DRIVE_ON)],
    ]
    found = held(compiled, logs)
    assert found.compiled.spec.rate == 2.0
    told = {
        state: {one.action: one.visits for one in decision.alternatives}
        for state, decision in found.table.decisions.items()
    }
    # The first log's ticks 0 (stop), 5 and 6 (whole steps) and 7 to 11, which end with the episode;
    # of the second, whose end is none, tick 0 alone.
    assert told == {a: {stop: 2, DRIVE_ON: 2}, b: {DRIVE_ON: 5}}


@pytest.mark.parametrize(
    ("visits", "stops", "expected"), [(0, 0, LIMIT), (10, 9, STOP), (10, 10, LIMIT)]
)
def test_who_is_advised_does_it_unless_what_is_demanded_was_tried_too_seldom(
    compiled: CompiledSpec, model: CountModel, visits: int, stops: int, expected: Intervention
) -> None:
    """All but a speed limit leads into it; each is done for as long as it was tried."""
    named = states(compiled, model)
    hit, arrived = named["hit"], named["arrived"]
    tried: list[tuple[str, int]] = [(DRIVE_ON, hit), (LIMIT.action, arrived)] * 20
    tried += [(STOP.action, hit)] * (stops or 10)
    inner = [state for name, state in named.items() if name not in ("hit", "arrived")]
    logs: list[Any] = [[(state, a), (after, DRIVE_ON)] for state in inner for a, after in tried]
    advised = Advised(compiled, model, ASKED, held(compiled, logs), visits)
    demands = driven(advised)
    first = next(tick for tick, one in enumerate(demands) if one != NOTHING)
    assert first > 3
    assert demands[first : first + 5] == [expected._replace(id=0)] * 5
