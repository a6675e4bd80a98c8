"""The PAC requirement, against figures worked out by hand and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.learning.coverage import coverage, requirement
from forewarn.models.counts import CountModel
from forewarn.states.vocabulary import Vocabulary


def model(counts: list[list[int]]) -> CountModel:
    n = len(counts)
    return CountModel(
        Vocabulary(tuple(f"p{i}" for i in range(7)), ("end",)),
        10.0,
        "",
        (*range(n - 1), -1),
        sparse.csr_matrix(np.array(counts, dtype=np.int64)),
        np.zeros(n, dtype=np.int64),
    )


def test_the_worst_case_needs_what_the_reference_says() -> None:
    # 64 states, epsilon = delta = 0.05, an even split: 800 ln(2560) / 4 = 1,570 before B.
    needed = requirement(np.array([0.0]), 0.05, 0.05 / 64)
    assert needed[0] == pytest.approx(800 * math.log(2560) / 4)
    assert round(float(needed[0])) == 1570


def test_an_even_split_asks_for_more_than_a_certain_one() -> None:
    found = coverage(model([[50, 50, 0], [0, 99, 1], [0, 0, 0]]))
    assert found.required[0] > found.required[1] > 0
    assert found.required[2] == 0


def test_the_largest_requirement_over_the_successors_counts() -> None:
    # By hand: the successor nearest to 1/2 is 0.4 away from 0 by 0.1; |S| = 2.
    found = coverage(model([[40, 30, 30], [0, 100, 0], [0, 0, 0]]), 0.1, 0.05)
    inner = 0.1 - 0.2 / 3
    expected = 1.21 * 200 * math.log(2 / 0.025) * (0.25 - inner**2)
    assert found.required[0] == math.ceil(expected)
    certain = 1.21 * 200 * math.log(2 / 0.025) * (0.25 - (0.5 - 0.2 / 3) ** 2)
    assert found.required[1] == math.ceil(certain)


def test_the_sensitivity_enters_squared() -> None:
    counted = model([[50, 50, 0], [10, 10, 0], [0, 0, 0]])
    one, ten = coverage(counted), coverage(counted, factor=10.0)
    assert ten.required[0] == pytest.approx(100 * one.required[0], rel=0.01)


def test_missing_visits_and_share_add_up() -> None:
    found = coverage(model([[5000, 5000, 0], [10, 0, 0], [0, 0, 0]]))
    assert found.missing.tolist() == [0, found.required[1] - 10, 0]
    assert found.covered.tolist() == [True, False, True]
    assert not found.complete
    total = found.required.sum()
    assert found.share == pytest.approx((found.required[0] + 10) / total)


def test_an_unvisited_state_asks_for_the_most() -> None:
    found = coverage(model([[50, 50, 0], [0, 0, 0], [0, 0, 0]]))
    assert found.required[1] == found.required[0]


def test_required_visits_give_the_error_promised() -> None:
    # Enough visits by the requirement, and the estimate is off by more than epsilon at most
    # delta / |S| of the time.
    rng = np.random.default_rng(7)
    for truth in (0.5, 0.3, 0.9):
        visits = math.ceil(float(requirement(np.array([abs(0.5 - truth)]), 0.1, 0.05)[0]))
        errors = np.abs(rng.binomial(visits, truth, size=20_000) / visits - truth)
        assert (errors > 0.1).mean() <= 0.05


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"factor": float("inf")}, "horizon"),
        ({"factor": -1.0}, "factor"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: dict[str, float], key: str) -> None:
    with pytest.raises(ModelError, match=key):
        coverage(model([[1, 0], [0, 0]]), **arguments)
