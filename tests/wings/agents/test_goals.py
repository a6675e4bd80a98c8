"""What speaks against a goal is what it would bring about, and judging it changes nothing."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forewarn.config.file import load_spec, parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, DecodeError
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.messages.definitions import installed_message_type
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.session_events import decode, encode
from forewarn.wings.agents.goals import (
    LARGEST,
    again,
    decision,
    goal_reason,
    judge_goal,
    refuses,
    undecided,
)

STRING = installed_message_type("std_msgs/msg/String")
TEXT = """
rate: 10
startup_grace: 0
mode: act
bounds: {kind: none}
signals:
  goal: {topic: /go/goal, type: std_msgs/msg/String, value: data, timeout: never, default: ''}
  hot: {timeout: never, default: false}
predicates: {fast: goal == 'race', forbidden: goal == 'fly', burns: hot}
properties:
  ground: {formula: always(not forbidden), intervention: REPLAN, description: Stay on it.}
  cool: {formula: always(not burns), horizon: 1.0, intervention: COMFORTABLE_STOP}
  soon: {formula: 'always(forbidden implies eventually[0:0.1](burns))', intervention: REPLAN}
"""


def payload(text: str) -> bytes:
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + len(data).to_bytes(4, "little") + data


def risky() -> CountModel:
    """Return a model by which it burns in half of the steps after a race, and never else."""
    compiled = compile_spec(parse_spec(parse_document(TEXT)))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    rng = np.random.default_rng(1)
    for tick in range(4000):
        state = 0 if tick % 4 < 2 else 1 if tick % 4 == 2 else 4 * int(rng.integers(2))
        counter.add(tick, state)
    counter.end_recording()
    return build_model(counter, rate=10.0, digest=compiled.abstraction.digest)


def watching(text: str = TEXT, model: CountModel | None = None) -> LiveSession:
    watch = LiveSession(compile_spec(parse_spec(parse_document(text))), model, {"/go/goal": STRING})
    for tick in range(5):
        watch.tick(tick)
    return watch


def test_a_certain_violation_is_refused_and_nothing_is_remembered() -> None:
    watch = watching()
    before = copy.deepcopy(watch.memory)
    found = judge_goal(watch, 5, "/go/goal", payload("fly"))
    assert (found.action, found.property, found.certain) == ("REPLAN", "ground", True)
    assert refuses(found) and found.risk == 1.0
    reason = goal_reason(watch.spec, found)
    assert reason.startswith("ground: this goal breaks the rule; the rule: Stay")
    assert watch.memory == before
    calm = judge_goal(watch, 5, "/go/goal", payload("walk"))
    assert not refuses(calm) and calm.property == ""


@pytest.mark.parametrize(
    ("choice", "action", "refused"),
    [("block", "REPLAN", True), ("ask", "ASK", True), ("pass", "NONE", False)],
)
def test_a_goal_of_which_it_is_not_known_whether_it_breaks_a_rule(
    choice: str, action: str, refused: bool
) -> None:
    heavy = """forbidden: "goal != '' and float(goal) > 5\""""
    text = TEXT.replace("forbidden: goal == 'fly'", heavy)
    text = text.replace("description: Stay on it.", f"on_unknown: {choice}")
    found = judge_goal(watching(text), 5, "/go/goal", payload("seven"))
    assert (found.action, found.certain, refuses(found)) == (action, False, refused)
    assert found.unknown == ("ground: forbidden is unknown (a text that is no number)",)
    assert refuses(judge_goal(watching(text), 5, "/go/goal", payload("7")))
    assert not refuses(judge_goal(watching(text), 5, "/go/goal", payload("3")))


def test_what_is_not_known_anyway_does_not_speak_against_a_goal() -> None:
    watch = watching(TEXT.replace("hot: {timeout: never, default: false}", "hot: {timeout: 0.1}"))
    assert not refuses(judge_goal(watch, 5, "/go/goal", payload("walk")))
    assert refuses(judge_goal(watch, 5, "/go/goal", payload("fly")))


def test_what_happens_anyway_does_not_speak_against_a_goal() -> None:
    watch = watching()
    watch.accept("names", 500_000_000, {"hot": True})
    found = judge_goal(watch, 5, "/go/goal", payload("walk"))
    assert not found.certain and not refuses(found)


def test_a_stop_that_is_asked_for_lets_no_goal_pass() -> None:
    watch = watching(TEXT.replace("horizon: 1.0", "horizon: 1.0, enter: 1"))
    watch.accept("names", 500_000_000, {"hot": True})
    watch.tick(5)
    found = judge_goal(watch, 6, "/go/goal", payload("walk"))
    assert (found.action, found.certain) == ("COMFORTABLE_STOP", False)
    assert refuses(found)


def test_risk_counts_at_once_and_only_where_the_goal_brings_it() -> None:
    watch = watching(model=risky())
    found = judge_goal(watch, 5, "/go/goal", payload("race"))
    assert (found.property, found.action, found.certain) == ("cool", "COMFORTABLE_STOP", False)
    assert refuses(found) and 0.5 <= found.risk < 1.0
    assert found.reason.startswith("cool: ") and "is at least 0.5" in found.reason
    muted = watching(model=risky())
    muted.mute(["cool"], 60.0)
    assert not refuses(judge_goal(muted, 5, "/go/goal", payload("race")))
    assert refuses(judge_goal(muted, 5, "/go/goal", payload("fly")))
    muted.mute([], 60.0)
    assert not refuses(judge_goal(muted, 5, "/go/goal", payload("fly")))


@pytest.mark.parametrize(
    ("mode", "asked", "refused"),
    [
        ("act", "REPLAN", True),
        ("act", "WARN", True),
        ("act", "ASK", True),
        ("act", "LIMIT_SPEED, speed_limit: 1.0", True),
        ("observe", "REPLAN", False),
    ],
)
def test_certain_violations_are_refused_whatever_is_asked_for(
    mode: str, asked: str, refused: bool
) -> None:
    text = TEXT.replace("mode: act", f"mode: {mode}")
    text = text.replace(
        "(not forbidden), intervention: REPLAN", f"(not forbidden), intervention: {asked}"
    )
    found = judge_goal(watching(text), 5, "/go/goal", payload("fly"))
    assert found.certain and refuses(found) is refused


@pytest.mark.parametrize(
    ("asked", "refused"), [("WARN", False), ("LIMIT_SPEED", False), ("ASK", True)]
)
def test_a_mere_risk_is_for_the_policy(asked: str, refused: bool) -> None:
    text = TEXT.replace("COMFORTABLE_STOP", f"{asked}, speed_limit: 1.0")
    found = judge_goal(watching(text, risky()), 5, "/go/goal", payload("race"))
    assert (found.action, refuses(found)) == (asked, refused)


def test_a_state_that_was_never_seen_is_refused() -> None:
    found = judge_goal(watching(model=risky()), 5, "/go/goal", payload("fly"))
    assert refuses(found)
    text = TEXT.replace("always(not forbidden)", "always(not (forbidden and burns))")
    text = text.replace("eventually[0:0.1](burns)", "eventually[0:9](burns)")
    found = judge_goal(watching(text, risky()), 5, "/go/goal", payload("fly"))
    assert refuses(found) and not found.certain and "never seen" in found.reason


def test_a_goal_that_carries_a_plan_is_judged_by_rules_about_plans(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "{actions: household, rules: {shut: always(not open(safe))}}"
    )
    plan = "  plan: {topic: /go/goal, type: std_msgs/msg/String, value: data, rules: rules.yaml}\n"
    text = TEXT.replace("  hot:", f"{plan}  hot:").replace("goal == 'fly'", "plan != ''")
    (tmp_path / "monitor.yaml").write_text(text)
    watch = LiveSession(
        compile_spec(load_spec(tmp_path / "monitor.yaml")), None, {"/go/goal": STRING}
    )
    refused = judge_goal(watch, 0, "/go/goal", payload("(open door)\n(open safe)"))
    assert refuses(refused)
    assert "plan: shut: broken at step 2, open(safe)" in goal_reason(watch.spec, refused)
    assert not refuses(judge_goal(watch, 0, "/go/goal", payload("(open door)")))
    assert refuses(judge_goal(watch, 0, "/go/goal", payload("please open it")))


def test_what_cannot_be_read_is_an_error() -> None:
    for goal in (b"", payload("fly")[:-3], payload("x" * LARGEST)):
        with pytest.raises(DecodeError):
            judge_goal(watching(), 5, "/go/goal", goal)


def test_decisions_go_through_records_to_the_last_bit() -> None:
    watch = watching(model=risky())
    for goal in ("fly", "race", "walk"):
        found = judge_goal(watch, 5, "/go/goal", payload(goal))
        event = decision("arm", "/go/goal", 5, payload(goal), found)
        back = decode(encode(event))
        assert encode(back) == encode(event)
        assert again(watch, event) == []
        assert event.passes is not refuses(found)
    forged = replace(event, risk=math.nextafter(event.risk, 1.0))
    assert again(watch, forged) == ["what guards.arm decided about a goal"]
    failed = undecided("arm", "/go/goal", 5, b"x" * (LARGEST + 1), "too large", passes=False)
    assert failed.goal == "" and again(watch, failed) == []
    assert encode(decode(encode(failed))) == encode(failed)


GUARDS = """
guards:
  drive: {action: /go, server: /real/go, type: nav2_msgs/action/NavigateToPose}
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("type: std_msgs/msg/String", "type: std_msgs/msg/String"), "signals.goal.type: std_msgs"),
        (("/real/go", "/go"), "guards.drive: action and server are both /go"),
        (("/real/go", "real go"), "guards.drive.server: 'real go'"),
        (("nav2_msgs/action/", "nav2_msgs/msg/"), "guards.drive.type: 'nav2_msgs/msg/Navigate"),
        (("server: /real/go, ", ""), "guards.drive.server: is missing"),
        (("drive: {", "drive: {speed: 1, "), "guards.drive.speed: unknown key"),
        (
            ("  drive:", "  a: {action: /real/go, server: /b, type: a/action/B}\n  drive:"),
            "is guards",
        ),
        (("rate: 10", "clock: steps\nstep: /other"), "would wait for such a step"),
    ],
)
def test_errors_name_file_key_and_value(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    text = (TEXT + GUARDS).replace(*change)
    with pytest.raises(ConfigError) as caught:
        parse_spec(parse_document(text, tmp_path / "monitor.yaml"))
    assert said in str(caught.value) and str(tmp_path) in str(caught.value)


def test_a_goal_has_the_type_of_its_action() -> None:
    text = (TEXT + GUARDS).replace("std_msgs/msg/String", "nav2_msgs/action/NavigateToPose_Goal")
    spec = parse_spec(parse_document(text))
    assert spec.topics["/go/goal"] == spec.guards["drive"].goal_type
