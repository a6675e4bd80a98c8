"""Linear temporal logic over a finite trace: when the truth of each part is decided.

For every position of the trace a part of a formula is decided true at some position, or decided
false, or only when the trace is over (position `n`, one beyond the last). A conjunction is false as
soon as one side is, true when the later side is; `always` is true at the end only; and so on
(De Giacomo and Vardi, "Linear temporal logic and linear dynamic logic on finite traces", IJCAI
2013, for the truth). What is still pending at the end is false for `until` and `eventually`, true
for `always`. All operators take time linear in the trace, but for a factor log n in `until`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from forewarn.logic import syntax
from forewarn.logic.syntax import Atom, Constant, Formula, Steps

Positions = NDArray[np.int64]


class Decision(NamedTuple):
    """Where a formula is decided true and where false, shapes (n,) or (1,) if it never changes.

    A position `n` means: when the trace is over. The other one of the two is `never(n)`.
    """

    true: Positions
    false: Positions


Value = Callable[[Atom], Decision]
Bounds = Callable[["syntax.Interval | None"], Steps]


def never(n: int) -> int:
    """Return the number that stands for: not at all."""
    return n + 1


def of_truth(truth: NDArray[np.bool_], n: int) -> Decision:
    """Return the decision of what is seen at each position, shape (n,)."""
    here, no = np.arange(n), never(n)
    return Decision(np.where(truth, here, no), np.where(truth, no, here))


def of_constant(truth: bool, n: int) -> Decision:
    """Return the decision of what is known from the start, shape (1,)."""
    known, no = np.zeros(1, dtype=np.int64), np.full(1, never(n), dtype=np.int64)
    return Decision(known, no) if truth else Decision(no, known)


def decide(formula: Formula, n: int, value: Value, bounds: Bounds) -> Decision:
    """Return where `formula` is decided at each position of a trace of `n` positions, n >= 1.

    `value` gives the decision of an atom, `bounds` an interval in steps.
    """
    return _Trace(n, value, bounds).decide(formula)


class _Trace:
    def __init__(self, n: int, value: Value, bounds: Bounds) -> None:
        self.n, self.value, self.bounds = n, value, bounds
        self.here = np.arange(n)

    def decide(self, formula: Formula) -> Decision:
        if isinstance(formula, Constant):
            return of_constant(formula.value, self.n)
        if isinstance(formula, Atom):
            return self.value(formula)
        if isinstance(formula, syntax.Unary):
            return self._unary(formula, self.decide(formula.operand))
        if isinstance(formula, syntax.Binary):
            return self._binary(formula)
        if isinstance(formula, syntax.TimedUnary):
            return self._timed(formula)
        assert isinstance(formula, syntax.TimedBinary)
        sides = self.decide(formula.left), self.decide(formula.right)
        steps = self.bounds(formula.interval)
        reached = partial(self._reached, steps=steps)
        if isinstance(formula, (syntax.Until, syntax.Since)):
            return self._looked(reached, *sides, back=isinstance(formula, syntax.Since))
        held = partial(self._extreme, steps=Steps(0, steps.upper), weak=True)
        return either(self._looked(held, sides[0]), self._looked(reached, *sides))

    def _unary(self, formula: syntax.Unary, inner: Decision) -> Decision:
        if isinstance(formula, syntax.Not):
            return opposite(inner)
        weak = isinstance(formula, (syntax.Previous, syntax.Fall))
        moved = partial(self._shifted, by=1, weak=weak)
        if isinstance(formula, (syntax.Next, syntax.StrongNext)):
            return self._looked(moved, inner)
        before = self._looked(moved, inner, back=True)
        if isinstance(formula, (syntax.Previous, syntax.StrongPrevious)):
            return before
        if isinstance(formula, syntax.Rise):
            return both(inner, opposite(before))
        return both(opposite(inner), before)

    def _binary(self, formula: syntax.Binary) -> Decision:
        left = self.decide(formula.left)
        if isinstance(formula, (syntax.Implies, syntax.Or, syntax.And)):
            if isinstance(formula, syntax.Implies):
                left = opposite(left)
            decides = left.false if isinstance(formula, syntax.And) else left.true
            if decides.shape == (1,) and decides[0] == 0:
                return left  # what the rest says does not matter
            join = both if isinstance(formula, syntax.And) else either
            return join(left, self.decide(formula.right))
        right = self.decide(formula.right)
        same = either(both(left, right), both(opposite(left), opposite(right)))
        return same if isinstance(formula, syntax.Iff) else opposite(same)

    def _timed(self, formula: syntax.TimedUnary) -> Decision:
        inner = self.decide(formula.operand)
        steps = self.bounds(formula.interval)
        weak = isinstance(formula, (syntax.Always, syntax.Historically))
        back = isinstance(formula, (syntax.Historically, syntax.Once))
        return self._looked(partial(self._extreme, steps=steps, weak=weak), inner, back=back)

    def _looked(
        self, operator: Callable[..., Decision], *sides: Decision, back: bool = False
    ) -> Decision:
        """Apply an operator that looks ahead; to the mirrored trace, if it is to look back."""
        # No decision at a position comes before that position is there.
        whole = [Decision(*(np.maximum(part, self.here) for part in side)) for side in sides]
        if not back:
            return operator(*whole, self.n)
        return _mirrored(operator(*map(_mirrored, whole), 0))

    # Operators that look ahead, on decisions that hold their position's own number or a later one.
    # `over` is when it is known that no position follows: at the end, or at once where the trace is
    # mirrored and what follows is the past.

    def _shifted(self, inner: Decision, over: int, *, by: int, weak: bool) -> Decision:
        """Return the operand `by` positions on; beyond the last one, true if weak."""
        if not by:
            return inner
        shift = min(by, self.n)
        known, no = np.full(shift, over), np.full(shift, never(self.n))
        true = np.concatenate([inner.true[shift:], known if weak else no])
        false = np.concatenate([inner.false[shift:], no if weak else known])
        return Decision(true, false)

    def _extreme(self, inner: Decision, over: int, *, steps: Steps, weak: bool) -> Decision:
        if not weak:
            return opposite(self._extreme(opposite(inner), over, steps=steps, weak=True))
        inner = self._shifted(inner, over, by=steps.lower, weak=True)
        if steps.upper is None:
            false = np.minimum.accumulate(inner.false[::-1])[::-1]
            true = np.maximum.accumulate(np.maximum(inner.true, over)[::-1])[::-1]
            return Decision(true, false)
        width = min(steps.upper - steps.lower, self.n) + 1
        false = _ahead(inner.false, width, minimum_filter1d, never(self.n))
        true = _ahead(inner.true, width, maximum_filter1d, 0)
        inside = self.here + steps.upper < self.n
        return Decision(np.where(inside, true, np.maximum(true, over)), false)

    def _reached(self, left: Decision, right: Decision, over: int, *, steps: Steps) -> Decision:
        true = _scan(right.true, left.true, never(self.n))
        false = -_scan(-right.false, -left.false, -over)
        found = Decision(true, false)
        if steps.upper is not None:
            within = Steps(0, steps.upper - steps.lower)
            found = both(found, self._extreme(right, over, steps=within, weak=False))
        if not steps.lower:
            return found
        before = self._extreme(left, over, steps=Steps(0, steps.lower - 1), weak=True)
        return both(before, self._shifted(found, over, by=steps.lower, weak=False))


def _mirrored(decision: Decision) -> Decision:
    return Decision(decision.true[::-1], decision.false[::-1])


def opposite(decision: Decision) -> Decision:
    """Return the decision of the negation."""
    return Decision(decision.false, decision.true)


def both(left: Decision, right: Decision) -> Decision:
    """Return the decision of the conjunction."""
    return Decision(np.maximum(left.true, right.true), np.minimum(left.false, right.false))


def either(left: Decision, right: Decision) -> Decision:
    """Return the decision of the disjunction."""
    return opposite(both(opposite(left), opposite(right)))


def _ahead(values: Positions, width: int, extreme: Callable[..., Any], beyond: int) -> Positions:
    """Return the extreme of each window of `width` positions that begins at a position."""
    if width == 1:
        return values
    padded = np.concatenate([values, np.full(width - 1, beyond)])
    # Centred windows: the one around position i + width // 2 begins at i.
    shift = width // 2
    found = np.asarray(extreme(padded, size=width, mode="nearest"), dtype=np.int64)
    return found[shift : shift + len(values)]


def _scan(reach: Positions, hold: Positions, beyond: int) -> Positions:
    """Return x with ``x[t] = min(reach[t], max(hold[t], x[t + 1]))`` and `beyond` after the end.

    Such clamps compose to clamps: log n doublings do what n steps would.
    """
    top, bottom = reach.copy(), np.minimum(reach, hold)
    step, n = 1, len(reach)
    while step < n:
        first_top, first_bottom = top[:-step], bottom[:-step]
        next_top, next_bottom = top[step:], bottom[step:]
        joined_top = np.minimum(first_top, np.maximum(first_bottom, next_top))
        joined_bottom = np.maximum(first_bottom, next_bottom)
        top[:-step], bottom[:-step] = joined_top, np.minimum(joined_top, joined_bottom)
        step *= 2
    found: Positions = np.minimum(top, np.maximum(bottom, beyond))
    return found
