"""Plans from files of every kind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from extent import WHOLE

from forewarn.wings.plans import behaviour_trees
from forewarn.wings.plans.readers import check_unambiguous, plans_in, read_plans
from forewarn.wings.plans.rules import load_rules
from forewarn.wings.plans.world import Plan, PlanError


def plans(path: Path, text: str) -> list[Plan]:
    path.write_text(text)
    return list(read_plans(path))


def told(plan: Plan) -> list[str]:
    return [str(step) for step in plan.steps]


def test_plans_are_found_wherever_they_stand_in_json(tmp_path: Path) -> None:
    document = {
        "kitchen": {
            "model": "m",
            "runs": [
                {"program": ["[WALK] <sink> (3)"], "safe": True, "completed": False},
                {"program": [], "safe": True},
            ],
        }
    }
    first, second = plans(tmp_path / "a", json.dumps(document, indent=1))
    assert (first.name, told(first)) == ("kitchen.runs[0]", ["WALK(sink_3)"])
    assert first.fields == {"model": "m", "safe": True, "completed": False}
    assert second.steps == ()


def test_json_lines_a_list_and_gzip_give_the_same(tmp_path: Path) -> None:
    records = [{"id": n, "plan": ["open(x)", {"action": "close", "args": ["x"]}]} for n in (1, 2)]
    lines = "\n".join(map(json.dumps, records))
    expected = plans(tmp_path / "lines", lines)
    assert [told(plan) for plan in expected] == [["open(x)", "close(x)"]] * 2
    assert plans(tmp_path / "list", json.dumps(records)) == expected
    with gzip.open(tmp_path / "packed.gz", "wt") as file:
        file.write(lines)
    assert list(read_plans(tmp_path / "packed.gz")) == expected


def test_logs_of_agents_and_of_alfred(tmp_path: Path) -> None:
    log = {
        "input": {"instruction": "Cook.", "step": ["find egg"]},
        "intermediate_steps": [
            {"action": {"tool": "robot", "input": "turn on StoveKnob"},
             "observation": {"action": "turn on StoveKnob", "success": False}},
            {"action": {"tool": "_Exception", "input": "Invalid: ("}, "observation": "no"},
        ],
    }  # fmt: skip
    (run,) = plans(tmp_path / "log", json.dumps(log))
    assert told(run) == ["turn_on(StoveKnob)", "_Exception()"]
    assert [step.failed for step in run.steps] == [True, True]
    assert run.fields["instruction"] == "Cook."
    alfred = {
        "plan": {"high_pddl": [{"discrete_action": {"action": "GotoLocation", "args": ["bowl"]}}]}
    }
    (trajectory,) = plans(tmp_path / "alfred", json.dumps(alfred))
    assert told(trajectory) == ["GotoLocation(bowl)"]


def test_objects_and_states(tmp_path: Path) -> None:
    record = {
        "initial": {
            "objects": [
                {"id": "f1", "type": "Fork", "parentReceptacles": ["bowl"], "isDirty": False}
            ]
        },
        "plan": [{"action": "wait", "facts": ["on(stove)"]}],
    }
    (plan,) = plans(tmp_path / "a", json.dumps(record))
    assert plan.initial.facts == {("inside", "f1", "bowl")}
    assert "dirty" in plan.initial.known
    assert plan.objects["f1"] == "Fork"
    assert plan.steps[0].state is not None
    assert plan.steps[0].state.facts == {("on", "stove")}


def test_a_plan_of_plansys2(tmp_path: Path) -> None:
    text = "; cost 3\n0.000:\t(move robot kitchen)  [5.000]\n5.001: (open fridge) [1.0]\n"
    (plan,) = plans(tmp_path / "plan.txt", text)
    assert told(plan) == ["move(robot, kitchen)", "open(fridge)"]


TREE = '<root main_tree_to_execute="M"><BehaviorTree ID="M">{}</BehaviorTree>{}</root>'


@pytest.mark.parametrize(
    ("inside", "ways"),
    [
        ("<Sequence><Action ID='open' object='fridge'/><Close a='fridge'/></Sequence>",
         {("open(fridge)", "Close(fridge)")}),
        ("<Fallback><A/><Sequence><B/><C/></Sequence></Fallback>", {("A()",), ("B()", "C()")}),
        ("<Fallback><Sequence><A/><B/></Sequence><C/></Fallback>",
         {("A()", "B()"), ("C()",), ("A()", "C()")}),
        ("<Sequence><Condition ID='open'/><A/></Sequence>", {("A()",)}),
        ("<Inverter><Sequence><A/><B/></Sequence></Inverter>", {(), ("A()",)}),
        ("<Repeat num_cycles='3'><A/></Repeat>", {("A()",) * 3}),
        ("<Parallel><A/><B/></Parallel>", {("A()", "B()"), ("B()", "A()")}),
        ("<RecoveryNode number_of_retries='2'><A/><B/></RecoveryNode>", {("A()",), ("B()", "A()")}),
        ("<SubTree ID='N'/>", {("N()",)}),
    ],
)  # fmt: skip
def test_every_way_in_which_a_tree_succeeds(
    tmp_path: Path, inside: str, ways: set[tuple[str, ...]]
) -> None:
    other = '<BehaviorTree ID="N"><N/></BehaviorTree>'
    found = plans(tmp_path / "tree.xml", '<?xml version="1.0"?>\n' + TREE.format(inside, other))
    assert {tuple(told(plan)) for plan in found} == ways


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<!DOCTYPE r [<!ENTITY b "b">]><root>&b;</root>', "document type"),
        ("<root><unclosed>", "no XML"),
        ("<root/>", "no BehaviorTree"),
        (TREE.format("<SubTree ID='M'/>", ""), "contains itself"),
        (TREE.format("<SubTree ID='Q'/>", ""), "not there"),
        (TREE.format("<Magic><A/><B/></Magic>", ""), "Magic"),
        (TREE.format("<Repeat num_cycles='x'><A/></Repeat>", ""), "num_cycles"),
        (TREE.format("<Repeat num_cycles='²'><A/></Repeat>", ""), "num_cycles"),
        (TREE.format(f"<Repeat num_cycles='{'9' * 5000}'><A/></Repeat>", ""), "num_cycles"),
        ('<?xml version="1.0" encoding="UTF-7"?>' + TREE.format("<A/>", ""), "no XML"),
        ('<?xml version="1.0" encoding="nothing"?>' + TREE.format("<A/>", ""), "no XML"),
        (TREE.format("<Repeat num_cycles='1000'>" * 4 + "<AlwaysSuccess/>" + "</Repeat>" * 4, ""),
         "too many ways"),
        (TREE.format("<SubTree ID='t0'/>", "".join(
            f"<BehaviorTree ID='t{n}'>" + f"<SubTree ID='t{n + 1}'/>" * 2 + "</BehaviorTree>"
            for n in range(50)) + "<BehaviorTree ID='t50'/>"), "too many ways"),
        (TREE.format("<Parallel>" + "<A/>" * 40 + "</Parallel>", ""), "too many ways"),
        (TREE.format("<Fallback><A/><B/></Fallback>" * 20, ""), "too many ways"),
        (TREE.format("<Repeat num_cycles='900'>" * 5 + "<A/>" + "</Repeat>" * 5, ""), "too many"),
        ("<a>" * 100 + "</a>" * 100, "nests too deeply"),
        (TREE.format("<AlwaysFailure/>", ""), "cannot succeed"),
        ("[" * 50_000, "JSON|nested"),
        ('{"plan": 3}', "no plan"),
        ('{"actions": [], "steps": []}', "no plan"),
        ('{"plan": ["open(x)", "what(?"]}', r"plan\[1\]"),
        ('{"plan": ["open(x)", 7]}', r"plan\[1\]"),
        ("open(fridge)\n???\n", "line 2"),
        ("", "no plan"),
        ('{"id": 1}\n{"id"\n', "JSON"),
    ],
)  # fmt: skip
def test_what_is_no_plan_is_an_error_that_says_where(
    tmp_path: Path, text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not WHOLE:
        monkeypatch.setattr(behaviour_trees, "MOST_WORK", 1_000_000)
    with pytest.raises(PlanError, match=problem) as caught:
        plans(tmp_path / "bad", text)
    assert str(tmp_path / "bad") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "no rules"),
        ("rules: {a: 3}", r"rules\.a"),
        ("rules: {a: open(}", "rules"),
        ("rules: {a: {formula: p(x), wrong: 1}}", "wrong"),
        ("rules: {a: p(x)}\nextra: 1", "extra"),
        ("rules: {a: p(x)}\nactions: {open(x): {ads: []}}", r"actions\.open"),
        ("rules: {a: p(x)}\nactions: {'open(': {adds: []}}", "actions"),
        ("rules: {a: p(x)}\nsymmetric: near", "symmetric"),
        ("rules: {a: p(x)}\nfacts: [on]", "in quotes"),
        ("rules: {a: 'F[<=T](p(x))'}\nparameters: {T: soon}", "parameters"),
    ],
)
def test_wrong_rules_say_where(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(Exception, match=problem) as caught:
        load_rules(path)
    assert str(path) in str(caught.value)


def test_rules_of_sentinel_are_about_one_object_each(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"Candle": ["G(ON(Candle) -> not(CLOSE(Bed, Candle)))", "G(ON(("]}))
    rules = load_rules(path, keep_going=True)
    assert [rule.name for rule in rules.rules] == ["Candle[0]"]
    assert rules.left_out[0].startswith("Candle[1]")
    assert rules.rules[0].rule.text.startswith("forall one_Candle in objects")
    assert rules.symmetric == {"near", "close"}
    with pytest.raises(Exception, match=r"Candle\[1\]"):
        load_rules(path)


def test_shared_rules_and_runs_are_read(shared_data: Path) -> None:
    """All of SENTINEL's rules but those that are broken, all labelled runs, all ALFRED plans."""
    sentinel = shared_data / "sentinel"
    known = sentinel / "safety_rules_object.json"
    told = [rule for rules in json.loads(known.read_text()).values() for rule in rules]
    assert len(load_rules(known).rules) == len(told)
    other = load_rules(sentinel / "safety_rules_object_Sentinel_0a3a6676.json", keep_going=True)
    assert (len(other.rules), len(other.left_out)) == (55, 3)
    runs = list(read_plans(shared_data / "safety_chip" / "results_vh.json"))
    assert len(runs) >= 300
    assert all(isinstance(run.fields["safe"], bool) for run in runs)
    assert len(list(read_plans(sentinel / "alfred"))) == len(list((sentinel / "alfred").iterdir()))


def test_a_key_that_stands_twice_is_found_behind_any_line_break_of_unicode() -> None:
    line = '{"note": "a\u2028b", "plan": ["find Mug"], "plan": ["open Fridge"]}'
    with pytest.raises(PlanError, match="has the key 'plan' twice"):
        check_unambiguous(f'{{"plan": ["find Mug"]}}\n{line}\n')
    assert [len(plan.steps) for plan in plans_in(f"{line}\n{line}\n", "x")] == [1, 1]
