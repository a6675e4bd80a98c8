"""Deterministic automata that read one letter a tick, and how they are explored and minimised.

A window of n steps has n states, each differing from the next by what happens at its end. To look
at all states in each round takes n^2; states are split in time that grows with n log n.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import FormulaError

#: An automaton keeps a table over all letters, 2 to the power of its atoms.
MAX_ATOMS = 20


@dataclass(frozen=True, eq=False)
class Automaton:
    """The deterministic monitor of one property.

    A letter is the set of atoms that hold at a tick, as a bit mask (bit i is ``atoms[i]``).
    Letters that lead to the same states share a class. The automaton reads the label of the state
    just entered: ``q' = transitions[q, letter_class[letter]]``, from `initial` at the first tick.

    `transitions`, shape (states, classes): the successor of each state under each class.
    `violated`: the absorbing state that is entered at the first tick after which every continuation
    violates the property; None if the property cannot be violated.
    `satisfied`: the absorbing state from which the property cannot be violated any more; None if
    there is no such state.
    `countdown`: for a bounded response, the number of waiting states (K), which are then numbered
    by the ticks that may still pass: 0 is idle, ``1..countdown`` wait, ``countdown + 1`` is
    violated. Its three classes are: 0 neither, 1 trigger without response, 2 response. None for
    every other property.
    """

    atoms: tuple[str, ...]  # predicate names and normal forms of inline comparisons
    letter_class: NDArray[np.int32]  # shape (2 ** len(atoms),): the class of each letter
    transitions: NDArray[np.int32]
    initial: int  # the state before the first tick
    violated: int | None
    satisfied: int | None
    names: tuple[str, ...]  # one short text for each state: ``idle``, ``waiting 3``, ``violated``
    countdown: int | None = None

    @property
    def n_states(self) -> int:
        """Return the number of states."""
        return int(self.transitions.shape[0])

    @property
    def n_classes(self) -> int:
        """Return the number of letter classes."""
        return int(self.transitions.shape[1])


def letter_of(automaton: Automaton, holding: Collection[str]) -> int:
    """Return the letter at which exactly the atoms in `holding` hold (others are ignored)."""
    return sum(1 << i for i, atom in enumerate(automaton.atoms) if atom in holding)


def step(automaton: Automaton, state: int, letter: int) -> int:
    """Return the successor of `state` under `letter`."""
    return int(automaton.transitions[state, automaton.letter_class[letter]])


def restart_state(automaton: Automaton, letter_class: int) -> int | None:
    """Return where the automaton goes on after a violation was reported.

    `letter_class`: the class of the present tick's letter, at the tick of the violation and at
    every tick after it until a state is returned.
    Returns the state as if the present tick were the first; None while this letter alone is a
    violation already (the condition of an invariant has not cleared). What past operators remember
    is forgotten.
    """
    state = int(automaton.transitions[automaton.initial, letter_class])
    return None if state == automaton.violated else state


def is_stricter(automaton: Automaton, state: int, other: int) -> bool:
    """Tell whether some run violates from `state` before it does from `other`."""
    seen, pending = {(state, other)}, [(state, other)]
    while pending:
        one, two = pending.pop()
        if one == automaton.violated:
            return True
        for pair in zip(*automaton.transitions[[one, two]].tolist(), strict=True):
            if pair[0] != pair[1] and pair[1] != automaton.violated and pair not in seen:
                seen.add(pair)
                pending.append(pair)
    return False


def successors(
    automaton: Automaton, states: Collection[int], classes: Collection[int]
) -> frozenset[int]:
    """Return all states that one tick can lead to from `states` when its class is in `classes`."""
    block = automaton.transitions[np.ix_(sorted(states), sorted(classes))]
    return frozenset(np.unique(block).tolist())


def horizon_notes(automaton: Automaton, horizon: int | None) -> list[str]:
    """Return a warning if no obligation raised later can fail within the horizon."""
    if automaton.countdown is None or horizon is None:
        return []
    waits = automaton.transitions.shape[0] - 2
    if horizon > waits:
        return []
    return [
        f"the horizon of {horizon} steps is no longer than the bound of {waits} steps: risk is 0 "
        "until an obligation is pending; take a longer horizon"
    ]


Ints = NDArray[np.int64]
#: Rounds that look at all states, before only what changes is looked at: in numpy, some 400 of them
#: take as long as the latter does in Python.
MAX_ROUNDS = 400


class _Sources:
    """For each state and letter, the states that lead there.

    `successor`, shape (states, classes): the successor of each state.
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

    `successor`, shape (states, classes): the successor of each state.
    `bad`, shape (states,): the bad states.
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

    `successor`, shape (states, classes): the successor of each state.
    `block`, shape (states,): number of the block of each state, from 0 on without gaps.
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


_S = TypeVar("_S", bound=Hashable)
#: Entries of a transition table.
MAX_ENTRIES = 10_000_000


@dataclass(frozen=True)
class Machine:
    """A complete deterministic automaton whose bad states are to be avoided.

    `successor`, shape (states, classes): the successor of each state; state 0 is the initial one.
    """

    classes: Ints  # shape (letters,): the class of each letter
    successor: Ints
    bad: NDArray[np.bool_]  # shape (states,): the states in which the property is violated
    names: tuple[str, ...]


def too_many(limit: int) -> FormulaError:
    """Return the error for an automaton that would be too large."""
    return FormulaError(
        f"the automaton would have more than {limit} states",
        accepted="shorter bounds, a lower rate, or a lower bound of 0 where a window may open"
        " at once; or a greater max_states",
    )


def explore(
    initial: _S, step: Callable[[_S, int], _S], n_classes: int, limit: int
) -> tuple[list[_S], Ints]:
    """Return all states reachable from `initial`, it first, and their successors.

    Raises FormulaError if there are more than `limit` states.
    """
    numbers: dict[_S, int] = {initial: 0}
    states = [initial]
    rows: list[list[int]] = []
    while len(rows) < len(states):
        row = []
        for letter_class in range(n_classes):
            successor = step(states[len(rows)], letter_class)
            number = numbers.setdefault(successor, len(states))
            if number == len(states):
                states.append(successor)
                if number >= limit:
                    raise too_many(limit)
            row.append(number)
        rows.append(row)
    return states, np.array(rows, dtype=np.int64)


def product(first: Machine, second: Machine, limit: int) -> Machine:
    """Return the machine that is bad when either one is; reachable states only."""
    pairs, classes = np.unique(
        first.classes * second.successor.shape[1] + second.classes, return_inverse=True
    )
    one, two = np.divmod(pairs, second.successor.shape[1])
    width = len(second.names)
    known: Ints = np.zeros(1, dtype=np.int64)
    rows: list[Ints] = []
    frontier = known
    while len(frontier):
        q, r = np.divmod(frontier, width)
        targets = first.successor[q][:, one] * width + second.successor[r][:, two]
        dead = first.bad[q] | second.bad[r]
        targets[dead] = frontier[dead, None]
        rows.append(targets)
        frontier = np.setdiff1d(targets, known)
        known = np.concatenate([known, frontier])
        if len(known) > limit:
            raise too_many(limit)
        if len(known) * len(pairs) > MAX_ENTRIES:
            raise FormulaError(
                f"the automaton would need {len(pairs)} classes of letters in more than"
                f" {len(known)} states",
                accepted="several properties instead of one conjunction",
            )
    order = np.argsort(known)
    successor = order[np.searchsorted(known, np.concatenate(rows), sorter=order)]
    q, r = np.divmod(known, width)
    names = tuple(_joined(first.names[a], second.names[b]) for a, b in zip(q, r, strict=True))
    return Machine(classes.reshape(-1), successor, first.bad[q] | second.bad[r], names)


def _joined(first: str, second: str) -> str:
    if first == second or second == "idle":
        return first
    return second if first == "idle" else f"{first}; {second}"


def minimise(machine: Machine) -> Machine:
    """Return the smallest equivalent machine, bad at the earliest possible tick.

    A state from which no infinite run avoids the bad states is bad itself. States are numbered
    breadth first from the initial one; letters that lead to the same states share a class.
    """
    successor, bad = machine.successor, doomed(machine.successor, machine.bad)
    successor = np.where(bad[:, None], np.flatnonzero(bad)[:1].sum(), successor)
    block = _coarsest(successor, bad)
    first = np.unique(block, return_index=True)[1]
    quotient = block[successor[first]]
    order = _breadth_first(quotient, int(block[0]))
    place = np.empty(len(first), dtype=np.int64)
    place[order] = np.arange(len(order))
    table = place[quotient[order]]
    columns, of_class = np.unique(table, axis=1, return_inverse=True)
    representatives = first[order]
    return Machine(
        of_class.reshape(-1)[machine.classes],
        np.ascontiguousarray(columns),
        bad[representatives],
        tuple(machine.names[i] for i in representatives),
    )


def _coarsest(successor: Ints, bad: NDArray[np.bool_]) -> Ints:
    """Return the coarsest stable partition that separates bad states (Moore's refinement).

    A window of n steps takes n rounds: after some, Hopcroft's algorithm goes on.

    Signatures are compared by random 64-bit hashes. A collision could only merge blocks that
    differ, and would leave the partition unstable, which the final check detects.
    """
    generator = Random(0)  # numpy's own takes long to import
    while True:
        block: Ints = np.unique(bad, return_inverse=True)[1].reshape(-1)
        for _ in range(MAX_ROUNDS):
            signature = _hashes(block, successor, generator)
            refined = np.unique(signature, return_inverse=True)[1].reshape(-1)
            stable = refined.max() == block.max()
            block = refined
            if stable:
                break
        else:
            block = refine(successor, block)
        first = np.unique(block, return_index=True)[1]
        if (block[successor] == block[successor[first]][block]).all() and (
            bad == bad[first][block]
        ).all():
            return block.astype(np.int64)


def _hashes(block: Ints, successor: Ints, generator: Random) -> Ints:
    codes = _drawn(generator, int(block.max()) + 1)
    weights = _drawn(generator, successor.shape[1] + 1) | 1
    signature: Ints = codes[block] * weights[-1]
    for column, weight in zip(successor.T, weights, strict=False):
        signature = signature + codes[block[column]] * weight
    return signature


def _drawn(generator: Random, count: int) -> Ints:
    return np.frombuffer(generator.randbytes(8 * count), dtype=np.int64)


def _breadth_first(successor: Ints, initial: int) -> Ints:
    seen = np.zeros(len(successor), dtype=np.bool_)
    seen[initial] = True
    order = [initial]
    for state in order:
        for target in successor[state].tolist():
            if not seen[target]:
                seen[target] = True
                order.append(target)
    return np.array(order)
