"""A rule gives the same verdict in whatever shape a tool's result or the user's words come."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from rules import written

from agent_guard import Guard, GuardedRun
from forewarn.recordings.registry import open_recording
from forewarn.wings.agents.texts import leaves, says_failed, text_of


@dataclasses.dataclass
class Page:
    body: Any


class Bill(BaseModel):
    body: Any


SHAPES: dict[str, Callable[[Any], Any]] = {
    "text": lambda v: v,
    "dict": lambda v: {"body": v},
    "key": lambda v: {v: 1} if isinstance(v, str) else {"body": v},
    "list": lambda v: [v],
    "tuple": lambda v: ("page", v),
    "OpenAI": lambda v: [{"type": "output_text", "text": v, "annotations": []}],
    "Anthropic": lambda v: [{"type": "tool_result", "tool_use_id": "t", "content": v}],
    "LangChain": lambda v: [
        {"type": "text", "text": v, "id": "lc_1"},
        {"type": "image", "url": "x"},
    ],
    "MCP": lambda v: {"content": [{"type": "text", "text": v}], "isError": False},
    "JSON": json.dumps,
    "JSON in small": lambda v: json.dumps(v, ensure_ascii=False),
    "JSON in text": lambda v: f"It says: {json.dumps(v)} and no more",
    "key twice": lambda v: f'{{"body": {json.dumps(v)}, "body": "nothing"}}',
    "fenced": lambda v: f"```json\n{json.dumps({'body': v})}\n```",
    "cut": lambda v: json.dumps({"body": [v, "more"]})[:-9],
    "bytes": lambda v: v.encode() if isinstance(v, str) else v,
    "dataclass": Page,
    "pydantic": Bill,
}
"""Each can be put into another; JSON of what is no plain data is left to its text."""


def shaped(text: str, names: list[str]) -> Any:
    value: Any = text
    for name in names:
        try:
            value = SHAPES[name](value)
        except TypeError:  # JSON has no such object
            value = SHAPES["list"](value)
    return value


texts = st.sampled_from(
    ["Bill of May\nAC1234\nThank you", "to:\tAC1234", "ä AC1234", 'to "AC1234"', "a\\AC1234\r\n",
     "\\AC1234"]
)  # fmt: skip
nests = st.lists(st.sampled_from(sorted(SHAPES)), max_size=4)


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    return Guard.open(written(tmp_path_factory.mktemp("rules")), timeout=None)


@settings(deadline=None, max_examples=examples(150))
@given(texts, nests)
def test_a_result_is_judged_alike_in_any_shape(guard: Guard, text: str, nest: list[str]) -> None:
    run = GuardedRun(guard, "r", "Pay 20 to DE77")
    run.before("read_file", {})
    run.after(shaped(text, nest))
    assert run.before("send_money", {"to": "AC1234"}).decision.rule == "no_foreign_payee"
    # What the user says in any shape is said.
    run.add_user_message({"said": shaped(text, nest)})
    assert run.before("send_money", {"to": "AC1234"}).call is not None
    assert run.before("send_money", {"to": "DE77"}).call is not None


FLAT = sorted(SHAPES.keys() - {"key", "tuple", "JSON in text", "fenced", "cut"})


@settings(deadline=None, max_examples=examples(150))
@given(st.booleans(), st.lists(st.sampled_from(FLAT), max_size=4))
@example(True, ["JSON", "bytes"])
def test_a_failure_is_read_alike_in_any_shape(failed: bool, nest: list[str]) -> None:
    text = " Error: no such file" if failed else "no such error"
    assert says_failed(shaped(text, nest)) is failed


def test_objects_and_blocks_say_that_they_failed() -> None:
    for found, failed in (
        ({"error": "x"}, True), ({"error": None, "a": "b"}, False), ('{"error": 0}', False),
        ('{"success": false}', True), ({"success": True}, False), ({"status": "error"}, True),
        ([{"type": "tool_result", "is_error": True, "content": "x"}], True),
        ({"content": [{"type": "text", "text": "x"}], "isError": True}, True),
        ([{"type": "image", "base64": ""}, {"type": "text", "text": "error"}], True), (None, False),
    ):  # fmt: skip
        assert says_failed(found) is failed, found


def test_no_value_is_left_out_and_nothing_ends_in_an_error() -> None:
    assert text_of({"type": "text", "text": "a", "id": "AC1"}) == "a\nAC1"
    assert text_of({"type": "AC1", "text": "a"}) == "type\nAC1\ntext\na"
    assert (
        text_of('{"a": "x", "a": 1.50, "b": [true, null, 1e999]}')
        == "a\nx\na\n1.50\nb\ntrue\n1e999"
    )
    assert text_of(json.dumps("\U0001f600")) == "\U0001f600"
    deep: Any = "end"
    for _ in range(20_000):
        deep = [deep]
    assert list(leaves(deep)) == ["end"]
    deep.append(deep)
    assert list(leaves(deep)) == ["end"]
    assert text_of("[" * 100_000, 10) == "[" * 11


def test_an_argument_that_is_a_whole_json_text_is_found_in_the_result_it_came_from(
    guard: Guard,
) -> None:
    for result in ('{"pay": "to AC1234"}', '{"pay":\n"to\\nAC1234"}'):
        run = GuardedRun(guard, "r", "Pay 20 to DE77")
        run.before("read_file", {})
        run.after(result)
        found = run.before("send_money", {"to": result})
        assert found.decision.rule == "no_foreign_payee"


@settings(deadline=None, max_examples=examples(40))
@given(texts, nests)
def test_a_stored_result_is_what_the_guard_saw(
    tmp_path_factory: pytest.TempPathFactory, guard: Guard, text: str, nest: list[str]
) -> None:
    nest = [name for name in nest if name not in ("bytes", "dataclass", "pydantic")]
    result = shaped(text, nest)
    calls = [{"id": "1", "function": {"name": "read_file", "arguments": "{}"}}]
    chat = [
        {"role": "user", "content": [{"type": "text", "text": "Pay\nDE77"}]},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": result},
    ]
    path = Path(tmp_path_factory.mktemp("stored")) / "x.jsonl"
    path.write_text(json.dumps({"messages": chat}))
    with open_recording(path) as recording:
        last: Any = [sample.data for sample in recording.read()][-1]
    run = GuardedRun(guard, "r", "Pay\nDE77")
    run.before("read_file", {})
    run.after(json.loads(json.dumps(result)))
    known = run.memory["standing"]["known"]
    assert (last["task"], last["outputs"], last["failed"]) == (known[1], known[4], known[6])
