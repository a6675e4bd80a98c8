"""Which ticks make a transition (DESIGN.md, section 3)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forewarn.learning import TransitionCounter, build_model
from forewarn.models import Smoothing
from forewarn.vocabulary import Vocabulary

VOCABULARY = Vocabulary(("a", "b"), ("crash", "arrived"))
CRASH = -1


def counted(
    *recordings: list[int | None], counter: TransitionCounter | None = None
) -> TransitionCounter:
    counter = counter or TransitionCounter(VOCABULARY)
    for states in recordings:
        for tick, state in enumerate(states):
            counter.add(tick, state)
        counter.end_recording()
    return counter


def test_consecutive_known_ticks_are_counted() -> None:
    result = counted([0, 0, 1, 0]).result
    assert result.transitions == {(0, 0): 1, (0, 1): 1, (1, 0): 1}
    assert result.starts == {0: 1}
    assert result.triples == {(0, 0, 1): 1, (0, 1, 0): 1}


def test_nothing_joins_across_an_unknown_tick_or_two_recordings() -> None:
    result = counted([0, None, 1, 1], [2, 3]).result
    assert result.transitions == {(1, 1): 1, (2, 3): 1}
    assert result.unknown == 1
    assert result.starts == {0: 1, 2: 1}


def test_nothing_joins_across_a_missing_tick() -> None:
    counter = TransitionCounter(VOCABULARY)
    for tick, state in [(4, 0), (5, 1), (7, 0), (8, 0)]:
        counter.add(tick, state)
    assert counter.result.transitions == {(0, 1): 1, (0, 0): 1}
    assert counter.result.gaps == 1


def test_ticks_under_an_intervention_are_left_out_and_counted_apart() -> None:
    counter = TransitionCounter(VOCABULARY)
    for tick, (state, intervened) in enumerate([(0, False), (1, True), (1, False), (0, False)]):
        counter.add(tick, state, intervened)
    assert counter.result.transitions == {(1, 0): 1}
    assert counter.result.intervened == 1


def test_a_terminal_state_absorbs_and_what_follows_is_a_new_episode() -> None:
    result = counted([0, CRASH, CRASH, CRASH, 2, 2]).result
    assert result.transitions == {(0, CRASH): 1, (2, 2): 1}
    assert result.starts == {0: 1, 2: 1}


def test_the_end_of_a_recording_is_no_transition() -> None:
    assert counted([0, 1]).result.transitions == {(0, 1): 1}


def test_the_end_of_a_recording_can_absorb() -> None:
    counter = counted(
        [0, 1], [0, CRASH], [0, None], counter=TransitionCounter(VOCABULARY, "absorb")
    )
    end = -3
    assert counter.vocabulary.terminals == ("crash", "arrived", "end")
    assert counter.result.transitions == {(0, 1): 1, (1, end): 1, (0, CRASH): 1}


def test_a_transition_that_a_rule_forbids_is_reported_not_counted() -> None:
    counter = TransitionCounter(VOCABULARY, is_valid=lambda i, j: (i, j) != (1, 0))
    result = counted([0, 1, 0, 0], counter=counter).result
    assert result.transitions == {(0, 1): 1, (0, 0): 1}
    assert result.refused == {(1, 0): 1}
    assert not result.triples


def test_ticks_must_grow() -> None:
    counter = TransitionCounter(VOCABULARY)
    counter.add(3, 0)
    with pytest.raises(ValueError, match="tick 3 after tick 3"):
        counter.add(3, 0)


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, CRASH, None])), max_size=4))
def test_counts_equal_the_definition(recordings: list[list[int | None]]) -> None:
    expected = Counter(
        (i, j)
        for states in recordings
        for i, j in pairwise(states)
        if i is not None and j is not None and i >= 0
    )
    assert counted(*recordings).result.transitions == expected


def test_the_model_lists_masks_before_terminals_and_adds_admissible_states() -> None:
    counter = counted([3, 3, CRASH], [0, 3])
    built = build_model(
        counter,
        rate=10.0,
        digest="d",
        smoothing=Smoothing(1.0, "admissible"),
        admissible=[2, 3],
        forbid=lambda states: sparse.csr_matrix(np.diag([s == 2 for s in states])),
    )
    assert built.states == (0, 2, 3, CRASH, -2)
    assert built.counts.toarray().tolist() == [
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert built.starts.tolist() == [1, 0, 1, 0, 0]
    assert built.forbidden[1, 1]
    assert built.observed.tolist() == [True, False, True, True, False]
