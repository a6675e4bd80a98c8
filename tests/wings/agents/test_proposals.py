"""Calls that are only proposed: judged as their steps are, with a look at what must follow."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, RecordingError
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.monitoring.risk_rows import RiskRow, same_bits
from forewarn.monitoring.session import Session, run
from forewarn.recordings.registry import open_recording
from forewarn.wings.agents.calls import Call, arguments_of, says_failed
from forewarn.wings.agents.proposals import Judge, RuleState
from forewarn.wings.agents.steps import LONGEST_TEXT, Progress, text_of_result

TEXT = """
clock: steps
mode: act
startup_grace: 0
signals:
  task: {}
  calls: {}
  errors: {}
  failed: {}
  outputs: {}
  proposed: {}
  arguments: {}
  last_action: {}
  foreign:
    value: "len([a for a in taken(arguments, outputs) if a not in taken(arguments, [task])])"
predicates:
  pays: proposed == 'pay'
  paid: last_action == 'pay'
  checked: "'check' in calls"
  broken: failed
  strange: foreign > 0
properties:
  no_strange_payee: {formula: always(not (pays and strange)), horizon: 3, intervention: REPLAN}
  checked_first: {formula: always(paid implies checked), horizon: 3}
  soon_whole: {formula: "always(broken implies eventually[0:2](not broken))", horizon: 3}
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))
JUDGE = Judge.of(COMPILED, None)

names = st.sampled_from(["read", "check", "pay", "say"])
texts = st.sampled_from(["", "AC12", "to AC12 now", "Error: no", "fine"])
steps = st.lists(st.tuples(names, texts, texts), max_size=6)


def call(name: str, **arguments: object) -> Call:
    return Call(name, arguments_of(arguments), "", False)


def live(made: list[tuple[str, str, str]], judge: Judge = JUDGE, task: str = "Pay") -> list[Any]:
    """Judge the calls of a run, all of which are made; return rows and where they stood."""
    standing = judge.start()
    standing = standing._replace(progress=standing.progress.with_user_message(task))
    rows = []
    for name, argument, result in made:
        found = judge.judge(standing, "0", call(name, to=argument))
        rows.append(found.rows)
        progress = found.after.progress.answered(result, says_failed(result))
        standing = found.after._replace(progress=progress)
    rows.append(judge.close(standing, "0").rows)
    return rows


def from_file(path: Path, compiled: CompiledSpec = COMPILED) -> list[Any]:
    from forewarn.monitoring.live_session import LiveSession

    watch = LiveSession(compiled, None, {})
    with open_recording(path) as recording:
        found = []
        for step, sample in enumerate(recording.read()):
            watch.accept(sample.topic, sample.time_ns, sample.data)
            found.append(watch.tick(step).rows)
    return found


def alike(one: list[Any], other: list[Any]) -> bool:
    pairs = zip(itertools.chain(*one), itertools.chain(*other), strict=True)
    return all(same_bits(tuple(a), tuple(b)) for a, b in pairs)


@settings(max_examples=examples(40))
@given(steps)
def test_a_run_is_judged_live_as_it_is_from_a_file(made: list[tuple[str, str, str]]) -> None:
    import tempfile

    chat: list[dict[str, Any]] = [{"role": "user", "content": "Pay"}]
    for number, (name, argument, result) in enumerate(made):
        function = {"name": name, "arguments": json.dumps({"to": argument})}
        made_call = {"id": str(number), "function": function}
        chat.append({"role": "assistant", "content": None, "tool_calls": [made_call]})
        chat.append({"role": "tool", "tool_call_id": str(number), "content": result})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.json"
        none = {"traj": [*chat[:1], {"role": "assistant", "tool_calls": []}]}
        other = {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "read"}}]}
        runs = [{"traj": chat} if made else none, {"traj": [other]}]
        path.write_text("\n".join(map(json.dumps, runs)))
        rows = from_file(path)[: len(made) + 1]
    assert alike(rows, live(made))


def cleared(standing: RuleState) -> RuleState:
    """Forget breaches that have not cleared, so that the next violation counts in any case."""
    state = standing.memory.state
    properties = tuple(prop._replace(breach=None) for prop in state.properties)
    memory = standing.memory._replace(state=state._replace(properties=properties))
    return standing._replace(memory=memory)


def follows(standing: RuleState, name: str) -> list[RiskRow]:
    """Return the rows of all steps that may follow a call, over all that it may return."""
    found = []
    for result, following in itertools.product(["fine", "Error: no"], ["read", "check", "pay"]):
        progress = standing.progress.answered(result, says_failed(result))
        after = standing._replace(progress=progress)
        found.append(JUDGE.judge(after, "0", call(following, to="x")).rows)
    return [list(rows) for rows in found]  # type: ignore[misc]


@given(steps, names)
def test_a_violation_is_certain_if_it_follows_whatever_the_call_returns(
    made: list[tuple[str, str, str]], name: str
) -> None:
    standing = JUDGE.start()
    for done, argument, result in made:
        found = JUDGE.judge(standing, "0", call(done, to=argument))
        progress = found.after.progress.answered(result, says_failed(result))
        standing = found.after._replace(progress=progress)
    standing = cleared(standing)
    found = JUDGE.judge(standing, "0", call(name, to="x"))
    before = [row.violations for row in JUDGE.judge(standing, "0", call(name, to="x")).rows]
    past = list(standing.memory.violations)
    names_of = [row.property for row in found.rows]
    now = any(
        b > p and rule not in standing.owed
        for rule, b, p in zip(names_of, before, past, strict=True)
    )
    later = [
        all(rows[i].violations > before[i] for rows in follows(cleared(found.after), name))  # type: ignore[index]
        for i in range(len(before))
    ]
    assert found.certain == (now or any(later))


def test_what_a_call_breaks_afterwards_is_told_before_it_is_made() -> None:
    found = JUDGE.judge(JUDGE.start(), "0", call("pay", to="DE77"))
    assert (found.certain, found.property, found.active) == (True, "checked_first", True)
    assert found.reason == "checked_first: this call breaks the rule, whatever it returns"
    checked = JUDGE.judge(JUDGE.start(), "0", call("check")).after
    assert not JUDGE.judge(checked, "0", call("pay", to="DE77")).certain


def test_what_an_earlier_call_has_broken_is_not_put_down_to_the_next_one() -> None:
    paid = JUDGE.judge(JUDGE.start(), "0", call("pay", to="DE77")).after  # somebody allowed it
    assert paid.owed == ("checked_first",)
    following = JUDGE.judge(paid, "0", call("read"))
    assert not following.certain
    assert [row.violations for row in following.rows] == [0, 1, 0]


def test_a_certain_violation_is_no_matter_of_thresholds() -> None:
    # The default is to wait for a second moment above the threshold.
    assert COMPILED.spec.properties["no_strange_payee"].enter == 2
    standing = JUDGE.start()
    progress = standing.progress.made("read").answered("to AC12 now", False)
    found = JUDGE.judge(standing._replace(progress=progress), "0", call("pay", to="AC12"))
    assert (found.action, found.property, found.risk) == ("COMFORTABLE_STOP", "checked_first", 1.0)
    assert set(found.properties) == {"checked_first", "no_strange_payee"}


def test_a_warning_is_not_enough_where_a_violation_is_certain() -> None:
    text = TEXT.replace("intervention: REPLAN", "intervention: WARN")
    judge = Judge.of(compile_spec(parse_spec(parse_document(text))), None)
    standing = judge.judge(judge.start(), "0", call("check")).after
    progress = standing.progress.answered("to AC12 now", False)
    found = judge.judge(standing._replace(progress=progress), "0", call("pay", to="AC12"))
    assert (found.action, found.active, found.certain) == ("REPLAN", True, True)


def test_who_only_observes_asks_for_nothing() -> None:
    text = TEXT.replace("mode: act", "mode: observe")
    judge = Judge.of(compile_spec(parse_spec(parse_document(text))), None)
    found = judge.judge(judge.start(), "0", call("pay", to="DE77"))
    assert (found.certain, found.active, found.property) == (True, False, "checked_first")


def test_judging_changes_nothing() -> None:
    standing = JUDGE.start()
    before = JUDGE.dump(standing)
    first = JUDGE.judge(standing, "0", call("pay", to="x"))
    again = JUDGE.judge(standing, "0", call("pay", to="x"))
    assert alike([first.rows], [again.rows])
    assert JUDGE.dump(standing) == before
    assert JUDGE.dump(first.after) == JUDGE.dump(again.after)


@settings(max_examples=examples(25))
@given(steps)
def test_what_is_remembered_goes_through_json_at_every_step(
    made: list[tuple[str, str, str]],
) -> None:
    whole, standing = live(made, task=""), JUDGE.start()
    for number, (name, argument, result) in enumerate(made):
        standing = JUDGE.load(json.loads(json.dumps(JUDGE.dump(standing))))
        found = JUDGE.judge(standing, "0", call(name, to=argument))
        assert alike([found.rows], [whole[number]])
        progress = found.after.progress.answered(result, says_failed(result))
        standing = found.after._replace(progress=progress)


def test_what_belongs_to_other_rules_or_is_damaged_is_refused() -> None:
    data = JUDGE.dump(JUDGE.start())
    other = Judge.of(compile_spec(parse_spec(parse_document(TEXT.replace("0:2", "0:3")))), None)
    with pytest.raises(RecordingError, match="other rules"):
        other.load(data)
    for damaged in ({}, {**data, "known": [1]}, {**data, "memory": [[], 1, 2, 3]}):
        with pytest.raises(RecordingError):
            JUDGE.load({"key": JUDGE.key, **damaged} if damaged else damaged)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("clock: steps", "rate: 10", "clock: ticks: a guard's steps are calls"),
        (
            "errors: {}",
            "errors: {topic: /e, type: std_msgs/Float64, value: data}",
            "signals.errors",
        ),
        ("intervention: REPLAN", "intervention: PULL_OVER", "no agent can do it"),
        (
            "intervention: REPLAN",
            "intervention: LIMIT_SPEED, speed_limit: 1.0",
            r"properties.no_strange_payee.intervention: LIMIT_SPEED.*accepted: WARN, ASK, REPLACE",
        ),
    ],
)
def test_a_monitor_file_for_robots_is_refused(before: str, after: str, message: str) -> None:
    text = TEXT.replace(before, after)
    if "topic" in after:
        text = text.replace("clock: steps", "clock: steps\nstep: /e")
    with pytest.raises(ConfigError, match=message):
        Judge.of(compile_spec(parse_spec(parse_document(text))), None)


def test_signals_of_ones_own_are_known_where_they_are_told() -> None:
    text = TEXT.replace("errors: {}", "errors: {}\n  trusted: {}").replace(
        "strange: foreign > 0", "strange: foreign > 0 and not trusted"
    )
    judge = Judge.of(compile_spec(parse_spec(parse_document(text))), None)
    standing = judge.judge(judge.start(), "0", call("check"), {"trusted": True}).after
    standing = standing._replace(progress=standing.progress.answered("to AC12 now", False))
    pay = call("pay", to="AC12")
    assert judge.judge(standing, "0", pay, {"trusted": False}).certain
    assert not judge.judge(standing, "0", pay, {"trusted": True}).certain
    assert not judge.judge(standing, "0", pay).certain  # unknown: possible, not certain


def test_what_a_tool_returns_is_cut_before_anybody_looks_at_it() -> None:
    assert len(text_of_result("x" * 50_000_000)) == LONGEST_TEXT + 1
    assert len(text_of_result(["x" * 1000] * 100_000)) == LONGEST_TEXT + 1
    assert text_of_result({"a": [1, None, "é"]}) == "a\n1\né"
    assert text_of_result(None) == ""
    endless: list[Any] = []
    endless.append(endless)
    assert text_of_result(endless) == ""
    assert text_of_result({1: Path("x")}) == "1\nx"
    kept = Progress().made("read").answered("y" * 50_000_000, False)
    assert kept.outputs == (None,), "its end may say anything"


def test_replay_of_the_lines_of_a_guard_gives_the_same_bits(tmp_path: Path) -> None:
    made = [("read", "", "to AC12 now"), ("check", "", "Error: no"), ("pay", "AC12", "fine")]
    standing, rows, path = JUDGE.start(), [], tmp_path / "steps.jsonl"
    with path.open("w") as file:
        for name, argument, result in made:
            found = JUDGE.judge(standing, "thread", call(name, to=argument))
            rows.append(found.rows)
            file.write(json.dumps(found.values) + "\n")
            progress = found.after.progress.answered(result, says_failed(result))
            standing = found.after._replace(progress=progress)
        last = JUDGE.close(standing, "thread")
        file.write(json.dumps(last.values) + "\n")
    assert alike(from_file(path), [*rows, last.rows])
    with open_recording(path) as recording:
        session = Session(JUDGE.monitor, {})
        verdicts = list(run(session, recording.read(), recording.start_ns, recording.end_ns))
    assert len(verdicts) == 4


@given(steps)
def test_a_run_that_is_taken_up_again_remembers_what_it_must(made: list[Any]) -> None:
    text = TEXT.replace(
        "predicates:\n", "predicates:\n  insists: previous(proposed) == 'pay' and pays\n"
    )
    text = text.replace("  pays: proposed == 'pay'\n", "").replace(
        "predicates:\n", "predicates:\n  pays: proposed == 'pay'\n"
    )
    text += "  once: {formula: always(not insists), horizon: 3}\n"
    judge = Judge.of(compile_spec(parse_spec(parse_document(text))), None)
    standing = judge.start()
    names = [name for name, _, _ in made]
    for i, (name, argument, result) in enumerate(made):
        standing = judge.load(json.loads(json.dumps(judge.dump(standing))))
        found = judge.judge(standing, "0", call(name, to=argument))
        progress = found.after.progress.answered(result, says_failed(result))
        standing = found.after._replace(progress=progress)
        [row] = [row for row in found.rows if row.property == "once"]
        twice = i > 0 and names[i - 1 : i + 1] == ["pay", "pay"]
        assert ("insists" in row.state.split(" & ")) == twice


@pytest.mark.parametrize("paid", ["last_action == 'pay' and failed", "failed and pays"])
@given(made=steps)
@settings(max_examples=examples(40))
def test_what_follows_a_call_is_the_same_where_nothing_known_decides(
    paid: str, made: list[tuple[str, str, str]]
) -> None:
    text = TEXT.replace("last_action == 'pay'", paid).replace("\"'check' in calls\"", "foreign > 0")
    compiled = compile_spec(parse_spec(parse_document(text)))
    judge, thorough = Judge.of(compiled, None), Judge.of(compiled, None)
    thorough.__dict__["_ahead"] = frozenset({"calls", "last_action"})
    assert judge._ahead == (thorough._ahead if "last_action" in paid else frozenset())
    assert alike(live(made, judge), live(made, thorough))
