"""How comprehensions run: at once on vectors where that gives the same, else one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forewarn.expressions.operators import truth
from forewarn.expressions.values import NAN, Notes, is_unknown, kind, vector

LISTS = (list, tuple, np.ndarray)


class UnknownMembership(Exception):
    """A comprehension runs over something unknown, or its filter is unknown."""


def elements(notes: Notes, items: Any) -> list[Any]:
    """Return what a loop runs over, as Python values."""
    if isinstance(items, LISTS):
        if not notes.afford(len(items)):
            raise UnknownMembership
        return list(items.tolist()) if isinstance(items, np.ndarray) else list(items)
    if not is_unknown(items):
        notes.unknown(f"{kind(items)} cannot be run over with 'for'")
    raise UnknownMembership


def keep(notes: Notes, condition: Any) -> bool:
    """Tell whether an element passes the filter."""
    known = truth(notes, condition)
    if isinstance(known, np.ndarray):
        notes.unknown("an array where 'if' needs one truth value; write any(...) or all(...)")
    elif known == known:
        return bool(known)
    else:
        notes.unknown("the 'if' of a comprehension is unknown for one of the elements")
    raise UnknownMembership


def gather(notes: Notes, produce: Callable[[], list[Any]]) -> Any:
    """Return the elements that a loop makes as a vector or a list."""
    try:
        return vector(produce())
    except UnknownMembership:
        return NAN


def each(
    notes: Notes,
    counted: bool,
    sources: tuple[Any, ...],
    element: Callable[..., Any],
    condition: Callable[..., Any] | None,
    outer: tuple[Any, ...],
) -> Any:
    """Run a comprehension whose parts all work element by element.

    `counted`: whether the first variable counts the elements, as with ``enumerate``.
    `sources`: what the other variables run over, in step.
    `element`, `condition`: the parts of the comprehension as functions of the variables.
    `outer`: the other names that these read; if one of them is a list, elements are taken singly.
    """
    singly = any(isinstance(value, LISTS) for value in outer)
    if singly or not all(isinstance(source, np.ndarray) for source in sources):
        return gather(notes, lambda: _singly(notes, counted, sources, element, condition))
    count = min(map(len, sources))
    if not notes.afford(count, each=1):
        return NAN
    columns = [source[:count] for source in sources]
    if counted:
        columns.insert(0, np.arange(count))
    if condition is not None:
        known = truth(notes, condition(*columns))
        if not isinstance(known, np.ndarray):
            known = vector([known] * count)
        if count and known.dtype != np.bool_:
            return notes.unknown("the 'if' of a comprehension is unknown for an element")
        chosen = np.flatnonzero(known)
        columns = [column[chosen] for column in columns]
        count = len(chosen)
    result = element(*columns)
    return result if isinstance(result, np.ndarray) else vector([result] * count)


def _singly(
    notes: Notes,
    counted: bool,
    sources: tuple[Any, ...],
    element: Callable[..., Any],
    condition: Callable[..., Any] | None,
) -> list[Any]:
    rows = zip(*(elements(notes, source) for source in sources), strict=False)
    numbered = ((at, *row) for at, row in enumerate(rows)) if counted else rows
    return [element(*row) for row in numbered if condition is None or keep(notes, condition(*row))]
