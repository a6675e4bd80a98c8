"""From syntax trees to nodes in steps and negation normal form."""

from __future__ import annotations

from functools import singledispatchmethod
from typing import TYPE_CHECKING

import numpy as np

from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.nodes import DUAL, FALSE, TRUE, Arena
from forewarn.logic.printing import format_formula
from forewarn.logic.syntax import Formula, is_propositional
from forewarn.logic.timing import FOREVER, Steps, in_steps
from forewarn.logic.truth import truth_table

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock

_ONE = Steps(1, 1)
_OPERATOR: dict[type[Formula], str] = {
    syntax.Always: "release", syntax.Eventually: "until",
    syntax.Historically: "trigger", syntax.Once: "since",
    syntax.Until: "until", syntax.Since: "since",
}  # fmt: skip
_BOUNDED = "a bound, as in eventually[0:5](...)"


def lower_formula(formula: Formula, atoms: tuple[str, ...], clock: Clock) -> tuple[Arena, int]:
    """Return an arena and the number of the node that means `formula`.

    Raises
    ------
    FormulaError
        The formula has a part that no finite run can violate (`eventually` or `until` without
        an upper bound, or `always` without one under a negation).
    """
    lowering = _Lowering(atoms, clock)
    return lowering.arena, lowering.lower(formula, True)


class _Lowering:
    def __init__(self, atoms: tuple[str, ...], clock: Clock) -> None:
        self.atoms = atoms
        self.clock = clock
        self.arena = Arena(1 << len(atoms))

    def lower(self, formula: Formula, positive: bool) -> int:
        """Return the node of `formula`, or of its negation."""
        if is_propositional(formula):
            table = truth_table(formula, self.atoms)
            text = format_formula(formula)
            if not positive:
                table, text = np.logical_not(table), f"not({text})"
            return self.arena.proposition(table, text)
        return self._lower(formula, positive)

    @singledispatchmethod
    def _lower(self, formula: Formula, positive: bool) -> int:
        raise TypeError(f"{type(formula).__name__} is no formula")

    @_lower.register
    def _(self, formula: syntax.Unary, positive: bool) -> int:
        operand = formula.operand
        if isinstance(formula, syntax.Not):
            return self.lower(operand, not positive)
        if isinstance(formula, (syntax.Next, syntax.StrongNext)):
            return self.arena.temporal("until", TRUE, self.lower(operand, positive), _ONE)
        if isinstance(formula, (syntax.Previous, syntax.StrongPrevious)):
            # The negation of the weak operator is the strong one of the negated operand.
            weak = isinstance(formula, syntax.Previous) == positive
            return self._previous(operand, positive, weak=weak)
        # rise(a) is a and not s_prev(a); fall(a) is not a and prev(a), as RTAMT has it.
        now_positive = isinstance(formula, syntax.Rise) == positive
        now = self.lower(operand, now_positive)
        before = self._previous(operand, not now_positive, weak=positive)
        return self.arena.junction("and" if positive else "or", [now, before])

    def _previous(self, operand: Formula, positive: bool, *, weak: bool) -> int:
        """Return prev (weak) or s_prev of the operand or of its negation."""
        node = self.lower(operand, positive)
        if weak:
            return self.arena.temporal("trigger", FALSE, node, _ONE)
        return self.arena.temporal("since", TRUE, node, _ONE)

    @_lower.register
    def _(self, formula: syntax.Binary, positive: bool) -> int:
        left, right = formula.left, formula.right
        if isinstance(formula, (syntax.And, syntax.Or, syntax.Implies)):
            kind = "and" if isinstance(formula, syntax.And) else "or"
            first = self.lower(left, positive != isinstance(formula, syntax.Implies))
            parts = [first, self.lower(right, positive)]
            return self.arena.junction(kind if positive else DUAL[kind], parts)
        same = isinstance(formula, syntax.Iff) == positive
        return self.arena.junction(
            "and",
            [
                self.arena.junction("or", [self.lower(left, False), self.lower(right, same)]),
                self.arena.junction("or", [self.lower(left, True), self.lower(right, not same)]),
            ],
        )

    @_lower.register
    def _(self, formula: syntax.TimedUnary, positive: bool) -> int:
        kind = _OPERATOR[type(formula)]
        weak = kind in ("release", "trigger")
        left = TRUE if weak != positive else FALSE
        return self._timed(formula, kind, left, self.lower(formula.operand, positive), positive)

    @_lower.register
    def _(self, formula: syntax.TimedBinary, positive: bool) -> int:
        left, right = self.lower(formula.left, positive), self.lower(formula.right, positive)
        if isinstance(formula, syntax.Unless):
            return self._unless(formula, left, right, positive)
        return self._timed(formula, _OPERATOR[type(formula)], left, right, positive)

    def _timed(
        self,
        formula: syntax.TimedUnary | syntax.TimedBinary,
        kind: str,
        left: int,
        right: int,
        positive: bool,
    ) -> int:
        steps = in_steps(formula.interval, self.clock)
        kind = kind if positive else DUAL[kind]
        if kind == "until" and steps.upper is None:
            raise _liveness(formula, positive)
        return self.arena.temporal(kind, left, right, steps)

    def _unless(self, formula: syntax.Unless, left: int, right: int, positive: bool) -> int:
        """Lower ``a unless[l:u] b``: always[0:u](a) or a until[l:u] b, as RTAMT has it."""
        steps = in_steps(formula.interval, self.clock)
        if steps.upper is None:
            if not positive:
                raise _liveness(formula, positive)
            # Without end it is the release of `b` by ...: b may come from tick `lower` on.
            both = self.arena.junction("or", [left, right])
            waiting = self.arena.temporal("release", right, both, FOREVER)
            if not steps.lower:
                return waiting
            first = self.arena.temporal("release", FALSE, left, Steps(0, steps.lower - 1))
            later = self.arena.temporal("until", TRUE, waiting, Steps(steps.lower, steps.lower))
            return self.arena.junction("and", [first, later])
        held, until, join = ("release", "until", "or") if positive else ("until", "release", "and")
        left_alone = FALSE if positive else TRUE
        always = self.arena.temporal(held, left_alone, left, Steps(0, steps.upper))
        return self.arena.junction(join, [always, self.arena.temporal(until, left, right, steps)])


def _liveness(formula: syntax.TimedUnary | syntax.TimedBinary, positive: bool) -> FormulaError:
    text = format_formula(formula)
    text = text if len(text) <= 60 else text[:57] + "..."
    if positive:
        problem = f"{text} has no upper bound: no finite run can violate it"
        unless = "; or unless, if the right side need never come"
        return FormulaError(problem, accepted=_BOUNDED + unless * (formula.word == "until"))
    problem = f"{text} has no upper bound under a negation: no finite run can violate it"
    return FormulaError(problem, accepted=f"a bound, as in {formula.word}[0:5](...)")
