"""Commands that read many recordings say the same, whoever reads them."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.assessment.replay import Replaying, replay_recordings, replayed
from forewarn.learning.executors import Here
from forewarn.monitoring.loading import make_monitor

TEXT = """
version: 1
rate: 10
signals: {x: {timeout: 0.1}, speed: {timeout: 0.1}}
predicates: {high: x > 0.5, fast: speed > 0}
terminal: {over: x > 2}
properties:
  calm: {formula: always(not over), horizon: 2, estimator: ensemble}
  slow: {formula: always(not (high and fast)), horizon: 1, risk_measure: expected}
observation_error: {high: 0.05}
bounds: {kind: credible}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("workers")
    (found / "monitor.yaml").write_text(TEXT)
    for kind, first in (("learned", 0), ("normal", 20), ("new", 40)):
        (found / kind).mkdir()
        for seed in range(first, first + 4):
            draw = random.Random(seed)
            rows = [
                {"t": k / 10, "x": draw.gauss(0, 1), "speed": draw.gauss(0, 1),
                 "action": draw.choice(["go", "brake"])}
                for k in range(150)
            ]  # fmt: skip
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (found / kind / f"{seed}.jsonl").write_text(text)
    return found


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from forewarn.cli.main import main

    path = tmp_path_factory.mktemp("model") / "model.json"
    given = [folder / "learned", "-c", folder / "monitor.yaml", "-o", path, "-q"]
    assert main(["learn", *map(str, given)]) == 0
    return path


COMMANDS = {
    "replay": ("{new}", "-c", "{config}", "-m", "{model}", "--verdicts", "{out}"),
    "tune": ("{new}", "-c", "{config}", "--folds", 2, "--false-alarms-per-hour", 50),
    "compare": ("{config}", "{new}", "--folds", 2, "--resamples", 5, "--rival", "big=x"),
    "learn-states": ("{new}", "-c", "{config}", "--leaves", 3),
    "anomalies": (
        "{new}",
        "-c",
        "{config}",
        "-m",
        "{model}",
        "--calibrate",
        "{normal}",
        "--alpha",
        0.2,
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_two_processes_say_what_one_says(
    forewarn: Callable[..., Any], folder: Path, model: Path, tmp_path: Path, command: str
) -> None:
    said, written = [], []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}.out"
        names = {
            "config": folder / "monitor.yaml", "model": model, "out": out,
            "new": folder / "new", "normal": folder / "normal",
        }  # fmt: skip
        given = [str(one).format(**names) for one in COMMANDS[command]]
        result = forewarn(command, *given, "-j", jobs, "--json")
        assert result.code in (0, 1), result.err
        said.append(result.out)
        written.append(out.read_bytes() if out.exists() else b"")
    assert said[0] == said[1] and len(said[0]) > 500
    assert written[0] == written[1] and bool(written[0]) is (command == "replay")


def test_a_monitor_travels_with_its_tables_to_the_bit(folder: Path, model: Path) -> None:
    monitor, counts = make_monitor(folder / "monitor.yaml", model)
    assert counts is not None and monitor.filter is not None
    paths = sorted((folder / "new").iterdir())
    how = Replaying(monitor, counts.provenance, lines=True)
    found: list[bytes] = []
    replay_recordings(how, paths, executor=Here(), on_lines=lambda _, lines: found.append(lines))
    assert len(found) == len(paths)
    # After its use: what it remembers of it stays behind.
    there = pickle.loads(pickle.dumps(how))
    assert [replayed(path, there).lines for path in paths] == found


def test_what_cannot_be_read_is_left_out_by_choice(
    forewarn: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    config = folder / "monitor.yaml"
    paths = [*sorted((folder / "new").iterdir()), tmp_path / "damaged.jsonl"]
    paths[-1].write_text('{"t": 0, "x": \n')
    arguments = (*paths[2:], *paths[:2], "-c", config, "--json")
    result = forewarn("replay", *arguments)
    assert result.code == 2 and "damaged.jsonl" in result.err
    result = forewarn("replay", *arguments, "--unreadable", "leave-out")
    said = json.loads(result.out)
    assert [*said["left_out"]] == [str(paths[-1])]
    assert len(said["recordings"]) == 4
    assert "1 of 5 recordings could not be read" in result.err
    told = [
        json.loads(forewarn("compare", config, *given, "--folds", 2, "--resamples", 5, "--json",
                            "--unreadable", "leave-out").out)
        for given in (paths, paths[:-1])
    ]  # fmt: skip
    assert [*told[0]["left_out"]] == [str(paths[-1])]
    assert told[0]["properties"] == told[1]["properties"]


def test_tune_takes_from_a_store_what_it_has(
    forewarn: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    given = (folder / "new", "-c", folder / "monitor.yaml", "--folds", 2, "--json")
    budget = ("--false-alarms-per-hour", 50)
    bare = forewarn("tune", *given, *budget).out
    store = tmp_path / "store"
    assert forewarn("tune", *given, *budget, "--store", store).out == bare
    shards = sorted(store.rglob("*.shard"))
    assert len(shards) == 4
    shards[0].write_bytes(shards[1].read_bytes())  # what is there is what counts
    assert forewarn("tune", *given, *budget, "--store", store).out != bare


def test_several_recordings_become_files_of_their_names(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path
) -> None:
    bag, folder = corridor_run.held_out, tmp_path / "converted"
    other = tmp_path / "other.mcap"
    other.write_bytes(bag.read_bytes())
    result = forewarn("convert", bag, other, "-o", folder)
    assert result.code == 2 and "a folder that exists" in result.err
    folder.mkdir()
    result = forewarn("convert", bag, other, "-o", folder, "-j", 2, "--json")
    assert result.code == 0, result.err
    names = [f"{bag.stem}.mcap", "other.mcap"]
    assert [Path(one["file"]).name for one in json.loads(result.out)["files"]] == names
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert len({path.read_bytes() for path in folder.iterdir()}) == 1
    single = tmp_path / "single.mcap"
    assert forewarn("convert", other, "-o", single).code == 0
    assert single.read_bytes() == (folder / "other.mcap").read_bytes()
    result = forewarn("convert", bag, other, "-o", folder)
    assert result.code == 2 and "exists already" in result.err
