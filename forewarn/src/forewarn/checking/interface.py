"""What a checker is given and gives: the letters of a chain's states, the risk of product states.

All of it is known before the first tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import CheckingError
from forewarn.states.interface import StateSpace, is_terminal

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats

BoundKind = Literal["none", "credible", "sound", "clustered"]


@dataclass(frozen=True, eq=False)
class RiskTable:
    """Probability of a violation for every state of the product of chain and automaton.

    `values`, shape (n, m): ``values[s, q]``: probability to reach `violated` within the horizon,
    given that the chain is in state s, the automaton has read it and is in q. 1 where q is
    `violated`; 0 at terminal states, which end every obligation; NaN in unseen states.
    `lower`, `upper`, shape (n, m): bounds of `kind`; [0, 1] in unseen states.
    `expected`, shape (n, m): expected steps to the violation, given that there is one within the
    horizon (`times.expected_steps`); NaN where there is none.
    """

    values: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    kind: BoundKind = "none"  # what the bounds mean
    confidence: float | None = None  # their confidence level
    horizon: int | None = None  # steps; None is unbounded
    notes: tuple[str, ...] = ()  # what a user should know of these numbers
    remarks: tuple[str, ...] = ()  # what they are made of, which warns of nothing
    expected: Floats | None = None


@dataclass(frozen=True, eq=False)
class ProcessRisk:
    """Probability of a violation for every state of the product of process and automaton.

    `values`, shape (n, m): ``values[s, q]``: the probability to reach `violated` within the
    horizon, given that the process is in state s, the automaton has read it and is in q. NaN where
    nothing was seen done.
    `lower`, `upper`, shape (n, m): bounds of it, by intervals of all transitions; [0, 1] where
    nothing was seen done.
    """

    values: Floats
    lower: Floats
    upper: Floats
    confidence: float  # probability that the bounds hold for all states at once
    notes: tuple[str, ...]  # what a user should know of these numbers


@dataclass(frozen=True, eq=False)
class RiskOfActions(ProcessRisk):
    """Probability of a violation with the recorded mix of actions, and after each action.

    `done_values`, `done_lower`, `done_upper`, shape (k, m): the same if one of the k actions that
    were seen in a state is taken first.
    """

    done_values: Floats
    done_lower: Floats
    done_upper: Floats
    done: Mapping[tuple[int, str], int]  # row in these of a state and an action
    visits: tuple[int, ...]  # how often that was seen


class Checker(Protocol):
    """Computes risk tables; `numeric` and `storm` are two."""

    def __call__(
        self, chain: Chain, automaton: Automaton, classes: NDArray[np.int64], horizon: int | None
    ) -> RiskTable:
        """Return the risk within `horizon` steps, or ever if it is None."""
        ...


ENDED = -1


def label_states(
    automaton: Automaton, vocabulary: StateSpace, states: Iterable[int]
) -> NDArray[np.int64]:
    """Return the automaton's letter class for each state, shape (n,).

    At a terminal state only its own name holds. A terminal state that the formula does not name
    ends every pending obligation: its class is ``ENDED``.

    Raises CheckingError if the formula names something that is neither predicate nor terminal
    label.
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

    Raises CheckingError if it is neither; `text` is the query that names it.
    """
    check_known(atom, vocabulary, text)
    return np.array([vocabulary.holds(atom, state) for state in states], dtype=bool)
