"""From syntax trees to nodes in negation normal form."""

from __future__ import annotations

from forewarn.logic import syntax
from forewarn.logic.equivalence.nodes import (
    AND,
    FALSE,
    OR,
    RELEASE,
    TRUE,
    UNTIL,
    LtlArena,
    TooLarge,
    unsupported,
)
from forewarn.logic.syntax import Atom, Constant, Formula, Interval, operands

#: A window that opens later than now is spelled out step by step.
MAX_BOUND = 1_000
_PAST = (
    syntax.Historically, syntax.Once, syntax.Since, syntax.Previous, syntax.StrongPrevious,
    syntax.Rise, syntax.Fall,
)  # fmt: skip
_Signed = tuple[int, bool]


def lower(arena: LtlArena, formula: Formula) -> int:
    """Return the node of `formula`; bounds are in steps.

    Raises
    ------
    TooLarge
        The formula has more parts, or longer windows, than the limits allow.
    FormulaError
        It has an operator that looks back, or a bound in seconds.
    """
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
        done[id(part), positive] = _node(arena, part, positive, sides)
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
    if isinstance(formula, (syntax.Iff, syntax.Xor)):
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


def _node(arena: LtlArena, formula: Formula, positive: bool, sides: list[int]) -> int:
    if isinstance(formula, Constant):
        return TRUE if formula.value == positive else FALSE
    if isinstance(formula, Atom):
        return arena.literal(formula.text, positive)
    if isinstance(formula, syntax.Not):
        return sides[0]
    if isinstance(formula, syntax.And):
        return arena.junction(AND if positive else OR, sides)
    if isinstance(formula, (syntax.Or, syntax.Implies)):
        return arena.junction(OR if positive else AND, sides)
    if isinstance(formula, (syntax.Iff, syntax.Xor)):
        left, not_left, right, not_right = sides
        if isinstance(formula, syntax.Iff) == positive:
            not_right, right = right, not_right
        # either both (or one of them, crosswise) or none
        both = arena.junction(AND, [left, not_right])
        return arena.junction(OR, [both, arena.junction(AND, [not_left, right])])
    if isinstance(formula, (syntax.Next, syntax.StrongNext)):
        return arena.next(sides[0], strong=positive)
    if isinstance(formula, _PAST):
        raise unsupported(f"{formula.word!r} looks back", "formulas about now and later")
    return _timed(arena, formula, positive, sides)


def _timed(arena: LtlArena, formula: Formula, positive: bool, sides: list[int]) -> int:
    assert isinstance(formula, (syntax.TimedUnary, syntax.TimedBinary))
    lower, upper = _steps(formula.interval)
    if isinstance(formula, syntax.Unless):
        return _unless(arena, sides, positive, lower, upper)
    until = isinstance(formula, (syntax.Eventually, syntax.Until)) == positive
    kind = UNTIL if until else RELEASE
    if isinstance(formula, syntax.TimedUnary):
        return _delayed(arena, kind, TRUE if until else FALSE, sides[0], lower, upper)
    return _delayed(arena, kind, sides[0], sides[1], lower, upper)


def _delayed(
    arena: LtlArena, kind: int, left: int, right: int, lower: int, upper: int | None
) -> int:
    """Return ``left until[lower:upper] right``, or its dual."""
    node = arena.until(kind, left, right, None if upper is None else upper - lower)
    for _ in range(lower):
        later = arena.next(node, strong=kind == UNTIL)
        node = arena.junction(AND if kind == UNTIL else OR, [left, later])
    return node


def _unless(
    arena: LtlArena, sides: list[int], positive: bool, lower: int, upper: int | None
) -> int:
    """Return ``a unless[l:u] b``: always[0:u](a) or a until[l:u] b."""
    left, right = sides
    kind, join = (UNTIL, OR) if positive else (RELEASE, AND)
    if not lower and upper is None:
        # a unless b is b release (a or b); sides are negated already where positive is not
        both = arena.junction(join, [left, right])
        dual = RELEASE if positive else UNTIL
        return arena.until(dual, right, both, None)
    always = (RELEASE, FALSE) if positive else (UNTIL, TRUE)
    held = arena.until(always[0], always[1], left, upper)
    return arena.junction(join, [held, _delayed(arena, kind, left, right, lower, upper)])


def _steps(interval: Interval | None) -> tuple[int, int | None]:
    if interval is None:
        return 0, None
    ends: list[int | None] = []
    for bound in (interval.upper, interval.lower):
        if bound is None:
            ends.append(None)
            continue
        if bound.unit != "steps" or bound.value != int(bound.value):
            raise unsupported(
                f"a bound of {bound.value:g} {bound.unit}", "bounds in whole steps, without a unit"
            )
        if bound.value > MAX_BOUND:
            raise TooLarge(f"a bound of {bound.value:g} steps; at most {MAX_BOUND}")
        ends.append(int(bound.value))
    return ends[1] or 0, ends[0]
