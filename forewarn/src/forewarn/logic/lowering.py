"""From syntax trees to nodes in steps and negation normal form."""

from __future__ import annotations

from functools import singledispatchmethod

import numpy as np

from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.nodes import DUAL, FALSE, TRUE, Arena
from forewarn.logic.printing import format_formula
from forewarn.logic.syntax import Formula, is_propositional
from forewarn.logic.timing import FOREVER, Steps, in_steps
from forewarn.logic.truth import truth_table
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
            return self.temporal("until", TRUE, self.lower(operand, positive), _ONE)
        if isinstance(formula, (syntax.Previous, syntax.StrongPrevious)):
            # The negation of the weak operator is the strong one of the negated operand.
            weak = isinstance(formula, syntax.Previous) == positive
            return self._previous(operand, positive, weak=weak)
        # rise(a) is a and not s_prev(a); fall(a) is not a and prev(a), as RTAMT has it.
        now_positive = isinstance(formula, syntax.Rise) == positive
        now = self.lower(operand, now_positive)
        before = self._previous(operand, not now_positive, weak=positive)
        join = self.arena.conjunction if positive else self.arena.disjunction
        return join([now, before])

    def _previous(self, operand: Formula, positive: bool, *, weak: bool) -> int:
        """Return prev (weak) or s_prev of the operand or of its negation."""
        node = self.lower(operand, positive)
        if weak:
            return self.temporal("trigger", FALSE, node, _ONE)
        return self.temporal("since", TRUE, node, _ONE)

    @_lower.register
    def _(self, formula: syntax.Binary, positive: bool) -> int:
        left, right = formula.left, formula.right
        if isinstance(formula, syntax.Implies):
            return self._junction("or", left, right, positive, left_positive=not positive)
        if isinstance(formula, syntax.Or):
            return self._junction("or", left, right, positive, left_positive=positive)
        if isinstance(formula, syntax.And):
            return self._junction("and", left, right, positive, left_positive=positive)
        same = isinstance(formula, syntax.Iff) == positive
        return self.arena.conjunction(
            [
                self.arena.disjunction([self.lower(left, False), self.lower(right, same)]),
                self.arena.disjunction([self.lower(left, True), self.lower(right, not same)]),
            ]
        )

    def _junction(
        self, kind: str, left: Formula, right: Formula, positive: bool, *, left_positive: bool
    ) -> int:
        parts = [self.lower(left, left_positive), self.lower(right, positive)]
        conjoin = (kind if positive else DUAL[kind]) == "and"
        return self.arena.conjunction(parts) if conjoin else self.arena.disjunction(parts)

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
        return self.temporal(kind, left, right, steps)

    def _unless(self, formula: syntax.Unless, left: int, right: int, positive: bool) -> int:
        """Lower ``a unless[l:u] b``: always[0:u](a) or a until[l:u] b, as RTAMT has it."""
        steps = in_steps(formula.interval, self.clock)
        if steps.upper is None:
            if not positive:
                raise _liveness(formula, positive)
            # Without end it is the release of `b` by ...: b may come from tick `lower` on.
            both = self.arena.disjunction([left, right])
            waiting = self.temporal("release", right, both, FOREVER)
            if not steps.lower:
                return waiting
            first = self.temporal("release", FALSE, left, Steps(0, steps.lower - 1))
            later = self.temporal("until", TRUE, waiting, Steps(steps.lower, steps.lower))
            return self.arena.conjunction([first, later])
        holds = Steps(0, steps.upper)
        if positive:
            always = self.temporal("release", FALSE, left, holds)
            return self.arena.disjunction([always, self.temporal("until", left, right, steps)])
        never = self.temporal("until", TRUE, left, holds)
        return self.arena.conjunction([never, self.temporal("release", left, right, steps)])

    def temporal(self, kind: str, left: int, right: int, steps: Steps) -> int:
        return self.arena.temporal(kind, left, right, steps)


def _liveness(formula: syntax.TimedUnary | syntax.TimedBinary, positive: bool) -> FormulaError:
    text = format_formula(formula)
    text = text if len(text) <= 60 else text[:57] + "..."
    if positive:
        problem = f"{text} has no upper bound: no finite run can violate it"
        unless = "; or unless, if the right side need never come"
        return FormulaError(problem, accepted=_BOUNDED + unless * (formula.word == "until"))
    problem = f"{text} has no upper bound under a negation: no finite run can violate it"
    return FormulaError(problem, accepted=f"a bound, as in {formula.word}[0:5](...)")
