"""`forewarn validate --tools` finds tools and arguments in rules that no tool has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Result

RULES = """
version: 1
clock: steps
mode: act
signals: {{proposed: {{}}, args: {{}}, past_args: {{}}, calls: {{}}}}
predicates: {{bad: {bad}}}
properties:
  rule: {{formula: always(not bad), horizon: 3, intervention: REPLAN}}
"""
PAY = {
    "type": "object",
    "properties": {
        "amount": {"type": "number"},
        "note": {"type": ["string", "null"]},
        "to": {"type": "object", "properties": {"email": {"type": "string"}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"n": {}}}},
        "more": {"type": "object"},
    },
}
SHAPES = (
    {"tools": [{"name": "pay", "inputSchema": PAY}, {"name": "look"}]},
    [{"name": "pay", "input_schema": PAY}, {"name": "look"}],
    [{"type": "function", "function": {"name": "pay", "parameters": PAY}}, {"name": "look"}],
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("proposed == 'pay' and args.amount > 3", ""),
        ("proposed == 'pay' and args.to.email == 'x' and args.note != 'y'", ""),
        ("args.items[0].n > 1 and args.more.whatever == 2 and number(args.note) > 2", ""),
        ("sum([a.amount for name, a in zip(calls, past_args) if name == 'pay']) > 2", ""),
        ("proposed == 'pya'", "there is no tool 'pya'"),
        ("proposed in ['pay', 'send']", "there is no tool 'send'"),
        ("'payy' in calls", "there is no tool 'payy'"),
        ("sum([a.amount for name, a in zip(calls, past_args) if name == 'py']) > 2", "'py'"),
        ("proposed == 'pay' and args.amont > 3", "no such tool has the argument args.amont"),
        ("proposed == 'pay' and args.to.mail == 'x'", "argument args.to.mail"),
        ("proposed == 'pay' and args['amount'] == 'x'", "compares number with a text"),
        ("proposed == 'pay' and 3 < args.note", "compares null or string with a number"),
    ],
)
def test_names_and_types_are_those_of_the_tools(
    tmp_path: Path, forewarn: Callable[..., Result], bad: str, said: str, shape: Any
) -> None:
    rules, tools = tmp_path / "rules.yaml", tmp_path / "tools.json"
    rules.write_text(RULES.format(bad=json.dumps(bad)))
    tools.write_text(json.dumps(shape))
    done = forewarn("validate", rules, "--tools", tools)
    assert done.code == (2 if said else 0)
    assert not said or ("predicates.bad" in done.text and said in done.text)


@pytest.mark.parametrize("text", ["{", "[3]", '{"tools": [{"title": "x"}]}'])
def test_a_file_that_holds_no_tools_is_an_error(
    tmp_path: Path, forewarn: Callable[..., Result], text: str
) -> None:
    rules, tools = tmp_path / "rules.yaml", tmp_path / "tools.json"
    rules.write_text(RULES.format(bad="proposed == 'x'"))
    tools.write_text(text)
    done = forewarn("validate", rules, "--tools", tools)
    assert done.code == 2 and "tools.json" in done.err and "inputSchema" in done.err
