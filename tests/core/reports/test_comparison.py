"""The picture of `forewarn compare` shows the areas that its table tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forewarn.assessment.comparison import Contender, compare, with_one_truth
from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.reports.comparison import _figure

RULE = AlertRule(None, 1, 1, 0)
FOLDS = [0, 1, 0, 1]


def run(seed: int, levels: int) -> ScoredRun:
    random = np.random.default_rng(seed)
    happened = random.random(80) < 0.06
    status = np.where(happened, PropertyStatus.VIOLATED, PropertyStatus.SATISFIED_SO_FAR)
    score = np.floor(random.random(80) * levels) / levels
    return ScoredRun(1.0, 4, np.arange(80), score, happened, status.astype(np.int8))


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_the_area_under_a_curve_is_the_one_in_the_table(levels: int) -> None:
    """Steps of a plot with the shape "vh" have the height of their right end."""
    one = Contender("one", RULE, tuple(run(seed, levels) for seed in range(4)))
    # Another file, which also sees other violations: those of the first one count.
    other = replace(one, name="other", runs=tuple(run(seed + 9, levels) for seed in range(4)))
    contenders = [one, other]
    curves = _figure(with_one_truth(contenders))["data"]
    for curve, judged in zip(curves, compare(contenders, FOLDS, 400.0, resamples=2), strict=True):
        assert curve["line"]["shape"] == "vh" and curve["x"][0] == 0.0
        area = np.sum(np.diff(curve["x"]) * np.array(curve["y"][1:]))
        assert area == pytest.approx(judged.area.value, rel=1e-12)
