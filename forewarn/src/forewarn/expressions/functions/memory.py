"""Functions of what a signal was: at the moment before, over a window, since something held.

A call of one stands for a signal of its own. It has a cell, a tuple of plain values that takes in
one value at each moment and gives the result. A cell is a value, so that a step stays pure and a
checkpoint can keep it; a moment costs the same whenever it comes.

The rules are the same for all. Memory begins with the run: a window reaches no further back. What
depends on a moment at which the argument was unknown is unknown. Where a moment was missed, or may
have ended the run, all that came before it is unknown. The window of ``d`` holds every moment from
``d`` ago until now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.values import Notes, Unknown, kind

Cell = tuple[Any, ...]
MOST_MOMENTS = 1000
"""Moments that a window may span: what it holds is copied at each."""

EXACT = 1074
"""Every finite 64-bit number is a whole multiple of 2 to the power of minus this."""


class Memory(NamedTuple):
    """What one call remembers."""

    function: str  # name of the function
    moments: int  # how many moments its window spans back; 0 where it has none
    rate: float  # moments in a unit of duration

    @property
    def judges(self) -> bool:
        """Tell whether the argument is a condition."""
        return self.function in CONDITIONS

    @property
    def start(self) -> Cell:
        """The cell before the first moment of a run."""
        return _KINDS[self.function].start

    def advance(self, cell: Cell, value: Any) -> tuple[Any, Cell]:
        """Take in the value of one moment.

        `cell`: what the moment before left.
        `value`: the argument; None if it is unknown.
        Returns the value of the call; None if it is unknown, `Unknown` if the argument is of a kind
        that the function cannot take.
        Returns what the next moment takes.
        """
        problem = None
        if self.function in _NUMERIC and value is not None and not isinstance(value, int | float):
            problem = Unknown(f"{self.function}() needs a number, not {kind(value)}")
            value = None
        result, cell = _KINDS[self.function].advance(self, cell, value)
        return problem or result, cell

    @property
    def forgotten(self) -> Cell:
        """The cell after moments about which nothing is known."""
        cell = self.start
        for _ in range(self.moments + 1):
            _, cell = self.advance(cell, None)
        return cell

    def rest(self, data: Any) -> Cell:
        """Return the cell that plain data, as JSON gives them, were made of.

        Raises ValueError if this call cannot have left them.
        """
        whole = isinstance(data, list | tuple)
        # An array that `previous` holds stays one.
        cell = tuple(data) if whole and self.function == "previous" else _tupled(data)
        try:
            if not whole:
                raise TypeError
            self.advance(cell, None)
            self.advance(cell, False if self.judges else 0.0)
        except (TypeError, IndexError, ValueError, OverflowError):
            raise ValueError(f"{data!r} is no memory of {self.function}()") from None
        return cell


def _tupled(data: Any) -> Any:
    return tuple(map(_tupled, data)) if isinstance(data, list | tuple) else data


def _previous(memory: Memory, cell: Cell, value: Any) -> tuple[Any, Cell]:
    return cell[0], (value,)


def _rate(memory: Memory, cell: Cell, value: Any) -> tuple[Any, Cell]:
    kept = (*cell[-memory.moments :], value)
    first, span = kept[0], len(kept) - 1
    if first is None or value is None or not span:
        return None, kept
    return (value - first) / (span / memory.rate), kept


def _extreme(sign: int) -> Callable[[Memory, Cell, Any], tuple[Any, Cell]]:
    """Return how the extreme of a window goes on; the sign tells which extreme.

    The cell is the number of the next moment, that of the first one after the last unknown value,
    and the values that may still become the extreme, with their numbers, the extreme first.
    """

    def advance(memory: Memory, cell: Cell, value: Any) -> tuple[Any, Cell]:
        now, known, kept = cell
        if value is None:
            return None, (1, 1, ())  # all numbers are relative to each other
        oldest = now - memory.moments
        first, last = 0, len(kept)
        while first < last and kept[first][0] < oldest:
            first += 1
        while last > first and sign * kept[last - 1][1] <= sign * value:
            last -= 1
        kept = (*kept[first:last], (now, value))
        # Nothing is unknown before the run; `known` is 0 until something was.
        sure = known <= max(oldest, 0)
        return (kept[0][1] if sure else None), (now + 1, known, kept)

    return advance


def _mean(memory: Memory, cell: Cell, value: Any) -> tuple[Any, Cell]:
    """Take the exact mean, rounded once: the order of the values does not matter.

    The cell is the sum of the finite values in units of 2 to the -1074, how many values are
    unknown, inf and -inf, and the values.
    """
    total, unknown, above, below, kept = cell
    gone = kept[: max(len(kept) - memory.moments, 0)]
    kept = (*kept[len(gone) :], value)
    for sign, item in ((1, value), *((-1, item) for item in gone)):
        if item is None:
            unknown += sign
        elif math.isinf(item):
            above, below = above + sign * (item > 0), below + sign * (item < 0)
        else:
            total += sign * _exact(item)
    result = None
    if not unknown and not (above and below):
        infinite = math.inf if above else -math.inf
        result = infinite if above or below else total / (len(kept) << EXACT)
    return result, (total, unknown, above, below, kept)


def _exact(value: float) -> int:
    numerator, denominator = float(value).as_integer_ratio()
    return numerator << (EXACT + 1 - denominator.bit_length())


def _for_how_long(memory: Memory, cell: Cell, value: Any) -> tuple[Any, Cell]:
    """Count the moments at which the condition has held; None where the number is unknown."""
    (count,) = cell
    if value is None:
        return None, (None,)
    if not value:
        return 0.0, (0,)
    if count is None:
        return None, cell
    return count / memory.rate, (count + 1,)


def _since(memory: Memory, cell: Cell, value: Any) -> tuple[Any, Cell]:
    """Count the moments since the condition held: -1 for never, None where that is unknown."""
    (count,) = cell
    if value is None:
        return None, (None,)
    if value:
        return 0.0, (0,)
    if count is None:
        return None, cell
    if count < 0:
        return math.inf, cell
    return (count + 1) / memory.rate, (count + 1,)


class _Kind(NamedTuple):
    """How the cells of one function begin and go on, and what it is called with."""

    start: Cell
    advance: Callable[[Memory, Cell, Any], tuple[Any, Cell]]
    takes: int
    summary: str


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "previous": _Kind((None,), _previous, 1, "value of the moment before"),
        "rate": _Kind((), _rate, 2, "mean change in a unit of duration over a window"),
        "highest": _Kind((0, 0, ()), _extreme(1), 2, "greatest value of a window"),
        "lowest": _Kind((0, 0, ()), _extreme(-1), 2, "smallest value of a window"),
        "mean_over": _Kind((0, 0, 0, 0, ()), _mean, 2, "mean value of a window"),
        "for_how_long": _Kind((0,), _for_how_long, 1, "how long a condition has held"),
        "since": _Kind((-1,), _since, 1, "how long ago a condition held; inf if never"),
    }
)
CONDITIONS = frozenset({"for_how_long", "since"})
_NUMERIC = frozenset({"rate", "highest", "lowest", "mean_over"})


def _apart(notes: Notes, *_: Any) -> Any:
    return notes.unknown("nothing is remembered outside of a monitor")


register(
    {
        name: Function(_apart, one.takes, one.takes, one.summary, remembers=True)
        for name, one in _KINDS.items()
    }
)
