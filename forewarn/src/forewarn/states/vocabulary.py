"""The names that make up a state: predicates, and the terminal labels that win over them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ModelError
from forewarn.states.interface import (
    PREDICATES,
    TERMINAL_MARK,
    StateSpace,
    is_terminal,
    terminal_code,
    terminal_index,
)

MAX_FREE = 12
PAST = "@-1"
CUT = re.compile(r"(\w+)<(-?[\d.]+(?:e[+-]?\d+)?)\Z")


class Observation(NamedTuple):
    """What one tick says about predicates and terminal labels.

    `known`, `mask`: bit i of `known` tells whether predicate i is known, bit i of `mask` whether it
    holds.
    `open_terminals`: bit i tells that terminal label i may hold, where that is not known of all of
    them.
    `ended`: a terminal label holds for certain. If an earlier one is unknown, it is not known
    which: the first of those that hold wins.
    """

    state: int | None  # state code if it is fully known
    known: int
    mask: int
    open_terminals: int
    active: bool | None  # value of `active_when`; True where there is none
    intervened: bool | None = False  # value of `intervened_when`; False where there is none
    ended: bool = False


@dataclass(frozen=True)
class Vocabulary(StateSpace):
    """The predicates and terminal labels of one abstraction, in file order.

    A state is coded as one integer: the mask of predicate values (bit i is predicate i), or
    ``-(i + 1)`` for terminal label i.

    `predicates`: names in file order; an entry of `bins` has become ``ttc<1``, ``ttc<2`` and so on.
    """

    kind = PREDICATES

    predicates: tuple[str, ...]
    terminals: tuple[str, ...] = ()  # names of the terminal labels, in file order

    def name(self, state: int) -> str:
        """Return readable text: the predicates that hold, or the terminal label.

        Of the thresholds that cut one signal (``ttc<1``, ``ttc<2``) only the lowest that holds is
        named: it implies the others.
        """
        if is_terminal(state):
            return self.terminals[terminal_index(state)]
        held = [i for i in range(len(self.predicates)) if state >> i & 1]
        shown = [self.predicates[i] for i in held if not self._lower[i] & state]
        return " & ".join(shown) or "(none)"

    def key(self, state: int) -> str:
        """Return the stable text of a state in model files: ``0110``, or ``!collision``."""
        if is_terminal(state):
            return TERMINAL_MARK + self.terminals[terminal_index(state)]
        return "".join("01"[state >> i & 1] for i in range(len(self.predicates)))

    def parse_key(self, key: str) -> int:
        """Return the state that `key` stands for; raises ModelError."""
        if key.startswith(TERMINAL_MARK):
            if key[1:] not in self.terminals:
                known = ", ".join(self.terminals) or "none is declared"
                raise ModelError(f"unknown terminal label {key!r}", accepted=known)
            return terminal_code(self.terminals.index(key[1:]))
        if len(key) != len(self.predicates) or set(key) - {"0", "1"}:
            raise ModelError(
                f"{key!r} is no state", accepted=f"{len(self.predicates)} digits, each 0 or 1"
            )
        return sum(1 << i for i, digit in enumerate(key) if digit == "1")

    def holds(self, atom: str, state: int) -> bool:
        """Tell whether `atom` holds in `state`; at a terminal only its own name does."""
        if is_terminal(state):
            return self.terminals[terminal_index(state)] == atom
        index = self._index.get(atom)
        return index is not None and bool(state >> index & 1)

    @property
    def present(self) -> tuple[str, ...]:
        """The predicates of this tick, without those that a state remembers."""
        return tuple(name for name in self.predicates if not name.endswith(PAST))

    @property
    def cardinality(self) -> int:
        """How many states there may be, without terminal labels."""
        return 1 << len(self.predicates)

    @cached_property
    def nothing_known(self) -> Observation:
        """What is observed of a tick that was missed."""
        return Observation(None, 0, 0, (1 << len(self.terminals)) - 1, True)

    def parse_observation(self, values: Sequence[Any]) -> Observation:
        """Return the observation, a tuple, that JSON has made a list of."""
        found = Observation(*values)
        return found._replace(ended=found.ended or (found.state is not None and found.state < 0))

    def candidates(self, observation: Observation) -> Iterator[int] | None:
        """Yield the states without terminal label that agree; None if too many to try."""
        if observation.ended:
            return iter(())
        known = observation.known
        free = [1 << i for i in range(len(self.predicates)) if not known >> i & 1]
        if len(free) > MAX_FREE:
            return None
        mask = observation.mask & known
        return (mask | sum(c) for r in range(len(free) + 1) for c in combinations(free, r))

    def terminal_candidates(self, observation: Observation) -> tuple[int, ...]:
        """Return the terminal labels that may hold."""
        opened = observation.open_terminals
        if observation.state is not None and is_terminal(observation.state):
            return (observation.state,)
        return tuple(terminal_code(i) for i in range(len(self.terminals)) if opened >> i & 1)

    def agreeing(self, states: NDArray[Any], observation: Observation) -> NDArray[np.bool_]:
        """Tell which of some states agree with what is known, shape (n,)."""
        plain = (states >= 0) & (not observation.ended)
        known = observation.known
        if known >> 63:
            states = states.astype(object)
        agrees = plain & ((states & known) == (observation.mask & known))
        for state in self.terminal_candidates(observation):
            agrees |= states == state
        return np.asarray(agrees, dtype=bool)

    def letters(self, atoms: Sequence[str], observation: Observation) -> list[int]:
        """Return which of `atoms` may hold together without a terminal label, as bits in order."""
        if observation.ended:
            return []
        mask = free = 0
        for i, atom in enumerate(atoms):
            if atom in self.terminals:
                continue
            bit = 1 << self._index[atom]
            if not observation.known & bit:
                free |= 1 << i
            elif observation.mask & bit:
                mask |= 1 << i
        letters = [mask]
        subset = free
        while subset:
            letters.append(mask | subset)
            subset = (subset - 1) & free
        return letters

    def truth(self, atom: str, observation: Observation) -> bool | None:
        """Tell whether `atom` holds, a predicate but no terminal label; None if unknown."""
        if atom in self.terminals:
            index = self.terminals.index(atom)
            unknown = observation.open_terminals >> index & 1
            return None if unknown else observation.state == terminal_code(index)
        if observation.ended:
            return False
        bit = 1 << self._index[atom]
        return bool(observation.mask & bit) if observation.known & bit else None

    def observed_key(self, observation: Observation) -> str:
        """Return the state as in the model file, with ``?`` for each predicate that is unknown."""
        if observation.state is not None:
            return self.key(observation.state)
        if observation.ended:
            return TERMINAL_MARK + "?"
        digits = "".join(
            "01"[observation.mask >> i & 1] if observation.known >> i & 1 else "?"
            for i in range(len(self.predicates))
        )
        return digits + (TERMINAL_MARK + "?" if observation.open_terminals else "")

    def observed_name(self, observation: Observation) -> str:
        """Return the state for people: ``moving & ttc<2``, unknown predicates marked ``near?``."""
        if observation.state is not None:
            return self.name(observation.state)
        if observation.ended:
            return " or ".join(map(self.name, self.terminal_candidates(observation)))
        parts = []
        for i, name in enumerate(self.predicates):
            if not observation.known >> i & 1:
                parts.append(f"{name}?")
            elif observation.mask >> i & 1:
                parts.append(name)
        for i, name in enumerate(self.terminals):
            if observation.open_terminals >> i & 1:
                parts.append(f"{name}?")
        return " & ".join(parts) or "(none)"

    def details(self, observation: Observation) -> dict[str, Any]:
        """Return the masks of an observation."""
        return {"known": observation.known, "mask": observation.mask}

    def cut(self, predicate: str) -> tuple[str, float] | None:
        """Return signal and threshold if the predicate says that one is below the other."""
        found = CUT.match(predicate)
        return None if found is None else (found[1], float(found[2]))

    def neighbours(self, state: int) -> Iterator[tuple[str, int]]:
        """Yield the states in which one predicate is otherwise, with that predicate."""
        if not is_terminal(state):
            yield from ((name, state ^ (1 << i)) for i, name in enumerate(self.predicates))

    @cached_property
    def _lower(self) -> tuple[int, ...]:
        """For each predicate ``signal<threshold``, the mask of those with a lower threshold."""
        cuts = [CUT.match(name) for name in self.predicates]
        return tuple(
            sum(
                1 << j
                for j, other in enumerate(cuts)
                if cut and other and cut[1] == other[1] and float(other[2]) < float(cut[2])
            )
            for cut in cuts
        )

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.predicates)}
