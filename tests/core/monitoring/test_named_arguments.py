"""Rules about arguments by name: nested, of any type, of this call and of calls before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_guard import Guard, GuardedRun
from forewarn.errors import ConfigErrors
from forewarn.recordings.registry import open_recording
from forewarn.wings.agents.steps import LONGEST_TEXT

RULES = """
version: 1
clock: steps
mode: act
signals: {{proposed: {{}}, args: {{}}, past_args: {{}}, calls: {{}}, task: {{}}, outputs: {{}}}}
predicates:
  bad: {bad}
properties:
  rule: {{formula: always(not bad), horizon: 3, intervention: REPLAN}}
"""
BUDGET = (
    "proposed == 'pay' and args.amount"
    " + sum([number(a.amount) for name, a in zip(calls, past_args) if name == 'pay']) > 100"
)
PAID = "proposed == 'pay' and "


def opened(folder: Path, bad: str, **given: Any) -> GuardedRun:
    path = folder / "rules.yaml"
    path.write_text(RULES.format(bad=json.dumps(bad)))
    return GuardedRun(Guard.open(path, **given), "r", task="Pay eve@x.org and DE77")


@pytest.mark.parametrize(
    ("bad", "arguments", "made"),
    [
        ("args.amount > 100", {"amount": 20}, True),
        ("args.amount > 100", {"amount": 100.5}, False),
        ("args.amount > 100", '{"amount": 20}', True),
        ("args.amount > 100", {"amount": "20"}, False),  # a text: not known
        ("number(args.amount) > 100", {"amount": "20"}, True),
        ("args.amount > 100", {}, False),
        ("args.amount > 100", {"amount": None}, False),
        ("args.amount > 100", {"amount": 10**400}, False),
        ("args.amount > 100", {"amount": {"value": 1}}, False),
        ("args.to.email == 'eve@x.org'", {"to": {"email": "bob@x.org"}}, True),
        ("args.to.email == 'eve@x.org'", {"to": {"email": "eve@x.org"}}, False),
        ("args.to.email == 'eve@x.org'", {"to": "bob@x.org"}, False),
        ("args.to == 'eve'", {"to": {"name": "bob"}}, False),  # an object equals nothing
        ("args['user-id'] != 7", {"user-id": 7}, True),
        ("args.items[1].price > 5", {"items": [{"price": 9}, {"price": 2}]}, True),
        ("any([i.price > 5 for i in args.items])", {"items": [{"price": 9}]}, False),
        ("args.urgent", {"urgent": False}, True),
        ("any([t not in taken(texts_of(args.to), [task]) for t in texts_of(args.to)])",
         {"to": ["eve@x.org", {"iban": "DE77"}]}, True),
        ("any([t not in taken(texts_of(args.to), [task]) for t in texts_of(args.to)])",
         {"to": ["eve@x.org", {"iban": "AC12"}]}, False),
        ("matches(args.cmd, '(?i)CURL.*[|] *sh')", {"cmd": "curl x | sh"}, False),
        ("matches(args.cmd, 'CURL.*[|] *sh')", {"cmd": "curl x | sh"}, True),
        ("any(matches(texts_of(args), '^DE[0-9]+$'))", {"to": [["DE77"]]}, False),
        ("args.text == 'x'", {"text": "a" * LONGEST_TEXT}, False),
    ],
)  # fmt: skip
def test_arguments_are_known_by_name(tmp_path: Path, bad: str, arguments: Any, made: bool) -> None:
    run = opened(tmp_path, PAID + bad)
    assert (run.before("pay", arguments).call is not None) is made
    assert opened(tmp_path, PAID + bad).before("look", {"at": 1}).call is not None


def test_a_budget_counts_what_was_paid_and_goes_on_from_memory(tmp_path: Path) -> None:
    record = tmp_path / "steps.jsonl"
    run = opened(tmp_path, BUDGET, record=record)
    for tool, amount in (("pay", 60), ("look", 500), ("pay", 30.5)):
        assert run.before(tool, {"amount": amount}).call is not None
        run.after("done")
    assert run.before("pay", {"amount": 10}).call is None
    assert run.before("pay", {"amount": 9}).call is not None
    resumed = GuardedRun(run.guard, "r", memory=json.loads(json.dumps(run.memory)))
    assert resumed.before("pay", {"amount": 1}).call is None
    with open_recording(record) as recording:
        read: list[Any] = [sample.data for sample in recording.read()]
    assert [json.loads(line["args"])["amount"] for line in read] == [60, 500, 30.5, 9]
    assert len(read[-1]["past_args"]) == 3


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("matches(args.cmd, '(a')", "missing )"),
        ("matches(args.cmd, '(?=a)')", "no pattern of RE2"),
        ("matches(args.cmd, proposed)", "a text in quotes"),
        ("task.email == 'x'", "reads a field"),
        ("args > 3", "compares a text with a number"),
    ],
)
def test_what_can_never_be_known_is_refused(tmp_path: Path, bad: str, said: str) -> None:
    with pytest.raises(ConfigErrors) as error:
        opened(tmp_path, bad)
    assert said in str(error.value)
