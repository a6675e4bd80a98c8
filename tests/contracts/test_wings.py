"""The core works with a wing taken out, and names the wing where it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import forewarn.wings
from forewarn.cli.main import COMMANDS
from forewarn.config.fields import Section
from forewarn.config.file import MonitorSpec
from forewarn.models.file import load_model, save_model
from forewarn.registry import TO_MODULE, WINGS, command_module, section_of_wing, state_kind
from forewarn.states.kinds import Kind
from tests.wings.scores.test_model_file import fit

ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "forewarn.wings.{wing}" or name.startswith("forewarn.wings.{wing}."):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
WORK = """
import json
from pathlib import Path
from forewarn.cli.main import main
folder = Path(sys.argv[1])
config, runs, model = folder / "m.yaml", folder / "runs", folder / "m.json"
def run(*words):
    print(json.dumps([words[0], main([*map(str, words)])]))
run("validate", config, "--bag", runs / "0.csv")
run("learn", "-c", config, runs, "-o", model, "-q")
run("replay", "-c", config, "-m", model, runs, "--exit-zero", "-q")
run("tune", "-c", config, runs, "--folds", "2", "--false-alarms-per-hour", "100", "-q")
run("compare", config, runs, "--folds", "2", "-q")
run("report", "-c", config, "-m", model, runs, "-o", folder / "r.html", "-q")
run("inspect", model, "-c", config, "-q")
import forewarn.monitoring.live_session
try:
    import monitor_node.node
except ModuleNotFoundError as error:
    assert error.name.split(".")[0] not in ("forewarn", "monitor_node"), error
print(json.dumps(["loaded", [name for name in sys.modules if name.startswith("forewarn.wings.")]]))
"""
MAIN = "import sys\nfrom forewarn.cli import main\nsys.exit(main(sys.argv[1:]))"
CONFIG = """
rate: 10
signals: {gap: {timeout: 1}}
predicates: {near: gap < 2, hit: gap < 0.5}
properties: {apart: {formula: always(not hit), horizon: 1, enter: 1}}
"""


SERVER = """
import json, os, sys
from forewarn.cli.main import COMMANDS
from forewarn.registry import WINGS, command_module
for command in {*COMMANDS} - {name for wing in WINGS.values() for name in wing.commands}:
    command_module(command)
assert not [name for name in sys.modules if name.startswith("forewarn.wings.")]
for line in sys.stdin:
    program, words, folder, out, err = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.chdir(folder)
for number, path in enumerate((os.devnull, out, err)):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
sys.argv = ["-c", *words]
exec(program, {"__name__": "__main__"})
"""
"""It has imported the core without any wing, and forks a process for each program."""


class Done(NamedTuple):
    """What a program left behind."""

    returncode: int
    stdout: str
    stderr: str


Python = Callable[..., Done]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    """Return a function that runs a program in a process of its own, with words."""
    outputs = [tmp_path_factory.mktemp("outputs") / name for name in ("out", "err")]
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as server:
        assert server.stdin and server.stdout
        asks, answers = server.stdin, server.stdout

        def run(program: str, *words: object) -> Done:
            request = [program, [*map(str, words)], os.getcwd(), *map(str, outputs)]
            asks.write(json.dumps(request) + "\n")
            code = int(answers.readline())
            return Done(code, *(path.read_text() for path in outputs))

        yield run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a plain monitor file and six runs, some of which hit."""
    found = tmp_path_factory.mktemp("plain")
    (found / "m.yaml").write_text(CONFIG)
    (found / "runs").mkdir()
    for seed in range(6):
        gaps = [abs((seed * 7 + tick * (3 + seed % 2)) % 90 - 45) / 10 for tick in range(200)]
        lines = [f"{tick / 10},{gap}" for tick, gap in enumerate(gaps)]
        (found / "runs" / f"{seed}.csv").write_text("\n".join(["t,gap", *lines]) + "\n")
    return found


@pytest.mark.parametrize("wing", WINGS)
def test_the_core_works_without_a_wing(wing: str, folder: Path, python: Python) -> None:
    done = python(ABSENT.format(wing=wing) + WORK, folder)
    assert not done.returncode, done.stderr
    lines: list[Any] = [json.loads(x) for x in done.stdout.splitlines() if x.startswith('["')]
    codes = {name: code for name, code in lines if name != "loaded"}
    tuned = codes.pop("tune")
    assert tuned in (0, 1), "with so few recordings nothing may be recommended"
    assert codes == dict.fromkeys(codes, 0), done.stdout + done.stderr
    assert len(codes) == 6
    assert dict(map(tuple, lines))["loaded"] == [], "a plain monitor loads no wing"


@pytest.mark.parametrize("wing", WINGS)
def test_each_command_of_a_wing_names_it_where_it_is_absent(wing: str, python: Python) -> None:
    for command in WINGS[wing].commands:
        assert command in COMMANDS
        assert command_module(command).DESCRIPTION
    for command in WINGS[wing].commands[:1]:
        done = python(ABSENT.format(wing=wing) + MAIN, *command.split(), "x")
        assert done.returncode == 2
        assert f"needs the wing {wing}" in done.stderr
        assert f"forewarn/wings/{wing}" in done.stderr


@pytest.mark.parametrize(
    ("wing", "key"), [(name, key) for name, wing in WINGS.items() for key in wing.sections]
)
def test_each_section_of_a_wing_names_it_where_it_is_absent(
    wing: str, key: str, tmp_path: Path, python: Python
) -> None:
    assert key in MonitorSpec.model_fields
    assert issubclass(section_of_wing(key), Section)
    config = tmp_path / "m.yaml"
    config.write_text(CONFIG + f"{key}: {{x: {{}}}}\n")
    done = python(ABSENT.format(wing=wing) + MAIN, "validate", config)
    assert done.returncode == 2
    assert f"line 6: {key}" in done.stdout
    assert f"needs the wing {wing}" in done.stdout


def test_a_signal_with_rules_about_plans_names_the_wing(tmp_path: Path, python: Python) -> None:
    config = tmp_path / "m.yaml"
    (tmp_path / "rules.yaml").write_text("rules: {}\n")
    config.write_text(
        "clock: steps\nsignals: {plan: {rules: rules.yaml}}\npredicates: {bad: plan != ''}\n"
        "properties: {safe: {formula: always(not bad), horizon: 1}}\n"
    )
    done = python(ABSENT.format(wing="plans") + MAIN, "validate", config)
    assert done.returncode == 2
    assert "a signal with rules about plans needs the wing plans" in done.stdout + done.stderr


def test_runs_of_agents_name_the_wing(tmp_path: Path, python: Python) -> None:
    run = {"calls": [{"action": "send", "args": {"to": "a"}, "observation": "ok"}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(run) + "\n")
    assert not python(MAIN, "info", tmp_path / "runs.jsonl").returncode
    done = python(ABSENT.format(wing="agents") + MAIN, "info", tmp_path / "runs.jsonl")
    assert done.returncode == 2
    assert "a recording with runs of agents needs the wing agents" in done.stderr


def test_learned_scores_in_a_model_file_name_the_wing(folder: Path, python: Python) -> None:
    model = folder / "scored.json"
    words = ["learn", folder / "runs", "-c", folder / "m.yaml", "-o", model, "-q"]
    assert not python(MAIN, *words).returncode
    kept = replace(load_model(model), sections={"learned_score": (fit(),)})
    save_model(kept, model)
    assert load_model(model).learned_score == (fit(),)
    done = python(ABSENT.format(wing="scores") + MAIN, "inspect", model)
    assert done.returncode == 2
    assert "the key learned_score of the model file needs the wing scores" in done.stderr


@pytest.mark.parametrize(
    ("wing", "words"),
    [
        ("fleet", "learn runs -c m.yaml -o n.json --group-by robot --group-source {robot}.csv"),
        ("fleet", "learn runs -c m.yaml -o n.json --scheduler tcp://localhost:1"),
        ("fleet", "report runs -c m.yaml -m m.json -o r.html --fleet"),
        ("black_box", "tune runs -c m.yaml --folds 2 --false-alarms-per-hour 1 --incidents runs"),
        ("agents", "validate m.yaml --tools m.yaml"),
        ("trees", "report runs -c m.yaml -m m.json -o r.html --refinement m.json"),
        ("decisions", "replay runs -c least.yaml -m m.json"),
    ],
)
def test_each_option_of_a_wing_names_it_where_it_is_absent(
    wing: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, python: Python
) -> None:
    monkeypatch.chdir(folder)
    least = CONFIG.replace("horizon: 1", "horizon: 1, risk_measure: min_risk")
    (folder / "least.yaml").write_text(least)
    if "m.json" in words:
        assert not python(MAIN, *["learn", "runs", "-c", "m.yaml", "-o", "m.json", "-q"]).returncode
    done = python(ABSENT.format(wing=wing) + MAIN, *words.split())
    assert done.returncode == 2
    assert f"needs the wing {wing}" in done.stderr


@pytest.mark.parametrize(
    ("wing", "kind"), [(name, kind) for name, wing in WINGS.items() for kind in wing.state_kinds]
)
def test_each_kind_of_states_of_a_wing_names_it_where_it_is_absent(
    wing: str, kind: str, tmp_path: Path, python: Python
) -> None:
    assert isinstance(state_kind(kind), Kind)
    config = tmp_path / "m.yaml"
    config.write_text(CONFIG + f"states: {{kind: {kind}}}\n")
    done = python(ABSENT.format(wing=wing) + MAIN, "validate", config)
    assert done.returncode == 2
    assert f"needs the wing {wing}" in done.stdout + done.stderr


def test_each_folder_of_a_wing_is_registered_and_kept_apart() -> None:
    root = Path(forewarn.wings.__path__[0])
    folders = {path.parent.name for path in root.glob("*/__init__.py")}
    assert folders == set(WINGS)
    contracts = ConfigParser()
    contracts.read(Path(__file__).parents[2] / ".importlinter")
    apart = contracts["importlinter:contract:wings"]["modules"].split()
    assert {name.rpartition(".")[2] for name in apart} == folders
    for name, wing in WINGS.items():
        modules = {path.stem for path in (root / name / "commands").glob("*.py")}
        assert {command.translate(TO_MODULE) for command in wing.commands} <= modules
        assert (Path(__file__).parents[1] / "wings" / name).is_dir(), "its tests"
