"""The abstract syntax of properties: plain values, one class for each kind of operator.

Operations on formulas (printing, timing, compilation) are functions in the other modules of
this package, dispatched on the type of the node.

The language is that of RTAMT: bounded-future signal temporal logic with past operators, under
discrete-time semantics (Nickovic and Yamaguchi, "RTAMT: Online Robustness Monitors from STL",
ATVA 2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

UNITS = ("s", "ms", "us", "ns", "steps")
#: Units as they are written.
UNIT_OF = {unit: unit for unit in UNITS} | {"step": "steps"}


@dataclass(frozen=True)
class Bound:
    """One end of an interval.

    Attributes
    ----------
    value : float
        The number as written, >= 0.
    unit : str
        One of `UNITS`; ``'steps'`` counts ticks of the monitor.
    """

    value: float
    unit: str = "s"


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
