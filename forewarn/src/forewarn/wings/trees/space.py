"""The states of a predicate tree: a leaf together with the declared predicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ConfigError, ModelError
from forewarn.states.interface import TERMINAL_MARK, TREE, StateSpace, is_terminal
from forewarn.states.vocabulary import Observation, Vocabulary
from forewarn.wings.trees.nodes import Node, dump_tree, leaves, parse_tree

WIDEST = 48
"""Declared predicates up to which a code, with its leaf, is a machine's whole number."""


class TreeObservation(NamedTuple):
    """What one moment says about the leaf and the declared predicates (`Observed`).

    `state` is the code if all is known; bit i of `leaves` tells that the leaf may be number i.
    """

    state: int | None
    atoms: Observation
    leaves: int
    ended: bool
    active: bool | None
    intervened: bool | None


@dataclass(frozen=True)
class TreeSpace(StateSpace):
    """Leaves of a tree, each with the values of the declared predicates, which formulas may name.

    The code of a state is ``leaf << w | mask``: the number of the leaf from left to right, over the
    w declared predicates in file order. Two leaves never hold together, but one leaf may be with
    any values of the predicates that do not contradict its path.
    """

    kind: ClassVar[str] = TREE
    declared: Vocabulary
    tree: Node

    @property
    def predicates(self) -> tuple[str, ...]:  # type: ignore[override]
        """The declared predicates."""
        return self.declared.predicates

    @property
    def terminals(self) -> tuple[str, ...]:  # type: ignore[override]
        """The terminal labels."""
        return self.declared.terminals

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Names of the leaves in the order of their numbers."""
        return leaves(self.tree)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Number of each leaf."""
        return {name: i for i, name in enumerate(self.leaves)}

    @property
    def width(self) -> int:
        """Number of declared predicates."""
        return len(self.declared.predicates)

    @property
    def present(self) -> tuple[str, ...]:
        """The leaves, then the predicates."""
        return (*self.leaves, *self.declared.present)

    @property
    def cardinality(self) -> int:
        """How many states there may be, without terminal labels."""
        return len(self.leaves) << self.width

    @cached_property
    def nothing_known(self) -> TreeObservation:
        """What is observed of a moment that was missed."""
        every = (1 << len(self.leaves)) - 1
        return TreeObservation(None, self.declared.nothing_known, every, False, True, False)

    def parse_observation(self, values: Sequence[Any]) -> TreeObservation:
        """Return the observation that JSON has made lists of."""
        state, atoms, *rest = values
        return TreeObservation(state, self.declared.parse_observation(atoms), *rest)

    def content(self) -> dict[str, Any]:
        """Return the tree."""
        return {"tree": dump_tree(self.tree)}

    def parts(self, state: int) -> tuple[int, int]:
        """Return the number of the leaf of a state, and the mask of its predicates."""
        return state >> self.width, state & ((1 << self.width) - 1)

    def name(self, state: int) -> str:
        """Return the leaf and the predicates that hold: ``s3 & moving``."""
        if is_terminal(state):
            return self.declared.name(state)
        leaf, mask = self.parts(state)
        return f"{self.leaves[leaf]} & {self.declared.name(mask)}" if mask else self.leaves[leaf]

    def key(self, state: int) -> str:
        """Return the stable text of a state in model files: ``s3:01``, or ``!collision``."""
        if is_terminal(state):
            return self.declared.key(state)
        leaf, mask = self.parts(state)
        return f"{self.leaves[leaf]}:{self.declared.key(mask)}"

    def parse_key(self, key: str) -> int:
        """Return the state that `key` stands for; raises ModelError."""
        if key.startswith(TERMINAL_MARK):
            return self.declared.parse_key(key)
        leaf, mark, mask = key.partition(":")
        if not mark or leaf not in self.numbers:
            raise ModelError(f"{key!r} is no state", accepted="the name of a leaf, :, and digits")
        return self.numbers[leaf] << self.width | self.declared.parse_key(mask)

    def holds(self, atom: str, state: int) -> bool:
        """Tell whether `atom`, a leaf perhaps, holds in `state`."""
        if is_terminal(state):
            return self.declared.holds(atom, state)
        leaf, mask = self.parts(state)
        return self.leaves[leaf] == atom or self.declared.holds(atom, mask)

    def with_terminal(self, label: str) -> TreeSpace:
        """Return the space with one more terminal label, unless it has that one."""
        declared = self.declared
        if label in declared.terminals:
            return self
        return TreeSpace(Vocabulary(declared.predicates, (*declared.terminals, label)), self.tree)

    def candidates(self, observation: TreeObservation) -> Iterator[int] | None:
        """Yield the states without terminal label that agree; None if too many to try."""
        masks = self.declared.candidates(observation.atoms)
        if masks is None:
            return None
        found = list(masks)
        return (leaf << self.width | mask for leaf in _bits(observation.leaves) for mask in found)

    def terminal_candidates(self, observation: TreeObservation) -> tuple[int, ...]:
        """Return the terminal labels that may hold."""
        return self.declared.terminal_candidates(observation.atoms)

    def agreeing(self, states: NDArray[Any], observation: TreeObservation) -> NDArray[np.bool_]:
        """Tell which of some states agree with what is known, shape (n,)."""
        if self.width > WIDEST:
            states = states.astype(object)
        plain = states >= 0
        may = np.zeros(len(self.leaves), dtype=bool)
        may[list(_bits(observation.leaves))] = True
        leaf = np.where(plain, states, 0) >> self.width
        masks = np.where(plain, states & ((1 << self.width) - 1), states)
        agrees = self.declared.agreeing(masks, observation.atoms)
        return np.asarray(agrees & (~plain | may[leaf.astype(np.int64)]), dtype=bool)

    def letters(self, atoms: Sequence[str], observation: TreeObservation) -> Iterable[int]:
        """Return which of `atoms` may hold together without a terminal label, as bits in order."""
        return self.declared.letters(atoms, observation.atoms)

    def truth(self, atom: str, observation: TreeObservation) -> bool | None:
        """Tell whether `atom`, a leaf perhaps, holds; None if that is not known."""
        if atom not in self.numbers:
            return self.declared.truth(atom, observation.atoms)
        if observation.ended or not observation.leaves >> self.numbers[atom] & 1:
            return False
        return True if observation.leaves == 1 << self.numbers[atom] else None

    def observed_key(self, observation: TreeObservation) -> str:
        """Return the key of the state, with ``?`` for what is unknown."""
        if observation.ended:
            return self.declared.observed_key(observation.atoms)
        return f"{self._leaf(observation) or '?'}:{self.declared.observed_key(observation.atoms)}"

    def observed_name(self, observation: TreeObservation) -> str:
        """Return the state for people: ``s3 & near?``, ``(s3 or s4) & near``."""
        if observation.ended:
            return self.declared.observed_name(observation.atoms)
        if observation.state is not None:
            return self.name(observation.state)
        few = [self.leaves[i] for i in _bits(observation.leaves)]
        leaf = self._leaf(observation) or (f"({' or '.join(few)})" if len(few) < 4 else "?")
        atoms = self.declared.observed_name(observation.atoms)
        return leaf if atoms == "(none)" else f"{leaf} & {atoms}"

    def _leaf(self, observation: TreeObservation) -> str:
        few = list(_bits(observation.leaves))
        return self.leaves[few[0]] if len(few) == 1 else ""

    def cut(self, predicate: str) -> tuple[str, float] | None:
        """Return signal and threshold if a declared predicate compares the two."""
        return None if predicate in self.numbers else self.declared.cut(predicate)

    def neighbours(self, state: int) -> Iterator[tuple[str, int]]:
        """Yield the states in which one predicate is otherwise, with that predicate."""
        if not is_terminal(state):
            leaf, mask = self.parts(state)
            for name, other in self.declared.neighbours(mask):
                yield name, leaf << self.width | other


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def parse_space(
    predicates: tuple[str, ...], terminals: tuple[str, ...], content: Mapping[str, Any]
) -> TreeSpace:
    """Return the states of a model file; raises ModelError with the key within the content."""
    if set(content) != {"tree"}:
        wrong = min(set(content) ^ {"tree"})
        raise ModelError("is missing or unknown", key=wrong, accepted="tree, and nothing else")
    try:
        tree = parse_tree(content["tree"])
    except ConfigError as error:
        raise ModelError(error.problem, key=error.key, accepted=error.accepted) from error
    return TreeSpace(Vocabulary(predicates, terminals), tree)
