"""From syntax trees to nodes in negation normal form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from forewarn.logic import syntax
from forewarn.logic.syntax import (
    FOREVER,
    Atom,
    Bound,
    Constant,
    Formula,
    Interval,
    Steps,
    in_steps,
    operands,
    walk,
)
from forewarn.signals.clock_kinds import Steps as StepClock
from forewarn.wings.plans.equivalence import nodes
from forewarn.wings.plans.equivalence.nodes import LtlArena, TooLarge

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock

#: The longest window; one that does not open at once is spelled out step by step.
MAX_BOUND = 1_000
_NOW = Bound(0.0, "steps")
_SECONDS = {
    "s": Fraction(1), "ms": Fraction(1, 1000), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9),
}  # fmt: skip
_Signed = tuple[int, bool]


class Timed(NamedTuple):
    """A formula with a window in time, as one atom: what it says depends on the rate."""

    kind: int
    left: int
    right: int
    lower: tuple[Fraction, bool]
    upper: tuple[Fraction, bool] | None


def lower(arena: LtlArena, formula: Formula, clock: Clock | None = None) -> int:
    """Return the node of `formula`; `clock` makes steps of bounds in seconds.

    Without a clock each operator that has such bounds becomes an atom of its own, the same for the
    same operator, bounds and operands. Raises TooLarge for too many parts or too long windows,
    FormulaError for a bound that is no whole number of steps.
    """
    lowering = _Lowering(arena, clock)
    done: dict[_Signed, int] = {}
    pending: list[tuple[Formula, bool]] = [(formula, True)]
    while pending:
        part, positive = pending[-1]
        if (id(part), positive) in done:
            pending.pop()
            continue
        needed = _needed(part, positive)
        missing = [(side, sign) for side, sign in needed if (id(side), sign) not in done]
        if missing:
            pending += missing
            continue
        sides = [done[id(side), sign] for side, sign in needed]
        done[id(part), positive] = lowering.node(part, positive, sides)
        pending.pop()
    return done[id(formula), True]


def _needed(formula: Formula, positive: bool) -> list[tuple[Formula, bool]]:
    """Return the operands, each with the sign with which it is needed."""
    sides = operands(formula)
    if isinstance(formula, (syntax.And, syntax.Or)):
        return [(part, positive) for part in _chain(formula)]
    if isinstance(formula, syntax.Not):
        return [(sides[0], not positive)]
    if isinstance(formula, syntax.Implies):
        return [(sides[0], not positive), (sides[1], positive)]
    if isinstance(formula, (syntax.Iff, syntax.Xor, syntax.Rise, syntax.Fall)):
        return [(side, sign) for side in sides for sign in (True, False)]
    return [(side, positive) for side in sides]


def _chain(formula: Formula) -> list[Formula]:
    """Return the operands of a chain of conjunctions, or of disjunctions."""
    found, pending = [], [formula]
    while pending:
        part = pending.pop()
        if type(part) is type(formula):
            pending += operands(part)
        else:
            found.append(part)
    return found[::-1]


@dataclass(frozen=True)
class _Lowering:
    arena: LtlArena
    clock: Clock | None

    def node(self, formula: Formula, positive: bool, sides: list[int]) -> int:
        arena = self.arena
        if isinstance(formula, Constant):
            return nodes.TRUE if formula.value == positive else nodes.FALSE
        if isinstance(formula, Atom):
            return arena.literal(formula.text, positive)
        if isinstance(formula, syntax.Not):
            return sides[0]
        if isinstance(formula, syntax.And):
            return arena.junction(nodes.AND if positive else nodes.OR, sides)
        if isinstance(formula, (syntax.Or, syntax.Implies)):
            return arena.junction(nodes.OR if positive else nodes.AND, sides)
        if isinstance(formula, (syntax.Iff, syntax.Xor)):
            left, not_left, right, not_right = sides
            if isinstance(formula, syntax.Iff) == positive:
                not_right, right = right, not_right
            # either both (or one of them, crosswise) or none
            both = arena.junction(nodes.AND, [left, not_right])
            return arena.junction(nodes.OR, [both, arena.junction(nodes.AND, [not_left, right])])
        if isinstance(formula, (syntax.Next, syntax.StrongNext)):
            return arena.next(sides[0], strong=positive)
        if isinstance(formula, (syntax.Previous, syntax.StrongPrevious)):
            # The negation of the weak operator is the strong one of the negated operand.
            weak = isinstance(formula, syntax.Previous) == positive
            return arena.prev(sides[0], strong=not weak)
        if isinstance(formula, (syntax.Rise, syntax.Fall)):
            # rise(a) is a and not s_prev(a); fall(a) is not a and prev(a), as RTAMT has it.
            now, before = sides if isinstance(formula, syntax.Rise) == positive else sides[::-1]
            return arena.junction(
                nodes.AND if positive else nodes.OR, [now, arena.prev(before, strong=not positive)]
            )
        return self._timed(formula, positive, sides)

    def _timed(self, formula: Formula, positive: bool, sides: list[int]) -> int:
        assert isinstance(formula, (syntax.TimedUnary, syntax.TimedBinary))
        interval = formula.interval
        if isinstance(formula, syntax.Unless):
            return self._unless(sides, positive, interval)
        strong = isinstance(formula, (syntax.Eventually, syntax.Until, syntax.Once, syntax.Since))
        back = isinstance(formula, (syntax.Historically, syntax.Once, syntax.Since))
        if strong == positive:
            kind, one = (nodes.SINCE if back else nodes.UNTIL), nodes.TRUE
        else:
            kind, one = (nodes.TRIGGER if back else nodes.RELEASE), nodes.FALSE
        left, right = sides if isinstance(formula, syntax.TimedBinary) else (one, sides[0])
        return self._windowed(kind, left, right, interval)

    def _windowed(self, kind: int, left: int, right: int, interval: Interval | None) -> int:
        """Return ``left until[lower:upper] right``, or as `kind` says."""
        arena = self.arena
        if self.clock is None and _is_timed(interval):
            return self._opaque(kind, left, right, interval)
        lower, upper = self._steps(interval)
        node = arena.until(kind, left, right, None if upper is None else upper - lower)
        move = arena.next if kind in nodes.AHEAD else arena.prev
        for _ in range(lower):
            later = move(node, strong=kind in nodes.STRONG)
            node = arena.junction(nodes.AND if kind in nodes.STRONG else nodes.OR, [left, later])
        return node

    def _opaque(self, kind: int, left: int, right: int, interval: Interval | None) -> int:
        assert interval is not None
        if kind in nodes.STRONG:
            upper = None if interval.upper is None else _end(interval.upper)
            timed = Timed(kind, left, right, _end(interval.lower), upper)
            return self.arena.literal(timed, True)
        dual = nodes.UNTIL if kind == nodes.RELEASE else nodes.SINCE
        left, right = (self.arena.negation(side) for side in (left, right))
        return self.arena.negation(self._opaque(dual, left, right, interval))

    def _unless(self, sides: list[int], positive: bool, interval: Interval | None) -> int:
        """Return ``a unless[l:u] b``: always[0:u](a) or a until[l:u] b."""
        left, right = sides
        kind, join = (nodes.UNTIL, nodes.OR) if positive else (nodes.RELEASE, nodes.AND)
        if interval is None:
            # a unless b is b release (a or b); sides are negated already where positive is not
            both = self.arena.junction(join, [left, right])
            return self.arena.until(nodes.RELEASE if positive else nodes.UNTIL, right, both, None)
        held, one = (nodes.RELEASE, nodes.FALSE) if positive else (nodes.UNTIL, nodes.TRUE)
        whole = None if interval.upper is None else replace(interval, lower=_NOW)
        always = self._windowed(held, one, left, whole)
        return self.arena.junction(join, [always, self._windowed(kind, left, right, interval)])

    def _steps(self, interval: Interval | None) -> Steps:
        if interval is None:
            return FOREVER
        found = in_steps(interval, self.clock or StepClock())
        if max(found.lower, found.upper or 0) > MAX_BOUND:
            raise TooLarge(f"a window of more than {MAX_BOUND} steps")
        return found


def _end(bound: Bound) -> tuple[Fraction, bool]:
    """Return an end of a window, and whether it is a time; 0 is as many steps as seconds."""
    value = _exact(bound)
    return value, bound.unit != "steps" and value != 0


def _is_timed(interval: Interval | None) -> bool:
    """Tell whether an end of an interval is a time."""
    return interval is not None and any(bound.unit != "steps" for bound in _ends(interval))


def coarsest_rate(formulas: Iterable[Formula]) -> float | None:
    """Return the lowest rate in Hz at which all times are whole steps; None if there are none."""
    times = [
        _exact(bound)
        for formula in formulas
        for part in walk(formula)
        for bound in _ends(getattr(part, "interval", None))
        if bound.unit != "steps"
    ]
    if not times:
        return None
    whole = math.lcm(*(time.denominator for time in times))
    common = math.gcd(*(int(time * whole) for time in times))
    return float(Fraction(whole, common)) if common else 1.0


def _exact(bound: Bound) -> Fraction:
    """Return the value of a bound as it is written, a time in seconds."""
    return Fraction(repr(bound.value)) * _SECONDS.get(bound.unit, 1)


def _ends(interval: Interval | None) -> list[Bound]:
    ends = () if interval is None else (interval.lower, interval.upper)
    return [bound for bound in ends if bound is not None]
