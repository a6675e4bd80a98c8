"""From the columns of a plan to the values of places in the message.

A plan reads each field once for all expressions, as one flat column over all elements that the
sequences on the way have. Here an element that an expression picks by its index is found again, and
for what is computed element by element a message is read field by field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from forewarn.expressions.values import NAN, Record
from forewarn.messages.plan import ALL, Path, Plan, Wants
from forewarn.messages.schema import ArrayOf, FieldType, Primitive, SequenceOf, Struct


class Pick(NamedTuple):
    """The step to the element with this index; the last one is -1."""

    number: int


# Steps from the message down: names of fields, ALL, or one picked element.
Place: TypeAlias = "tuple[str | Pick, ...]"
Columns: TypeAlias = "list[Any]"
# From the columns of one message to a value, and to why it is unknown ("" if it is not).
Recipe: TypeAlias = Callable[[Columns], "tuple[Any, str]"]


def flat(place: Place) -> Path:
    """Return the path whose column has the elements of `place` among others."""
    return tuple(ALL if isinstance(step, Pick) else step for step in place)


def want(place: Place, counted: bool, wants: Wants) -> None:
    """Ask for the values at a place, or for the number of elements there."""
    picks = {at: step.number for at, step in enumerate(place) if isinstance(step, Pick)}
    wants.add(flat(place), counted, picks)


def describe_place(place: Place) -> str:
    """Write a place as an expression does."""
    text = ""
    for step in place:
        if isinstance(step, Pick):
            text += f"[{step.number}]"
        elif step != ALL:
            text += f".{step}" if text else step
    return text


class _Selection:
    """Which elements of a column a place stands for: one, all, or those at given indices.

    `at` is an index, -1 if there is no such element; an array of these; or None for all.
    """

    def __init__(self, at: Any) -> None:
        self.at = at

    def pick(self, counts: Any, stored: Any, index: int) -> None:
        """Go from sequences to their elements with this index."""
        if isinstance(counts, int):
            place = index if index >= 0 else counts + index
            self.at = place if 0 <= place < counts else -1
            return
        first = np.cumsum(stored) - stored
        exists: Any = True
        if self.at is not None:
            exists = np.asarray(self.at) >= 0
            if not exists.any():
                return
            parents = np.maximum(self.at, 0)
            counts, first = counts[parents], first[parents]
        if index >= 0:
            place, exists = index, exists & (counts > index)
        else:
            place = counts + index
            exists = exists & (place >= 0)
        found = np.where(exists, first + place, -1)
        self.at = found if found.ndim else int(found)

    def every(self, stored: Any) -> bool:
        """Go from sequences to all their elements; False if one of the sequences is missing."""
        if self.at is None:
            return True
        if isinstance(self.at, int):
            if self.at < 0:
                return False
            if isinstance(stored, int) or len(stored) == 1:
                self.at = None
            else:
                start = int(stored[: self.at].sum())
                self.at = np.arange(start, start + int(stored[self.at]))
            return True
        if (self.at < 0).any():
            return False
        first = np.cumsum(stored) - stored
        parts = [np.arange(first[p], first[p] + stored[p]) for p in self.at]
        self.at = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        return True

    def of(self, column: Any) -> tuple[Any, bool]:
        """Return the selected elements of a column, and whether all of them exist."""
        if self.at is None:
            return column, True
        if isinstance(self.at, int):
            if self.at < 0:
                return NAN, False
            value = column[self.at]
            return (value.item() if isinstance(value, np.generic) else value), True
        exists = self.at >= 0
        if isinstance(column, list):
            return [column[i] if i >= 0 else NAN for i in self.at.tolist()], bool(exists.all())
        if exists.all():
            return column[self.at], True
        values = np.full(len(self.at), NAN)
        values[exists] = column[self.at[exists]]
        return values, False


def recipe(plan: Plan, place: Place, counted: bool) -> Recipe:
    """Return how to get the value of `place` from the columns of `plan`.

    `plan`: a plan that reads ``flat(place)``.
    `place`: where the value is: a number or text; with `counted`, a sequence.
    `counted`: whether the number of elements is asked for instead of a value.
    With ALL among the steps, it gives one item for each element, else a single one. Items
    of elements that do not exist are NaN.
    """
    path = flat(place)
    slot = plan.counts[path] if counted else plan.values[path]
    text = describe_place(place)
    steps = _steps(plan, place)

    def cook(columns: Columns) -> tuple[Any, str]:
        selection = _Selection(0)
        if not steps:
            return columns[slot], ""
        for step, counts_slot, cap in steps:
            counts = columns[counts_slot]
            stored = np.minimum(counts, cap) if isinstance(counts, np.ndarray) else counts
            if isinstance(step, Pick):
                selection.pick(counts, stored, step.number)
            elif not selection.every(stored):
                return NAN, f"there is no {text}: an index is out of range"
        value, complete = selection.of(columns[slot])
        return value, "" if complete else f"there is no {text}: an index is out of range"

    return cook


def _steps(plan: Plan, place: Place) -> list[tuple[str | Pick, int, int]]:
    """Return the steps of a place to elements, each with the slot of the counts, and the cap."""
    path = flat(place)
    return [
        (place[depth], plan.counts[path[:depth]], plan.caps[path[:depth]])
        for depth, step in enumerate(path)
        if step == ALL
    ]


def recipe_of_many(
    plan: Plan, place: Place, counted: bool
) -> Callable[[Columns], tuple[Any, npt.NDArray[np.bool_]]]:
    """Return how to get the values of `place` from the columns of many messages.

    Gives the items of all messages, end to end, and which of them exist. The items are None
    if a sequence is missing on the way to all elements.
    """
    path = flat(place)
    slot = plan.counts[path] if counted else plan.values[path]
    steps = _steps(plan, place)

    def cook(columns: Columns) -> tuple[Any, npt.NDArray[np.bool_]]:
        selection = _Selection(None)
        for step, counts_slot, cap in steps:
            counts = columns[counts_slot]
            stored = np.minimum(counts, cap)
            if isinstance(step, Pick):
                selection.pick(counts, stored, step.number)
            elif not selection.every(stored):
                return None, np.zeros(0, np.bool_)
        values, complete = selection.of(columns[slot])
        exist = np.ones(len(values), np.bool_) if complete else selection.at >= 0
        return values, exist

    return cook


def direct_slot(plan: Plan, place: Place, counted: bool) -> int | None:
    """Return the slot whose column is the value of `place` as it is, if there is one."""
    if any(isinstance(step, Pick) for step in place):
        return None
    return plan.counts[place] if counted else plan.values[place]  # type: ignore[index]


class Page:
    """The columns of one message, and where the segments of nested sequences begin."""

    __slots__ = ("columns", "items", "starts")

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.items: dict[int, list[Any]] = {}
        self.starts: dict[int, list[int]] = {}

    def item(self, slot: int, at: int) -> Any:
        """Return an element of a column as a Python value."""
        items = self.items.get(slot)
        if items is None:
            column = self.columns[slot]
            items = column.tolist() if isinstance(column, np.ndarray) else column
            items = items if isinstance(items, list) else [items]
            self.items[slot] = items
        return items[at]

    def start(self, slot: int, cap: int, at: int) -> int:
        """Return where in its column the segment `at` begins."""
        starts = self.starts.get(slot)
        if starts is None:
            stored = np.minimum(np.atleast_1d(self.columns[slot]), cap)
            starts = (np.cumsum(stored) - stored).tolist()
            self.starts[slot] = starts
        return starts[at]


class Shelf:
    """How to read one part of a message from the columns of a plan."""

    def read(self, page: Page, at: int) -> Any:
        """Return the value of the element `at`: a number, text, vector, list or record."""
        raise NotImplementedError


class _Absent(Shelf):
    def read(self, page: Page, at: int) -> Any:
        return NAN


class _Value(Shelf):
    def __init__(self, slot: int) -> None:
        self.slot = slot

    def read(self, page: Page, at: int) -> Any:
        return page.item(self.slot, at)


class _Message(Shelf):
    def __init__(self, fields: dict[str, Shelf]) -> None:
        self.fields = fields

    def read(self, page: Page, at: int) -> Any:
        return Book(self, page, at)


class _Segment(Shelf):
    def __init__(self, counts: int, cap: int, values: int | None, element: Shelf) -> None:
        self.counts = counts
        self.cap = cap
        self.values = values
        self.element = element

    def read(self, page: Page, at: int) -> Any:
        count = page.item(self.counts, at)
        start = page.start(self.counts, self.cap, at)
        if self.values is not None:
            return page.columns[self.values][start : start + count]
        read = self.element.read
        return [read(page, place) for place in range(start, start + count)]


class Book(Record):
    """A message of which only the fields that the plan reads can be asked for."""

    __slots__ = ("at", "page", "shelf")

    def __init__(self, shelf: _Message, page: Page, at: int) -> None:
        self.shelf = shelf
        self.page = page
        self.at = at

    def field(self, name: str) -> Any:
        """Return the value of a field."""
        return self.shelf.fields[name].read(self.page, self.at)


def shelve(part: FieldType, plan: Plan, path: Path = ()) -> Shelf:
    """Return how to read `part`, which lies at `path`, from the columns of `plan`."""
    if isinstance(part, Struct):
        fields = {name: shelve(member, plan, (*path, name)) for name, member in part.fields.items()}
        return _Message(fields)
    if isinstance(part, Primitive):
        return _Value(plan.values[path]) if path in plan.values else _Absent()
    assert isinstance(part, (ArrayOf, SequenceOf))
    if path not in plan.counts:
        return _Absent()
    inner = (*path, ALL)
    element = shelve(part.element, plan, inner)
    return _Segment(plan.counts[path], plan.caps[path], plan.values.get(inner), element)


def open_message(struct: Struct, plan: Plan, columns: Columns) -> Book:
    """Return a whole message as a record."""
    return open_with(shelve(struct, plan), columns)


def open_with(shelf: Shelf, columns: Columns) -> Book:
    """Return a whole message as a record, read as `shelf` says."""
    assert isinstance(shelf, _Message)
    return Book(shelf, Page(columns), 0)
