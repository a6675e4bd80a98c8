"""Every estimator of risks keeps to one contract."""

from __future__ import annotations

from forewarn.models.estimates import BASES
from forewarn.testing.estimators import EstimatorContract


class TestChain(EstimatorContract):
    name = "chain"


class TestFrequency(EstimatorContract):
    name = "frequency"


class TestBayes(EstimatorContract):
    name = "bayes"


class TestLogistic(EstimatorContract):
    name = "logistic"


class TestMultiStep(EstimatorContract):
    name = "multi_step"


def test_each_is_here() -> None:
    assert {one.name for one in EstimatorContract.__subclasses__()} >= {*BASES}
