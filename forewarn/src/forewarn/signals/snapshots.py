"""What is known of the source signals at one moment."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock


class Aged(NamedTuple):
    """A value that another process supplied, and how old it was then, in nanoseconds."""

    value: Any
    age_ns: int


class StaleSignal(NamedTuple):
    """A source signal without a value: `age` is in nanoseconds, None if nothing ever arrived."""

    name: str
    age: int | None


class Failure(NamedTuple):
    """A value that is unknown although its message arrived."""

    where: str
    reason: str


ABSENT = object()
"""Stands for what was not computed ahead; None is a value that is unknown."""


class Ahead(NamedTuple):
    """Derived signals that were computed for many moments at once."""

    values: Sequence[Any]  # one for each derived signal, `ABSENT` where it is still to be computed
    failed: Mapping[int, str]  # why some have no value, by their place among the derived signals


class Snapshot(NamedTuple):
    """All source signals at one moment.

    `stale`: those that are too old, or never came: unknown, unless their last value is held.
    `suspended`: values are missing, and only of signals whose staleness is to be ignored.
    `repeats`: so many moments follow at which all is the same, but for their time and the ages of
    what is stale: of a recording, in which nothing arrives for a long time.
    """

    tick: int  # number of the tick on the grid
    values: tuple[Any, ...]  # one value per source signal in slot order; None where unknown
    stale: tuple[StaleSignal, ...] = ()
    failures: tuple[Failure, ...] = ()  # what was received for this tick and could not be read
    suspended: bool = False
    time_ns: int | None = None  # when that was; None if the clock's axis tells
    action: str | None = None  # what was done, as far as a trace names it and not the monitor file
    ahead: Ahead | None = None  # derived signals of the moment, if they were computed already
    repeats: int = 0


class Repeating(Protocol):
    """What a moment shows, or comes to, and how many that follow are the same."""

    @property
    def tick(self) -> int:
        """Number of the moment."""

    @property
    def stale(self) -> tuple[StaleSignal, ...]:
        """Signals that are too old, with their ages at that moment."""

    @property
    def repeats(self) -> int:
        """How many moments follow that are the same."""

    @property
    def _replace(self) -> Any:
        """Make another with other values, as named tuples do."""


One = TypeVar("One", bound=Repeating)


def singly(first: One, clock: Clock) -> Iterator[tuple[One, int]]:
    """Yield what a moment shows and what each does that repeats it, and how many are left."""
    if not first.repeats:
        yield first, 0
        return
    begin_ns = clock.time_ns(first.tick)
    for tick in range(first.tick, first.tick + first.repeats + 1):
        time_ns = clock.time_ns(tick)
        passed = time_ns - begin_ns
        stale = tuple(
            [StaleSignal(name, None if age is None else age + passed) for name, age in first.stale]
        )
        one: One = first._replace(tick=tick, time_ns=time_ns, stale=stale, repeats=0)
        yield one, first.tick + first.repeats - tick


def identical(one: Any, other: Any) -> bool:
    """Tell whether two values are surely the same to the last bit; equal ones may be missed."""
    return pickle.dumps(one) == pickle.dumps(other)
