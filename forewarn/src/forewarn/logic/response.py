"""The bounded response ``always(trigger implies eventually[0:K](response))`` and its automaton.

ProbGuard (arXiv 2508.00500), Definition 5.2, counts one step more than STL does: a bound of K + 1
steps reproduces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forewarn.logic.automaton import Automaton
from forewarn.logic.syntax import (
    Always,
    And,
    Constant,
    Eventually,
    Formula,
    Implies,
    Not,
    Or,
    is_propositional,
)
from forewarn.logic.timing import FOREVER, in_steps
from forewarn.logic.truth import truth_table

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock


class BoundedResponse(NamedTuple):
    """Whenever `trigger` holds, `response` must hold within `bound` steps; both propositional."""

    trigger: Formula
    response: Formula
    bound: int


def as_bounded_response(formula: Formula, clock: Clock) -> BoundedResponse | None:
    """Return the parts of a bounded response in any of its spellings, or None.

    ``always(a implies eventually[0:K](b))``, ``always(not a or eventually[0:K](b))`` and
    ``always(eventually[0:K](b))`` are bounded responses.
    """
    if not isinstance(formula, Always) or in_steps(formula.interval, clock) != FOREVER:
        return None
    timed: list[Eventually] = []
    guards: list[Formula] = []
    for part in _disjuncts(formula.operand):
        if isinstance(part, Eventually) and is_propositional(part.operand):
            timed.append(part)
        elif is_propositional(part):
            guards.append(part)
        else:
            return None
    if len(timed) != 1:
        return None
    steps = in_steps(timed[0].interval, clock)
    if steps.lower or steps.upper is None:
        return None
    trigger: Formula = Constant(True)
    for i, guard in enumerate(guards):
        absent = guard.operand if isinstance(guard, Not) else Not(guard)
        trigger = And(trigger, absent) if i else absent
    return BoundedResponse(trigger, timed[0].operand, steps.upper)


def _disjuncts(formula: Formula) -> list[Formula]:
    if isinstance(formula, Or):
        return _disjuncts(formula.left) + _disjuncts(formula.right)
    if isinstance(formula, Implies):
        return [Not(formula.left), *_disjuncts(formula.right)]
    return [formula]


def response_automaton(parts: BoundedResponse, atoms: tuple[str, ...]) -> Automaton | None:
    """Return the automaton in the layered numbering, with K + 2 states.

    The earliest pending obligation decides, so one countdown is enough. None if one of the
    three classes is empty (the response always holds, or a trigger cannot be answered): the
    property is then no response, and its exact automaton has another shape.
    """
    response = truth_table(parts.response, atoms)
    trigger = truth_table(parts.trigger, atoms) & ~response
    if not response.any() or not trigger.any():
        return None
    waiting = parts.bound
    violated = waiting + 1
    transitions = np.empty((waiting + 2, 3), dtype=np.int32)
    transitions[0] = 0, waiting or violated, 0
    left = np.arange(1, waiting + 1)
    transitions[1 : waiting + 1, :2] = np.where(left == 1, violated, left - 1)[:, None]
    transitions[1 : waiting + 1, 2] = 0
    transitions[violated] = violated
    return Automaton(
        atoms=atoms,
        letter_class=np.where(response, 2, np.where(trigger, 1, 0)).astype(np.int32),
        transitions=transitions,
        initial=0,
        violated=violated,
        satisfied=None,
        names=("idle", *(f"waiting {r}" for r in range(1, waiting + 1)), "violated"),
        countdown=waiting,
    )
