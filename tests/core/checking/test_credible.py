"""Credible bounds: what is sampled is the posterior, and what is solved is each sampled chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from small_chains import given_chain

from forewarn.checking.credible import PosteriorSampler, RiskQuery, credible_tables
from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import point_values, risk_table
from forewarn.logic.automaton import Automaton
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary

Response = Callable[[int], Automaton]
CLASSES = np.array([0, 1, 2, 0, 1, ENDED])


def model(scale: int = 1, alpha: object = "sparse", seed: int = 3) -> CountModel:
    rng = np.random.default_rng(seed)
    counts = scale * rng.integers(0, 6, size=(6, 6)) * (rng.random((6, 6)) < 0.6)
    counts[np.arange(5), [1, 2, 0, 4, 5]] += scale
    counts[5] = 0
    forbidden = np.zeros((6, 6), dtype=bool)
    forbidden[0, 4] = True
    counts[0, 4] = 0
    return CountModel(
        Vocabulary(("a", "b", "c"), ("end",)),
        10.0,
        "d",
        (0, 1, 2, 3, 4, -1),
        sparse.csr_matrix(counts),
        np.zeros(6, dtype=np.int64),
        Smoothing(alpha),  # type: ignore[arg-type]
        sparse.csr_matrix(forbidden),
    )


@pytest.mark.parametrize("alpha", ["sparse", 1.0, 4.0])
def test_sampled_rows_have_the_moments_of_the_dirichlet_posterior(alpha: object) -> None:
    counted = model(alpha=alpha)
    draws = 6000
    block = PosteriorSampler(counted, counted.smoothing).draw(draws)
    matrix = block.sparse
    dense = np.stack([matrix[6 * k : 6 * k + 6, 6 * k : 6 * k + 6].toarray() for k in range(draws)])
    expected = estimate_chain(counted).to_csr().toarray()
    np.testing.assert_allclose(dense.sum(axis=2), 1.0, atol=1e-12)
    np.testing.assert_allclose(dense.mean(axis=0), expected, atol=0.015)
    assert (dense[:, 0, 4] == 0).all()
    weight = counted.visits[:5] + (1.0 if alpha == "sparse" else alpha * np.array([5, 6, 6, 6, 6]))
    variance = expected[:5] * (1 - expected[:5]) / (weight[:, None] + 1)
    seen = counted.counts.toarray()[:5] > 0
    np.testing.assert_allclose(dense.var(axis=0)[:5][seen], variance[seen], rtol=0.15, atol=2e-4)


@pytest.mark.parametrize("horizon", [2, 7, 60, 400, None])
@pytest.mark.parametrize("alpha", ["sparse", 4.0])
@pytest.mark.parametrize("fast", [True, False])
def test_chains_side_by_side_are_solved_like_each_alone(
    response: Response, horizon: int | None, alpha: object, fast: bool
) -> None:
    automaton = response(4) if fast else replace(response(4), countdown=None)
    counted = model(alpha=alpha)
    block = PosteriorSampler(counted, counted.smoothing).draw(5)
    values, _ = point_values(block, automaton, np.tile(CLASSES, 5), horizon, blocks=5)
    for k in range(5):
        part = slice(6 * k, 6 * k + 6)
        alone = given_chain(block.sparse[part, part], counted.terminal)
        table = risk_table(alone, automaton, CLASSES, horizon)
        np.testing.assert_allclose(values[part], table.values, rtol=0, atol=1e-9)


def test_the_same_model_gives_the_same_bounds(response: Response) -> None:
    questions = [RiskQuery(response(3), CLASSES, 8), RiskQuery(response(2), CLASSES, None)]
    once, again = (credible_tables(model(), questions) for _ in range(2))
    for one, other in zip(once, again, strict=True):
        assert one.lower is not None and other.lower is not None
        np.testing.assert_array_equal(one.lower, other.lower)
        np.testing.assert_array_equal(one.upper, other.upper)
        assert one.kind == "credible"
        assert one.confidence == 0.95


def test_bounds_hold_the_estimate_and_shrink_with_data(response: Response) -> None:
    widths = []
    for scale in (1, 10, 1000):
        table = credible_tables(model(scale), [RiskQuery(response(3), CLASSES, 8)])[0]
        assert table.lower is not None and table.upper is not None
        assert (table.lower <= table.values).all()
        assert (table.values <= table.upper).all()
        assert (table.lower >= 0).all()
        assert (table.upper <= 1).all()
        widths.append(float((table.upper - table.lower)[:5].mean()))
    assert widths[0] > 2 * widths[1] > 10 * widths[2]


def test_a_terminal_label_never_seen_is_still_possible() -> None:
    counted = model()
    counts = counted.counts.toarray()
    counts[:, 5] = 0
    counts[3, 0] = 1
    counts[4, 0] = 1
    counted = replace(counted, counts=sparse.csr_matrix(counts))
    never_end = Automaton(
        ("end",),
        np.array([0, 1], dtype=np.int32),
        np.array([[0, 1], [1, 1]], dtype=np.int32),
        0,
        1,
        None,
        ("safe", "violated"),
    )
    classes = np.array([0, 0, 0, 0, 0, 1])
    table = credible_tables(counted, [RiskQuery(never_end, classes, 10)])[0]
    assert (table.values[:5, 0] == 0).all()
    assert table.upper is not None
    assert (table.upper[:5, 0] > 0.01).all()


def test_without_smoothing_an_unseen_state_has_bounds_zero_to_one(response: Response) -> None:
    counted = model(alpha="none")
    counts = counted.counts.toarray()
    counts[3] = 0
    counted = replace(counted, counts=sparse.csr_matrix(counts))
    table = credible_tables(counted, [RiskQuery(response(3), CLASSES, 8)])[0]
    assert table.lower is not None and table.upper is not None
    assert np.isnan(table.values[3, 0])
    assert (table.lower[3, 0], table.upper[3, 0]) == (0.0, 1.0)
    assert (table.upper[3, 4], table.lower[3, 4]) == (1.0, 1.0)
    assert np.isfinite(table.upper).all()
