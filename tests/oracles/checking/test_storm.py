"""Storm as a checker, through either generation of its Python package."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking import ctl
from forewarn.errors import CheckingError
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary

pytest.importorskip("stormpy", reason="Storm's Python package is the oracle here")

from forewarn.wings.decisions import storm
from forewarn.wings.decisions.storm_api import Storm


def model(counts: NDArray[np.int64], alpha: object = "none", terminals: int = 1) -> CountModel:
    n = len(counts)
    return CountModel(
        Vocabulary(("a", "ttc<1"), ("crash",)),
        10.0,
        "",
        (*range(n - terminals), *(-1 - i for i in range(terminals))),
        sparse.csr_matrix(counts),
        np.eye(1, n, dtype=np.int64)[0],
        Smoothing(alpha),  # type: ignore[arg-type]
    )


COUNTS = np.array([[4, 3, 1, 0], [2, 0, 1, 1], [5, 5, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("row", "said"),
    [([0.5, 0.4], "sums to 0.9"), ([np.nan, 1.0], "not finite"), ([1.5, -0.5], "negative")],
)
def test_what_storm_would_take_in_silence_is_refused(row: list[float], said: str) -> None:
    with pytest.raises(CheckingError, match=said):
        Storm().dtmc(sparse.csr_matrix([row, [0.0, 1.0]]), {})


def test_a_pctl_query_names_predicates_and_labels() -> None:
    counted = model(COUNTS)
    chain = estimate_chain(counted)
    found = storm.check_query(counted, chain, 'P=? [F<=2 "crash"]')
    # From state 1: at once 1/4, or 2/4 by state 0 (no way) and 1/4 by state 2 (no way).
    assert found.values[1] == pytest.approx(0.25)
    # By hand: P^2 from state 0 is 3/8 * 1/4.
    assert found.values[0] == pytest.approx(3 / 32)
    other = storm.check_query(counted, chain, 'P>=0.2 [X "crash"] & !"ttc<1"')
    assert other.values.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ('P=? [F "crush"]', "'crush' is not known"),
        ("P=? [F<=", "Storm does not take"),
        ('P=? [G<=3 "crash"]', r"write !\(F<=k"),
        ('P=? [F<=1/0 "crash"]', "divides by zero"),
        ('P=? [F<=1/(2-2) "crash"]', "divides by zero"),
        ('P=? [F<=5 % 0 "crash"]', "divides by zero"),
        ('P=? [F "crash"]; P=? [X "crash"]', "2 queries .accepted: one at a time"),
        ("AG (crash", "column 10"),
        ("AG crash U", "column 10"),
        ("A [crash W a]", "column 10"),
        ("AG $", "column 3"),
        ("AG crush", "'crush' is not known"),
    ],
)
def test_a_query_that_is_not_understood_is_refused(query: str, said: str) -> None:
    counted = model(COUNTS)
    with pytest.raises(CheckingError, match=said):
        storm.check_query(counted, estimate_chain(counted), query)


def lassos(edges: NDArray[np.bool_], start: int) -> Iterable[tuple[list[int], int]]:
    """All paths up to the first repetition: each is a path that then cycles for ever."""
    stack = [[start]]
    while stack:
        path = stack.pop()
        for following in np.flatnonzero(edges[path[-1]]).tolist():
            if following in path:
                yield path, path.index(following)
            else:
                stack.append([*path, following])


def test_every_ctl_operator_equals_its_meaning_on_all_paths() -> None:
    # On a finite graph, AF, EG, AU and the others are decided by paths that repeat no state
    # before they cycle.
    rng = np.random.default_rng(4)
    for _ in range(40):
        n = 5
        edges = rng.random((n, n)) < 0.35
        edges[np.arange(n), rng.integers(0, n, size=n)] = True
        edges[-1] = np.arange(n) == n - 1
        p, q = rng.random(n) < 0.6, rng.random(n) < 0.3
        names = {"p": p, "q": q}
        matrix = sparse.csr_matrix(edges / edges.sum(axis=1, keepdims=True))

        for text in ("AX p", "EX p", "AG p", "EG p", "AF p", "EF p", "A [p U q]", "E [p U q]"):
            found = ctl.evaluate(ctl.parse(text), names.__getitem__, matrix)
            for s in range(n):
                assert found[s] == meaning(text, list(lassos(edges, s)), edges[s], p, q), text


def meaning(text: str, paths: list, following: NDArray, p: NDArray, q: NDArray) -> bool:
    def until(path: list[int]) -> bool:
        head = list(itertools.takewhile(lambda s: p[s] and not q[s], path))
        return len(head) < len(path) and bool(q[path[len(head)]])

    quantifier = all if text[0] == "A" else any
    if text[1] == "X":
        return quantifier(p[following])
    if text[1] == "G":
        return quantifier(all(p[s] for s in path) for path, _ in paths)
    if text[1] == "F":
        return quantifier(any(p[s] for s in path) for path, _ in paths)
    return quantifier(until(path) for path, _ in paths)


BOUNDED = {
    "AF[<=3] q": 'P>=1 [F<=3 "q"]', "EF[<=2] q": 'P>0 [F<=2 "q"]',
    "AG[<=2] p": 'P<=0 [F<=2 !"p"]', "EG[<=2] p": 'P<1 [F<=2 !"p"]',
    "A [p U[<=3] q]": 'P>=1 ["p" U<=3 "q"]', "E [p U[1:3] q]": 'P>0 ["p" U[1,3] "q"]',
    "AF[2:4] q": 'P>=1 [F[2,4] "q"]', "AX q": 'P>=1 [X "q"]', "AG p": 'P>=1 [G "p"]',
    "E [p U q]": 'P>0 ["p" U "q"]',
}  # fmt: skip


def test_bounded_ctl_is_what_storm_says_of_probabilities_0_and_1() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        n = 6
        edges = rng.random((n, n)) < 0.3
        edges[np.arange(n), rng.integers(0, n, size=n)] = True
        names = {"p": rng.random(n) < 0.7, "q": rng.random(n) < 0.3}
        matrix = sparse.csr_matrix(edges / edges.sum(axis=1, keepdims=True))
        made = Storm()
        for text, asked in BOUNDED.items():
            found = ctl.evaluate(ctl.parse(text), names.__getitem__, matrix)
            expected = made.check(made.dtmc(matrix, names), asked)
            assert found.tolist() == [bool(value) for value in expected], text


def test_ctl_speaks_of_models_by_name() -> None:
    counted = model(COUNTS)
    chain = estimate_chain(counted)
    assert storm.check_query(counted, chain, "AG !crash").values.tolist() == [False] * 4
    assert storm.check_query(counted, chain, 'EF "crash"').values.all()
    # State 1 reads a, and can go on to 0, where a does not hold.
    assert storm.check_query(counted, chain, "a => EX !a").values.all()
    assert storm.check_query(counted, chain, "ttc<1 <=> !ttc<1").values.tolist() == [False] * 4


def test_a_chain_of_storm_reports_missing_data() -> None:
    counts = COUNTS.copy()
    counts[2] = 0
    counted = model(counts)
    found = storm.check_query(counted, estimate_chain(counted), "EF crash")
    assert "stay as they are: 1 of them" in found.notes[0]


def test_rows_of_rational_numbers_sum_to_one() -> None:
    matrix = sparse.csr_matrix([[0.1, 0.2, 0.7], [0, 1, 0], [0, 0, 1.0]])
    made = Storm()
    goal = np.array([False, True, False])
    values = made.check(made.dtmc(matrix, {"goal": goal}, exact=True), 'P=? [F "goal"]')
    assert values[0] == pytest.approx(2 / 9, abs=1e-15)


def test_chain_is_checked_flat() -> None:
    chain = estimate_chain(model(COUNTS, 1.0))
    flat = chain.flat()
    assert isinstance(flat, Chain)
    assert not flat.smoothed
    rows = [chain.row(i) for i in range(chain.size)]
    np.testing.assert_allclose(flat.to_csr().toarray(), rows, rtol=1e-15)
