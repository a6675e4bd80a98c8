"""The abstract syntax of properties: plain values, one class for each kind of operator.

Operations on formulas (printing, timing, compilation) are functions in the other modules of
this package, dispatched on the type of the node.

The language is that of RTAMT: bounded-future signal temporal logic with past operators, under
discrete-time semantics (Nickovic and Yamaguchi, "RTAMT: Online Robustness Monitors from STL",
ATVA 2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar

UNITS = ("s", "ms", "us", "ns", "steps")


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


@dataclass(frozen=True)
class Unary:
    """An operator with one operand and no bounds."""

    operand: Formula
    word: ClassVar[str]


@dataclass(frozen=True)
class Binary:
    """An operator with two operands and no bounds."""

    left: Formula
    right: Formula
    word: ClassVar[str]


@dataclass(frozen=True)
class TimedUnary:
    """An operator with one operand that may have bounds."""

    operand: Formula
    interval: Interval | None = None
    word: ClassVar[str]


@dataclass(frozen=True)
class TimedBinary:
    """An operator with two operands that may have bounds."""

    left: Formula
    right: Formula
    interval: Interval | None = None
    word: ClassVar[str]


class Not(Unary):
    """Negation."""

    word = "not"


class And(Binary):
    """Conjunction."""

    word = "and"


class Or(Binary):
    """Disjunction."""

    word = "or"


class Implies(Binary):
    """Implication."""

    word = "implies"


class Iff(Binary):
    """Equivalence."""

    word = "iff"


class Xor(Binary):
    """Exclusive or."""

    word = "xor"


class Always(TimedUnary):
    """The operand holds at every tick of the interval (for ever, without one)."""

    word = "always"


class Eventually(TimedUnary):
    """The operand holds at some tick of the interval."""

    word = "eventually"


class Historically(TimedUnary):
    """The operand held at every past tick of the interval; true before the first tick."""

    word = "historically"


class Once(TimedUnary):
    """The operand held at some past tick of the interval; false before the first tick."""

    word = "once"


class Until(TimedBinary):
    """The right side holds within the interval, and the left at every tick before that one."""

    word = "until"


class Unless(TimedBinary):
    """The left side holds up to the end of the interval, or until the right side releases it."""

    word = "unless"


class Since(TimedBinary):
    """The right side held within the interval, and the left at every tick after that one."""

    word = "since"


class Rise(Unary):
    """The operand holds now and did not one tick ago; at the first tick: holds now."""

    word = "rise"


class Fall(Unary):
    """The operand does not hold now and did one tick ago; at the first tick: does not hold."""

    word = "fall"


class Next(Unary):
    """The operand holds one tick later."""

    word = "next"


class Previous(Unary):
    """The operand held one tick ago; true at the first tick (the weak operator of RTAMT)."""

    word = "prev"


class StrongNext(Unary):
    """As `Next`: a monitored run has always a next tick."""

    word = "s_next"


class StrongPrevious(Unary):
    """The operand held one tick ago; false at the first tick."""

    word = "s_prev"


Formula = Constant | Atom | Unary | Binary | TimedUnary | TimedBinary

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
