"""The kinds of values in expressions over messages, before any message is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from forewarn.messages.schema import PLACEHOLDER, ArrayOf, FieldType, Primitive, SequenceOf, Struct

NUMBER = "number"
TEXT = "text"


class Many(NamedTuple):
    """An array or a list of elements of one kind."""

    element: Kind


class Group(NamedTuple):
    """What ``zip`` and ``enumerate`` give in each round."""

    elements: tuple[Kind, ...]


Kind: TypeAlias = "str | Struct | Many | Group"


def kind_of(field: FieldType) -> Kind:
    """Return what reading a field of this type gives."""
    if isinstance(field, Primitive):
        return TEXT if field.is_text else NUMBER
    if isinstance(field, Struct):
        return field
    return Many(kind_of(field.element))


def describe(kind: Kind) -> str:
    """Name a kind for messages."""
    if isinstance(kind, Struct):
        return f"a message of type {kind.name}"
    if isinstance(kind, Many):
        inner = kind.element
        what = {NUMBER: "numbers", TEXT: "texts"}.get(inner) if isinstance(inner, str) else None
        return f"an array of {what or (inner.name if isinstance(inner, Struct) else 'arrays')}"
    if isinstance(kind, Group):
        return "a group of values"
    return "a number" if kind == NUMBER else "text"


def actual_field(struct: Struct, name: str) -> str | None:
    """Return the field that `name` stands for: ``from_`` reads a field called ``from``."""
    for candidate in (name, name.removesuffix("_")):
        if candidate in struct.fields and candidate != PLACEHOLDER:
            return candidate
    return None


def innermost_type(field: FieldType) -> FieldType:
    """Return the type of the elements of an array, or the type itself."""
    return field.element if isinstance(field, (ArrayOf, SequenceOf)) else field


def innermost(kind: Kind) -> Kind:
    """Return the kind of the elements of nested arrays."""
    while isinstance(kind, Many):
        kind = kind.element
    return kind


def fields_of(struct: Struct) -> list[str]:
    """Return the fields that a message really has."""
    return [name for name in struct.fields if name != PLACEHOLDER]


_LIST: tuple[Kind, ...] = (Many(TEXT),)
_TEXT_OR_LIST: tuple[Kind, ...] = (TEXT, Many(TEXT))
OF_TEXTS: Mapping[str, tuple[tuple[tuple[Kind, ...], ...], Kind | None]] = {
    "index_of": ((_LIST, (TEXT,)), NUMBER),
    "lower": ((_TEXT_OR_LIST,), None),
    "taken": ((_LIST, _LIST), None),
    "without": ((_LIST, _LIST), None),
    "words": ((_TEXT_OR_LIST,), Many(TEXT)),
    "identifiers": ((_TEXT_OR_LIST,), Many(TEXT)),
    "order_strength": ((_LIST, _TEXT_OR_LIST), Many(NUMBER)),
    "outside_orders": ((_LIST, _TEXT_OR_LIST), Many(NUMBER)),
    "effects": (((TEXT,),), Many(TEXT)),
    "unsolicited": (((TEXT,), _LIST, _LIST, (TEXT,), _LIST), Many(TEXT)),
}
"""What functions of texts take, argument by argument, and give; None: as the first argument.

Any further arguments are as the last.
"""
