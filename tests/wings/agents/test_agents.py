"""Runs of agents: every structure is told by itself, and its calls become steps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import others_data
import pytest
from extent import sampled

from forewarn.errors import RecordingError
from forewarn.recordings.registry import find_recordings, open_recording
from forewarn.wings.agents import calls as agent_calls
from forewarn.wings.agents import runs as agents
from forewarn.wings.agents.calls import MOST_CALLS, TAKEN
from forewarn.wings.agents.steps import KEPT_OUTPUTS, LONGEST_TEXT

ROOT = Path(__file__).parents[3]
DATA = others_data.DATA / "agents"

OBJECTS = {
    "suite": "shop",
    "task": "Pay the bill",
    "attack_succeeded": False,
    "steps": [
        {"action": "read", "args": {"file": "bill.txt"}, "observation": "to AB12", "error": None},
        {"action": "pay", "args": {"to": {"account": "AB12"}, "n": [4, 5]}, "error": "no money"},
        {"action": "say", "args": {}},
    ],
}
AS_TEXT = {
    "case": 3,
    "task": "Pay the bill",
    "steps": [
        {"action": "read", "args": '{"file": "bill.txt"}', "observation": "to AB12"},
        {"action": "say", "args": "{'no': json", "observation": ""},
    ],
    "tool_call_risk": 2,
}
CHAT = {
    "task_id": 7,
    "reward": 1.0,
    "info": {"task": {"instruction": "You are Mia"}, "source": "user"},
    "traj": [
        {"role": "system", "content": "Policy"},
        {"role": "user", "content": "Pay the bill"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "function": {"name": "read", "arguments": '{"file": "bill.txt"}'}},
                {"id": "b", "function": {"name": "find", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "Error: nothing"},
        {"role": "tool", "tool_call_id": "a", "content": "to AB12"},
        {"role": "user", "content": "Thanks"},
    ],
}
COMMANDS = {
    "input": {"scene_name": "Kitchen", "instruction": "Open the cabinet", "step": ["find", "open"]},
    "intermediate_steps": [
        {
            "action": {"tool": "controller", "input": "find cabinet"},
            "observation": {"action": "find cabinet", "success": True, "errorMessage": ""},
        },
        {
            "action": {"tool": "controller", "input": "open cabinet"},
            "observation": {"action": "open cabinet", "success": False, "errorMessage": "stuck"},
        },
    ],
    "output": "It is open.",
    "eval": [1.0, 0.5],
}
DRIVEN = {
    "instruction": "Open the cabinet",
    "traj": [{"action": "find Cabinet", "success": False, "message": "", "errorMessage": "far"}],
}


def write(path: Path, *runs: object, listed: bool = False) -> Path:
    text = json.dumps(list(runs)) if listed else "".join(json.dumps(run) + "\n" for run in runs)
    packed = gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode()
    path.write_bytes(packed)
    return path


def steps(path: Path) -> list[dict[str, Any]]:
    with open_recording(path) as recording:
        return [dict(sample.data) for sample in recording.read()]


def test_calls_with_objects_as_arguments(tmp_path: Path) -> None:
    first, second, third, last = steps(write(tmp_path / "x.jsonl", OBJECTS))
    assert first == {
        "run": 0, "step": 0, "task": "Pay the bill", "calls": [], "last_action": "",
        "observation": "", "inputs": [["bill.txt"]], "outputs": [], "errors": 0, "failed": False,
        "action": "read", "proposed": "read", "args": '{"file":"bill.txt"}', "past_args": [],
        "arguments": ["bill.txt"], "argument_names": ["file"],
    }  # fmt: skip
    assert first.keys() == TAKEN - {"t", "t_ns"}
    assert second["outputs"] == ["to AB12"] and second["last_action"] == "read"
    assert second["arguments"] == ['{"account": "AB12"}', "AB12", "4", "5"]
    assert second["argument_names"] == ["to", "to.account", "n", "n"]
    assert second["args"] == '{"to":{"account":"AB12"},"n":[4,5]}'
    assert last["past_args"] == [first["args"], second["args"], "{}"] and last["args"] == "{}"
    assert (third["errors"], third["failed"], third["observation"]) == (1, True, "no money")
    assert last["calls"] == ["read", "pay", "say"] and last["action"] is None
    assert last["inputs"] == [["bill.txt"], ['{"account": "AB12"}', "AB12", "4", "5"], []]
    assert last["attack_succeeded"] is False and last["suite"] == "shop"


def test_labels_are_known_after_the_last_call_only(tmp_path: Path) -> None:
    for run, names in (
        (OBJECTS, {"suite", "attack_succeeded"}),
        (AS_TEXT, {"case", "tool_call_risk"}),
        (CHAT, {"task_id", "reward", "info_task_instruction", "info_source"}),
        (COMMANDS, {"input_scene_name", "input_instruction", "input_step", "output", "eval"}),
    ):
        *before, last = steps(write(tmp_path / "x.jsonl", run))
        assert all(not names & line.keys() for line in before)
        assert names <= last.keys()


def test_arguments_as_text(tmp_path: Path) -> None:
    first, second, last = steps(write(tmp_path / "x.jsonl", AS_TEXT))
    assert (first["arguments"], first["argument_names"]) == (["bill.txt"], ["file"])
    assert (second["arguments"], second["argument_names"]) == (["{'no': json"], ["input"])
    assert last["tool_call_risk"] == 2


def test_chats_in_one_list(tmp_path: Path) -> None:
    first, second, last = steps(write(tmp_path / "x.json.gz", CHAT, listed=True))
    assert (first["action"], first["task"], first["arguments"]) == (
        "read", "Pay the bill", ["bill.txt"],
    )  # fmt: skip
    assert (second["action"], second["observation"], second["failed"]) == ("find", "to AB12", False)
    assert (last["errors"], last["task"], last["reward"]) == (1, "Pay the bill\nThanks", 1.0)


def test_an_answer_belongs_to_the_last_call_with_its_id(tmp_path: Path) -> None:
    def turn(name: str, *answers: str) -> list[dict[str, Any]]:
        call = {"id": "call_0", "function": {"name": name, "arguments": "{}"}}
        return [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            *({"role": "tool", "tool_call_id": "call_0", "content": said} for said in answers),
        ]

    chat = [*turn("read", "to AB12"), *turn("ask"), *turn("find", "Error: nothing", "try again")]
    *_, last = steps(write(tmp_path / "x.jsonl", {"messages": chat}))
    assert last["outputs"] == ["to AB12", "", "Error: nothing\ntry again"]
    assert (last["errors"], last["calls"]) == (1, ["read", "ask", "find"])


def test_commands_of_one_controller(tmp_path: Path) -> None:
    first, second, last = steps(write(tmp_path / "x.jsonl", COMMANDS))
    assert (first["action"], first["arguments"]) == ("find", ["cabinet"])
    assert (second["action"], second["task"]) == ("open", "Open the cabinet")
    assert (last["errors"], last["eval"]) == (1, [1.0, 0.5])
    first, last = steps(write(tmp_path / "y.jsonl", DRIVEN))
    assert (first["action"], first["arguments"]) == ("find", ["Cabinet"])
    assert (last["failed"], last["observation"]) == (True, "far")


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x", "x.json", "x.json.gz"])
def test_the_name_of_the_file_does_not_matter_and_each_run_is_one(
    name: str, tmp_path: Path
) -> None:
    for listed in (False, True):
        path = write(tmp_path / name, OBJECTS, {**OBJECTS, "steps": []}, AS_TEXT, listed=listed)
        runs = find_recordings(path, "thread")
        assert [run.name for run in runs] == [f"{name}::run={number}" for number in range(3)]
        assert [len(steps(run)) for run in runs] == [4, 1, 3]
        assert find_recordings(tmp_path, "run") == runs


@pytest.mark.parametrize(
    ("damaged", "where", "said"),
    [
        ({"task": "x", "steps": [{"action": 5, "args": {}}]}, "steps[0].action", "5"),
        ({"task": "x", "steps": [OBJECTS["steps"][0], 8]}, "steps[1]", "8 is no call"),
        ({"task": "x"}, "task", "has no list of calls"),
        ({**CHAT, "traj": [{"role": "assistant", "content": "", "tool_calls": [{}]}]},
         "traj[0].tool_calls[0]", "names no tool"),
        ({"task": "x", "steps": [OBJECTS["steps"][0]] * (MOST_CALLS + 1)}, "steps", "1001 calls"),
        ({**OBJECTS, "n": 10**400}, "n", "too large"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_named(
    damaged: dict[str, Any], where: str, said: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.jsonl", OBJECTS, damaged)
    with pytest.raises(RecordingError) as caught:
        open_recording(path)
    assert all(text in str(caught.value) for text in (f"{path}:2", where, said, "accepted"))


@pytest.mark.parametrize("depth", [200, 900, 960, 980, 5_000, 100_000])
def test_deep_nesting_is_an_error_or_read(depth: int, tmp_path: Path) -> None:
    run = json.dumps({**OBJECTS, "deep": 0, "steps": [{"action": "a", "args": "deeper"}]})
    for place in ('"deep": 0', '"args": "deeper"'):
        deep = place.split(":")[0] + ": " + '{"a":' * depth + "1" + "}" * depth
        path = tmp_path / "x.jsonl"
        path.write_text(f"{json.dumps(OBJECTS)}\n{run.replace(place, deep)}\n")
        try:
            assert len(steps(path)) == 6
        except RecordingError as error:
            assert "nested too deeply" in str(error)


def test_without_any_action_there_is_nothing_to_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", {"task": "x", "steps": []}, {"task": "y", "steps": []})
    with pytest.raises(RecordingError, match="no run has an action"):
        open_recording(path)


HALF = LONGEST_TEXT // 2


def test_long_texts_are_unknown_and_told(tmp_path: Path) -> None:
    call = {"action": "read", "args": {"text": "a" * HALF}, "observation": "b" * HALF}
    long = {"action": "read", "args": {"text": "a" * (LONGEST_TEXT + 1)}, "observation": "b"}
    path = write(tmp_path / "x.jsonl", {"task": "x", "steps": [*[long] * 11, *[call] * 20]})
    with open_recording(path) as recording:
        last = list(recording.read())[-1].data
        assert (
            f"run 0, step 0: arguments has more than {LONGEST_TEXT} characters: it is unknown"
            in (recording.warnings[0])
        )
        assert "more than 10 texts are too long" in recording.warnings[-1]
        assert len(recording.warnings) == 11
    outputs: list[str] = last["outputs"]  # type: ignore[call-overload, index]
    inputs: list[list[str]] = last["inputs"]  # type: ignore[call-overload, index]
    # Each stays beside the other, by the number of its call; what is forgotten is unknown.
    kept = KEPT_OUTPUTS // HALF
    assert outputs == [None] * (31 - kept) + ["b" * HALF] * kept
    assert inputs == [[None]] * 11 + [None] * (20 - kept) + [["a" * HALF]] * kept


def test_a_file_that_is_cut_keeps_its_whole_runs(tmp_path: Path) -> None:
    for listed in (False, True):
        path = write(tmp_path / "x.json", OBJECTS, AS_TEXT, listed=listed)
        path.write_bytes(path.read_bytes()[:-30])
        with open_recording(path) as recording:
            assert recording.count == 4
            assert "cut short" in recording.warnings[0]


def test_lines_with_lists_of_numbers_stay_traces(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", {"steps": [1, 2], "action": "go"}, {"steps": [3]})
    assert [line["steps"] for line in steps(path)] == [[1, 2], [3]]


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a published file as they stand in it, without our reader."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    found = json.loads(text) if text.startswith("[") else list(map(json.loads, text.splitlines()))
    return found  # type: ignore[no-any-return]


@pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data/agents beside the repository")
def test_real_runs_of_four_structures_are_read_whole() -> None:
    for folder in sorted(DATA.iterdir()):
        paths = sampled(sorted(folder.iterdir()))
        runs = [run for path in paths for run in find_recordings(path, "run")]
        lines = [line for run in runs for line in steps(run)]
        assert len({line["action"] for line in lines}) > 5
        assert sum(line["action"] is None for line in lines) == len(runs)
        records = [record for path in paths for record in records_of(path)]
        assert len(runs) == len(records)
        if folder.name == "tau_bench":
            told = [part for record in records for part in record["traj"] if part["role"] == "tool"]
            assert len(lines) - len(runs) == len(told), "as many calls as messages of the tools"
        if folder.name in ("agentdojo", "toolemu"):
            assert len(lines) - len(runs) == sum(len(record["steps"]) for record in records)


def test_the_first_run_is_looked_at_once_on_the_way_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []

    def key_of_calls(record: dict[str, Any]) -> str | None:
        looked.append(record)
        return agent_calls.key_of_calls(record)

    monkeypatch.setattr(agents, "key_of_calls", key_of_calls)
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([OBJECTS, AS_TEXT]))
    runs = find_recordings(path, "run")
    assert [open_recording(run).count for run in runs] == [4, 3]
    assert looked == [OBJECTS]


PAY = {"to": "AC1234"}
ASK = {"role": "user", "content": "Pay DE77"}


def said(role: str, content: object = None, **rest: object) -> dict[str, Any]:
    return {"role": role, "content": content, **rest}


def called(**rest: object) -> dict[str, Any]:
    return said("assistant", tool_calls=[{"id": "c", **rest}])


ANSWERED = said("tool", [{"type": "text", "text": "sent"}], tool_call_id="c")
USE = {"type": "tool_use", "id": "c", "name": "pay", "input": PAY}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "sent"}
OPENAI = [ASK, called(function={"name": "pay", "arguments": json.dumps(PAY)}), ANSWERED]
CHATS: dict[str, dict[str, Any]] = {
    "OpenAI": {"messages": OPENAI},
    "OpenAI's function_call": {
        "messages": [
            ASK, said("assistant", function_call={"name": "pay", "arguments": json.dumps(PAY)}),
            said("function", "sent", name="pay"),
        ]
    },
    "OpenAI's Responses": {
        "input": [
            ASK, {"type": "function_call", "call_id": "c", "id": "f", "name": "pay",
                  "arguments": json.dumps(PAY)},
            {"type": "function_call_output", "call_id": "c", "output": "sent"},
        ]
    },
    "Anthropic": {"messages": [ASK, said("assistant", [USE]), said("user", [RESULT])]},
    "LangChain": {
        "messages": [
            {"type": "human", "content": "Pay DE77"},
            {"type": "ai", "content": [USE],
             "tool_calls": [{"id": "c", "name": "pay", "args": PAY}]},
            {"type": "tool", "data": {"content": "sent", "tool_call_id": "c"}},
        ]
    },
    "Inspect": {
        "input": [ASK],
        "messages": [
            said("system", "Be kind"), ASK,
            called(function="pay", arguments=PAY, type="function"),
            said("tool", "sent", tool_call_id="c", function="pay"),
        ],
    },
    "without ids": {
        "messages": [
            ASK, said("assistant", tool_calls=[{"function": {"name": "pay", "arguments": PAY}}]),
            said("tool", "sent"),
        ]
    },
    "mixed": {"steps": [ASK, {"action": "pay", "args": PAY, "observation": "sent"}]},
    "the longer list": {"messages": [ASK], "traj": OPENAI, "extra": [said("assistant", "hi")]},
}  # fmt: skip


def test_chats_of_all_makers_are_read_alike(tmp_path: Path) -> None:
    for name, record in CHATS.items():
        first, last = steps(write(tmp_path / "x.jsonl", record))
        assert (first["task"], first["proposed"], first["arguments"]) == (
            "Pay DE77", "pay", ["AC1234"],
        ), name  # fmt: skip
        assert (last["task"], last["outputs"], last["errors"]) == ("Pay DE77", ["sent"], 0), name


def test_failures_of_chats_are_read_in_whatever_way_they_are_told(tmp_path: Path) -> None:
    use = said("assistant", [USE])
    for answer in (
        said("tool", [{"type": "text", "text": "Error: no"}], tool_call_id="c"),
        said("tool", "no", tool_call_id="c", error={"type": "timeout", "message": "no"}),
        said("tool", "no", tool_call_id="c", status="error"),
        said("user", [{**RESULT, "is_error": True}]),
    ):
        *_, last = steps(write(tmp_path / "x.jsonl", {"messages": [ASK, use, answer]}))
        assert (last["errors"], last["task"]) == (1, "Pay DE77")


def test_a_message_that_is_not_understood_is_named(tmp_path: Path) -> None:
    for message, where, why in (
        (said("critic", "no"), "messages[3].role", "'critic' is no role"),
        (said("tool", "x", tool_call_id="other"), "messages[3]", "the id 'other'"),
        (said("tool", "x"), "messages[3]", "no id"),
        (said("assistant", function_call={"arguments": "{}"}), "function_call", "names no tool"),
        (said("assistant", [{**USE, "name": 5}]), "messages[3].content[0]", "names no tool"),
    ):
        path = write(tmp_path / "x.jsonl", OBJECTS, {"messages": [*OPENAI, message]})
        with pytest.raises(RecordingError) as caught:
            open_recording(path)
        assert all(text in str(caught.value) for text in (f"{path}:2", "run 1", where, why))


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain", tmp_path / "marked"
    for record in (OBJECTS, {"t": 0.5, "x": 1}):
        for ending in ("", ".jsonl", ".jsonl.gz"):
            text = json.dumps(record).encode() + b"\n"
            pack = gzip.compress if ending.endswith("gz") else bytes
            found = []
            for path, mark in ((plain, b""), (marked, b"\xef\xbb\xbf")):
                whole = path.with_name(path.name + ending)
                whole.write_bytes(pack(mark + text))
                found.append(steps(whole))
            assert found[0] == found[1]
