"""Every command of a study or benchmark that a page names runs here on a small input.

A command of a study that is no longer here is named by the page of results alone, with its commit.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import random
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_environment import NotInstalledError, variables
from page_commands import Named, named, of_module

from evaluation.harness.command import command
from forewarn.wings.scores import score_fit
from tests.evaluation.test_households import write_logs
from tests.evaluation.test_ngsim import scene_file
from tests.evaluation.test_other_data import trial

ROOT = Path(__file__).resolve().parents[2]
SUMO = ROOT / ".study-venv" / "bin" / "python"
RESULTS = "evaluation/RESULTS.md"
ELSEWHERE = {
    "benchmarks": "benchmarks/test_harness.py: test_only_figures_of_an_idle_machine_are_written",
    "evaluation.guard.replays": "agent_guard/test_replayed_runs.py: studied",
    "evaluation.soak.soak": "node/test_load.py: "
    "test_under_load_no_tick_is_left_out_or_lacks_the_newest_sample",
}
"""Commands that other tests run, and which."""
LONG = {
    "benchmarks.black_box": ["--seconds", "0.5", "--turns", "1"],
    "benchmarks.hops": ["--count", "5", "--turns", "1"],
}
"""Live commands that take half a minute on a busy machine."""


def run(module: str, *options: object, monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    """Run a module as `python -m` does, in a folder; return its exit code."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [module, *map(str, options)])
    monkeypatch.delitem(sys.modules, module, raising=False)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        assert ended.code in (0, 1, None), ended.code
        return int(ended.code or 0)
    return 0


def landing(path: Path, seed: int) -> None:
    """Write a landing as `evaluation.foresight.simulators` does: it sinks, and may crash."""
    chance = random.Random(seed)
    height, climb, lines = 1.4, -chance.uniform(0.1, 0.9), []
    for tick in range(60):
        climb += chance.uniform(-0.05, 0.05)
        height = max(height + climb / 10, 0.0)
        down = height == 0.0
        line = {"t": tick / 10, "x": 0.1, "height": height, "x_speed": chance.gauss(0, 0.2),
                "climb": climb, "tilt": chance.gauss(0, 0.1), "spin": chance.gauss(0, 0.3),
                "legs": 2 * down, "crashed": down and climb < -0.4}  # fmt: skip
        lines.append(json.dumps(line) + "\n")
        if down:
            break
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(lines).encode()))


def write_chain(folder: Path) -> None:
    """Write a chain of a household agent as ProbGuard publishes them."""
    folder.mkdir(parents=True)
    one = {"parentReceptacles": ["Table"], "isOn": True}
    chain = {
        "states": ["00", "01", "11", "finish"],
        "transition_probs": {
            "00": {"01": "2/4", "finish": "2/4"},
            "01": {"11": "1/3", "finish": "2/3"},
            "finish": {"finish": "1"},
        },
        "state_interpret": {"11": [one]},
    }
    (folder / "model.json").write_text(json.dumps(chain))
    (folder / "abstraction.json").write_text('{"parentReceptacles": ["Table"], "keys": ["isOn"]}')


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fit few trees, and draw few times, in an empty folder."""
    pytest.importorskip("sklearn", reason="boosting is a rival")
    pytest.importorskip("rtamt", reason="robustness is a rival")
    from evaluation.foresight import study
    from evaluation.harness import classifiers

    monkeypatch.setattr(study, "RESAMPLES", 10)
    monkeypatch.setattr(classifiers, "ROUNDS", 8)
    monkeypatch.setattr(score_fit, "MOST_TREES", 10)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("small")
def test_foresight_is_judged_over_the_number_of_recordings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from evaluation.foresight import study

    for seed in range(24):
        part = "train" if seed < 14 else "test"
        landing(Path("study", "lander", part, f"{seed:05}.jsonl.gz"), seed)
    # evaluation.foresight.study
    command(study.main, ["--folder", "study", "--scenarios", "lander", "--sizes", "14", "400"])
    assert "| lander, 14 | area " in capsys.readouterr().out
    (found,) = json.loads(Path("study/foresight/figures.json").read_text()).values()
    names = [row["name"] for row in found["rows"]]
    assert names[:2] == ["Forewarn", "chain"] and len(names) == 5 + 3
    assert found["judged"] == 10 and found["violations"] > 2


@pytest.mark.usefixtures("small")
def test_trials_and_cars_of_others_are_judged(capsys: pytest.CaptureFixture[str]) -> None:
    from evaluation.foresight import trials

    for folder, first in (("robot", 0), ("judged", 20)):
        for number in range(first, first + 12):
            kind = ("E2", "N3", "E3", "N5")[number % 4]
            trial(Path(folder, f"{kind}_{number:03}.json"), 1 + number / 7, 12)
    Path("cars").mkdir()
    for number in range(3):
        (folder := Path("scenes", str(number))).mkdir(parents=True)
        scene_file(folder).rename(f"cars/USA_{number}.xml")
    # evaluation.foresight.trials
    options = ["--robot", "robot", "--judged", "judged", "--ngsim", "cars", "--folder", "study"]
    command(trials.main, options)
    said = capsys.readouterr().out
    assert "| warehouse robot, 12 | area " in said
    assert "hard_braking: left out: broken in 0 scenes" in said


def test_crashes_are_judged_by_successes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from evaluation.foresight import successes

    monkeypatch.chdir(tmp_path)
    for number in range(24):
        kind = ("E2", "N3", "E3", "N5")[number % 4]
        trial(Path("robot", f"{kind}_{number:03}.json"), 1 + number / 7 + 9 * (kind > "E3"), 12)
    # evaluation.foresight.successes
    command(successes.main, ["--robot", "robot", "--folder", "study"])
    found = json.loads(Path("study/successes/figures.json").read_text())
    assert found["distance_0"] == 1.0 and found["oncoming_0"] is None
    assert (found["safe"], found["crashes"], found["crashes_reported"]) == (12, 12, 12)
    assert "of 12 safe (promised at most" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_trajectories_are_judged_by_the_others(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evaluation.foresight import trajectories

    maker = repository / "docs" / "howto" / "traffic.py"
    for town, drives in (("one", "60"), ("two", "20")):
        asked = [sys.executable, maker, f"drives/{town}.jsonl", "--drives", drives, "--seed", "7"]
        subprocess.run(asked, check=True, capture_output=True)
    config = str(repository / "config" / "apollo_trajectories.yaml")
    # evaluation.foresight.trajectories
    options = ["--data", "drives", "--config", config, "--name", "towns", "--folder", "study"]
    command(trajectories.main, [*options, "--sizes", "45", "400", "--parts", "2"])
    said = capsys.readouterr().out
    assert "| towns, 45 | area " in said and "| towns, 45, first crossings | mean " in said
    (found,) = json.loads(Path("study/towns/figures.json").read_text()).values()
    names = [row["name"] for row in found["rows"]]
    assert names[:2] == ["Forewarn", "chain"] and len(names) == 2 + 4 + 2
    assert found["judged"] == 24  # of 60: the second town has the first 20 once more


def test_households_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_chain(tmp_path / "D" / "probguard" / "embodied" / "one")
    write_logs(tmp_path / "D" / "agents" / "agentspec_embodied", tmp_path / "D" / "safeagentbench")
    run("evaluation.embodied.study", "--data", "D", monkeypatch=monkeypatch, folder=tmp_path)
    said = capsys.readouterr().out
    assert "| Chains, nobody intervenes | 16.67%, " in said
    assert "| Real logs: unsafe tasks stopped by any of 1 rules | 0.0% |" in said


def test_translators_are_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("spot", reason="Spot is the oracle")
    answers = tmp_path / "D" / "vltl" / "answers"
    answers.mkdir(parents=True)
    sentence = {
        "id": 1,
        "sentence": "always a",
        "tl": "globally a",
        "grounded_tl": "globally prop_1",
    }
    (tmp_path / "D" / "vltl" / "rescue.jsonl.gz").write_bytes(
        gzip.compress(json.dumps(sentence).encode())
    )
    answer = json.dumps({"id": 1, "prediction": "G prop_1"}).encode()
    (answers / "new__rescue.jsonl.gz").write_bytes(gzip.compress(answer))
    run("evaluation.translators.study", "--data", "D", monkeypatch=monkeypatch, folder=tmp_path)
    said = capsys.readouterr().out
    assert "| `new` | equivalent 100.0% (" in said and "0 disagreements, 0 undecided" in said


def test_the_page_of_results_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / RESULTS).read_bytes()
    run("evaluation.harness.page", monkeypatch=monkeypatch, folder=tmp_path)
    assert (ROOT / RESULTS).read_bytes() == page


def test_the_cost_of_the_guard_is_measured(tmp_path: Path) -> None:
    try:
        environment = variables("guard")
    except NotInstalledError as error:
        pytest.skip(f"LangChain cannot be installed here: {error}")
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment["PYTHONPATH"]])
    command = [sys.executable, "-m", "evaluation.guard.latency", "--rounds", "1"]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "| guard, rules on names of calls | p50 " in ran.stdout


@pytest.mark.clocked
@pytest.mark.parametrize(
    "words",
    [
        "benchmarks.extraction --turns 1",
        "benchmarks.fleet --shards 9 --turns 1",
        "benchmarks.growth --most 100 --picture growth.svg",
        "benchmarks.guard --runs 2",
    ],
)
def test_a_benchmark_measures(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, *options = words.split()
    run(module, *options, monkeypatch=monkeypatch, folder=tmp_path)
    assert "|---|" in capsys.readouterr().out


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("module", LONG)
def test_a_live_benchmark_measures(module: str) -> None:
    command = [sys.executable, "-m", module, *LONG[module]]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode in (0, 1), ran.stderr
    assert "|---|" in ran.stdout


def sumo() -> dict[str, str]:
    """Return an environment in which SUMO can be imported; skip where it is not installed."""
    if not SUMO.exists():
        pytest.skip("SUMO (900 MB) is not installed: `make study` makes .study-venv")
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "evaluation.study.record --scenario s2 --part train --runs 1 --folder {folder}",
        "evaluation.sumo.record --seeds 7:8 --duration 5 --folder {folder}",
        "evaluation.sumo.scenarios --scenario s2 --seed 1 --output {folder}/bag",
    ],
)
def test_what_simulates_records(options: str, tmp_path: Path) -> None:
    environment = sumo()
    command = [str(SUMO), "-m", *options.format(folder=tmp_path).split()]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert any(path.suffix in (".gz", ".mcap") for path in tmp_path.rglob("*"))


@pytest.mark.slow
def test_the_town_is_driven_with_and_without_interventions(tmp_path: Path) -> None:
    environment = sumo()
    (links := tmp_path / "sumo").mkdir()
    (packages,) = SUMO.parents[1].glob("lib/python*/site-packages")
    for name in ("libsumo", "libsumo.libs", "sumo", "eclipse_sumo.libs", "sumolib", "traci"):
        if (packages / name).exists():
            (links / name).symlink_to(packages / name)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(links)])
    command = [sys.executable, "-m", "evaluation.closed_loop.shield", "--folder", "trips",
               "--seeds", "4301:4302", "--only", "nobody", "Forewarn"]  # fmt: skip
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "| Forewarn | " in ran.stdout


@pytest.mark.slow
def test_public_simulators_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gymnasium", reason="evaluation/foresight/requirements.txt has it")
    options = ("--name", "lander", "--part", "train", "--runs", "1", "--folder", "study")
    run("evaluation.foresight.simulators", *options, monkeypatch=monkeypatch, folder=tmp_path)
    assert list((tmp_path / "study" / "lander" / "train").glob("*.jsonl.gz"))


def source(module: str) -> Path | None:
    """Return the file of a module, None if it is not here."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    return (
        path
        if path.exists()
        else path.with_suffix("") / "__main__.py"
        if path.with_suffix("").is_dir()
        else None
    )


def of_pages() -> Iterator[tuple[Named, str, str]]:
    """Yield the studies and benchmarks that pages name, with what follows the name."""
    for one in named(ROOT):
        if found := of_module(one):
            yield one, *found


def test_every_study_and_benchmark_that_a_page_names_is_run_by_a_test() -> None:
    text, astray = Path(__file__).read_text(encoding="utf-8"), set()
    for one, module, _ in of_pages():
        gone = source(module) is None and one.page == RESULTS
        asked = re.search(rf'["# ]{re.escape(module)}[" \n]', text) is not None
        if not gone and not asked and module not in ELSEWHERE:
            astray.add(f"{one.page}: {module}")
    assert not astray, "named on a page, and run by no test"
    for place in ELSEWHERE.values():
        file, name = place.split(": ")
        assert f"def {name}" in (ROOT / "tests" / file).read_text(encoding="utf-8"), place


def test_the_options_that_pages_give_to_studies_exist() -> None:
    astray = []
    for one, module, rest in of_pages():
        path = source(module)
        if path is None or module == "benchmarks":
            continue
        functions = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
        main = next(n for n in functions if n.name in ("main", "measure"))
        known = {f"--{one.arg.replace('_', '-')}" for one in main.args.args}
        asked = set(re.findall(r"(?<= )--[a-z-]+", rest.split("`")[0]))
        if one.page == RESULTS:
            continue  # a row has the command of its commit
        astray += [f"{one.page}: {module} {option}" for option in sorted(asked - known)]
    assert not astray
