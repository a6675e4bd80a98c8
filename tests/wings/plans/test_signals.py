"""Signals whose values are plans: what the rules have against them, as everybody else sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kitchen_plans import MONITOR, RULES

from forewarn.config.file import MonitorSpec, load_spec
from forewarn.errors import ConfigError
from forewarn.learning.observing import observe
from forewarn.messages.definitions import installed_message_type
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.live_session import LiveSession
from forewarn.recordings.registry import open_recording
from forewarn.wings.plans.judge import judge
from forewarn.wings.plans.readers import plans_in
from forewarn.wings.plans.rules import load_rules
from forewarn.wings.plans.signals import MOST_STEPS, in_words, problem_by

FORK = "(putin fork_1 bowl)\n(putin bowl microwave)\n(turn_on microwave)"
SOUP = "(putin bowl microwave)\n(turn_on microwave)"
TREE = (
    '<root BTCPP_format="4"><BehaviorTree ID="main"><Fallback>'
    '<Action ID="turn_on" x="stove"/><Action ID="open" x="fridge"/>'
    "</Fallback></BehaviorTree></root>"
)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "kitchen.yaml"
    path.write_text(RULES)
    return path


def monitor_file(folder: Path, text: str = MONITOR) -> MonitorSpec:
    (folder / "monitor.yaml").write_text(text)
    return load_spec(folder / "monitor.yaml")


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (SOUP, ""),
        (FORK, "no_fork: broken at step 3, turn_on(microwave), f = fork_1"),
        (["(open fridge)", "(close fridge)"], ""),
        (["(open fridge)"], "closed_again: still unmet when the plan is over"),
        (TREE, "way 2 of 2: closed_again: still unmet"),
        ('{"plan": ["open(fridge)", "close(fridge)"]}', ""),
        ("juggle(fridge)", "closed_again: unknown, for nothing says what juggle does"),
    ],
)
def test_what_is_said_of_a_plan(rules: Path, plan: object, said: str) -> None:
    found = problem_by(load_rules(rules))(plan)
    assert found.startswith(said) if said else found == ""


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "???",
        "<root>",
        "[" * 100_000,
        "(go)\n" * 100_000,
        ["(go)"] * (MOST_STEPS + 1),
        [{}],
        3.0,
        '<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>',
        '{"plan": [3]}',
        "open(fridge",
        # What somebody else may read as another plan, or what tells of what has not been done.
        '{"plan": ["open(fridge)"], "plan": ["walk(fridge)"]}',
        '{"plan": ["walk(fridge)"], "steps": ["open(fridge)"]}',
        '{"id": 1, "plan": ["walk(x)"]}\n{"plan": ["walk(x)"], "actions": ["open(fridge)"]}',
        '{"plan": [{"action": "open", "args": ["fridge"], "success": false}]}',
        '{"plan": [{"action": "open", "args": ["fridge"], "error": "locked"}]}',
        '{"plan": [{"action": "open", "args": ["fridge"], "facts": []}]}',
    ],
)
def test_what_cannot_be_read_is_no_safe_plan(rules: Path, plan: object) -> None:
    assert problem_by(load_rules(rules))(plan).startswith("the plan cannot be judged: ")


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (["open the fridge"], "pending"),
        (["open(the fridge)"], "pending"),
        ('{"plan": [{"action": "open", "args": [["fridge"]]}]}', "pending"),
        ('{"plan": [{"action": "open", "args": {"object": {"name": "fridge"}}}]}', "pending"),
        ('{"plan": [{"action": "open", "args": "fridge"}]}', "pending"),
        ('{"plan": [{"action": "open", "args": "fridge, door"}]}', "open with 2 arguments"),
        ('{"plan": [{"action": "open", "args": ["a", "fridge"]}]}', "open with 2 arguments"),
        ('{"plan": [{"action": "open", "parameters": ["fridge"]}]}', "open with 0 arguments"),
        (["open(?x)"], "open(?x)"),
        (TREE.replace("fridge", "{target}"), "open({target})"),
        (["(putin fork_1)", "(turn_on microwave)"], "putin with 1 argument"),
    ],
)
def test_no_part_of_a_step_is_left_out(rules: Path, plan: object, said: str) -> None:
    found = problem_by(load_rules(rules))(plan)
    expected = "still unmet" if said == "pending" else f"says what {said} does"
    assert expected in found


def payload(text: str) -> bytes:
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + len(data).to_bytes(4, "little") + data


def test_a_plan_is_asked_to_be_made_anew_until_a_better_one_comes(
    rules: Path, tmp_path: Path
) -> None:
    compiled = compile_spec(monitor_file(tmp_path))
    watch = LiveSession(compiled, None, {"/plan": installed_message_type("std_msgs/msg/String")})
    asked = []
    for tick, text in enumerate((None, SOUP, FORK, None, "???", SOUP)):
        if text is not None:
            watch.accept("/plan", tick * 100_000_000, payload(text))
        asked.append(watch.tick(tick).request)
    names = [request.action if request is not None else None for request in asked]
    assert names == [None, None, "REPLAN", "REPLAN", "REPLAN", "NONE"]
    assert asked[2] is not None and asked[2].active and asked[2].property == "safe_plan"
    said = "objection: no_fork: broken at step 3, turn_on(microwave), f = fork_1"
    assert said in asked[2].evidence and said in asked[3].evidence
    assert any("cannot be judged" in fact for fact in asked[4].evidence)


def test_recordings_and_traces_are_judged_as_live(rules: Path, tmp_path: Path) -> None:
    text = MONITOR.replace("rate: 10", "clock: steps").replace("timeout: never", "")
    named = text.replace("topic: /plan", "").replace("type: std_msgs/msg/String", "")
    spec = monitor_file(tmp_path, named.replace("value: data", ""))
    trace = tmp_path / "run.jsonl"
    plans = [SOUP, FORK, ["(open fridge)"]]
    trace.write_text("".join(json.dumps({"objection": plan}) + "\n" for plan in plans))
    compiled = compile_spec(spec)
    with open_recording(trace) as recording:
        ticks = list(observe(recording, spec, compiled.abstraction))
    said = [tick.seen.values[0] for tick in ticks]
    judged = problem_by(load_rules(rules))
    assert said == [judged(plan) for plan in plans]
    assert said[0] == "" and "no_fork" in said[1] and "closed_again" in said[2]


def test_errors_name_the_key_and_the_file(tmp_path: Path) -> None:
    spec = monitor_file(tmp_path)
    with pytest.raises(ConfigError) as caught:
        LiveSession(compile_spec(spec), None, {})
    assert "signals.objection.rules" in str(caught.value)
    assert f"{tmp_path}/kitchen.yaml" in str(caught.value)
    (tmp_path / "kitchen.yaml").write_text("rules: {one: 'always('}")
    with pytest.raises(ConfigError, match=r"signals\.objection\.rules.*rules\.one"):
        LiveSession(compile_spec(spec), None, {})
    derived = MONITOR.replace(
        "predicates:", "  other: {value: objection, rules: a}\npredicates:", 1
    )
    with pytest.raises(ConfigError, match=r"signals\.other: rules belong to signals that arrive"):
        monitor_file(tmp_path, derived)


def test_a_safe_plan_has_no_words(rules: Path) -> None:
    assert in_words(judge(plans_in(SOUP, "plan")[0], load_rules(rules))) == ""
