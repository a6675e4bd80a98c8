"""Safety automata as tables: exploration, product, trimming and minimisation."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import FormulaError
from forewarn.logic.partition import MAX_ROUNDS, doomed, refine

_S = TypeVar("_S", bound=Hashable)
Ints = NDArray[np.int64]
#: Entries of a transition table.
MAX_ENTRIES = 10_000_000


@dataclass(frozen=True)
class Machine:
    """A complete deterministic automaton whose bad states are to be avoided.

    Attributes
    ----------
    classes : ndarray of int64, shape (letters,)
        The class of each letter.
    successor : ndarray of int64, shape (states, classes)
        The successor of each state; state 0 is the initial one.
    bad : ndarray of bool, shape (states,)
        The states in which the property is violated.
    """

    classes: Ints
    successor: Ints
    bad: NDArray[np.bool_]
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

    Raises
    ------
    FormulaError
        There are more than `limit` states.
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
