"""``forewarn learn-states``: from traces to a tree in the monitor file, a model and a replay."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from forewarn.config.file import load_spec
from forewarn.config.yaml_text import load_document

TEXT = """\
# An agent that reads and writes files.
version: 1
clock: steps
signals:
  written: {}      # files so far
  last: {}
  seen: {}
predicates: {many: written > 6}
properties:
  few: {formula: always(not many), horizon: 3, thresholds: {act: 0.5}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It writes if it has just read an input, reads otherwise, and may stop after five files."""
    chance = random.Random(1)
    lines = []
    for run in range(60):
        written, last, seen = 0, "none", []
        for _ in range(16):
            action = "write" if last == "input" or not written else "read"
            action = "stop" if written > 4 and chance.random() < 0.2 else action
            row = {"run": f"r{run}", "written": written, "last": last, "seen": seen}
            lines.append(json.dumps({**row, "action": action}))
            if action == "stop":
                break
            written += action == "write"
            last = "output" if action == "write" else chance.choice(["input", "log"])
            seen = sorted({*seen, last})
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_tree_that_the_agent_follows_is_found(forewarn, config, runs):
    found = json.loads(forewarn("learn-states", runs, "-c", config, "--json").out)
    assert found["splits"][0]["condition"] in ("last == 'input'", "'input' in last")
    assert {one["condition"] for one in found["splits"]} >= {"written > 4", "written > 0"}
    assert found["written"] is False and config.read_text() == TEXT
    sizes = found["sizes"]
    assert sizes[len(found["leaves"]) - 1]["loss"] < sizes[0]["loss"] / 3
    assert sum(sum(kinds.values()) for kinds in found["leaves"].values()) == found["moments"]


def test_a_tree_is_written_learned_with_and_watched(forewarn, config, runs, tmp_path):
    printed = forewarn("learn-states", runs, "-c", config, "--class", "violation:few:4", "--write")
    assert "held-out loss" in printed.out and f"written: {config}" in printed.out
    assert config.read_text().startswith(TEXT)  # comments and spaces stay
    assert load_spec(config).states.kind == "tree"
    model = tmp_path / "model.json"
    forewarn("learn", runs, "-c", config, "-o", model)
    replayed = json.loads(forewarn("replay", runs, "-c", config, "-m", model, "--json").out)
    assert replayed["properties"]["few"]["violations"] > 3
    inspected = forewarn("inspect", model, "-c", config)
    assert "s0" in inspected.out
    again = forewarn("learn-states", runs, "-c", config, "--leaves", 3, "--write")
    assert again.out.count("written:") == 1
    assert load_document(config).data["states"]["variables"] == ["written", "last", "seen"]
    assert config.read_text().count("states:") == 1
    # A model of the tree before no longer fits.
    refused = forewarn("replay", runs, "-c", config, "-m", model)
    assert refused.code == 2 and ("digest" in refused.err or "abstraction" in refused.err)


@pytest.mark.parametrize(
    ("arguments", "conditions"),
    [
        (("--variable", "written"), {"written"}),
        (("--text", "length"), {"written", "len(last)", "len(seen)", "in seen"}),
        (("--class", "suffix:2", "--leaves", "4", "--once"), {"written", "last", "seen"}),
        (("--class", "state", "--depth", "1"), {"written", "last", "seen"}),
    ],
)
def test_what_may_be_asked_is_chosen(forewarn, config, runs, arguments, conditions):
    found = json.loads(forewarn("learn-states", runs, "-c", config, "--json", *arguments).out)
    for split in found["splits"]:
        assert any(part in split["condition"] for part in conditions)
    if "--once" in arguments:
        assert len(found["leaves"]) <= 4
    if "--depth" in arguments:
        assert len(found["leaves"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--class", "colour"), "'colour' is no class"),
        (("--class", "violation:many:4"), "properties: few"),
        (("--class", "violation:few:soon"), "'soon' is no duration"),
        (("--variable", "colour"), "'colour' is no signal"),
        (("--leaves", "5000"), "leaves 5000"),
        (("--group", "colour"), "--group: 'colour' is no signal"),
    ],
)
def test_what_cannot_be_is_refused(forewarn, config, runs, arguments, said):
    found = forewarn("learn-states", runs, "-c", config, *arguments)
    assert found.code == 2 and said in found.err


def test_a_variable_that_changes_its_type_is_named(forewarn, config, tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"written": 1, "action": "a"}\n{"written": "two", "action": "b"}\n')
    found = forewarn("learn-states", trace, "-c", config)
    assert found.code == 2 and "written changes its type" in found.err


ENDING = """\
version: 1
clock: steps
signals: {near: {}, broken: {}, task: {}}
terminal: {bad: broken, good: not broken}
properties: {whole: {formula: always(not bad), horizon: 9, thresholds: {act: 0.5}}}
"""


def test_a_terminal_label_settles_what_follows(forewarn, config, tmp_path):
    config.write_text(ENDING)
    trace, chance = tmp_path / "trace.jsonl", random.Random(2)
    lines, known = [], {"violation": 0, "none": 0}
    for run in range(60):
        broken, length = chance.random() < 0.4, chance.randrange(1, 9)
        lines += [{"run": run, "near": broken, "task": f"t{run % 3}"}] * length
        lines.append({"run": run, "near": broken, "broken": broken, "task": f"t{run % 3}"})
        known["violation" if broken else "none"] += length
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("learn-states", trace, "-c", config, "--class", "violation:whole:9", "--json")
    found = json.loads(forewarn(*words, "--variable", "near").out)
    assert found["moments"] == sum(known.values())
    assert found["leaves"] == {
        "s0": {"violation": known["violation"]}, "s1": {"none": known["none"]},
    }  # fmt: skip
    # Of the states that follow, the label is one.
    follows = ("learn-states", trace, "-c", config, "--class", "state", "--leaves", 1, "--json")
    [kinds] = json.loads(forewarn(*follows).out)["leaves"].values()
    assert kinds["!bad"] + kinds["!good"] == 60 and "(end)" not in kinds
    by_task = json.loads(forewarn(*words, "--variable", "near", "--group", "task").out)
    assert by_task["leaves"] == found["leaves"]
    # Three tasks make three parts, however many are asked for: whole tasks are held out.
    three = json.loads(forewarn(*words, "--group", "task", "--folds", 3).out)
    assert (
        three["sizes"] == json.loads(forewarn(*words, "--group", "task", "--folds", 5).out)["sizes"]
    )
    assert three["sizes"] != json.loads(forewarn(*words, "--folds", 5).out)["sizes"]


def test_a_run_that_does_nothing_is_left_out(forewarn, tmp_path):
    chats = []
    for number in range(40):
        call = {"id": "a", "function": {"name": "pay" if number % 2 else "look", "arguments": "{}"}}
        calls = [{"role": "assistant", "content": None, "tool_calls": [call]}] if number % 4 else []
        user = {"role": "user", "content": "twice" if number % 2 else "once"}
        chats.append({"traj": [user, *calls], "reward": 0.0})
    trace, config = tmp_path / "chats.json", tmp_path / "monitor.yaml"
    trace.write_text(json.dumps(chats))
    config.write_text("""\
version: 1
clock: steps
signals: {task: {}, proposed: {}}
terminal: {over: proposed == ''}
properties: {p: {formula: always(not over)}}
""")
    arguments = ("learn-states", trace, "-c", config, "--variable", "task", "--leaf-size", "5")
    found = forewarn(*arguments)
    assert "left out, because no state is known: 10 recordings" in found.err
    assert json.loads(forewarn(*arguments, "--json").out)["moments"] == 30
    trace.write_text(json.dumps([chats[0], chats[1] | {"traj": chats[0]["traj"]}]))
    refused = forewarn(*arguments)
    assert refused.code == 2
