"""Which letter a property's automaton reads in each state of a chain."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import CheckingError
from forewarn.logic.automaton import Automaton
from forewarn.states.interface import StateSpace, is_terminal

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
    known = set(vocabulary.atoms)
    for atom in automaton.atoms:
        if atom not in known:
            raise CheckingError(
                f"{atom!r} is not known to the model",
                accepted=", ".join(vocabulary.atoms),
            )
    classes = [
        _class(automaton, vocabulary, state)
        if not is_terminal(state) or vocabulary.name(state) in automaton.atoms
        else ENDED
        for state in states
    ]
    return np.array(classes, dtype=np.int64)


def _class(automaton: Automaton, vocabulary: StateSpace, state: int) -> int:
    letter = sum(1 << i for i, atom in enumerate(automaton.atoms) if vocabulary.holds(atom, state))
    return int(automaton.letter_class[letter])
