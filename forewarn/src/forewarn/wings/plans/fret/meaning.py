"""What a requirement means, as a property that a monitor can watch.

A scope is a set of moments that falls into intervals. In each of them, every trigger starts a
demand, which ends with the interval. *Only* scopes ask for the opposite of the demand in the
moments outside. At the end of a run holds what FRET's templates for finite traces say, but for
demands that only the end of an interval can refuse: if the run ends before it, they are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forewarn.logic import syntax
from forewarn.logic.syntax import (
    Always,
    And,
    Bound,
    Constant,
    Formula,
    Interval,
    Not,
    Or,
    Unless,
    substituted,
)
from forewarn.wings.plans.fret.functions import meaning

if TYPE_CHECKING:
    from forewarn.wings.plans.fret.requirement import FretRequirement

_NEVER = Constant(False)
#: The opposite of a timing, with the response negated: "not always p" is "eventually not p".
_OPPOSITE = {
    "immediately": "immediately", "next": "next", "finally": "finally", "always": "eventually",
    "never": "eventually", "eventually": "always", "for": "within", "within": "for",
    "until": "before", "before": "until",
}  # fmt: skip


@dataclass(frozen=True)
class Translation:
    """A requirement as a property, None if no finite run can violate it, and what is left out."""

    formula: Formula | None
    reason: str = ""


@dataclass(frozen=True)
class _Scope:
    """The moments at which a requirement applies.

    `inside` holds at them, `outside` elsewhere; it is never where the scope lasts to the end of the
    run. `at_start` says that the one interval begins with the run, if at all.
    """

    inside: Formula
    outside: Formula
    at_start: bool


def translate(requirement: FretRequirement) -> Translation:
    """Translate a requirement into a property."""
    requirement, scope = _spelled_out(requirement)
    demand, reason = _demand(requirement, scope)
    if demand is None:
        return Translation(None, reason)
    if requirement.condition == "null":
        begun = scope.inside if scope.at_start else syntax.Rise(scope.inside)
        formula = demand if begun == Constant(True) else syntax.Implies(begun, demand)
        return Translation(formula if scope.at_start else Always(formula), reason)
    assert requirement.trigger is not None
    trigger = _and(scope.inside, requirement.trigger)
    started = trigger if requirement.condition == "holding" else syntax.Rise(trigger)
    return Translation(Always(syntax.Implies(started, demand)), reason)


def _spelled_out(requirement: FretRequirement) -> tuple[FretRequirement, _Scope]:
    """Return a requirement with the meanings of functions in their places, and its scope."""
    without_scope: dict[str, Formula] = {}
    for function in requirement.functions:
        operands = tuple(substituted(part, without_scope) for part in function.operands)
        without_scope[function.text] = meaning(function, operands, Constant(True))
    mode = requirement.mode and substituted(requirement.mode, without_scope)
    scope = _scope(requirement.scope, mode)
    meanings: dict[str, Formula] = {}
    for function in requirement.functions:
        operands = tuple(substituted(part, meanings) for part in function.operands)
        meanings[function.text] = meaning(function, operands, scope.inside)
    trigger, stop = (
        formula and substituted(formula, meanings)
        for formula in (requirement.trigger, requirement.stop)
    )
    response = substituted(requirement.response, meanings)
    return replace(requirement, mode=mode, trigger=trigger, stop=stop, response=response), scope


def _scope(name: str, mode: Formula | None) -> _Scope:
    if mode is None:
        return _Scope(Constant(True), _NEVER, True)
    left = syntax.Once(And(Not(mode), syntax.StrongPrevious(mode)))
    scopes = {
        "in": _Scope(mode, Not(mode), False),
        "notin": _Scope(Not(mode), mode, False),
        "before": _Scope(syntax.Historically(Not(mode)), syntax.Once(mode), True),
        "after": _Scope(left, _NEVER, False),
        "onlyIn": _Scope(Not(mode), mode, False),
        "onlyBefore": _Scope(syntax.Once(mode), _NEVER, False),
        "onlyAfter": _Scope(Not(left), left, True),
    }
    return scopes[name]


def _demand(requirement: FretRequirement, scope: _Scope) -> tuple[Formula | None, str]:
    """Return what a trigger asks for from its moment on."""
    timing, response = requirement.timing, requirement.response
    only = requirement.scope.startswith("only")
    if timing == "never":
        timing, response = "always", Not(response)
    if timing == "after":
        assert requirement.duration is not None
        return _after(response, requirement.duration, scope.outside, only=only), ""
    if only:
        timing, response = _OPPOSITE[timing], _not(response)
    if timing in ("eventually", "finally"):
        return _at_the_end(timing, response, scope)
    return _safe(timing, response, requirement, scope.outside), ""


def _safe(
    timing: str, response: Formula, requirement: FretRequirement, outside: Formula
) -> Formula:
    if timing == "immediately":
        return response
    if timing == "next":
        return syntax.Next(_or(response, outside))
    if timing == "always":
        return _unless(response, outside)
    if timing in ("for", "within"):
        assert requirement.duration is not None
        window = _window(requirement.duration)
        if timing == "within":
            return syntax.Eventually(_or(response, outside), window)
        return _unless(response, outside, window)
    assert requirement.stop is not None
    if timing == "until":
        return _unless(response, _or(requirement.stop, outside))
    met = And(response, _not(requirement.stop))
    return _unless(_not(requirement.stop), _or(met, outside))


def _after(response: Formula, duration: Bound, outside: Formula, *, only: bool) -> Formula:
    """Return that the response comes one moment after the duration and not before."""
    window = _window(duration)
    if not only:
        quiet = _unless(_not(response), outside, window)
        return And(quiet, syntax.Next(syntax.Eventually(_or(response, outside), window)))
    early = syntax.Eventually(_or(response, outside), window)
    none = And(_not(response), syntax.Next(_unless(_not(response), outside, window)))
    return Or(early, none)


def _at_the_end(timing: str, response: Formula, scope: _Scope) -> tuple[Formula | None, str]:
    if scope.outside == _NEVER:
        return None, (
            f"the scope lasts to the end of the run, and before that no run breaks {timing!r}: "
            "give a duration (within 5 seconds), or a scope that ends"
        )
    reason = (
        f"{timing!r} is decided when the scope ends; where the run ends within the scope, the "
        "demand is dropped"
    )
    if timing == "eventually":
        return Unless(scope.inside, And(response, scope.inside)), reason
    last = Or(response, syntax.Next(scope.inside))
    return _unless(last, scope.outside), reason


def _window(duration: Bound) -> Interval:
    return Interval(Bound(0.0, duration.unit), duration)


def _unless(held: Formula, released: Formula, window: Interval | None = None) -> Formula:
    return Always(held, window) if released == _NEVER else Unless(held, released, window)


def _or(first: Formula, second: Formula) -> Formula:
    return first if second == _NEVER else Or(first, second)


def _and(first: Formula, second: Formula) -> Formula:
    return second if first == Constant(True) else And(first, second)


def _not(formula: Formula) -> Formula:
    return formula.operand if isinstance(formula, Not) else Not(formula)
