"""Which letter a property's automaton reads in each state of a chain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import CheckingError
from forewarn.states.interface import StateSpace, is_terminal

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton

ENDED = -1


def label_states(
    automaton: Automaton, vocabulary: StateSpace, states: Iterable[int]
) -> NDArray[np.int64]:
    """Return the automaton's letter class for each state, shape (n,).

    At a terminal state only its own name holds. A terminal state that the formula does not name
    ends every pending obligation: its class is ``ENDED``.

    Raises
    ------
    CheckingError
        If the formula names something that is neither predicate nor terminal label.
    """
    for atom in automaton.atoms:
        check_known(atom, vocabulary)
    classes = [
        letter_class(automaton, vocabulary, state)
        if not is_terminal(state) or vocabulary.name(state) in automaton.atoms
        else ENDED
        for state in states
    ]
    return np.array(classes, dtype=np.int64)


def letter_class(automaton: Automaton, vocabulary: StateSpace, state: int) -> int:
    """Return the class of the letter of a state whose names are known to hold or not."""
    letter = sum(1 << i for i, atom in enumerate(automaton.atoms) if vocabulary.holds(atom, state))
    return int(automaton.letter_class[letter])


def check_known(atom: str, vocabulary: StateSpace, text: str = "") -> None:
    """Raise CheckingError, with `text` as what is wrong, if a name has no meaning in the states."""
    if atom not in vocabulary.atoms:
        accepted = ", ".join(vocabulary.atoms)
        raise CheckingError(f"{atom!r} is not known to the model", accepted=accepted, key=text)


def where_holds(
    atom: str, vocabulary: StateSpace, states: Iterable[int], text: str = ""
) -> NDArray[np.bool_]:
    """Return in which states a predicate or terminal label holds, shape (n,).

    Raises
    ------
    CheckingError
        If it is neither; `text` is the query that names it.
    """
    check_known(atom, vocabulary, text)
    return np.array([vocabulary.holds(atom, state) for state in states], dtype=bool)
