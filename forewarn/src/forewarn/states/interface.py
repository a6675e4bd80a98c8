"""What a state is: all that learning, checking, monitoring and reports ask about it.

A state is coded as one whole number. Whatever the space, terminal label number i is
``-(i + 1)``, and all other codes are the space's own and not negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ConfigError

if TYPE_CHECKING:
    from scipy import sparse

TERMINAL_MARK = "!"
PREDICATES = "predicates"
"""The kind of states of a file that names none."""
TREE = "tree"
"""The kind whose states are leaves of a tree: that of the wing `trees`."""
MARK = 12
"""Hex digits: among a million pairs of recordings two are alike by chance once in 280 million."""


def mark_of(digest: str) -> str:
    """Return the beginning of a recording's digest, which tells it from any other."""
    return digest[:MARK]


def terminal_code(index: int) -> int:
    """Return the state code of terminal label number `index`."""
    return -(index + 1)


def terminal_index(state: int) -> int:
    """Return the number of the terminal label that `state` is."""
    return -state - 1


def is_terminal(state: int) -> bool:
    """Tell whether a state is a terminal label."""
    return state < 0


class Observed(Protocol):
    """What one tick says about the state; hashable."""

    @property
    def state(self) -> int | None:
        """State code if it is fully known."""

    @property
    def ended(self) -> bool:
        """A terminal label holds for certain, although it may not be known which."""

    @property
    def active(self) -> bool | None:
        """Value of `active_when`; True where there is none."""

    @property
    def intervened(self) -> bool | None:
        """Value of `intervened_when`; False where there is none."""


class StateSpace(Protocol):
    """The states of one abstraction, their names, and what a partial observation says of them.

    A frozen dataclass with at least the attributes below.

    What follows from `candidates` is implemented here; a space may know a quicker way.

    Attributes
    ----------
    kind : str
        Name in `kinds.KINDS`.
    predicates : tuple of str
        Names that hold or not in a state, without terminal labels; formulas may use them.
    terminals : tuple of str
        Names of the terminal labels, in file order.
    """

    kind: ClassVar[str]
    predicates: tuple[str, ...]
    terminals: tuple[str, ...]

    @property
    def atoms(self) -> tuple[str, ...]:
        """All names that a formula may use."""
        return (*self.predicates, *self.terminals)

    @property
    def present(self) -> tuple[str, ...]:
        """What pictures show of a state: predicates of this tick, without those remembered.

        A space may add names of its own (the leaf of a tree), if `holds` and `truth` know them.
        """
        return self.predicates

    @property
    def cardinality(self) -> int:
        """How many states there may be, without terminal labels."""

    @property
    def nothing_known(self) -> Any:
        """What is observed of a tick that was missed."""

    def parse_observation(self, values: Sequence[Any]) -> Any:
        """Return the observation, a tuple, that JSON has made a list of."""

    def content(self) -> dict[str, Any]:
        """Return what a model file keeps beyond predicates and labels, for `Kind.parse`."""
        return {}

    def name(self, state: int) -> str:
        """Return readable text, another one for each state that can occur."""

    def key(self, state: int) -> str:
        """Return the stable text of a state in model files."""

    def parse_key(self, key: str) -> int:
        """Return the state that `key` stands for; raises ModelError."""

    def holds(self, atom: str, state: int) -> bool:
        """Tell whether `atom` holds in `state`; at a terminal only its own name does."""

    def with_terminal(self, label: str) -> StateSpace:
        """Return the space with one more terminal label, unless it has that one."""
        if label in self.terminals:
            return self
        space: Any = self
        changed: StateSpace = replace(space, terminals=(*self.terminals, label))
        return changed

    def candidates(self, observation: Any) -> Iterator[int] | None:
        """Yield the states without terminal label that agree; None if too many to try."""

    def terminal_candidates(self, observation: Any) -> tuple[int, ...]:
        """Return the terminal labels that may hold."""

    def agreeing(self, states: NDArray[Any], observation: Any) -> NDArray[np.bool_]:
        """Tell which of some states agree with what is known, shape (n,)."""
        found = {*(self.candidates(observation) or ()), *self.terminal_candidates(observation)}
        return np.array([state in found for state in states.tolist()], dtype=bool)

    def letters(self, atoms: Sequence[str], observation: Any) -> Iterable[int]:
        """Return which of `atoms` may hold together without a terminal label, as bits in order."""
        return {
            sum(1 << i for i, atom in enumerate(atoms) if self.holds(atom, state))
            for state in self.candidates(observation) or ()
        }

    def truth(self, atom: str, observation: Any) -> bool | None:
        """Tell whether `atom` holds, a predicate but no terminal label; None if unknown."""
        plain = self.candidates(observation)
        if plain is None:
            return None
        held = {self.holds(atom, state) for state in plain}
        if atom in self.terminals or observation.ended:
            held |= {self.holds(atom, state) for state in self.terminal_candidates(observation)}
        return held.pop() if len(held) == 1 else None

    def observed_key(self, observation: Any) -> str:
        """Return the key of the state, with ``?`` for what is unknown."""
        return "?" if observation.state is None else self.key(observation.state)

    def observed_name(self, observation: Any) -> str:
        """Return the state for people, with ``?`` for what is unknown."""
        return "?" if observation.state is None else self.name(observation.state)

    def details(self, observation: Any) -> dict[str, Any]:
        """Return what else a line of verdicts tells about a state."""
        return {}

    def cut(self, predicate: str) -> tuple[str, float] | None:
        """Return signal and threshold if the predicate says that one is below the other."""
        return None

    def neighbours(self, state: int) -> Iterator[tuple[str, int]]:
        """Yield the states in which one predicate is otherwise, with that predicate."""
        yield from ()


class Admission(Protocol):
    """Which states and steps can occur.

    What follows from the first three methods is implemented here; a kind may know a quicker way.
    """

    def admits(self, state: int) -> bool:
        """Tell whether `state` can occur; terminal labels always can."""

    def allows(self, source: int, target: int) -> bool:
        """Tell whether the transition is valid."""

    def states(self) -> list[int]:
        """Return all admissible states without terminal labels; raises ConfigError if too many."""

    def forbidden_matrix(self, states: Sequence[int]) -> sparse.csr_matrix:
        """Return the transitions that declared rules forbid, shape (n, n), Boolean.

        Rows of terminal states are left empty: that they absorb is no declared rule.
        """
        from scipy import sparse

        refused = [[not is_terminal(s) and not self.allows(s, t) for t in states] for s in states]
        return sparse.csr_matrix(np.array(refused, dtype=bool).reshape(len(states), len(states)))

    def is_covered(self, states: Sequence[int]) -> bool:
        """Tell whether `states` are all the admissible ones; no, if there are too many to try."""
        try:
            return {*self.states()} <= {*states}
        except ConfigError:
            return False
