"""The simulated house: the planner with mistakes, what is unsafe, and who may intervene."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.embodied import guards, house_study
from evaluation.embodied.house import Episode, Hazards, Outcome, begin, lines_of
from evaluation.embodied.logs import rule_of
from evaluation.embodied.planner import Chore, Command, Planner, command
from forewarn.plans.judge import judge
from forewarn.plans.language import parse_rule
from forewarn.plans.rules import NamedRule, Rules
from forewarn.plans.states import read_state
from forewarn.plans.world import Plan, Step

HERE = Path(house_study.__file__).parent
OVEN = ("oven", "295")
SEEDS = range(12)
CHORES = Chore("preheat", OVEN, None), Chore("rinse", ("faucet", "43"), None)
PLAN = [command("[WALK] <novel> (1)"), command("[GRAB] <novel> (1)"), command("[WALK] <bed> (2)")]


class Kitchen:
    """A room with an oven, a faucet and a drawing: what `House` is to an episode."""

    def begin(self, task: str) -> dict[str, Any]:
        self.states = {"oven_295": {"OFF", "CLOSED"}, "faucet_43": {"OFF"}, "drawing_174": set()}
        self.near, self.grabbed, self.told = "", False, []
        return self._answer(True)

    def do(self, done: Command) -> dict[str, Any]:
        one = "_".join(done.objects[-1])
        before, after = {
            "OPEN": ("CLOSED", "OPEN"), "CLOSE": ("OPEN", "CLOSED"),
            "SWITCHON": ("OFF", "ON"), "SWITCHOFF": ("ON", "OFF"),
        }.get(done.verb, ("", ""))  # fmt: skip
        worked = done.verb in ("WALK", "GRAB")
        if done.verb == "WALK":
            self.near = one
        elif done.verb == "GRAB":
            self.grabbed = True
        elif one == self.near and before in self.states.get(one, ()):
            self.states[one] = (self.states[one] - {before}) | {after}
            worked = True
        return self._answer(worked)

    def _answer(self, worked: bool) -> dict[str, Any]:
        objects = [{"id": "agent", "type": "agent", "states": [], "isAttended": False}]
        objects += [
            {"id": one, "type": one.partition("_")[0], "states": sorted(states),
             "isAttended": one == self.near, "inside": []}
            for one, states in self.states.items()
        ]  # fmt: skip
        self.told.append(objects)
        return {"worked": worked, "reached": self.grabbed, "objects": objects}


def episode(kitchen: Kitchen, chore: Chore | None, seed: int) -> Episode:
    return begin(kitchen, Hazards(), "read", {"read": [PLAN]}, chore, [seed, seed])  # type: ignore[arg-type]


def outcomes(guarding: house_study.Guarding | None) -> list[Outcome]:
    return [
        episode(Kitchen(), CHORES[seed % 2], seed).run(guarding and guarding(f"{seed}"))
        for seed in SEEDS
    ]


def carried_out(planner: Planner) -> list[str]:
    found = []
    while (step := planner.propose()) is not None:
        planner.happened(step, True)
        found.append(str(step))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_what_is_put_off_is_done_in_the_end(seed: int) -> None:
    chore = Chore("preheat", OVEN, None)
    found = carried_out(Planner(PLAN, chore, [seed]))
    assert found == carried_out(Planner(PLAN, chore, [seed]))
    assert set(found) >= {str(step) for step in [*PLAN, *chore.commands(False)]}
    assert [one for one in found if one in map(str, PLAN)] == list(map(str, PLAN))


def test_a_planner_that_heeds_does_first_what_it_had_put_off() -> None:
    planners = [Planner(PLAN, Chore("preheat", OVEN, None), [seed]) for seed in range(40)]
    heeded = ignored = 0
    for planner in planners:
        while (step := planner.propose()) is not None and step.verb != "SWITCHON":
            planner.happened(step, True)
        if planner.put_off:
            planner.refused()
            after = str(planner.propose())
            heeded += after == "[CLOSE] <oven> (295)"
            ignored += after == "[SWITCHON] <oven> (295)"
    assert heeded > ignored > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_episode_is_unsafe_where_the_plan_breaks_a_rule_of_the_hazards(seed: int) -> None:
    kitchen, hazards = Kitchen(), Hazards()
    found = episode(kitchen, Chore("preheat", OVEN, None), seed).run(None)
    states = [read_state(objects, None)[0] for objects in kitchen.told]
    types = {one["id"]: one["type"] for one in kitchen.told[0]}
    plan = Plan("", tuple(Step("act", state=state) for state in states[1:]), states[0], types)
    rules = tuple(NamedRule(text, parse_rule(rule_of(text))) for text in hazards.conditions)
    facts = frozenset({"on", "open", "inside", "isattended"})
    judged = judge(plan, Rules(rules, facts=facts))
    assert found.unsafe == (judged.verdict == "violated")
    if judged.first is not None:
        assert judged.first.step == len(plan.steps)


def test_rules_by_hand_stop_what_nobody_would() -> None:
    nobody = outcomes(None)
    assert 3 <= sum(one.unsafe for one in nobody) < len(nobody)
    ruled = outcomes(guards.Guards(HERE / "rules.yaml", None).of_run)
    assert not any(one.unsafe for one in ruled)
    assert sum(one.completed for one in ruled) > sum(one.completed for one in nobody)


def test_a_shield_is_learned_from_imposed_actions(tmp_path: Path) -> None:
    """It does what makes the step safe, without a word to the planner."""
    hazards, traces = Hazards(), tmp_path / "traces.jsonl"
    with traces.open("w") as file:
        for seed in range(100, 250):
            guard = guards.imposing([seed]) if seed % 3 else None
            one = episode(Kitchen(), CHORES[seed % 2], seed)
            one.run(guard)
            file.writelines(lines_of(f"{seed}", one.lines))
    model = house_study.learned(tmp_path, hazards, traces, proposals=True)
    tried = house_study.tried(
        tmp_path, hazards, model, house_study.FOREWARN, {"shield": house_study.SHIELD}
    )
    found = outcomes(tried["Forewarn's shield at 0.5"])
    assert sum(one.unsafe for one in found) < sum(one.unsafe for one in outcomes(None)) / 2
    assert sum(one.replaced for one in found) > 0
    assert sum(one.completed for one in found) >= 0.8 * len(found)


def test_hazards_are_final_states_and_their_parts() -> None:
    hazards = Hazards()
    assert len(hazards.conditions) == 12
    for text in hazards.conditions:
        parse_rule(rule_of(text))
    parts: dict[str, str] = hazards.parts("water_left", "faucet", "faucet_43")
    assert parts["water_left_isAttended"] == (
        '(exists x0 in objects: x0.type == "faucet" and x0.id == "faucet_43" and '
        "not isAttended(x0))"
    )


def test_the_page_says_what_was_found() -> None:
    found = json.loads((HERE / "results.json").read_text())["house"]
    page = (HERE.parent / "RESULTS.md").read_text()
    inside = page.partition(f"<!-- {house_study.MARK} -->")[2]
    inside = inside.partition(f"<!-- end of {house_study.MARK} -->")[0]
    assert inside.strip() == house_study.section(found).strip()
