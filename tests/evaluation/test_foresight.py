"""The study of foresight: what rivals are given, who is ahead, and the page of its figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="boosting is a rival")
pytest.importorskip("rtamt", reason="the study's rivals need RTAMT")

from evaluation.foresight import study, trials
from evaluation.foresight.study import ahead, question_of
from evaluation.harness.classifiers import LAGS, Floats, logistic, with_history
from evaluation.harness.runs import Pass, pass_over
from evaluation.study.rivals import SCENARIOS
from forewarn.assessment.comparison import ContenderScores, Estimate
from forewarn.assessment.tradeoff import Point
from tests.evaluation.falls import write_monitor, write_run


def test_history_is_what_was_and_how_it_changed() -> None:
    now = np.random.default_rng(3).normal(size=(17, 2))
    found = with_history(lambda one: now)(Pass(Path(), (), np.zeros(0, np.int64), {}))
    for tick in range(len(now)):
        then = [now[tick - lag] if tick >= lag else np.full(2, np.nan) for lag in LAGS]
        window = now[max(0, tick - LAGS[-1]) : tick + 1]
        parts = [part for row in then for part in (row, now[tick] - row)]
        wanted = np.concatenate([now[tick], *parts, window.min(0), window.max(0)])
        np.testing.assert_array_equal(found[tick], wanted)


def test_logistic_regression_knows_what_is_far_and_what_is_unknown() -> None:
    rng = np.random.default_rng(5)
    gap = rng.uniform(0, 10, 600)
    rows: Floats = np.stack((gap, np.full(600, np.nan)), axis=1)
    rows[::7, 0] = 1e6
    chance = logistic(rows, rows[:, 0] < 3, np.arange(600) % 12)
    near, middle, far, unknown = chance(
        np.array([[0.5, np.nan], [6.0, np.nan], [1e6, np.nan], [np.nan, np.nan]])
    )
    assert near > 0.9 and middle < 0.1 and far < 0.1 and unknown < 0.1


def judged(name: str, **differences: Estimate) -> ContenderScores:
    """Return a contender of whom only its differences are told."""
    one = Estimate(0.5, 0.4, 0.6)
    return ContenderScores(
        name,
        one,
        None,
        one,
        Point(0.5, 0, 0, (), 0, 0, 0, 0, 1.0),
        one,
        (0.5, 0.5),
        None,
        0.0,
        differences,
        (40, 20),
    )


def test_a_lead_counts_if_it_is_no_chance_or_large() -> None:
    sure, chance = Estimate(0.009, 0.005, 0.013), Estimate(0.03, -0.02, 0.08)
    nothing = Estimate(0.005, -0.02, 0.03)
    better = Estimate(-0.004, -0.005, -0.003)
    rows = [
        judged("ours"),
        judged("sure", area=sure, brier=nothing),
        judged("large", area=chance, brier=nothing),
        judged("neither", area=nothing, brier=nothing),
        judged("right", area=nothing, brier=better),
    ]
    assert ahead(rows) == [
        "right: brier by 0.0040",
        "sure: area by 0.0090",
        "large: area by 0.0300, maybe chance",
    ]


def test_each_part_is_judged_by_what_the_others_taught(tmp_path: Path) -> None:
    file = write_monitor(tmp_path / "hand.yaml")
    asked = trials.question(file, "stands", {"lean": 1.0})
    passes = [
        pass_over(asked.compiled, write_run(tmp_path / f"{seed}.jsonl", seed)) for seed in range(12)
    ]
    parts = [passes[:4], passes[4:8], passes[8:]]
    folds = [0] * 4 + [1] * 4 + [2] * 4

    def chain(number: int) -> Any:
        known = [one.path for at, part in enumerate(parts) if at != number for one in part]
        judged = [one.path for one in parts[number]]
        split = replace(asked, training=known, judged=judged)
        (folder := tmp_path / str(number)).mkdir(exist_ok=True)
        return study.monitor(study.CHAIN, split, file, len(known), folder)[0]

    ours = trials._joined([chain(number) for number in range(3)])
    assert [len(run.ticks) for run in ours.runs] == [len(one.tracks[0].ticks) for one in passes]
    for part in range(3):
        for mine, theirs in zip(ours.runs[4 * part :], chain(part).runs, strict=False):
            np.testing.assert_array_equal(mine.score, theirs.score)
    found = study.figures([ours, *study.watched(asked, passes)], folds)
    assert found["judged"] == 12 and [row["name"] for row in found["rows"]] == ["chain", "lean"]


def test_a_scenario_is_watched_by_its_rivals_and_by_robustness(tmp_path: Path) -> None:
    for part in study.PARTS:
        write_run(tmp_path / "s7" / part / "1.jsonl", 1)
    asked = question_of("s7", tmp_path)
    assert list(asked.others) == ["robustness", "1/TTC"]
    assert [one.name for one in asked.quantities] == [
        one.name for one in SCENARIOS["s7"].quantities
    ]
