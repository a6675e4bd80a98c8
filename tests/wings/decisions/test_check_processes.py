"""Queries about a model that counts actions: values, bounds, what they settle, what is refused."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import smoothed_process
from forewarn.models.file import save_model
from forewarn.models.process import Step, ordered
from forewarn.states.vocabulary import Vocabulary

Run = Callable[..., Any]
VOCABULARY = Vocabulary(("near", "fast"), ("collision", "arrived"))
COLLISION, ARRIVED = -1, -2
COUNTS = {
    ("go", 0, 0): 40, ("go", 0, 1): 30, ("go", 0, ARRIVED): 30,
    ("brake", 1, 0): 90, ("brake", 1, COLLISION): 10,
    ("go", 1, ARRIVED): 50, ("go", 1, COLLISION): 50,
}  # fmt: skip


def model_of(counts: dict[tuple[str, int, int], int], alpha: Any = "none") -> CountModel:
    states = (0, 1, COLLISION, ARRIVED)
    total: Counter[tuple[int, int]] = Counter()
    for (_, state, following), number in counts.items():
        total[state, following] += number
    matrix = np.zeros((4, 4), dtype=np.int64)
    for (state, following), number in total.items():
        matrix[states.index(state), states.index(following)] = number
    steps = {Step(action, False, s, t): number for (action, s, t), number in counts.items()}
    return CountModel(
        VOCABULARY, 10.0, "d", states, sparse.csr_matrix(matrix), np.array([20, 0, 0, 0]),
        Smoothing(alpha), steps=ordered(steps),
    )  # fmt: skip


@pytest.fixture
def acting(tmp_path: Path) -> Path:
    path = tmp_path / "acting.model.json"
    save_model(model_of(COUNTS), path)
    return path


def asked(forewarn: Run, *arguments: Any) -> dict[str, Any]:
    (found,) = json.loads(forewarn("check", *arguments, "--json").out)["queries"]
    return dict(found)


@pytest.mark.parametrize(
    ("query", "near"),
    [
        # From near: braking gives 0.1 + 0.9 x, and x = 0.4 x + 0.3 y from the first state.
        ('Pmin=? [ F "collision" ]', 0.1 / (1 - 0.9 * 0.5)),
        ('Pmax=? [ F "collision" ]', 0.5),
        ("Pmax(collision)", 0.5),
        ("Pmin(collision, 1)", 0.1),
        ('Pmax=? [ "near" U<=1 "arrived" ]', 0.5),
        ('Pmax=? [ F<=0 ("near" & !"arrived") ]', 1.0),
        # What is always so is one minus what happens once.
        ('Pmax=? [ G !"collision" ]', 1 - 0.1 / (1 - 0.9 * 0.5)),
        ('Pmin=? [ G<=1 !"collision" ]', 0.5),
        ('Pmin=? [ G<=0 ("near" | "fast") ]', 1.0),
    ],
)
def test_values_known_by_hand(
    forewarn: Run, acting: Path, query: str, near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "stormpy", None)
    found = asked(forewarn, acting, query)
    key = VOCABULARY.key(1)
    assert found["values"][key] == pytest.approx(near, abs=1e-9)
    assert 0 <= found["lower"][key] <= near + 1e-9
    assert near - 1e-9 <= found["upper"][key] <= 1
    assert found["sound"] and found["confidence"] == 0.95
    text = forewarn("check", acting, query)
    assert text.code == 0 and "at 95% (sound)" in text.out


def test_a_comparison_and_what_the_counts_settle(forewarn: Run, acting: Path) -> None:
    """Within a step the least is 0.1 from near, with 100 visits about 0.02 to 0.3."""
    many = {key: 1000 * number for key, number in COUNTS.items()}
    save_model(model_of(many), acting)
    sure = asked(forewarn, acting, "Pmax(arrived, 1) >= 0.2")
    assert sure["fine"] and sure["settled"]
    save_model(model_of(COUNTS), acting)
    close = asked(forewarn, acting, "Pmax(arrived, 1) >= 0.29")
    assert close["fine"] and not close["settled"]
    result = forewarn("check", acting, "Pmax(arrived, 1) < 0.29")
    assert result.code == 1 and "fails, not settled" in result.out
    assert forewarn("check", acting, 'Pmax<0.31 [ F<=1 "arrived" ]').code == 0


def test_what_is_always_so_is_compared_and_explained(
    forewarn: Run, acting: Path, tmp_path: Path
) -> None:
    page = ("--report", tmp_path / "page.html")
    assert forewarn("check", acting, 'Pmin>=0.1 [ G<=1 !"collision" ]').code == 0
    assert forewarn("check", acting, 'Pmin>=0.9 [ G !"collision" ]').code == 1
    broken = asked(forewarn, acting, 'Pmin>=0.9 [ G !"collision" ]', *page)
    by_once = asked(forewarn, acting, 'Pmax<=0.1 [ F "collision" ]', *page)
    assert broken["critical"]["probability"] > 0.1
    assert broken["critical"]["states"] == by_once["critical"]["states"]
    same = ("policy", "paths", "fine", "settled")
    assert [broken[key] for key in same] == [by_once[key] for key in same]
    assert broken["initial"]["lower"] == pytest.approx(1 - by_once["initial"]["upper"])


def test_confidence_and_traces_that_made_the_states(forewarn: Run, acting: Path) -> None:
    query = "Pmin(collision, 3)"
    usual = asked(forewarn, acting, query)
    surer = asked(forewarn, acting, query, "--confidence", "0.999")
    assert surer["initial"]["upper"] > usual["initial"]["upper"]
    assert surer["initial"]["lower"] <= usual["initial"]["lower"]
    assert not asked(forewarn, acting, query, "--grown")["sound"]
    assert "(not sound)" in forewarn("check", acting, query, "--grown").out
    assert forewarn("check", acting, query, "--confidence", "1").code == 2


def test_smoothing_by_definition(forewarn: Run, acting: Path) -> None:
    model = model_of(COUNTS, alpha=1)
    save_model(model, acting)
    # Four candidates: (10 + 1) / (100 + 4) of braking, (50 + 1) / (100 + 4) of going on.
    assert asked(forewarn, acting, "Pmin(collision, 1)")["values"][
        VOCABULARY.key(1)
    ] == pytest.approx(11 / 104)
    plain = asked(forewarn, acting, "Pmin(collision, 1)", "--unsmoothed")
    assert plain["values"][VOCABULARY.key(1)] == pytest.approx(0.1)
    process = smoothed_process(model, Smoothing("sparse"))
    row = process.matrix.toarray()[process.actions.index("brake")]
    np.testing.assert_allclose(row, np.array([90.25, 0.25, 10.25, 0.25]) / 101)


def test_other_formulas_go_to_storm(forewarn: Run, acting: Path) -> None:
    pytest.importorskip("stormpy", reason="general PCTL is Storm's")
    found = asked(forewarn, acting, 'Pmax=? [ X "near" ]')
    assert found["values"][VOCABULARY.key(0)] == pytest.approx(0.3)
    nested = asked(forewarn, acting, 'Pmax=? [ F P>=0.4 [ X "collision" ] ]')
    # Not all ways to choose reach 0.4 in a step from near: only the collision itself is meant.
    assert nested["values"][VOCABULARY.key(1)] == pytest.approx(0.5)


def test_expected_steps_are_those_of_the_process(forewarn: Run, acting: Path) -> None:
    """At least: to go on from near, x = 1 + .4 x + .3. At most: to brake there, y = 1 + .9 x."""
    pytest.importorskip("stormpy", reason="expected steps are Storm's")
    ends = '[ F ("collision" | "arrived") ]'
    least, most = (asked(forewarn, acting, f"T{word}=? {ends}") for word in ("min", "max"))
    start, near = VOCABULARY.key(0), VOCABULARY.key(1)
    assert least["values"][near] == pytest.approx(1) and most["values"][near] == pytest.approx(
        1 + 0.9 * 1.3 / 0.33, rel=1e-5
    )
    assert least["values"][start] == pytest.approx(1.3 / 0.6, rel=1e-5)
    assert most["values"][start] == pytest.approx(1.3 / 0.33, rel=1e-5)
    never = asked(forewarn, acting, 'Tmax=? [ F "arrived" ]')
    assert never["values"][near] == "inf"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("Pmin(crash)", "'crash' is not known"),
        ("Pmin(collision) >= 1.5", "probability of 1.5"),
        ("Pmin(collision, 9999999)", "at most 1,000,000"),
        ("Pmin(AG near)", "no part of a state formula"),
        ("Pmin(near &)", "not understood"),
    ],
)
def test_what_is_refused(forewarn: Run, acting: Path, query: str, said: str) -> None:
    result = forewarn("check", acting, query)
    assert result.code == 2
    assert said in result.err and str(acting) in result.err


def test_a_model_without_actions(forewarn: Run, corridor_model: Path) -> None:
    result = forewarn("check", corridor_model, "Pmax(contact)")
    assert result.code == 2 and "counts no actions" in result.err
