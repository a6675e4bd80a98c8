"""Tables that follow new counts are those of a model learned from all counts at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from forewarn.checking import idle, label_states, risk_table
from forewarn.checking.incremental import OnlineRisk, add_counts, refresh
from forewarn.errors import ModelError
from forewarn.models import CountModel, Smoothing, estimate_chain
from forewarn.properties.automaton import Automaton
from forewarn.vocabulary import Vocabulary

Response = Callable[[int], Automaton]


def model(n: int = 16, seed: int = 0) -> CountModel:
    """Counts over masks of predicates a, b, c, d and a terminal state."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, size=(n + 1, n + 1)) * (rng.random((n + 1, n + 1)) < 0.3)
    counts[np.arange(n), (np.arange(n) + 1) % n] += 1
    counts[3, n] += 1
    counts[n] = 0
    return CountModel(
        Vocabulary(("a", "b", "c", "d"), ("end",)),
        10.0,
        "d",
        (*range(n), -1),
        sparse.csr_matrix(counts),
        np.zeros(n + 1, dtype=np.int64),
        Smoothing(),
    )


def run(length: int, seed: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 16, size=length + 1).tolist()
    return list(pairwise(states))


def test_added_counts_are_those_of_one_model() -> None:
    start = model()
    more = Counter(run(500, 1))
    added = add_counts(start, more)
    expected = start.counts.toarray()
    for (i, j), number in more.items():
        expected[i, j] += number
    np.testing.assert_array_equal(added.counts.toarray(), expected)
    assert add_counts(start, {}) is start


def test_a_state_never_seen_joins_the_model() -> None:
    small = model(8)
    added = add_counts(small, {(0, 12): 2, (12, 3): 1})
    assert added.states == (*range(8), 12, -1)
    assert added.counts[added.index[0], added.index[12]] == 2
    assert added.counts[added.index[3], added.index[-1]] == small.counts[3, 8]


@pytest.mark.parametrize("horizon", [4, 30, None])
def test_a_refresh_equals_a_fresh_start(
    response: Response, monkeypatch: pytest.MonkeyPatch, horizon: int | None
) -> None:
    monkeypatch.setattr(idle, "DENSE_STATES", 0)
    properties = [(response(3), horizon)]
    before = refresh(model(), properties)
    after = refresh(add_counts(model(), Counter(run(30, 2))), properties, before)
    classes = label_states(response(3), after.model.vocabulary, after.model.states)
    fresh = risk_table(estimate_chain(after.model), response(3), classes, horizon)
    np.testing.assert_allclose(after.tables[0].values, fresh.values, rtol=1e-8, atol=1e-12)
    assert np.abs(after.tables[0].values - before.tables[0].values).max() > 1e-4


def test_ticks_go_on_while_tables_follow(response: Response) -> None:
    properties = [(response(3), 12), (response(1), None)]
    online = OnlineRisk(model(), properties, tolerance=1e-4)
    transitions = run(2000, 3)
    swaps = 0
    for before, after in transitions:
        online.add(before, after)
        swaps += online.poll() is not None
    deadline = time.monotonic() + 60
    while not swaps and time.monotonic() < deadline:
        swaps += online.poll() is not None
    final = online.close()
    # However many refreshes came in between, nothing is lost and nothing counted twice.
    fresh = refresh(add_counts(model(), Counter(transitions)), properties)
    assert (final.model.counts != fresh.model.counts).nnz == 0
    for one, other in zip(final.tables, fresh.tables, strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-8, atol=1e-12)
    assert swaps >= 1


def test_a_refresh_waits_until_it_matters(response: Response) -> None:
    heavy = replace(model(), counts=model().counts * 1_000_000)
    online = OnlineRisk(heavy, [(response(3), 12)], tolerance=1e-3)
    for before, after in run(50, 4):
        online.add(before, after)
        assert online.poll() is None
    assert threading.active_count() >= 1
    assert online.close().model.visits.sum() == heavy.visits.sum() + 50


def test_a_terminal_state_has_no_successors(response: Response) -> None:
    online = OnlineRisk(model(), [(response(3), 12)])
    with pytest.raises(ModelError, match="terminal state -1"):
        online.add(-1, 0)
    online.close()
