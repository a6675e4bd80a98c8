"""The study of rules weighs as the product does where the rule is the product's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from walks import walk

from evaluation.foresight.few import drawn, judged
from evaluation.foresight.rules import (
    RULES,
    Point,
    Rule,
    crossed_of,
    estimated,
    problem_of,
    text_of,
)
from evaluation.harness.compare import risk_traces
from evaluation.harness.runs import pass_over, with_risk
from forewarn.assessment.outcome_counts import watch_for
from forewarn.assessment.ranking import precision_recall
from forewarn.config import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.estimates.stack import HOLD, SHARE
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import with_estimates

TEXT = """
rate: 1
startup: 0
signals: {x: {timeout: never}, near: {timeout: never}}
predicates: {close: x < 2}
terminal: {crash: x < 0}
bounds: {kind: none}
properties: {p: {formula: always(not crash), horizon: 5, estimator: auto, scores: [near]}}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("rules")
    paths = []
    for seed in range(30):
        paths.append(folder / f"{seed:02}.jsonl")
        rows = [
            {"t": float(t), "x": gap, "near": float(1 / (1 + np.exp(gap - 1)))}
            for t, gap in enumerate(walk(seed, start=4.0, most=50))
        ]
        paths[-1].write_text("\n".join(map(json.dumps, rows)) + "\n")
    return paths


@pytest.fixture(scope="module")
def point(recorded: list[Path]) -> Point:
    compiled = compile_spec(parse_spec(parse_document(TEXT)))
    watch = watch_for(compiled)
    model = learn(recorded[:20], compiled.spec, compiled.abstraction, watch=watch).model
    model = with_estimates(compiled, model)
    judged = [pass_over(compiled, path) for path in recorded[20:]]
    return Point("toy", compiled, model, crossed_of(compiled, model, "p"), judged)


def test_the_products_rule_weighs_as_the_product_does(point: Point) -> None:
    (ours,) = point.model.estimates
    theirs = estimated(ours, point.crossed, Rule(SHARE, (HOLD,)))
    assert ours.scored is not None and theirs.scored is not None
    for one, other in ((ours.plain, theirs.plain), (ours.scored, theirs.scored)):
        weights = {part.base: part.weight for part in other.parts if part.weight > 0}
        assert {part.base: part.weight for part in one.parts} == pytest.approx(weights)
        assert one.scores == pytest.approx(other.scores)
        assert one.intercept == pytest.approx(other.intercept)
    assert (ours.calibration, ours.scored_calibration) == (
        theirs.calibration,
        theirs.scored_calibration,
    )
    assert any(rule == Rule(SHARE, (HOLD,)) for rule in RULES.values())


def test_figures_are_those_of_the_risk_that_the_monitor_gives(point: Point) -> None:
    area, brier = point.figures(Rule(SHARE, (HOLD,)))
    assert 0.2 < area < 1 and 0 < brier < 0.2
    other = point.figures(Rule(1.0, (1e9,)))
    assert other != (area, brier)


def test_the_table_has_the_mean_and_the_worst() -> None:
    text = text_of(["a", "b"], {"one": np.array([[0.0, 2.0], [0.03, 4.0]])})
    assert "| one | 0.0150, 0.0300 | 3.0 %, 4.0 % | 0 30 |" in text


def test_a_draw_of_few_recordings_is_judged_as_replay_judges_the_others(
    point: Point, recorded: list[Path]
) -> None:
    whole = problem_of(point.compiled, point.model, "p")
    whole = replace(whole, judged=whole.judged._replace(scores=()))
    mine = drawn(whole, 3, seed=1)
    assert mine is not None
    assert drawn(whole, 21, seed=1) is None
    text = TEXT.replace("scores: [near]", "scores: []")
    compiled = compile_spec(parse_spec(parse_document(text)))
    paths = [path for path, own in zip(recorded, mine, strict=False) if own]
    model = learn(paths, compiled.spec, compiled.abstraction, watch=watch_for(compiled)).model
    others = [pass_over(compiled, path) for path in recorded[:20] if path not in paths]
    learned = model, with_estimates(compiled, model)
    for one, found in zip(learned, judged(whole, mine), strict=True):
        runs = risk_traces(with_risk(compiled, one, others), "p")
        assert found[0] == pytest.approx(precision_recall(runs).area)
