"""The likeliest way to a violation, on chains small enough to see it."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.paths import likeliest_way
from forewarn.reports.states import reachable, riskiest

TEXT = (
    "version: 1\nrate: 1\nsignals: {a: {}, b: {}}\npredicates: {p: a > 0, q: b > 0}\n"
    "bounds: {kind: none}\nproperties:\n"
    "  never: {formula: always(not (p and q)), horizon: 5}\n"
    "  answered: {formula: 'always(p implies eventually[0:2](q))', horizon: 5}\n"
)


COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


def solved(counts: Any) -> tuple[CountModel, dict[str, CompiledProperty]]:
    """Return the model over the four states of two predicates, and its properties."""
    model = CountModel(
        vocabulary=COMPILED.abstraction.vocabulary,
        rate=1.0,
        digest=COMPILED.abstraction.digest,
        states=(0, 1, 2, 3),
        counts=sparse.csr_matrix(np.array(counts, dtype=np.int64)),
        starts=np.array([1, 0, 0, 0], dtype=np.int64),
    )
    monitor = build_monitor(COMPILED, model)
    return model, {prop.name: prop for prop in monitor.properties}


def test_the_way_takes_the_likelier_of_two_detours() -> None:
    # 0 -> 1 with 1/10 and 0 -> 2 with 2/10, both then surely to 3; staying does not count.
    model, found = solved([[70, 10, 20, 0], [0, 0, 0, 9], [0, 0, 0, 9], [5, 0, 0, 0]])
    way = likeliest_way(found["never"], model)
    assert way is not None
    assert [stay.row for stay in way.stays] == [0, 2, 3]
    assert way.probability == pytest.approx(20 / 30)


def test_ticks_of_a_pending_obligation_are_one_stay() -> None:
    # p alone holds; unanswered for two ticks more it is a violation.
    model, found = solved([[90, 10, 0, 0], [0, 6, 0, 4], [0, 0, 1, 0], [8, 0, 0, 1]])
    way = likeliest_way(found["answered"], model)
    assert way is not None
    assert [(stay.row, stay.ticks) for stay in way.stays] == [(0, 1), (1, 3)]
    assert way.probability == pytest.approx(1.0 * 0.6 * 0.6)


def test_there_is_no_way_where_counts_lead_to_no_violation() -> None:
    model, found = solved([[9, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    assert likeliest_way(found["never"], model) is None


@given(st.lists(st.integers(0, 4), min_size=16, max_size=16))
def test_no_way_of_up_to_four_moves_is_likelier(numbers: list[int]) -> None:
    counts = np.array(numbers).reshape(4, 4)
    model, found = solved(counts)
    way = likeliest_way(found["never"], model)
    moves = counts * (1 - np.eye(4, dtype=int))
    start, best = int(np.argmax(model.visits)), 0.0
    for length in range(1, 5):
        for rest in product(range(4), repeat=length):
            rows = (start, *rest)
            if rows[-1] != 3 or 3 in rows[1:-1]:
                continue
            steps = list(pairwise(rows))
            if all(moves[i, j] for i, j in steps):
                best = max(best, math.prod(moves[i, j] / moves[i].sum() for i, j in steps))
    if start != 3 and (best or way is not None):
        assert way is not None
        assert way.probability == pytest.approx(best)


def test_reachable_states_exclude_obligations_that_cannot_be_pending() -> None:
    model, found = solved([[9, 1, 0, 0], [0, 0, 0, 4], [0, 0, 1, 0], [4, 0, 0, 0]])
    answered = found["answered"]
    pairs = reachable(answered, model)
    waiting = {q for row, q in pairs if row == 0}
    assert waiting == {answered.automaton.initial}, "p is answered before 0 is entered again"
    assert riskiest(found["never"], model, 9)[0].name == "p"
