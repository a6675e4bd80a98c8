"""The study of rules weighs as the product does where the rule is the product's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evaluation.foresight.rules import RULES, Point, Rule, crossed_of, estimated, text_of
from evaluation.harness.runs import pass_over
from forewarn.assessment.outcome_counts import watch_for
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
def point(tmp_path_factory: pytest.TempPathFactory) -> Point:
    folder = tmp_path_factory.mktemp("rules")
    paths = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        gaps = np.clip(4 + np.cumsum(rng.normal(0, 0.8, 50)), None, 6)
        end = int(np.argmax(gaps < 0)) or len(gaps) - 1
        paths.append(folder / f"{seed:02}.jsonl")
        rows = [
            {"t": float(t), "x": gap, "near": float(1 / (1 + np.exp(gap - 1)))}
            for t, gap in enumerate(gaps[: end + 1].tolist())
        ]
        paths[-1].write_text("\n".join(map(json.dumps, rows)) + "\n")
    compiled = compile_spec(parse_spec(parse_document(TEXT)))
    model = learn(paths[:20], compiled.spec, compiled.abstraction, watch=watch_for(compiled)).model
    model = with_estimates(compiled, model)
    judged = [pass_over(compiled, path) for path in paths[20:]]
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
