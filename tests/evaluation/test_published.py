"""Figures of studies whose code is no longer here: they belong together, and to what ships."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forewarn.config import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.models import load_model


def test_what_the_demos_predicates_are_worth_was_asked_of_the_demo_that_ships(
    repository: Path,
) -> None:
    sumo = repository / "evaluation" / "sumo"
    ablation = json.loads((sumo / "ablation.json").read_text(encoding="utf-8"))
    braking = json.loads((sumo / "braking.json").read_text(encoding="utf-8"))
    whole, shipped = ablation["left_out"]["nothing"], braking["variants"]["as shipped"]
    compiled = compile_spec(load_spec(sumo / "predicates.yaml"))
    model = load_model(sumo / "predicates.model.json")
    assert whole["states"] == shipped["states"] == len(model.states)
    predicates = len(compiled.abstraction.vocabulary.predicates)
    assert whole["predicates"] == shipped["predicates"] == predicates
    chain = shipped["ways"]["chain"]["collision"]
    assert chain["average_precision"] == pytest.approx(whole["area"]["unseen"], abs=1e-4)
