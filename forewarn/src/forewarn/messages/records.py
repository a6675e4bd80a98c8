"""Messages read from columns, field by field, for what is computed element by element."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from forewarn.expressions.values import NAN, Record
from forewarn.messages.plan import ALL, Path, Plan
from forewarn.messages.schema import ArrayOf, FieldType, Primitive, SequenceOf, Struct

Columns: TypeAlias = "list[Any]"


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
