"""The names that make up a state: predicates, and the terminal labels that win over them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from forewarn.errors import ModelError

TERMINAL_MARK = "!"
CUT = re.compile(r"(\w+)<(-?[\d.]+(?:e[+-]?\d+)?)\Z")


def terminal_code(index: int) -> int:
    """Return the state code of terminal label number `index`."""
    return -(index + 1)


@dataclass(frozen=True)
class Vocabulary:
    """The predicates and terminal labels of one abstraction, in file order.

    A state is coded as one integer: the mask of predicate values (bit i is predicate i), or
    ``-(i + 1)`` for terminal label i.

    Attributes
    ----------
    predicates : tuple of str
        Names in file order; an entry of `bins` has become ``ttc<1``, ``ttc<2`` and so on.
    terminals : tuple of str
        Names of the terminal labels, in file order.
    """

    predicates: tuple[str, ...]
    terminals: tuple[str, ...] = ()

    def name(self, state: int) -> str:
        """Return readable text: the predicates that hold, or the terminal label.

        Of the thresholds that cut one signal (``ttc<1``, ``ttc<2``) only the lowest that holds is
        named: it implies the others.
        """
        if state < 0:
            return self.terminals[-state - 1]
        held = [i for i in range(len(self.predicates)) if state >> i & 1]
        shown = [self.predicates[i] for i in held if not self._lower[i] & state]
        return " & ".join(shown) or "(none)"

    def key(self, state: int) -> str:
        """Return the stable text of a state in model files: ``0110``, or ``!collision``."""
        if state < 0:
            return TERMINAL_MARK + self.terminals[-state - 1]
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
        if state < 0:
            return self.terminals[-state - 1] == atom
        index = self._index.get(atom)
        return index is not None and bool(state >> index & 1)

    def index(self, predicate: str) -> int:
        """Return the bit of `predicate`."""
        return self._index[predicate]

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
