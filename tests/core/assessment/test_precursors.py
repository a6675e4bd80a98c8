"""Whether signals change before violations, on signals that do and that do not."""

from __future__ import annotations

import numpy as np
import pytest

from forewarn.assessment.precursors import Precursors, PropertyHistory, precursors

TICKS, HORIZON = 2000, 30


def watched(seed: int, violations: int, lead: int, shape: str = "level") -> PropertyHistory:
    """Signals of noise; before each violation one of them is different for `lead` ticks."""
    rng = np.random.default_rng(seed)
    begins = np.zeros(TICKS, dtype=bool)
    begins[rng.choice(np.arange(60, TICKS, 60), violations, replace=False)] = True
    open_ = np.ones(TICKS, dtype=bool)
    told = rng.normal(0, 0.3, TICKS)
    for at in np.flatnonzero(begins):
        open_[at : at + 10] = False
        told[at - lead : at] += np.linspace(0, 3, lead) if shape == "rising" else -3
    noise = {f"noise{i}": rng.normal(size=TICKS) for i in range(4)}
    return PropertyHistory({**noise, "told": told}, begins, open_)


@pytest.mark.parametrize(
    ("shape", "kinds"), [("level", ["is low", "falls"]), ("rising", ["is high", "rises"])]
)
def test_what_changes_before_violations_is_found(shape: str, kinds: list[str]) -> None:
    found = precursors([watched(1, 5, 8, shape)], HORIZON, 5)
    assert found.found
    assert found.foreseen == found.violations == 5
    assert found.signal == "told"
    assert found.kind in kinds
    assert "told" in found.condition(0.5)


def test_noise_is_no_precursor_but_for_one_in_a_hundred() -> None:
    found = [precursors([watched(seed, 6, 0)], HORIZON, 5).found for seed in range(100)]
    assert sum(found) <= 5


def test_recordings_count_together() -> None:
    found = precursors([watched(seed, 1, 8) for seed in range(6)], HORIZON, 5)
    assert (found.violations, found.foreseen) == (6, 6)


def test_too_little_is_said_to_be_too_little() -> None:
    few = precursors([watched(1, 2, 8)], HORIZON, 5)
    assert few.told().endswith("it takes 3 violations that begin within a recording")
    assert precursors([], HORIZON, 5).told() == "nothing to foresee"
    begins = np.zeros(200, dtype=bool)
    begins[[40, 80, 120, 160]] = True
    short = PropertyHistory({"x": np.arange(200.0)}, begins, np.ones(200, dtype=bool))
    told = precursors([short], HORIZON, 5).told()
    assert told.endswith("there is too little other time")


def test_a_violation_without_a_moment_before_it_does_not_count() -> None:
    begins = np.zeros(100, dtype=bool)
    begins[0] = True
    run = PropertyHistory({"x": np.arange(100.0)}, begins, np.ones(100, dtype=bool))
    assert precursors([run], HORIZON, 5) == Precursors(0, 0)
