"""The comparison with premise: its page says its figures, and both sides follow the same chain."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.belief.study import MARK, Ours, _number, text_of
from evaluation.belief.worlds import Hidden, Programme, World
from evaluation.harness.page import replaced


@pytest.fixture(scope="module")
def results(repository: Path) -> dict[str, Any]:
    path = repository / "evaluation" / "belief" / "results.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_the_page_shows_the_figures(repository: Path, results: dict[str, Any]) -> None:
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    assert replaced(page, MARK, text_of(results)) == page


def test_premise_says_the_same_where_nothing_is_left_out(results: dict[str, Any]) -> None:
    assert len({row["model"] for row in results["premise"]}) >= 4
    assert max(row["apart_without_limit"] for row in results["premise"]) < 1e-5


def test_hidden_states_are_filtered_as_bayes_says() -> None:
    """A chain of six states that look like two, one of them bad."""
    rng = np.random.default_rng(5)
    matrix = rng.dirichlet(np.ones(6), size=6)
    matrix[5] = np.eye(6)[5]
    observations = [0, 0, 0, 1, 1, 1]
    entries = [[i, j, matrix[i, j]] for i in range(6) for j in range(6) if matrix[i, j]]
    told = {"entries": entries, "observations": observations, "bad": [5], "initial": 0}
    hidden = Hidden.of(told, 3)
    ahead = np.eye(6)[5]
    for _ in range(3):
        ahead = np.where(np.arange(6) == 5, 1.0, matrix @ ahead)
    seen, belief, expected = [0, 1, 1, 0, 1], np.eye(6)[0], []
    for observation in seen:
        belief = (belief @ matrix) * (np.array(observations) == observation)
        belief /= belief.sum()
        expected.append(float(belief @ ahead))
    readings = [hidden.exactly(0), *map(hidden.reading, seen)]
    assert Ours(hidden.monitor).beliefs(readings).risks[1:] == pytest.approx(expected, rel=1e-9)
    assert Ours(hidden.monitor).steps(readings)[0][1:] == pytest.approx(expected, rel=1e-9)


def test_a_programme_has_rows_that_sum_to_one() -> None:
    world = World("small", 3, noisy=1, silent=1, within=2)
    monitor, model = world.monitor()
    programme = Programme(world, monitor, model)
    lines = [line for line in programme.text.splitlines() if line.startswith("[]")]
    assert len(lines) == programme.places + 1
    for line in lines:
        shares = [part.partition(":")[0] for part in line.partition("-> ")[2].split(" + ")]
        assert sum(map(Fraction, shares)) == 1


def test_exact_numbers_of_any_length_are_read() -> None:
    assert _number("1/3") == pytest.approx(1 / 3) and _number("0.25") == 0.25
    assert _number(f"{'3' * 5000}/1{'0' * 5000}") == pytest.approx(1 / 3, rel=1e-15)
