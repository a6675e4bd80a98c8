"""Sound bounds: intervals by their definition, robust induction by linear programming."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, sparse, stats
from small_chains import given_chain

from forewarn.checking.interface import ENDED, label_states
from forewarn.checking.numeric import risk_table
from forewarn.checking.sound import (
    Intervals,
    row_intervals,
    row_radii,
    sound_table,
    total_error,
    transition_intervals,
)
from forewarn.errors import CheckingError
from forewarn.logic.automaton import Automaton
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary

Response = Callable[[int], Automaton]
CLASSES = np.array([0, 1, 2, 0, ENDED])
COUNTS = np.array(
    [[40, 10, 0, 3, 1], [0, 20, 30, 0, 0], [25, 0, 0, 25, 2], [0, 0, 50, 1, 0], [0, 0, 0, 0, 0]]
)


def model(counts: np.ndarray = COUNTS, smoothing: Smoothing | None = None) -> CountModel:
    return CountModel(
        Vocabulary(("a", "b"), ("end",)),
        10.0,
        "d",
        (0, 1, 2, 3, -1),
        sparse.csr_matrix(counts),
        np.zeros(5, dtype=np.int64),
        smoothing or Smoothing(),
    )


def test_intervals_are_clopper_and_pearson_s() -> None:
    found = transition_intervals(model(), 0.9)
    tail = 0.1 / 4 / 4 / 5  # four states with data, and five that there can be
    k = 2  # the third transition seen: 0 -> 3, 3 of 54
    assert (found.rows[k], found.columns[k]) == (0, 3)
    assert stats.binom(54, found.lower[k]).sf(2) == pytest.approx(tail)
    assert stats.binom(54, found.upper[k]).cdf(3) == pytest.approx(tail)


@pytest.mark.parametrize("visits", [50, 300])
def test_intervals_hold_together_where_each_successor_is_rare(visits: int) -> None:
    """A union over what was seen alone misses in 22 and 2 % of all cases: it is no choice."""
    size, missed = 1000, 0
    truth = np.full(size, 0.5 / size)
    truth[0] += 0.5
    for seed in range(300):
        counts = np.random.default_rng(seed).multinomial(visits, truth)
        found = row_intervals(sparse.csr_matrix(counts[None]), 0.95, size)
        shares = truth[found.columns]
        missed += bool(((shares < found.lower) | (shares > found.upper)).any())
    assert missed <= 0.05 * 300


def test_a_transition_taken_every_time_has_upper_bound_one() -> None:
    counts = COUNTS.copy()
    counts[1] = [0, 0, 9, 0, 0]
    found = transition_intervals(model(counts))
    assert found.upper[found.rows == 1].tolist() == [1.0]
    assert 0 < found.lower[found.rows == 1][0] < 1


def test_the_bound_on_what_was_never_seen_holds_by_counting_sets() -> None:
    # Row 1 saw 2 of 5 states in 50 visits: C(5, 2) = 10 sets, 5 sizes, 4 rows with data.
    found = transition_intervals(model(), 0.9)
    expected = 1 - (0.05 / 4 / (5 * 10)) ** (1 / 50)
    assert found.elsewhere[1] == pytest.approx(expected)
    assert found.elsewhere[4] == 0.0


def test_never_seen_mass_stays_below_its_bound() -> None:
    rng = np.random.default_rng(1)
    failures = 0
    for _ in range(300):
        truth = rng.dirichlet(np.full(5, 0.3))
        row = rng.multinomial(30, truth)
        counts = np.zeros((5, 5), dtype=np.int64)
        counts[0] = row
        found = transition_intervals(model(counts), 0.5)
        failures += truth[row == 0].sum() > found.elsewhere[0]
    assert failures <= 75


def test_robust_induction_equals_linear_programming(response: Response) -> None:
    counted = model()
    automaton = response(1)
    found = transition_intervals(counted, 0.95)
    table = sound_table(counted, automaton, CLASSES, 3)
    for worst, bound in ((True, table.upper), (False, table.lower)):
        values = np.zeros((5, 3))
        values[:, 2] = 1
        for _ in range(3):
            values = np.array(
                [
                    [_program(found, automaton, values, s, q, worst) for q in range(3)]
                    for s in range(5)
                ]
            )
        assert bound is not None
        np.testing.assert_allclose(bound, values, atol=1e-9)


def _program(
    found: Intervals, automaton: Automaton, values: np.ndarray, s: int, q: int, worst: bool
) -> float:
    if q == automaton.violated:
        return 1.0
    if s == 4:
        return 0.0
    own = np.flatnonzero(found.rows == s)
    after = [
        0.0 if CLASSES[t] == ENDED else values[t, automaton.transitions[q, CLASSES[t]]]
        for t in found.columns[own]
    ]
    cost = np.append(after, float(worst))
    limits = [*zip(found.lower[own], found.upper[own], strict=True), (0, found.elsewhere[s])]
    sign = -1.0 if worst else 1.0
    result = optimize.linprog(sign * cost, A_eq=[np.ones(cost.size)], b_eq=[1], bounds=limits)
    return float(sign * result.fun)


@pytest.mark.parametrize("horizon", [1, 4, 20, None])
def test_every_chain_within_the_intervals_is_within_the_bounds(
    response: Response, horizon: int | None
) -> None:
    counted = model(COUNTS * 100)
    automaton = response(2)
    found = transition_intervals(counted)
    table = sound_table(counted, automaton, CLASSES, horizon)
    assert table.lower is not None and table.upper is not None
    rng = np.random.default_rng(5)
    for _ in range(50):
        matrix = np.zeros((5, 5))
        for s in range(4):
            own = found.rows == s
            row = rng.uniform(found.lower[own], found.upper[own])
            scale = (1 - found.lower[own].sum()) / (row - found.lower[own]).sum()
            row = found.lower[own] + (row - found.lower[own]) * scale
            if (row > found.upper[own] + 1e-12).any():
                row = (COUNTS[s] / COUNTS[s].sum())[found.columns[own]]
            matrix[s, found.columns[own]] = row
        matrix[4, 4] = 1
        chain = given_chain(matrix / matrix.sum(axis=1, keepdims=True), counted.terminal)
        values = risk_table(chain, automaton, CLASSES, horizon).values
        assert (table.lower <= values + 1e-9).all()
        assert (values <= table.upper + 1e-9).all()


def test_the_unbounded_error_is_the_expected_sum_of_row_errors() -> None:
    chain = given_chain([[0.5, 0.25, 0.25], [0, 0.9, 0.1], [0, 0, 1]], np.arange(3) == 2)
    error = total_error(chain, np.array([0.01, 0.02, 0.0]))
    # State 1 is left after 10 visits; state 0 after 2, half of the time for state 1.
    np.testing.assert_allclose(error, [0.02 + 0.5 * 0.2, 0.2, 0.0])


def test_a_chain_that_never_ends_has_no_bound_without_a_horizon(response: Response) -> None:
    counts = COUNTS.copy()
    counts[:, 4] = 0
    table = sound_table(model(counts), response(2), CLASSES, None)
    assert table.lower is not None and table.upper is not None
    assert (table.lower[:4, :3] == 0).all()
    assert (table.upper[:4, :3] == 1).all()
    assert any("vacuous" in note for note in table.notes)


def test_row_radii_cover_all_rows_within_the_intervals() -> None:
    counted = model(smoothing=Smoothing(1.0))
    chain = estimate_chain(counted)
    found = transition_intervals(counted)
    radius = row_radii(chain, found)
    rng = np.random.default_rng(2)
    for s in range(4):
        own = found.rows == s
        for _ in range(200):
            row = np.zeros(6)  # the last place is elsewhere
            row[found.columns[own]] = rng.uniform(found.lower[own], found.upper[own])
            row[5] = rng.uniform(0, found.elsewhere[s])
            if abs(row.sum() - 1) > 0.05:
                continue
            away = np.abs(row - np.append(chain.row(s), 0.0)).sum()
            assert away / 2 <= radius[s] + 0.05
        # One row that is certainly allowed: what was counted.
        counted_row = COUNTS[s] / COUNTS[s].sum()
        assert 0.5 * np.abs(counted_row - chain.row(s)).sum() <= radius[s]
    assert radius[4] == 0


def test_states_without_data_have_bounds_zero_to_one(response: Response) -> None:
    counts = COUNTS.copy()
    counts[3] = 0
    table = sound_table(model(counts, Smoothing("none")), response(2), CLASSES, 5)
    assert table.lower is not None and table.upper is not None
    assert (table.lower[3, 0], table.upper[3, 0]) == (0, 1)
    # From state 2 half of the runs go there.
    assert table.upper[2, 0] > 0.3


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0])
def test_a_confidence_outside_zero_to_one_is_refused(response: Response, confidence: float) -> None:
    with pytest.raises(CheckingError, match="between 0 and 1"):
        sound_table(model(), response(1), CLASSES, 3, confidence=confidence)


def test_a_fuller_model_gives_narrower_bounds(response: Response) -> None:
    widths = []
    for scale in (1, 10, 100):
        table = sound_table(model(COUNTS * scale), response(2), CLASSES, 6)
        assert table.lower is not None and table.upper is not None
        widths.append(float((table.upper - table.lower)[:4, 0].mean()))
        assert table.kind == "sound"
    assert widths[0] > widths[1] > widths[2]
    assert replace(table, notes=()).confidence == 0.95


def test_an_estimate_that_smoothing_leads_astray_stays_within_its_bounds() -> None:
    states = (*range(32), -1)
    counts = np.zeros((33, 33), dtype=np.int64)
    counts[0, 0], counts[0, 1], counts[1, 0] = 5000, 60, 60
    vocabulary = Vocabulary(("a", "b", "c", "d", "e"), ("end",))
    automaton = compile_formula(parse_formula("always(not e)"), rate=1.0)
    classes = label_states(automaton, vocabulary, states)
    smoothing = Smoothing(1.0, "admissible")
    model = CountModel(
        vocabulary,
        1.0,
        "",
        states,
        sparse.csr_matrix(counts),
        np.zeros(33, dtype=np.int64),
        smoothing,
    )
    plain = sound_table(model, automaton, classes, 2, smoothing=Smoothing("none", "admissible"))
    table = sound_table(model, automaton, classes, 2)
    assert table.lower is not None and table.upper is not None and plain.upper is not None
    assert table.values[0, 0] > plain.upper[0, 0], "or this would show nothing"
    assert (table.lower <= table.values).all()
    assert (table.values <= table.upper).all()
    assert any("smoothing puts the estimate outside" in note for note in table.notes)
    assert not any("smoothing puts" in note for note in plain.notes)
