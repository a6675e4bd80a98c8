"""Partitions of the states of long automata, in time that grows with n log n and not with n^2.

A window of n steps has n states, each differing from the next by what happens at its end. To look
at all states in each round takes n^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: Rounds that look at all states, before only what changes is looked at: in numpy, some 400 of them
#: take as long as the latter does in Python.
MAX_ROUNDS = 400


class _Sources:
    """For each state and letter, the states that lead there.

    Parameters
    ----------
    successor : ndarray of int64, shape (states, classes)
        The successor of each state.
    """

    def __init__(self, successor: Ints) -> None:
        size, self.letters = successor.shape
        keys = successor * self.letters + np.arange(self.letters)
        order = np.argsort(keys, axis=None, kind="stable")
        self._source: list[int] = (order // self.letters).tolist()
        bounds = np.searchsorted(keys.ravel()[order], np.arange(size * self.letters + 1))
        self._bounds: list[int] = bounds.tolist()

    def of(self, state: int, letter: int) -> list[int]:
        """Return the states that lead to `state` by `letter`."""
        at = state * self.letters + letter
        return self._source[self._bounds[at] : self._bounds[at + 1]]


def doomed(successor: Ints, bad: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the bad states, and those from which each run comes to one.

    Parameters
    ----------
    successor : ndarray of int64, shape (states, classes)
        The successor of each state.
    bad : ndarray of bool, shape (states,)
        The bad states.
    """
    for _ in range(MAX_ROUNDS):
        worse = bad | bad[successor].all(axis=1)
        if (worse == bad).all():
            return bad
        bad = worse
    sources = _Sources(successor)
    ways_out: list[int] = (~bad[successor]).sum(axis=1).tolist()
    marked: list[bool] = bad.tolist()
    pending = [state for state, out in enumerate(ways_out) if not out and not marked[state]]
    for state in pending:
        marked[state] = True
    while pending:
        state = pending.pop()
        for letter in range(sources.letters):
            for source in sources.of(state, letter):
                ways_out[source] -= 1
                if not ways_out[source] and not marked[source]:
                    marked[source] = True
                    pending.append(source)
    return np.array(marked)


def refine(successor: Ints, block: Ints) -> Ints:
    """Return the coarsest stable partition that is at least as fine as `block`.

    Hopcroft, "An n log n algorithm for minimizing states in a finite automaton" (1971), in the
    form of Valmari and Lehtinen: members of a block lie together, and those that are marked first.

    Parameters
    ----------
    successor : ndarray of int64, shape (states, classes)
        The successor of each state.
    block : ndarray of int64, shape (states,)
        Number of the block of each state, from 0 on without gaps.
    """
    sources = _Sources(successor)
    members: list[int] = np.argsort(block, kind="stable").tolist()
    place = np.empty(len(block), dtype=np.int64)
    place[members] = np.arange(len(block))
    where: list[int] = place.tolist()
    number: list[int] = block.tolist()
    begin: list[int] = np.searchsorted(block[members], np.arange(block.max() + 1)).tolist()
    end = [*begin[1:], len(members)]
    marked = [0] * len(begin)
    waiting = {
        (splitter, letter) for splitter in range(len(begin)) for letter in range(sources.letters)
    }
    while waiting:
        splitter, letter = waiting.pop()
        touched: list[int] = []
        inside = members[begin[splitter] : end[splitter]]
        for source in (before for state in inside for before in sources.of(state, letter)):
            own = number[source]
            if not marked[own]:
                touched.append(own)
            at, to = where[source], begin[own] + marked[own]
            other = members[to]
            members[at], members[to], where[other], where[source] = other, source, at, to
            marked[own] += 1
        for own in touched:
            count, marked[own] = marked[own], 0
            if count == end[own] - begin[own]:
                continue
            new, middle = len(begin), begin[own] + count
            # The smaller part becomes the new block.
            if count * 2 <= end[own] - begin[own]:
                begin.append(begin[own])
                end.append(middle)
                begin[own] = middle
            else:
                begin.append(middle)
                end.append(end[own])
                end[own] = middle
            marked.append(0)
            for state in members[begin[new] : end[new]]:
                number[state] = new
            # If the old block waits, both parts have to; else the smaller one will do.
            waiting.update((new, symbol) for symbol in range(sources.letters))
    return np.array(number, dtype=np.int64)
