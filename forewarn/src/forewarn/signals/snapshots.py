"""What is known of the source signals at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Aged(NamedTuple):
    """A value that another process supplied, and how old it was then, in nanoseconds."""

    value: Any
    age_ns: int


class StaleSignal(NamedTuple):
    """A source signal without a value: `age` is in nanoseconds, None if nothing ever arrived."""

    name: str
    age: int | None


class Failure(NamedTuple):
    """A value that could not be had although its message arrived."""

    where: str
    reason: str


ABSENT = object()
"""Stands for what was not computed ahead; None is a value that is unknown."""


class Ahead(NamedTuple):
    """Derived signals that were computed for many moments at once.

    Attributes
    ----------
    values : sequence
        One for each derived signal, `ABSENT` where it is still to be computed.
    failed : dict
        Why some have no value, by their place among the derived signals.
    """

    values: Sequence[Any]
    failed: Mapping[int, str]


class Snapshot(NamedTuple):
    """All source signals at one moment.

    Attributes
    ----------
    tick : int
        Number of the tick on the grid.
    values : tuple
        One value per source signal in slot order; None where unknown.
    stale : tuple of StaleSignal
        Those that are too old, or never came: unknown, unless their last value is held.
    failures : tuple of Failure
        What was received for this tick and could not be read.
    suspended : bool
        Values are missing, and only of signals whose staleness is to be ignored.
    time_ns : int or None
        When that was; None if the clock's axis tells.
    action : str or None
        What was done, as far as a trace names it and not the monitor file.
    ahead : Ahead or None
        Derived signals of the moment, if they were computed already.
    """

    tick: int
    values: tuple[Any, ...]
    stale: tuple[StaleSignal, ...] = ()
    failures: tuple[Failure, ...] = ()
    suspended: bool = False
    time_ns: int | None = None
    action: str | None = None
    ahead: Ahead | None = None
