"""From counts to probabilities, by hand-computed matrices and the formula itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from small_chains import given_chain

from forewarn.errors import CheckingError, ModelError
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary


def model(
    counts: list[list[int]],
    forbidden: Sequence[tuple[int, int]] = (),
    smoothing: Smoothing | None = None,
) -> CountModel:
    """Three ordinary states and a terminal one."""
    n = len(counts)
    marks = np.zeros((n, n), dtype=bool)
    for i, j in forbidden:
        marks[i, j] = True
    return CountModel(
        Vocabulary(("a", "b"), ("crash",)),
        10.0,
        "",
        (*range(n - 1), -1),
        sparse.csr_matrix(np.array(counts, dtype=np.int64)),
        np.zeros(n, dtype=np.int64),
        smoothing or Smoothing(),
        sparse.csr_matrix(marks),
    )


COUNTS = [[6, 2, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_laplace_smoothing_by_hand() -> None:
    # State 2 was never observed, so there are 3 candidates; 0 -> crash is forbidden, so k = 2.
    chain = estimate_chain(model(COUNTS, [(0, 3)], Smoothing(1.0)))
    expected = [
        [7 / 10, 3 / 10, 0, 0],
        [1 / 5, 2 / 5, 0, 2 / 5],
        [1 / 3, 1 / 3, 0, 1 / 3],
        [0, 0, 0, 1],
    ]
    np.testing.assert_allclose(chain.to_csr().toarray(), expected, rtol=1e-15)


def test_the_sparse_prior_weighs_one_in_all() -> None:
    chain = estimate_chain(model(COUNTS, smoothing=Smoothing("sparse", "admissible")))
    np.testing.assert_allclose(chain.row(1), [1 / 12, 5 / 12, 1 / 12, 5 / 12], rtol=1e-15)


def test_without_smoothing_a_row_without_counts_is_unseen() -> None:
    chain = estimate_chain(model(COUNTS, smoothing=Smoothing("none")))
    assert chain.unseen.tolist() == [False, False, True, False]
    np.testing.assert_array_equal(chain.row(2), 0)
    np.testing.assert_array_equal(chain.row(0), [0.75, 0.25, 0, 0])


@given(st.data())
def test_every_entry_follows_the_formula(data: st.DataObject) -> None:
    n = 4
    cells = data.draw(st.lists(st.integers(0, 5), min_size=n * n, max_size=n * n))
    counts = np.array(cells).reshape(n, n)
    counts[-1] = 0
    free = [(i, j) for i in range(n) for j in range(n) if not counts[i, j]]
    forbidden = data.draw(st.lists(st.sampled_from(free), unique=True)) if free else []
    alpha = data.draw(st.sampled_from([0.25, 1.0, 3.0]))
    candidates = data.draw(st.sampled_from(["observed", "admissible"]))
    built = model(counts.tolist(), forbidden, Smoothing(alpha, candidates))
    chain = estimate_chain(built)
    seen = {i for i in range(n) if counts[i].any() or counts[:, i].any()}
    pool = seen if candidates == "observed" else set(range(n))
    for i in range(n - 1):
        valid = [j for j in range(n) if j in pool and (i, j) not in forbidden]
        weight = int(counts[i].sum()) + len(valid) * Fraction(alpha)
        row = chain.row(i)
        for j in range(n):
            share = int(counts[i, j]) + (Fraction(alpha) if j in valid else 0)
            expected = share / weight if weight else 0
            assert row[j] == pytest.approx(float(expected), abs=1e-15)
    vector = np.arange(1.0, n + 1)
    np.testing.assert_allclose(chain.apply(vector), chain.to_csr().toarray() @ vector, rtol=1e-14)
    rows = [chain.row(i) for i in range(n)]
    np.testing.assert_allclose(chain.to_csr().toarray(), rows, rtol=1e-14)


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[0.5, 0.4], [0, 1]], "row 0 of the transition matrix sums to 0.9"),
        ([[np.nan, 1], [0, 1]], "nan"),
        ([[1.5, -0.5], [0, 1]], r"entry \[0, 1\] is -0.5"),
        ([[np.inf, 0], [0, 1]], "inf"),
    ],
)
def test_what_is_no_stochastic_matrix_is_refused(matrix: list[list[float]], said: str) -> None:
    with pytest.raises(CheckingError, match=said):
        given_chain(matrix)


def test_counts_for_a_forbidden_transition_are_refused() -> None:
    with pytest.raises(ModelError, match="forbidden transition"):
        model(COUNTS, [(0, 1)])


def test_counts_out_of_a_terminal_state_are_refused() -> None:
    with pytest.raises(ModelError, match="terminal state 'crash'"):
        model([[1, 0], [1, 0]])


@pytest.mark.parametrize("alpha", [-1.0, float("nan"), float("inf"), "some", True])
def test_a_smoothing_weight_must_make_sense(alpha: object) -> None:
    with pytest.raises(ModelError, match=r"smoothing\.alpha"):
        Smoothing(alpha)  # type: ignore[arg-type]
