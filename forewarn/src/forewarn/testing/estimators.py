"""What every estimator of risks keeps to; a test inherits it and gives the name."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from forewarn.assessment.outcome_counts import watch_for
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.estimates.crossing import base_of
from forewarn.learning.estimates.problem import Base, Problem, Sample
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.estimated import judged_property
from forewarn.monitoring.solving import questions_of

TEXT = """
rate: 1
startup_grace: 0
signals: {gap: {timeout: never}, speed: {timeout: never}}
predicates: {near: gap < 2, closing: speed > 0}
terminal: {crash: gap < 0}
properties: {keeps_distance: {formula: always(not crash), horizon: 10, estimator: ensemble}}
"""
RUNS = 12


def drive(path: Path, seed: int) -> Path:
    """Write a run: something comes near, at a speed that only changes now and then."""
    draw = random.Random(seed)
    gap, speed, lines = draw.uniform(2, 6), 0.3, []
    for tick in range(60):
        speed = draw.gauss(0.0, 0.7) if draw.random() < 0.25 else speed
        gap = min(gap - speed, 6.0)
        lines.append(json.dumps({"t": float(tick), "gap": gap, "speed": speed}) + "\n")
        if gap < 0:
            break
    path.write_text("".join(lines))
    return path


class EstimatorContract:
    """Laws of `Base`, by recordings some of which lead to a violation.

    Attributes
    ----------
    name : str
        What the monitor file calls the estimator.
    """

    name: str
    problem: Problem

    @pytest.fixture(autouse=True)
    def _learn(self, tmp_path: Path) -> None:
        compiled = compile_spec(parse_spec(parse_document(TEXT)))
        runs = [drive(tmp_path / f"{seed}.jsonl", seed) for seed in range(RUNS)]
        watch = watch_for(compiled)
        model = learn(runs, compiled.spec, compiled.abstraction, watch=watch).model
        (question,) = questions_of(compiled, model.vocabulary, model.states)
        judged = judged_property(compiled.spec, "keeps_distance", question.automaton)
        self.problem = Problem(model, question, judged)

    @property
    def base(self) -> Base:
        return base_of(self.name)

    def samples(self) -> tuple[Sample, Sample]:
        """Return what all recordings give, and all but the first."""
        weights = np.ones(self.problem.recordings, dtype=np.int64)
        fewer = weights.copy()
        fewer[0] = 0
        return self.problem.sample(weights), self.problem.sample(fewer)

    def test_the_monitor_file_finds_it_by_its_name(self) -> None:
        assert self.base.name == self.name

    def test_it_has_settings_and_says_each(self) -> None:
        settings = self.base.settings(self.problem)
        assert settings and len({*settings}) == len(settings)
        for setting in settings:
            assert all(isinstance(number, float) for number in setting)
            assert isinstance(self.base.words(setting), str)

    def test_each_table_has_a_probability_for_each_product_state(self) -> None:
        for sample in self.samples():
            for setting in self.base.settings(self.problem):
                table = self.base.table(sample, setting)
                assert table.shape == sample.risk.shape
                assert ((table >= 0) & (table <= 1)).all()

    def test_the_same_recordings_give_the_same_bits(self) -> None:
        for setting in self.base.settings(self.problem):
            tables = [self.base.table(self.samples()[0], setting) for _ in range(2)]
            assert tables[0].tobytes() == tables[1].tobytes()

    def test_it_depends_on_nothing_but_the_sample(self) -> None:
        whole, fewer = self.samples()
        for setting in self.base.settings(self.problem):
            before = self.base.table(whole, setting)
            self.base.table(fewer, setting)
            assert before.tobytes() == self.base.table(whole, setting).tobytes()
