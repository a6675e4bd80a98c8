"""A proposed call of which it is not known whether it breaks a rule is not made by default."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from agent_guard import Guard, GuardedRun
from agent_guard.decisions import Proposal
from forewarn.errors import ConfigErrors
from forewarn.wings.agents.steps import KEPT_OUTPUTS, LONGEST_TEXT

RULES = """
version: 1
clock: steps
mode: act
signals:
  proposed: {{}}
  arguments: {{}}
  argument_names: {{}}
  outputs: {{}}
  task: {{}}
  role: {{}}
  amounts:
    value: "[float(arguments[i]) for i in range(len(arguments)) if argument_names[i] == 'amount']"
predicates:
  bad: {bad}
properties:
  rule: {{formula: always(not bad), horizon: 3, intervention: REPLAN, {options}}}
"""
TOO_MUCH = "proposed == 'pay' and any([a > 100 for a in amounts])"
FOREIGN = "proposed == 'send' and len(taken(arguments, outputs)) > 0"
BOSS = "proposed == 'pay' and role != 'boss'"


def opened(folder: Path, bad: str, options: str = "enter: 2", **given: Any) -> GuardedRun:
    path = folder / "rules.yaml"
    path.write_text(RULES.format(bad=json.dumps(bad), options=options))
    return GuardedRun(Guard.open(path, **given), "r", task="t")


def made(run: GuardedRun, tool: str, **arguments: Any) -> bool:
    return run.before(tool, arguments).call is not None


def test_an_amount_is_a_number_and_what_is_none_is_not_known(tmp_path: Path) -> None:
    for amount in (20, -5, "20", " 99.5 ", 1e1, [1, 2]):
        assert made(opened(tmp_path, TOO_MUCH), "pay", amount=amount), amount
    for amount in (1000, "1000", "1e9", 10**400, [50, 1000], "+101"):
        settled = opened(tmp_path, TOO_MUCH).before("pay", {"amount": amount})
        assert settled.call is None and settled.decision.certain, amount
    for amount in (
        "1,000", "1000 EUR", "\uff11\uff10\uff10", "one", True,
        {"value": 1}, "", math.inf, math.nan,
        "0x3e8", "1_000", "nan", "inf", "²", [1, "x"],
    ):  # fmt: skip
        decision = opened(tmp_path, TOO_MUCH).before("pay", {"amount": amount}).decision
        assert decision.does == "reflect" and not decision.certain and decision.unknown, amount
        assert "not known whether this breaks the rule" in decision.message


def test_what_becomes_of_it_is_a_choice_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for choice, does in (("block", "reflect"), ("ask", "ask"), ("pass", "pass")):
        record = tmp_path / f"{choice}.jsonl"
        run = opened(tmp_path, BOSS, f"on_unknown: {choice}", record=record)
        settled = run.before("pay", {"to": "x"})
        assert settled.decision.does == does
        assert settled.decision.unknown == ("rule: bad is unknown (role has no value)",)
        assert "role has no value" in caplog.text
        caplog.clear()
        if choice == "pass":
            assert settled.call is not None
            assert "role has no value" in json.loads(record.read_text().splitlines()[0])["guard"]
    run = opened(tmp_path, BOSS)
    assert run.guard.decide(
        run.guard.start(), "r", Proposal("pay", {}), {"role": "boss"}
    ).decision.passes
    assert run.before("look", {"to": "x"}).call is not None, "another tool is none of its business"


def test_an_index_past_the_end_and_too_much_work_do_not_pass(tmp_path: Path) -> None:
    assert not made(opened(tmp_path, "arguments[1] == 'x'"), "pay", to="y")
    run = opened(tmp_path, FOREIGN)
    run.before("read", {})
    run.after("x" * 180_000)
    many = {f"to{i}": f"person{i}" for i in range(300)}
    decision = run.before("send", many).decision
    assert decision.does == "reflect" and "50000000 characters" in decision.unknown[0]


def test_what_was_cut_or_left_out_is_not_known(tmp_path: Path) -> None:
    """In an argument, in a result, and in the oldest results of a long run."""
    long, secret = "a " * (LONGEST_TEXT // 2 + 1), "DE77"
    assert not made(opened(tmp_path, "proposed == 'send' and 'x' in arguments"), "send", to=long)
    run = opened(tmp_path, FOREIGN)
    run.before("read", {})
    run.after(long + secret)
    assert not made(run, "send", to=secret)
    for size in (LONGEST_TEXT // 2, LONGEST_TEXT):  # all of it is compared, whatever its length
        run = opened(tmp_path, FOREIGN)
        run.before("read", {})
        run.after("a" * (size - 5) + f" {secret}")
        assert run.before("send", {"to": secret}).decision.certain
        assert made(run, "send", to="another")
    run = opened(tmp_path, FOREIGN)
    for text in (secret, *["b" * LONGEST_TEXT] * (KEPT_OUTPUTS // LONGEST_TEXT)):
        run.before("read", {})
        run.after(text)
    assert not made(run, "send", to=secret)


def test_a_text_compared_with_a_number_is_refused(tmp_path: Path) -> None:
    for bad, wrong in (
        ("arguments[0] > 100", "'arguments[0] > 100'"),
        ("any([a >= 5 for a in arguments])", "'a >= 5'"),
        ("task == 3", "'task == 3'"),
        ("1 < arguments[0] < 9", "'1 < arguments[0] < 9'"),
    ):
        with pytest.raises(
            ConfigErrors, match=r"predicates\.bad.*compares a text with a number"
        ) as e:
            opened(tmp_path, bad)
        assert wrong in str(e.value)
    opened(tmp_path, "len(arguments) > 3 and float(arguments[0]) > 2 and role != 3")
