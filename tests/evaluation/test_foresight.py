"""The study of foresight: what rivals are given, who is ahead, and the page of its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

pytest.importorskip("sklearn", reason="boosting is a rival")
pytest.importorskip("rtamt", reason="the study's rivals need RTAMT")

from evaluation.foresight import study
from evaluation.foresight.study import HERE, MARK, Question, ahead, answer, table_of
from evaluation.harness.classifiers import LAGS, Floats, logistic, with_history
from evaluation.harness.page import PAGE, replaced
from evaluation.harness.runs import Pass, pass_over
from evaluation.study.rivals import Quantity
from forewarn.assessment.comparison import Estimate, Judged
from forewarn.assessment.tradeoff import Point
from forewarn.config import load_spec
from forewarn.logic.specification import compile_spec
from tests.evaluation.test_trees import FRAME, SIGNALS, write_run


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


def judged(name: str, **differences: Estimate) -> Judged:
    """Return a contender of whom only its differences are told."""
    one = Estimate(0.5, 0.4, 0.6)
    return Judged(
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


def test_all_are_judged_on_the_same_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hand.yaml"
    content: dict[str, Any] = {**FRAME, "signals": SIGNALS, "predicates": {"leans": "lean > 0.3"}}
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    compiled = compile_spec(load_spec(file))
    (tmp_path / "runs").mkdir()
    runs = [write_run(tmp_path / "runs" / f"{seed}.jsonl", seed) for seed in range(36)]
    question = Question(file, compiled, "stands", [Quantity("lean")], runs[:24], runs[24:])
    monkeypatch.setattr(study, "NOT_GIVEN", ("fallen",))
    monkeypatch.setattr(study, "RESAMPLES", 20)
    passes = [[pass_over(compiled, path) for path in some] for some in (runs[:24], runs[24:])]
    found = answer(question, 24, (passes[0], passes[1]), tmp_path / "work")
    names = [row["name"] for row in found["rows"]]
    assert names[:2] == ["Forewarn", "chain"] and names[-1] == "lean" and len(names) == 6
    assert found["judged"] == 12 and found["violations"] > 3
    ours, chain, *others = (row["area"][0] for row in found["rows"])
    assert ours > chain and ours > 0.7 and min(others) > 0.7
    assert table_of({"it": {"24": found}}).count("\n") == 2 + len(names)


def test_the_page_has_the_figures_of_the_study() -> None:
    found = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert replaced(page, MARK, table_of(found)) == page
