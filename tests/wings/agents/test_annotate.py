"""An agent that names its variables and actions is recorded as a trace that all commands read."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.cli import main
from forewarn.errors import RecordingError
from forewarn.wings.agents.annotate import Trace


class Agent:
    """Writes files, in one of two languages, until its tests pass."""

    def __init__(self, path: Path) -> None:
        self.trace = Trace(path)
        self.files: set[str] = set()
        self.passed: Any = False
        self.trace.observed(name="files")(lambda: self.files)
        self.trace.observed(name="tests_passed", role="checkpoint")(lambda: self.passed)
        self.trace.observed(name="size", role="ignored")(lambda: np.float64(len(self.files)))
        self.write = self.trace.action(self._write)
        self.test = self.trace.action(self._test)

    def _write(self, path: str, options: Any = None) -> str:
        self.files.add(path)
        return f"wrote {path}"

    async def _test(self) -> None:
        if len(self.files) < 2:
            raise ValueError("no file")
        self.passed = True


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_call_is_a_step_with_what_was_known_before_it(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "runs.jsonl")
    with agent.trace.run("r1", task="mend it", language="c") as run:
        agent.write("b.c", {"mode": ["x", Path("y")]})
        with pytest.raises(ValueError, match="no file"):
            asyncio.run(agent.test())
        agent.write("a.c")
        asyncio.run(agent.test())
        run.label(solved=True)
    agent.write("outside.c")
    first, second, third, fourth, last = lines(agent.trace.path)
    assert [one["action"] for one in (first, second, third, fourth, last)] == [
        "_write", "_test", "_write", "_test", None,
    ]  # fmt: skip
    assert (first["files"], second["files"], last["files"]) == ([], ["b.c"], ["a.c", "b.c"])
    assert first["arguments"] == ["b.c", '{"mode": ["x", "y"]}', "x", "y"]
    assert second["inputs"] == [first["arguments"], []]
    assert second["observation"] == "wrote b.c" and second["last_action"] == "_write"
    assert third["failed"] and third["errors"] == 1 and "no file" in third["observation"]
    assert not fourth["tests_passed"] and last["tests_passed"]
    assert {one["language"] for one in lines(agent.trace.path)} == {"c"}
    assert "solved" not in fourth and last["solved"] is True


def test_what_is_recorded_goes_through_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, config = tmp_path / "runs.jsonl", tmp_path / "monitor.yaml"
    for number in range(30):
        agent = Agent(path)
        with agent.trace.run(f"r{number}", language="c" if number % 3 else "go") as run:
            for file in range(1 + number % 4):
                agent.write(f"{file}.c")
            if len(agent.files) > 1:
                asyncio.run(agent.test())
            run.label(solved=bool(agent.passed))
    rest = (
        "predicates: {passed: tests_passed}\n"
        "properties: {p: {formula: always(not was_solved), horizon: 2}}\n"
    )
    config.write_text(f"version: 1\n{agent.trace.sections()}{rest}")
    assert main(["validate", str(config), "--bag", str(path)]) == 0
    assert main(["learn-states", str(path), "-c", str(config), "--leaf-size", "3", "--write"]) == 0
    written = config.read_text()
    assert "tests_passed: checkpoint" in written and "language: goal" in written
    assert "size" not in written.split("tree:")[1]
    assert main(["learn", str(path), "-c", str(config), "-o", str(tmp_path / "m.json")]) == 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": 1}, "is of type dict"),
        (object(), "is of type object"),
        ([{"a": 1}], "is of type list"),
        ("yes", "changes its type: text, before it was truth value"),
    ],
)
def test_what_a_trace_cannot_hold_is_an_error(tmp_path: Path, value: Any, said: str) -> None:
    agent = Agent(tmp_path / "runs.jsonl")
    with pytest.raises(RecordingError, match=said), agent.trace.run("r1"):
        agent.write("a.c")
        agent.passed = value
        agent.write("b.c")


def test_names_and_roles_are_checked(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "runs.jsonl")
    for name in ("errors", "action", "t"):
        with pytest.raises(RecordingError, match="cannot have the name"):
            trace.observed(name=name)(lambda: 1)
    with pytest.raises(RecordingError, match="'flag' is no role"):
        trace.observed(role="flag")(lambda: 1)  # type: ignore[arg-type]
    trace.observed(name="x")(lambda: 1)
    with pytest.raises(RecordingError, match="there is a variable 'x' already"):
        trace.observed(name="x")(lambda: 1)
    with trace.run("a"), pytest.raises(RecordingError, match="goes on already"), trace.run("b"):
        pass


@pytest.mark.parametrize(
    ("role", "said"),
    [("goal", "the goal errors changes within an episode: 0"), ("checkpoint", "errors is 0")],
)
def test_roles_that_the_traces_do_not_fit_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], role: str, said: str
) -> None:
    trace, config = tmp_path / "runs.jsonl", tmp_path / "monitor.yaml"
    rows = [{"run": 1, "errors": i, "action": "a"} for i in range(3)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config.write_text(
        "clock: steps\nsignals: {errors: {}}\npredicates: {bad: errors > 1}\n"
        "properties: {p: {formula: always(not bad), horizon: 2}}\n"
        f"states: {{kind: tree, variables: {{errors: {role}}}}}\n"
    )
    assert main(["learn-states", str(trace), "-c", str(config)]) == 2
    error = capsys.readouterr().err
    assert said in error and "role state" in error


def test_the_page_shows_a_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[3] / "docs" / "howto" / "steps.md"
    programs = page.read_text(encoding="utf-8").split("```python\n")[1:]
    (program,) = (
        text.split("```")[0] for text in programs if "agent.jsonl" in text.split("```")[0]
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "agent.py", "exec"), {})
    assert "tests_passed: checkpoint" in capsys.readouterr().out
    assert [one["action"] for one in lines(tmp_path / "agent.jsonl")] == ["run_tests", None]


def test_results_of_coroutines_side_by_side_belong_to_their_calls(tmp_path: Path) -> None:
    trace, gate = Trace(tmp_path / "agent.jsonl"), asyncio.Event()

    @trace.action
    async def fetch(page: str) -> str:
        if page == "first":
            await gate.wait()
        gate.set()
        return f"text of {page}"

    async def both() -> None:
        await asyncio.gather(fetch("first"), fetch("second"))

    with trace.run("a"):
        asyncio.run(both())
    last = lines(trace.path)[-1]
    assert last["inputs"] == [["first"], ["second"]]
    assert last["outputs"] == ["text of first", "text of second"]


def test_a_name_that_is_no_utf_8_is_written_and_read_back(tmp_path: Path) -> None:
    trace, name = Trace(tmp_path / "agent.jsonl"), os.fsdecode(b"caf\xe9.txt")

    @trace.action
    def listed(folder: str) -> list[str]:
        return [name]

    with trace.run("a"):
        assert listed("é") == [name]
    assert lines(trace.path)[-1]["observation"] == name
