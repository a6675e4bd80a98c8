"""The ways to a violation, against all paths written out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from small_chains import given_chain

from forewarn.checking import explanation
from forewarn.checking.explanation import likely_ways, predicate_effects
from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import risk_table
from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary

Response = Callable[[int], Automaton]
MakeChain = Callable[..., Chain]


def all_ways(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], s: int, q: int, horizon: int
) -> dict[tuple[int, ...], tuple[float, float]]:
    """Probability and mean time of every sequence of states, by enumerating all paths."""
    matrix = chain.to_csr().toarray()
    found: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    stack = [((s,), q, 1.0, 0)]
    while stack:
        states, here, weight, t = stack.pop()
        if here == automaton.violated:
            found[states][0] += weight
            found[states][1] += weight * t
            continue
        if t == horizon or chain.absorbing[states[-1]]:
            continue
        for following in np.flatnonzero(matrix[states[-1]]).tolist():
            if classes[following] == ENDED:
                continue
            after = int(automaton.transitions[here, classes[following]])
            longer = states if following == states[-1] else (*states, following)
            stack.append((longer, after, weight * matrix[states[-1], following], t + 1))
    return {states: (mass, time / mass) for states, (mass, time) in found.items()}


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_likeliest_ways_are_found_in_order(
    random_chain: MakeChain,
    response: Response,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    memory: bool,
) -> None:
    if not memory:
        monkeypatch.setattr(explanation, "MAX_CELLS", 0)
    chain = random_chain(6, 3, 1, 0.05, seed)
    classes = np.array([0, 1, 0, 1, 2, ENDED])
    automaton = response(2)
    table = risk_table(chain, automaton, classes, 7)
    for s, q in ((0, 0), (1, 2), (2, 1)):
        expected = all_ways(chain, automaton, classes, s, q, 7)
        ranked = sorted(expected.items(), key=lambda item: -item[1][0])
        found = likely_ways(chain, automaton, classes, table, s, q, number=4)
        assert len(found) == min(4, len(ranked))
        for way, (_, (mass, _)) in zip(found, ranked, strict=False):
            assert way.probability == pytest.approx(mass)
            assert expected[way.states] == pytest.approx((way.probability, way.steps))
            assert way.share == pytest.approx(mass / table.values[s, q])


def test_all_ways_add_up_to_the_risk(
    random_chain: MakeChain, response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = random_chain(5, 2, 1, 0.05, 3)
    classes = np.array([0, 1, 0, 2, ENDED])
    table = risk_table(chain, response(1), classes, 6)
    monkeypatch.setattr(explanation, "MAX_EXPANSIONS", 100_000)
    found = likely_ways(chain, response(1), classes, table, 1, 1, number=10_000)
    assert sum(way.probability for way in found) == pytest.approx(table.values[1, 1])
    assert sum(way.share for way in found) == pytest.approx(1.0)


def test_without_a_horizon_stays_of_any_length_count(response: Response) -> None:
    # From 0: stay with 0.9, or go to the trigger 1 (0.06) or to the end; 1 stays for ever half
    # of the time, which violates.
    chain = given_chain([[0.9, 0.06, 0.04], [0.0, 0.5, 0.5], [0, 0, 1]], np.arange(3) == 2)
    classes = np.array([0, 1, ENDED])
    table = risk_table(chain, response(1), classes, None)
    found = likely_ways(chain, response(1), classes, table, 0, 0)
    assert [way.states for way in found] == [(0, 1)]
    assert found[0].probability == pytest.approx(0.6 * 0.5)
    assert found[0].share == pytest.approx(1.0)


def test_no_risk_has_no_ways(response: Response) -> None:
    chain = given_chain([[1.0]])
    table = risk_table(chain, response(1), np.array([2]), 5)
    assert likely_ways(chain, response(1), np.array([2]), table, 0, 0) == []
    assert likely_ways(chain, response(1), np.array([2]), table, 0, 2) == []


def test_where_ways_are_many_the_search_still_finds_some(
    random_chain: MakeChain, response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanation, "MAX_EXPANSIONS", 10)
    chain = random_chain(6, 3, 1, 0.05, 2)
    classes = np.array([0, 1, 0, 1, 2, ENDED])
    automaton = response(2)
    table = risk_table(chain, automaton, classes, 8)
    expected = all_ways(chain, automaton, classes, 0, 0, 8)
    found = likely_ways(chain, automaton, classes, table, 0, 0, number=3)
    assert len(found) == 3
    for way in found:
        assert (way.probability, way.steps) == pytest.approx(expected[way.states])


def test_predicates_are_ranked_by_how_far_they_lower_the_risk(response: Response) -> None:
    counts = np.array([[6, 2, 1, 1], [1, 6, 1, 2], [5, 0, 5, 0], [2, 2, 2, 4]])
    model = CountModel(
        Vocabulary(("a", "b", "c")),
        10.0,
        "",
        (0, 1, 2, 3),
        sparse.csr_matrix(counts),
        np.zeros(4, dtype=np.int64),
        Smoothing("none"),
    )
    automaton = response(2)
    classes = np.array([0, 1, 2, 2])
    table = risk_table(estimate_chain(model), automaton, classes, 6)
    # In state 1 (a holds, b does not) one tick is left.
    found = predicate_effects(model, automaton, classes, table, 1, 1)
    assert [effect.predicate for effect in found] == ["b", "a"]
    assert found[0].value is True
    assert found[0].risk == table.values[3, 0]
    assert found[0].change == pytest.approx(table.values[3, 0] - 1.0)
    assert found[1].change == 0.0
    counts = counts.copy()
    counts[3] = 0
    terminal = replace(
        model,
        vocabulary=Vocabulary(("a", "b", "c"), ("end",)),
        states=(0, 1, 2, -1),
        counts=sparse.csr_matrix(counts),
    )
    assert predicate_effects(terminal, automaton, classes, table, 3, 0) == []
