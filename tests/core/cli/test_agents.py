"""Each command on runs of agents; the page that shows them says what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forewarn.cli.main import main
from forewarn.config import load_spec
from forewarn.models import load_model
from forewarn.states.interface import terminal_code

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data" / "agents"
PAGE = (ROOT / "docs" / "howto" / "agents.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    return PAGE.split(f"```{language}\n")[number + 1].split("```")[0]


def call(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    assert code == 0 or (code == 1 and words[0] in ("replay", "abstract")), said.out + said.err
    return said.out + said.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the runs and the monitor file of the page."""
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python"), "make_runs.py", "exec"), {})
    (tmp_path / "monitor.yaml").write_text(block("yaml"))
    return tmp_path


def test_the_page_shows_what_the_commands_print(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "monitor.yaml: valid" in call(capsys, "validate", "monitor.yaml", "--bag", "runs.jsonl")
    commands = (
        ("learn", "runs.jsonl", "-c", "monitor.yaml", "-o", "model.json"),
        ("replay", "runs.jsonl", "-c", "monitor.yaml", "-m", "model.json"),
        ("abstract", "runs.jsonl", "-c", "monitor.yaml", *(
            word for name in ("errors", "foreign", "balances") for word in ("--variable", name)
        )),
    )  # fmt: skip
    for number, words in enumerate(commands):
        said = call(capsys, *words)
        printed = "".join(f"{line.rstrip()}\n" for line in said.splitlines())
        for part in block("text", number).split("...\n"):
            assert part in printed
    actions = {step.action for step, _ in load_model(folder / "model.json").steps}
    assert actions == {"read_file", "get_balance", "send_money", "say"}


def test_the_page_shows_how_an_agent_is_talked_into_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", 1), "make_tools.py", "exec"), {})
    _, *lines = block("sh").splitlines()
    Path("agents.yaml").write_bytes((ROOT / "config" / "agents.yaml").read_bytes())
    printed = ""
    for line in lines:
        said = call(capsys, *line.removeprefix("forewarn ").split())
        printed += "".join(f"{text.rstrip()}\n" for text in said.splitlines())
    for number in (3, 4):
        for part in block("text", number).split("...\n"):
            assert part in printed


def test_a_first_file_is_proposed_and_a_run_can_be_replayed_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "init", "runs.jsonl", "--rate", "steps", "-o", "first.yaml")
    assert "first.yaml: valid" in call(capsys, "validate", "first.yaml", "--bag", "runs.jsonl")
    call(capsys, "learn", "runs.jsonl", "-c", "monitor.yaml", "-o", "model.json")
    said = call(capsys, "replay", "runs.jsonl::run=1", "-c", "monitor.yaml", "-m", "model.json")
    steps = len(json.loads((folder / "runs.jsonl").read_text().splitlines()[1])["steps"])
    assert f"{steps + 1} steps watched" in said


def test_what_only_the_end_of_a_run_knows_is_a_label_and_no_variable(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "init", "runs.jsonl", "--rate", "steps", "-o", "first.yaml")
    spec = load_spec(folder / "first.yaml")
    assert spec.terminal == {"was_attack_succeeded": "attack_succeeded", "over": "proposed == ''"}
    assert not any("attack" in text for text in spec.predicates.values())
    assert spec.properties["no_was_attack_succeeded"].formula == "always(not was_attack_succeeded)"
    call(capsys, "learn", "runs.jsonl", "-c", "first.yaml", "-o", "first.json")
    model = load_model(folder / "first.json")
    runs = (folder / "runs.jsonl").read_text().splitlines()
    taken = sum(json.loads(line)["attack_succeeded"] for line in runs)
    assert 0 < taken == int(model.counts[:, model.index[terminal_code(0)]].sum())
    # Where the file knows no label, what would tell the outcome is left out all the same.
    monitor = (folder / "monitor.yaml").read_text()
    config = folder / "leak.yaml"
    config.write_text(
        monitor.replace("terminal:\n  over: proposed == ''\n", "").replace(
            "  task: {}", "  task: {}\n  attack_succeeded: {}"
        )
    )
    said = call(capsys, "abstract", "runs.jsonl", "-c", config, "--leaves", "8")
    assert "attack_succeeded is known at the end of a run only: it is not asked about" in said
    assert "attack_succeeded >" not in said and "split         attack" not in said


REAL = """\
version: 1
clock: steps
signals:
  task: {}
  outputs: {}
  arguments: {}
  errors: {}
  foreign: {value: "len(
    [a for a in taken(arguments, outputs) if a not in taken(arguments, [task])])"}
predicates:
  failing: errors >= 1
  stuck: errors >= 3
  foreign_arguments: foreign > 0
properties:
  not_stuck: {formula: always(not stuck), horizon: 3, enter: 1, hold: 0,
    thresholds: {warn: 0.05, act: 0.2, release: 0.1}}
"""


@pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data/agents beside the repository")
@pytest.mark.parametrize("name", ["agentdojo", "toolemu", "tau_bench", "agentspec_embodied"])
def test_real_runs_go_through_every_command(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = sorted((DATA / name).iterdir())[0]
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(REAL)
    call(capsys, "init", runs, "--rate", "steps", "-o", tmp_path / "first.yaml")
    call(capsys, "validate", tmp_path / "first.yaml", "--bag", runs)
    call(capsys, "validate", config, "--bag", runs)
    call(capsys, "learn", runs, "-c", config, "-o", model)
    assert len({step.action for step, _ in load_model(model).steps}) > 1
    call(capsys, "replay", runs, "-c", config, "-m", model)
    said = call(
        capsys, "abstract", runs, "-c", config, "--variable", "errors", "--variable", "foreign",
        "--write",
    )  # fmt: skip
    assert "held-out loss" in said
