"""Deterministic automata that read one letter a tick, and what a monitor asks of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: An automaton keeps a table over all letters, 2 to the power of its atoms.
MAX_ATOMS = 20


@dataclass(frozen=True, eq=False)
class Automaton:
    """The deterministic monitor of one property.

    A letter is the set of atoms that hold at a tick, as a bit mask (bit i is ``atoms[i]``).
    Letters that lead to the same states share a class. The automaton reads the label of the state
    just entered: ``q' = transitions[q, letter_class[letter]]``, from `initial` at the first tick.

    Attributes
    ----------
    atoms : tuple of str
        Predicate names and normal forms of inline comparisons.
    letter_class : ndarray of int32, shape (2 ** len(atoms),)
        The class of each letter.
    transitions : ndarray of int32, shape (states, classes)
        The successor of each state under each class.
    initial : int
        The state before the first tick.
    violated : int or None
        The absorbing state that is entered at the first tick after which every continuation
        violates the property; None if the property cannot be violated.
    satisfied : int or None
        The absorbing state from which the property cannot be violated any more; None if there
        is no such state.
    names : tuple of str
        One short text for each state: ``idle``, ``waiting 3``, ``violated``.
    countdown : int or None
        For a bounded response, the number of waiting states (K),
        which are then numbered by the ticks that may still pass: 0 is idle,
        ``1..countdown`` wait, ``countdown + 1`` is violated. Its three classes are: 0 neither,
        1 trigger without response, 2 response. None for every other property.
    """

    atoms: tuple[str, ...]
    letter_class: NDArray[np.int32]
    transitions: NDArray[np.int32]
    initial: int
    violated: int | None
    satisfied: int | None
    names: tuple[str, ...]
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

    Parameters
    ----------
    letter_class : int
        The class of the present tick's letter, at the tick of the violation and at every tick
        after it until a state is returned.

    Returns
    -------
    int or None
        The state as if the present tick were the first; None while this letter alone is a
        violation already (the condition of an invariant has not cleared). What past operators
        remember is forgotten.
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
