"""Recordings that end at the crash: a predicate teaches and tells what a terminal label does."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

FILE = """
rate: 10
signals: {{d: {{timeout: 0.5}}, hit: {{timeout: 0.5}}}}
bins: {{d: [2, 4, 8, 15]}}
{kind}: {{crash: hit > 0.5}}
properties: {{no_crash: {{formula: always(not crash), horizon: 3, estimator: {estimator}}}}}
"""
SCORE = "learned_score: {score: {for: no_crash, from: [d]}}\n"
PROPOSAL = "`terminal: {crash: hit > 0.5}` in place of the predicate"
ALL = "no_crash: 10 of 10 violations lie within the last 3 s of their recordings"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drives of 15 s, every second of which ends at a crash."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(20):
        draws, d, lines = random.Random(seed), 30.0, list[str]()
        for tick in range(150):
            fall = draws.uniform(0, 0.5) if seed % 2 else draws.uniform(-0.25, 0.25)
            d = max(d - fall, 0.0 if seed % 2 else 3.0)
            lines.append(json.dumps({"t": tick / 10, "d": round(d, 2), "hit": int(d <= 0)}))
            if d <= 0:
                break
        (folder / f"{seed:02}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def written(folder: Path, kind: str, estimator: str = "chain", score: str = "") -> Path:
    path = folder / f"{kind}.yaml"
    path.write_text(FILE.format(kind=kind, estimator=estimator) + score)
    return path


@pytest.mark.parametrize(("estimator", "score"), [("chain", ""), ("ensemble", SCORE)])
def test_a_predicate_gives_the_figures_of_a_terminal_label(
    forewarn: Any, runs: Path, tmp_path: Path, estimator: str, score: str
) -> None:
    found = []
    for kind in ("predicates", "terminal"):
        config = written(tmp_path, kind, estimator, score)
        model = tmp_path / f"{kind}.json"
        learned = forewarn("learn", "-c", config, runs, "-o", model)
        assert learned.code == 0, learned.err
        told = forewarn("replay", "-c", config, "-m", model, runs, "--json", "--exit-zero")
        found.append(json.loads(told.out)["properties"]["no_crash"])
        assert (ALL in learned.text) == (kind == "predicates")
    mine, label = found
    assert mine["pr_area"] == pytest.approx(label["pr_area"], abs=0.01)
    assert mine["pr_area"] > 0.9
    assert mine["lead"]["median"] == pytest.approx(label["lead"]["median"], abs=0.1)
    for figure in ("brier", "base_rate", "ticks"):
        assert mine["calibration"][figure] == pytest.approx(label["calibration"][figure], abs=0.01)
    assert mine["run_ends"]["concluded"]


def test_each_command_says_what_lies_at_the_end_and_proposes_the_label(
    forewarn: Any, runs: Path, tmp_path: Path
) -> None:
    config, model = written(tmp_path, "predicates"), tmp_path / "m.json"
    budget = ("--false-alarms-per-hour", "10")
    for command in (
        ("learn", "-c", config, runs, "-o", model),
        ("replay", "-c", config, "-m", model, runs),
        ("compare", config, runs, "--folds", "2"),
        ("tune", "-c", config, runs, "--folds", "2", *budget),
    ):
        told = forewarn(*command)
        assert ALL in told.text, command
        assert PROPOSAL in told.text, command
    page = tmp_path / "report.html"
    forewarn("report", "-c", config, "-m", model, runs, "-o", page)
    assert ALL in page.read_text()
    one = forewarn("validate", config, "--bag", runs / "01.jsonl")
    assert "no_crash: 1 of 1 violation lies within the last 3 s of a recording" in one.text
    assert PROPOSAL in one.text
    label = written(tmp_path, "terminal")
    assert "violation lies" not in forewarn("validate", label, "--bag", runs / "01.jsonl").text
    assert "violation lies" not in forewarn("validate", config, "--bag", runs / "00.jsonl").text
