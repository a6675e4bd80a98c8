"""The fixture `forewarn_replay`, in a test run of its own, and what a replay shows and asserts."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import forewarn

MONITOR = """\
version: 1
rate: 10
signals: {gap: {timeout: 1}, mode: {timeout: 1}}
predicates: {near: gap < 1, nearing: gap < 3}
properties:
  keeps_gap: {formula: always(not near), horizon: 2, enter: 1,
              thresholds: {warn: 0.05, act: 0.1, release: 0.05}}
mode: observe
"""
TESTS = """\
def test_quiet(forewarn_replay):
    forewarn_replay("quiet.jsonl", "monitor.yaml").expect(violations=0)

def test_foreseen(forewarn_replay):
    run = forewarn_replay("held_out.jsonl", "monitor.yaml", "model.json")
    run.expect("keeps_gap", foreseen=1.0, lead=0.5, false_alarms=3)

def test_broken(forewarn_replay):
    forewarn_replay(["held_out.jsonl"], "monitor.yaml").expect("keeps_gap", violations=0)

def test_part(forewarn_replay):
    forewarn_replay("held_out.jsonl", "monitor.yaml", end=1.0).expect(violations=0)
"""


def trace(path: Path, near: int) -> Path:
    """Write a run that comes near so many times, from 4 m to 0.5 m in two seconds."""
    gaps = [4.0] * 30
    for _ in range(near):
        gaps += [*np.linspace(4, 0.5, 20).tolist(), *[4.0] * 40]
    lines = [{"t": i / 10, "gap": gap, "mode": "go"} for i, gap in enumerate(gaps)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with recordings, a monitor file and its model."""
    (tmp_path / "monitor.yaml").write_text(MONITOR)
    trace(tmp_path / "quiet.jsonl", 0)
    trace(tmp_path / "held_out.jsonl", 4)
    learned = forewarn.learn(tmp_path / "monitor.yaml", trace(tmp_path / "drive.jsonl", 30))
    learned.save(tmp_path / "model.json")
    return tmp_path


def replayed(folder: Path) -> forewarn.Replay:
    monitor = forewarn.load_monitor(folder / "monitor.yaml", folder / "model.json")
    return forewarn.replay(monitor, folder / "held_out.jsonl")


def test_recordings_are_tests(folder: Path) -> None:
    (folder / "tests").mkdir()
    (folder / "test_bags.py").write_text(TESTS)
    installed = any(each.name == "forewarn" for each in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "forewarn.interface.pytest_plugin"]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin]
    done = subprocess.run(
        [*words, str(folder / "test_bags.py")],
        cwd=folder / "tests", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: keeps_gap: violations 4, expected up to 0" in done.stdout
    assert "held_out.jsonl at 4.7" in done.stdout, "it names the moments"
    assert "gap 0." in done.stdout, "and what the rule saw"


def test_a_replay_has_signals_and_risks_over_time(folder: Path) -> None:
    run = replayed(folder)
    columns = run.columns()
    assert {"recording", "time", "gap", "keeps_gap.risk", "keeps_gap.violation"} <= columns.keys()
    assert "mode" not in columns, "texts are no numbers"
    assert len({len(column) for column in columns.values()}) == 1
    assert columns["gap"][columns["keeps_gap.violation"]].max() < 1
    pandas = pytest.importorskip("pandas")
    assert isinstance(run.to_frame(), pandas.DataFrame)
    assert len(run.plot().data) == 3, "the risk, violations, and one signal"


def test_values_are_shown_in_short(folder: Path) -> None:
    run = replayed(folder)
    assert repr(run) == (
        "Replay(1 recording: keeps_gap 4 of 4 violations foreseen, 0 false alarms)"
    )
    assert "<td>keeps_gap</td><td>4</td><td>4</td>" in run._repr_html_()
    assert repr(run.monitor).endswith("monitor.yaml: keeps_gap; 3 states)")


def test_a_replay_says_what_comes_before_and_which_thresholds_suit(folder: Path) -> None:
    run = replayed(folder)
    found = run.precursors("keeps_gap")
    assert found.violations == 4
    assert run.tune("keeps_gap", 10.0).name == "keeps_gap"
    with pytest.raises(KeyError, match="accepted: keeps_gap"):
        run.precursors("other")
    run.report(folder / "report.html")
    assert "keeps_gap" in (folder / "report.html").read_text()


def test_an_expectation_that_fails_says_all_that_is_otherwise(folder: Path) -> None:
    run = replayed(folder)
    with pytest.raises(AssertionError) as error:
        run.expect(violations=1, lead=30.0, foreseen=0.5)
    lines = str(error.value).splitlines()
    assert lines[0] == "keeps_gap: violations 4, expected up to 1"
    assert lines[1].startswith("keeps_gap: median lead ")
    assert len(lines) > 4


def test_a_moment_that_is_none_is_refused(folder: Path) -> None:
    with pytest.raises(forewarn.ForewarnError, match="soon is no moment"):
        forewarn.learn(folder / "monitor.yaml", folder / "drive.jsonl", begin="soon")
