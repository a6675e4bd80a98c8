"""Decide whether two formulas mean the same.

First their normal forms are compared, then all short traces, and at last the formulas that hold
where one holds and the other does not are shown to have no trace, or one is found.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from forewarn.signals.clock_kinds import Grid
from forewarn.signals.clock_kinds import Steps as StepClock
from forewarn.wings.plans.equivalence.emptiness import satisfying_trace
from forewarn.wings.plans.equivalence.lowering import coarsest_rate, lower
from forewarn.wings.plans.equivalence.nodes import AND, LtlArena, TooLarge
from forewarn.wings.plans.equivalence.tableau import MAX_EFFORT
from forewarn.wings.plans.equivalence.words import (
    Trace,
    atoms_in,
    first_difference,
    sampled_difference,
)

if TYPE_CHECKING:
    from forewarn.logic.syntax import Formula
    from forewarn.signals.clock import Clock

#: Atoms times positions: what is tried at once, and what is tried to find a shorter trace.
QUICK_BITS, QUICK_LENGTH = 12, 3
MOST_BITS = 20
#: The longest traces that are tried where nothing else decides.
LONGEST = 9


class Verdict(Enum):
    """What a comparison tells."""

    EQUIVALENT = "equivalent"
    NOT_EQUIVALENT = "not equivalent"
    UNDECIDED = "undecided"


class Difference(NamedTuple):
    """The outcome of a comparison: a trace on which only the ``first`` or ``second`` one `holds`.

    `shortest` tells whether no shorter trace shows the difference, `reason` why the comparison is
    undecided, `rate` the steps in a second on the trace, where a formula has bounds in seconds.
    """

    verdict: Verdict
    trace: Trace | None = None
    holds: str = ""
    shortest: bool = True
    reason: str = ""
    rate: float | None = None


EQUIVALENT = Difference(Verdict.EQUIVALENT)


def compare(
    first: Formula,
    second: Formula,
    *,
    finite: bool = False,
    effort: int = MAX_EFFORT,
    rate: float | None = None,
) -> Difference:
    """Compare two formulas on all infinite traces, or on all finite ones of at least one step.

    `effort` is the budget in elementary steps; the default is some seconds of one processor. `rate`
    makes steps of bounds in seconds. Without it, formulas with such bounds are equivalent if they
    are whatever the operators with these bounds say, the same ones the same. They are not if they
    differ at the lowest rate at which all bounds are whole steps, or at two or three times that.
    What is between stays undecided. Raises FormulaError for a bound that is no whole number of
    steps.
    """
    coarsest = coarsest_rate((first, second))
    if coarsest is None or rate is not None:
        clock = StepClock() if rate is None else Grid(rate)
        return _compared((first, second), finite, effort, clock)._replace(rate=rate)
    if _compared((first, second), finite, effort, None).verdict is Verdict.EQUIVALENT:
        return EQUIVALENT
    for factor in (1, 2, 3):
        found = _compared((first, second), finite, effort, Grid(coarsest * factor))
        if found.verdict is not Verdict.EQUIVALENT:
            return found._replace(rate=coarsest * factor)
    reason = f"equivalent at {coarsest:g} Hz, not shown for other rates: name one"
    return Difference(Verdict.UNDECIDED, reason=reason)


def _compared(
    pair: tuple[Formula, Formula], finite: bool, effort: int, clock: Clock | None
) -> Difference:
    arena = LtlArena(finite=finite)
    try:
        first, second = (lower(arena, formula, clock) for formula in pair)
        return _compare(arena, first, second, effort)
    except TooLarge as limit:
        return Difference(Verdict.UNDECIDED, reason=f"too large: {limit}")


def _compare(arena: LtlArena, first: int, second: int, effort: int) -> Difference:
    if first == second:
        return EQUIVALENT
    pair = _Pair(arena, first, second, len(atoms_in(arena, first, second)))
    exact = pair.shortest_up_to(QUICK_LENGTH, QUICK_BITS)
    if exact is not None:
        return exact
    some = pair.sampled()
    if some is not None:
        return pair.shortened(some, effort)
    try:
        witness = pair.witness(effort)
    except TooLarge as limit:
        exact = pair.shortest_up_to(LONGEST, MOST_BITS)
        return exact or Difference(Verdict.UNDECIDED, reason=f"too large: {limit}")
    if witness is None:
        return EQUIVALENT
    return witness if witness.shortest else pair.shortened(witness, 0)


class _Pair:
    """Two formulas that are compared; `tried` is the length up to which they do not differ."""

    def __init__(self, arena: LtlArena, first: int, second: int, width: int) -> None:
        self.arena = arena
        self.first = first
        self.second = second
        self.width = width
        self.tried = 0

    def shortest_up_to(self, length: int, bits: int) -> Difference | None:
        """Try all traces of up to `length` positions and `bits` bits that memory has room for."""
        while self.tried < length and self.width * (self.tried + 1) <= bits:
            try:
                found = first_difference(self.arena, self.first, self.second, self.tried + 1)
            except TooLarge:
                return None
            self.tried += 1
            if found is not None:
                return _difference(*found)
        return None

    def sampled(self) -> Difference | None:
        """Try some traces where there are too many to try all."""
        for length in range(self.tried + 1, QUICK_LENGTH + 1):
            try:
                found = sampled_difference(self.arena, self.first, self.second, length)
            except TooLarge:
                return None
            if found is not None:
                return _difference(*found)._replace(shortest=False)
        return None

    def shortened(self, known: Difference, effort: int) -> Difference:
        """Return a shorter trace than that of `known`, or `known`."""
        size = _size(known)
        exact = self.shortest_up_to(size - 1, MOST_BITS)
        if exact is not None or self.tried + 1 >= size:
            return exact or known._replace(shortest=True)
        if self.arena.finite and effort:
            with suppress(TooLarge):
                return self.witness(effort) or known
        return known

    def witness(self, effort: int) -> Difference | None:
        """Return the shorter one of a trace on which only one holds, and one of only the other.

        `shortest` of the outcome is true if no trace can be shorter: traces are finite, and both
        sides were searched.
        """
        found: list[Difference] = []
        sides = ((self.first, self.second, True), (self.second, self.first, False))
        for one, other, first_holds in sides:
            only = self.arena.junction(AND, [one, self.arena.negation(other)])
            try:
                trace, effort = satisfying_trace(self.arena, only, effort)
            except TooLarge:
                if not found:
                    raise
                return found[0]._replace(shortest=False)
            if trace is not None:
                found.append(_difference(trace, first_holds)._replace(shortest=self.arena.finite))
        return min(found, key=_size, default=None)


def _size(difference: Difference) -> int:
    return 0 if difference.trace is None else len(difference.trace.letters)


def _difference(trace: Trace, first_holds: bool) -> Difference:
    return Difference(Verdict.NOT_EQUIVALENT, trace, "first" if first_holds else "second")
