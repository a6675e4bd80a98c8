"""Long automata are made small in a time that grows with their size, and to the same result."""

from __future__ import annotations

import numpy as np
import pytest
from extent import repetitions
from hypothesis import given
from hypothesis import strategies as st

from forewarn.logic.automaton import MAX_ROUNDS, Machine, doomed, minimise, refine
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula

MACHINES = st.integers(1, 25).flatmap(
    lambda size: st.tuples(
        st.integers(1, 3).flatmap(
            lambda letters: st.lists(
                st.lists(st.integers(0, size - 1), min_size=letters, max_size=letters),
                min_size=size,
                max_size=size,
            )
        ),
        st.lists(st.integers(0, 2), min_size=size, max_size=size),
    )
)


@given(MACHINES)
def test_the_partition_is_the_coarsest_that_is_stable(
    machine: tuple[list[list[int]], list[int]],
) -> None:
    rows, labels = machine
    # Two states are told apart if some word leads to different labels: pairs, to a fixed point.
    size = len(rows)
    apart = {(a, b) for a in range(size) for b in range(size) if labels[a] != labels[b]}
    while True:
        more = {
            (a, b)
            for a in range(size)
            for b in range(size)
            if any((x, y) in apart for x, y in zip(rows[a], rows[b], strict=True))
        }
        if more <= apart:
            break
        apart |= more
    block = np.unique(labels, return_inverse=True)[1].reshape(-1)
    found = refine(np.array(rows), block)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    assert {(a, b) for a in range(size) for b in range(size) if found[a] != found[b]} == apart


SIZE = repetitions(20_000)


def corridor(size: int) -> Machine:
    """Return a machine that waits `size` steps for one letter, in two copies, and is then bad."""
    steps = np.arange(size)
    on = np.where(steps + 1 < size, steps + 1, 2 * size)
    first = np.column_stack([on, np.full(size, 2 * size + 1)])
    second = np.column_stack([np.where(on == 2 * size, on, on + size), first[:, 1]])
    ends = np.array([[2 * size] * 2, [2 * size + 1] * 2])
    bad = np.zeros(2 * size + 2, dtype=bool)
    bad[2 * size] = True
    names = tuple(map(str, range(2 * size + 2)))
    return Machine(np.array([0, 1]), np.concatenate([first, second, ends]), bad, names)


@pytest.mark.parametrize("size", [3, MAX_ROUNDS, MAX_ROUNDS + 1, SIZE])
def test_a_window_of_any_length_has_one_state_a_step(size: int) -> None:
    small = minimise(corridor(size))
    assert len(small.names) == size + 2
    state = 0
    for _ in range(size - 1):
        state = int(small.successor[state, small.classes[0]])
        assert not small.bad[state]
    assert small.bad[small.successor[state, small.classes[0]]]


@pytest.mark.parametrize("size", [3, MAX_ROUNDS, MAX_ROUNDS + 1, SIZE])
def test_whatever_leads_to_a_bad_state_only_is_bad(size: int) -> None:
    way = np.arange(1, size + 1)
    successor = np.column_stack([[*way, size, 0], [*way, size, size + 1]])
    bad = np.zeros(size + 2, dtype=bool)
    bad[size] = True
    assert doomed(successor, bad).tolist() == [True] * (size + 1) + [False]


def test_a_long_window_that_is_no_response_compiles() -> None:
    automaton = compile_formula(parse_formula(f"eventually[0:{SIZE}](a)"), 1.0)
    assert len(automaton.names) == SIZE + 3
