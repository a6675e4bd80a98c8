"""The study of directions draws what it says, and fits as the product does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("sklearn", reason="the extra `learn` is not installed")
pytest.importorskip("rtamt", reason="the study's rivals need RTAMT")
from sklearn.metrics import average_precision_score, brier_score_loss

from evaluation.foresight import directions, study
from evaluation.foresight.directions import Point, point_of, row_of
from evaluation.foresight.study import Question
from evaluation.study.rivals import Quantity
from forewarn.config import load_spec
from forewarn.learning import danger_fit, danger_members
from forewarn.logic.specification import compile_spec
from forewarn.states.danger.score import compiled_trees
from tests.evaluation.test_trees import FRAME, SIGNALS, write_run


@pytest.fixture
def point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Point:
    monkeypatch.setattr(study, "NOT_GIVEN", ("fallen",))
    monkeypatch.setattr(directions, "TREES", 10)
    file = tmp_path / "hand.yaml"
    content: dict[str, Any] = {**FRAME, "signals": SIGNALS, "predicates": {"leans": "lean > 0.3"}}
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    (tmp_path / "runs").mkdir()
    runs = [write_run(tmp_path / "runs" / f"{seed}.jsonl", seed) for seed in range(24)]
    compiled = compile_spec(load_spec(file))
    question = Question(file, compiled, "stands", [Quantity("lean")], runs, [])
    return point_of(question, tmp_path / "work", len(runs))


def test_runs_are_drawn_until_so_many_have_a_violation(point: Point) -> None:
    digests = {one.digest for one in point.runs}
    for seed in range(5):
        drawn = point.drawn(4, seed)
        assert drawn is not None
        mine, others = drawn
        assert sum(one.followed.any() for one in mine) == 4
        assert {one.digest for one in (*mine, *others)} == digests
        assert len(mine) + len(others) == len(digests)
    assert point.drawn(len(digests) + 1, 0) is None


@pytest.mark.parametrize(("directed", "telling"), [(True, 99), (False, 0)])
def test_a_score_is_judged_that_the_product_fits(
    point: Point, monkeypatch: pytest.MonkeyPatch, directed: bool, telling: int
) -> None:
    drawn = point.drawn(4, 1)
    assert drawn is not None
    mine, others = drawn
    area, brier = point.figures(mine, others, directed)
    monkeypatch.setattr(danger_fit, "MOST_TREES", directions.TREES)
    monkeypatch.setattr(danger_members, "TELLING", telling)
    section = point.question.compiled.spec.properties["stands"]
    fitted = danger_fit.fit_score(point.scoring, point.signs, "stands", section, mine)
    assert ("trees of signals with a direction" in fitted.members) == directed
    fit = fitted.fit
    trees = compiled_trees(len(fit.signals), fit.moments, fit.lags, fit.ensemble)
    risk = [trees.judge(row.copy()) for one in others for row in one.features]
    followed = [bool(truth) for one in others for truth in one.followed]
    assert area == pytest.approx(average_precision_score(followed, risk))
    assert brier == pytest.approx(brier_score_loss(followed, risk))


def test_a_row_tells_what_two_draws_gave(point: Point) -> None:
    row = row_of("it", point, 4, 2)
    assert row is not None and row_of("it", point, len(point.runs) + 1, 2) is None
    name, violated, draws, before, now, more, *_ = row
    assert (name, violated) == ("it", "4") and draws.startswith("2 (")
    assert float(now) - float(before) == pytest.approx(float(more), abs=0.0011)
