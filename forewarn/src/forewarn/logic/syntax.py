"""The abstract syntax of properties: plain values, one class for each kind of operator.

Formulas are written as text that parses back to the same formula, and their bounds are read as
whole moments of the monitor's clock. Functions over formulas are dispatched on the node's type.

The language is that of RTAMT: bounded-future signal temporal logic with past operators, under
discrete-time semantics (Nickovic and Yamaguchi, "RTAMT: Online Robustness Monitors from STL",
ATVA 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from forewarn.errors import FormulaError
from forewarn.signals.clock_kinds import by_clock

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock

UNITS = ("s", "ms", "us", "ns", "steps")
#: Units as they are written.
UNIT_OF = {unit: unit for unit in UNITS} | {"step": "steps"}


@dataclass(frozen=True)
class Bound:
    """One end of an interval."""

    value: float  # the number as written, >= 0
    unit: str = "s"  # one of `UNITS`; ``'steps'`` counts ticks of the monitor


@dataclass(frozen=True)
class Interval:
    """A closed interval of time; `upper` None means without end."""

    lower: Bound
    upper: Bound | None


@dataclass(frozen=True)
class Constant:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True)
class Atom:
    """A predicate: its name, or the text of an inline comparison in normal form."""

    text: str


class _Operator:
    """What carries a word, the operator's own: ``class Not(Unary, word="not")``."""

    word: ClassVar[str]

    def __init_subclass__(cls, word: str = "") -> None:
        cls.word = word


@dataclass(frozen=True)
class Unary(_Operator):
    """An operator with one operand and no bounds."""

    operand: Formula


@dataclass(frozen=True)
class Binary(_Operator):
    """An operator with two operands and no bounds."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class TimedUnary(_Operator):
    """An operator with one operand that may have bounds."""

    operand: Formula
    interval: Interval | None = None


@dataclass(frozen=True)
class TimedBinary(_Operator):
    """An operator with two operands that may have bounds."""

    left: Formula
    right: Formula
    interval: Interval | None = None


class Not(Unary, word="not"):
    """Negation."""


class And(Binary, word="and"):
    """Conjunction."""


class Or(Binary, word="or"):
    """Disjunction."""


class Implies(Binary, word="implies"):
    """Implication."""


class Iff(Binary, word="iff"):
    """Equivalence."""


class Xor(Binary, word="xor"):
    """Exclusive or."""


class Always(TimedUnary, word="always"):
    """The operand holds at every tick of the interval (for ever, without one)."""


class Eventually(TimedUnary, word="eventually"):
    """The operand holds at some tick of the interval."""


class Historically(TimedUnary, word="historically"):
    """The operand held at every past tick of the interval; true before the first tick."""


class Once(TimedUnary, word="once"):
    """The operand held at some past tick of the interval; false before the first tick."""


class Until(TimedBinary, word="until"):
    """The right side holds within the interval, and the left at every tick before that one."""


class Unless(TimedBinary, word="unless"):
    """The left side holds up to the end of the interval, or until the right side releases it."""


class Since(TimedBinary, word="since"):
    """The right side held within the interval, and the left at every tick after that one."""


class Rise(Unary, word="rise"):
    """The operand holds now and did not one tick ago; at the first tick: holds now."""


class Fall(Unary, word="fall"):
    """The operand does not hold now and did one tick ago; at the first tick: does not hold."""


class Next(Unary, word="next"):
    """The operand holds one tick later."""


class Previous(Unary, word="prev"):
    """The operand held one tick ago; true at the first tick (the weak operator of RTAMT)."""


class StrongNext(Unary, word="s_next"):
    """As `Next`: a monitored run has always a next tick."""


class StrongPrevious(Unary, word="s_prev"):
    """The operand held one tick ago; false at the first tick."""


Formula = Constant | Atom | Unary | Binary | TimedUnary | TimedBinary

#: The operators by their words.
PREFIX: dict[str, type[Unary]] = {
    kind.word: kind for kind in (Not, Rise, Fall, Next, Previous, StrongNext, StrongPrevious)
}
TIMED_PREFIX: dict[str, type[TimedUnary]] = {
    kind.word: kind for kind in (Always, Eventually, Historically, Once)
}
INFIX: dict[str, type[Binary]] = {kind.word: kind for kind in (And, Or, Implies, Iff, Xor)}
TIMED_INFIX: dict[str, type[TimedBinary]] = {kind.word: kind for kind in (Until, Unless, Since)}

TEMPORAL: tuple[type[Formula], ...] = (
    TimedUnary, TimedBinary, Rise, Fall, Next, Previous, StrongNext, StrongPrevious,
)  # fmt: skip


def operands(formula: Formula) -> tuple[Formula, ...]:
    """Return the direct operands of `formula`, left to right."""
    if isinstance(formula, (Constant, Atom)):
        return ()
    names = [field.name for field in fields(formula) if field.name != "interval"]
    return tuple(getattr(formula, name) for name in names)


def walk(formula: Formula) -> Iterator[Formula]:
    """Yield `formula` and all its parts, each before its operands, left to right."""
    pending = [formula]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(reversed(operands(part)))


def substituted(formula: Formula, meanings: Mapping[str, Formula]) -> Formula:
    """Return a formula with what some of its atoms mean in their place."""
    done: dict[int, Formula] = {}
    for part in reversed(list(walk(formula))):  # operands come before what they are part of
        if isinstance(part, Atom):
            done[id(part)] = meanings.get(part.text, part)
        elif isinstance(part, Constant):
            done[id(part)] = part
        else:
            sides = [done[id(side)] for side in operands(part)]
            bounds = [part.interval] if isinstance(part, (TimedUnary, TimedBinary)) else []
            done[id(part)] = type(part)(*sides, *bounds)  # type: ignore[arg-type]
    return done[id(formula)]


def atoms_of(formula: Formula) -> tuple[str, ...]:
    """Return the texts of the atoms in order of first appearance."""
    return tuple(dict.fromkeys(part.text for part in walk(formula) if isinstance(part, Atom)))


def depth(formula: Formula) -> int:
    """Return the number of operators on the longest way from the root to a leaf."""
    level, count = [formula], -1
    while level:
        level = list({id(part): part for whole in level for part in operands(whole)}.values())
        count += 1
    return count


def is_propositional(formula: Formula) -> bool:
    """Tell whether the value at a tick depends on that tick alone."""
    return not any(isinstance(part, TEMPORAL) for part in walk(formula))


#: Binding powers, also used by the parser.
POWER = {
    "xor": 10, "iff": 20, "implies": 30, "or": 40, "and": 50, "since": 60, "unless": 70,
    "until": 80,
}  # fmt: skip
NOT_CHAINED = frozenset({"until", "unless", "since", "implies"})


def format_formula(formula: Formula) -> str:
    """Return the text of `formula`; ``parse_formula`` turns it back into an equal one."""
    if isinstance(formula, Constant):
        return "true" if formula.value else "false"
    if isinstance(formula, Atom):
        return formula.text
    operator = formula.word
    if isinstance(formula, (TimedUnary, TimedBinary)):
        operator += format_interval(formula.interval)
    if isinstance(formula, (Unary, TimedUnary)):
        return f"{operator}({format_formula(formula.operand)})"
    left, right = _side(formula.left, formula, True), _side(formula.right, formula, False)
    return f"{left} {operator} {right}"


def _side(side: Formula, parent: Binary | TimedBinary, is_left: bool) -> str:
    text = format_formula(side)
    if not isinstance(side, (Binary, TimedBinary)):
        return text
    chained = side.word == parent.word and (not is_left or side.word in NOT_CHAINED)
    return f"({text})" if chained or POWER[side.word] < POWER[parent.word] else text


def format_interval(interval: Interval | None) -> str:
    """Return ``[0:2]``, ``[500 ms:2 s]``, ``[1:inf]`` or nothing."""
    if interval is None:
        return ""
    lower, upper = interval.lower, interval.upper
    if upper is None:
        return f"[{_bound(lower)}:inf]"
    if lower.unit == upper.unit:
        return f"[{_number(lower.value)}:{_bound(upper)}]"
    # Both units are written: a missing one would be taken from the other end.
    return f"[{_number(lower.value)} {lower.unit}:{_number(upper.value)} {upper.unit}]"


def _bound(bound: Bound) -> str:
    return _number(bound.value) + ("" if bound.unit == "s" else f" {bound.unit}")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and value < 1e15 else repr(value)


_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SLACK = 1e-9
_MAX_STEPS = 10_000_000


class Steps(NamedTuple):
    """A closed interval in ticks; `upper` None means without end."""

    lower: int
    upper: int | None


FOREVER = Steps(0, None)


def in_steps(interval: Interval | None, clock: Clock) -> Steps:
    """Return the moments of `clock` that lie in `interval`.

    On a grid, an upper end of b seconds is ``floor(b * rate + 1e-9)`` steps, a lower end
    ``ceil(b * rate - 1e-9)``.

    Raises FormulaError if no tick lies in the interval, a number of steps is not whole, or a bound
    is in seconds where the clock is steps.
    """
    if interval is None:
        return FOREVER
    for bound in (interval.upper, interval.lower):
        if bound is not None and bound.unit != "steps" and not clock.timed:
            raise FormulaError(
                f"a bound of {bound.value:g} {bound.unit}: the clock is steps",
                accepted="bounds in steps: [0:20], [0 steps:20 steps]",
            )
    lower = _steps(interval.lower, clock, up=True)
    if interval.upper is None:
        return Steps(lower, None)
    upper = _steps(interval.upper, clock, up=False)
    if _exact(interval.lower, clock) > _exact(interval.upper, clock):
        raise FormulaError(
            f"the interval {format_interval(interval)} ends before it begins",
            accepted="the smaller bound first",
        )
    if lower > upper:
        raise FormulaError(
            f"no tick {by_clock(clock.remembered)} lies in {format_interval(interval)}",
            accepted=f"an interval that holds a multiple of {clock.say(clock.duration(1))}",
        )
    return Steps(lower, upper)


def _steps(bound: Bound, clock: Clock, *, up: bool) -> int:
    whole, exact = bound.unit == "steps", _exact(bound, clock)
    if not exact <= _MAX_STEPS:
        counted = "" if whole else f" is {exact:.10g} steps {by_clock(clock.remembered)}"
        raise FormulaError(
            f"a bound of {bound.value:.10g} {bound.unit}{counted}",
            accepted=f"at most {_MAX_STEPS} steps",
        )
    if whole and exact != int(exact):
        raise FormulaError(f"{bound.value:g} steps", accepted="a whole number of steps")
    return max(math.ceil(exact - _SLACK) if up else math.floor(exact + _SLACK), 0)


def _exact(bound: Bound, clock: Clock) -> float:
    """Return a bound in steps, before it is rounded."""
    return bound.value if bound.unit == "steps" else bound.value * _SECONDS[bound.unit] * clock.rate
