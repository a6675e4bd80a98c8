"""Which ticks make a transition (DESIGN.md, section 3)."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forewarn.learning.counting import Counts, TransitionCounter, build_model
from forewarn.models.counts import EndRule, Provenance, Smoothing
from forewarn.states.vocabulary import Vocabulary

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


class Tick(NamedTuple):
    """A tick of a recording: how far from the one before, its state, and who drove."""

    step: int
    state: int | None
    intervened: bool


TICKS = st.builds(
    Tick,
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from([0, 1, 2, CRASH, None]),
    st.sampled_from([False, False, True]),
)
RECORDINGS = st.lists(st.lists(TICKS, max_size=8), max_size=4)
END = -3


def allowed(before: int, after: int) -> bool:
    return (before, after) not in {(1, 0), (2, END)}


def by_definition(recordings: list[list[Tick]], end: bool) -> Counts:
    """Count what the recordings hold, looking at whole recordings at once."""
    result = Counts(Counter(), Counter(), Counter(), 0, 0, 0, 0, Counter(), Counter())
    gaps = sum(tick.step > 1 for ticks in recordings for tick in ticks[1:])
    for ticks in recordings:
        usable = [None if tick.intervened else tick.state for tick in ticks]
        closes = end and bool(usable) and usable[-1] is not None and usable[-1] >= 0
        states = [*usable, END] if closes else usable
        joined = [
            k > 0
            and (k == len(ticks) or ticks[k].step == 1)
            and None not in states[k - 1 : k + 1]
            and states[k - 1] >= 0
            for k in range(len(states))
        ]
        kept = [joined[k] and allowed(*states[k - 1 : k + 1]) for k in range(len(states))]
        inner = [k for k, state in enumerate(usable) if state is not None and state >= 0]
        after = [k for k in inner if k and ticks[k].step == 1 and usable[k - 1] == CRASH]
        result.starts.update(states[k] for k in {*inner[:1], *after})
        for k in range(len(states)):
            if joined[k]:
                (result.transitions if kept[k] else result.refused)[(*states[k - 1 : k + 1],)] += 1
            if kept[k] and kept[k - 1]:
                result.triples[(*states[k - 2 : k + 1],)] += 1
    every = [tick for ticks in recordings for tick in ticks]
    return result._replace(
        ticks=len(every),
        unknown=sum(tick.state is None for tick in every),
        intervened=sum(tick.intervened for tick in every),
        gaps=gaps,
    )


def counter_of(recordings: list[list[Tick]], end: EndRule) -> TransitionCounter:
    counter = TransitionCounter(VOCABULARY, end, allowed)
    for ticks in recordings:
        at = accumulate(tick.step for tick in ticks)
        told = [
            counter.add(k, tick.state, tick.intervened) for k, tick in zip(at, ticks, strict=True)
        ]
        before = by_definition([ticks], end=False).transitions.total()
        assert sum(told) == before and all(type(item) is bool for item in told)
        counter.end_recording()
    return counter


@given(RECORDINGS, st.sampled_from(["drop", "absorb"]))
def test_counts_equal_the_definition(recordings: list[list[Tick]], end: EndRule) -> None:
    assert counter_of(recordings, end).result == by_definition(recordings, end == "absorb")


@given(RECORDINGS, RECORDINGS)
def test_counters_add_up(first: list[list[Tick]], second: list[list[Tick]]) -> None:
    counter = counter_of(first, "absorb")
    counter.include([counter_of(second, "absorb").result] * 2)
    assert counter.result == by_definition(first + 2 * second, end=True)


def test_a_model_says_where_it_comes_from() -> None:
    counter = TransitionCounter(VOCABULARY, "absorb")
    counter.add(0, 1)
    counter.add(1, 1, intervened=True)
    origin = (Provenance("drive.mcap"),)
    built = build_model(counter, rate=10.0, digest="d", provenance=origin)
    assert (built.rate, built.digest, built.provenance) == (10.0, "d", origin)
    assert (built.intervened, built.end) == (1, "absorb")
    assert built.vocabulary == Vocabulary(("a", "b"), ("crash", "arrived", "end"))
    assert built.smoothing == Smoothing()


@pytest.mark.filterwarnings("error")
def test_a_model_of_nothing_has_the_terminal_labels() -> None:
    built = build_model(TransitionCounter(VOCABULARY), rate=10.0, digest="d")
    assert (built.states, built.end) == ((-1, -2), "drop")
    assert (built.counts.dtype, built.counts.shape) == (np.int64, (2, 2))
    assert (built.forbidden.dtype, built.forbidden.shape) == (bool, (2, 2))
    nothing = build_model(TransitionCounter(Vocabulary((), ())), rate=10.0, digest="d")
    assert (nothing.starts.dtype, nothing.starts.shape) == (np.int64, (0,))


def test_a_state_that_is_only_left_or_only_entered_is_in_the_model() -> None:
    built = build_model(counted([0, 1], [3]), rate=10.0, digest="d")
    assert built.states == (0, 1, 3, CRASH, -2)
    assert built.counts.dtype == np.int64


def test_the_model_lists_masks_before_terminals_and_adds_admissible_states() -> None:
    counter = counted([3, 3, CRASH], [0, 3])
    built = build_model(
        counter,
        rate=10.0,
        digest="d",
        smoothing=Smoothing(1.0, "admissible"),
        admissible=[2, 3],
        forbid=lambda states: sparse.csr_matrix(np.diag([int(s == 2) for s in states])),
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
    assert built.forbidden.dtype == bool
    assert built.forbidden[1, 1]
    assert built.smoothing == Smoothing(1.0, "admissible")
    assert built.observed.tolist() == [True, False, True, True, False]
