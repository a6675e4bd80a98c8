"""What lies ahead of a product state: when a violation is to be expected, and on which way."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.explanation import expected_steps
from forewarn.checking.interface import ENDED

if TYPE_CHECKING:
    from forewarn.checking.interface import RiskTable
    from forewarn.logic.automaton import Automaton
    from forewarn.models.chain import Chain, Floats

MAX_MEMO = 1 << 12
MAX_STEPS = 64
MAX_STATES = 8


class Path(NamedTuple):
    """States on the way to a violation, the present one first."""

    rows: tuple[int, ...]  # Rows of the chain; a state that is stayed in is named once
    shares: tuple[float, ...]  # Probability of each step to the next state, one fewer than rows


NOWHERE = Path((), ())


@dataclass(frozen=True, eq=False)
class HittingTimes:
    """Looks ahead from the product states of one property."""

    chain: Chain
    automaton: Automaton
    classes: NDArray[np.int64]  # Letter class of each chain state
    table: RiskTable
    # Expected steps to the violation, given that there is one within the horizon; None without a
    # horizon
    steps: Floats | None
    _memo: dict[tuple[int, int], Path] = field(default_factory=dict)

    def expected(self, row: int, state: int) -> float:
        """Return the expected steps to the violation from one product state, or NaN."""
        return math.nan if self.steps is None else float(self.steps[row, state])

    def path(self, row: int, state: int) -> Path:
        """Return the way to the violation that takes the likeliest step each time.

        A step is likely if it happens and a violation then follows: its weight is
        ``P[s, s'] * risk[s', q']``. `likely_ways` in `forewarn.checking.explanation` ranks whole
        ways, at a greater cost.
        """
        key = (row, state)
        found = self._memo.get(key)
        if found is None:
            found = self._follow(row, state)
            if len(self._memo) < MAX_MEMO:
                self._memo[key] = found
        return found

    def _follow(self, row: int, state: int) -> Path:
        violated = self.automaton.violated
        values = np.nan_to_num(self.table.values, nan=0.0)
        if violated is None or not values[row, state] > 0:
            return NOWHERE
        rows, shares = [row], list[float]()
        read = np.maximum(self.classes, 0)
        for _ in range(MAX_STEPS):
            after = self.automaton.transitions[state, read]
            risk = values[np.arange(self.chain.size), after]
            risk[self.classes == ENDED] = 0.0
            weights = self.chain.row(row) * risk
            if after[row] == state:
                weights[row] = 0.0  # staying changes nothing: ask where the way leads on
            step = int(np.argmax(weights))
            if not weights[step] > 0:
                break
            if step != row:
                shares.append(float(self.chain.row(row)[step]))
                rows.append(step)
            row, state = step, int(after[step])
            if state == violated or len(rows) == MAX_STATES:
                break
        return Path(tuple(rows), tuple(shares))


def look_ahead(
    chain: Chain, automaton: Automaton, classes: NDArray[np.int64], table: RiskTable
) -> HittingTimes:
    """Return the outlook of a property whose risk table is solved."""
    steps = None
    if table.horizon is not None:
        steps = expected_steps(chain, automaton, classes, table.horizon)
    return HittingTimes(chain, automaton, classes, table, steps)
