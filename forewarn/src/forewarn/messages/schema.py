"""The layout of message types: a tree of plain values, whatever language defined it.

Also where parts lie in the serialized form (XCDR version 1, as all rmw write it), and the kinds of
values that expressions find in them. A primitive is aligned to its size, counted from the first
byte after the encapsulation header. So the extent of a part without text or sequences depends only
on where it begins modulo eight; it is described by eight numbers and skipped in one step. A
``wstring`` is a count of UTF-16 units of four bytes each, without a terminator; a ``wchar`` has two
bytes; ``byte`` and ``char`` are unsigned. An empty sequence is not followed by the alignment of its
elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from rosbags.interfaces import Nodetype

from forewarn.errors import InputError

MAX_LEVELS = 64
# Fields of a message, counted wherever they occur; types that use each other twice double them.
MAX_FIELDS = 100_000
# Elements that an array of fixed length may have: what CDR counts a sequence in.
MAX_LENGTH = (1 << 32) - 1


class DefinitionError(InputError):
    """The definition of a message type cannot be found or parsed."""


class Primitive(NamedTuple):
    """A number, a truth value or text.

    `name` is that of the .msg language, or ``wstring``, ``wchar``, ``float128``.
    """

    name: str

    @property
    def is_text(self) -> bool:
        """Whether values are text."""
        return self.name in ("string", "wstring")

    def __str__(self) -> str:
        """Return the name."""
        return self.name


class ArrayOf(NamedTuple):
    """A fixed number of elements."""

    element: FieldType
    length: int

    def __str__(self) -> str:
        """Return the type as a .msg file writes it."""
        return f"{self.element}[{self.length}]"


class SequenceOf(NamedTuple):
    """A variable number of elements, at most `bound` unless that is 0."""

    element: FieldType
    bound: int

    def __str__(self) -> str:
        """Return the type as a .msg file writes it."""
        return f"{self.element}[<={self.bound}]" if self.bound else f"{self.element}[]"


@dataclass(frozen=True)
class Struct:
    """A message type: its fields in order, and its constants.

    `optional` tells that a message may leave fields out, so that ``has(field)`` means something.
    """

    name: str
    fields: Mapping[str, FieldType]
    constants: Mapping[str, float | int | bool | str] = field(default_factory=dict)
    optional: bool = False

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    def __hash__(self) -> int:
        """Hash the name."""
        return hash(self.name)


FieldType: TypeAlias = "Primitive | ArrayOf | SequenceOf | Struct"

PRESENCE = "has "


def presence(name: str) -> str:
    """Return the name under which a record tells whether its field `name` is set."""
    return f"{PRESENCE}{name}"


# The member that IDL gives to a struct without members; it is on the wire.
PLACEHOLDER = "structure_needs_at_least_one_member"

Types: TypeAlias = "Mapping[str, tuple[list[tuple[str, str, Any]], list[tuple[str, Any]]]]"


def build_struct(name: str, types: Types) -> Struct:
    """Build the tree of the type `name`.

    `types`: definitions as ``rosbags.typesys`` returns them, of this type and those that it uses.
    Raises DefinitionError if a type that is used is not defined, or contains itself.
    """
    return _Builder(types).struct(name, ())


class _Builder:
    def __init__(self, types: Types) -> None:
        self.types = types
        self.done: dict[str, Struct] = {}
        self.sizes: dict[str, int] = {}

    def struct(self, name: str, above: tuple[str, ...]) -> Struct:
        if name in self.done:
            return self.done[name]
        if name in above:
            raise DefinitionError(f"{name} contains itself", accepted="types without cycles")
        if len(above) > MAX_LEVELS:
            raise DefinitionError(
                f"{above[0]} is nested too deep", accepted=f"at most {MAX_LEVELS} levels"
            )
        if name not in self.types:
            user = f" (used by {above[-1]})" if above else ""
            raise DefinitionError(
                f"there is no definition of {name}{user}",
                accepted=f"one of {', '.join(sorted(self.types)[:8])}",
            )
        constants, fields = self.types[name]
        built = {member: self.field(desc, (*above, name)) for member, desc in fields}
        values = {constant: value for constant, _, value in constants}
        struct = Struct(name, built or {PLACEHOLDER: Primitive("uint8")}, values)
        self.done[name] = struct
        self.sizes[name] = 1 + sum(self._size(member) for member in struct.fields.values())
        if self.sizes[name] > MAX_FIELDS:
            raise DefinitionError(
                f"{name} has {self.sizes[name]} fields, those of its parts included",
                accepted=f"at most {MAX_FIELDS}",
            )
        return struct

    def _size(self, field: FieldType) -> int:
        while isinstance(field, (ArrayOf, SequenceOf)):
            field = field.element
        return self.sizes[field.name] if isinstance(field, Struct) else 1

    def field(self, desc: Any, above: tuple[str, ...]) -> FieldType:
        node, detail = desc
        if node == Nodetype.BASE:
            return Primitive(detail[0])
        if node == Nodetype.NAME:
            return self.struct(detail, above)
        element, size = detail
        inner = self.field(element, above)
        if node == Nodetype.ARRAY and not 1 <= size <= MAX_LENGTH:
            raise DefinitionError(
                f"{above[-1]} has an array of length {size}", accepted=f"1 to {MAX_LENGTH}"
            )
        return ArrayOf(inner, size) if node == Nodetype.ARRAY else SequenceOf(inner, size)


PHASES = 8
# A part larger than this cannot be in any message; larger numbers are not worth exact.
HUGE = 1 << 40

Extents: TypeAlias = "tuple[int, ...]"


class Format(NamedTuple):
    """How a primitive lies in the bytes, and in which kind of column its values go.

    `code` is numpy's type code without the byte order; `column` that of the column's dtype, ""
    if values are skipped only.
    """

    code: str
    size: int
    align: int
    column: str


FORMATS: dict[str, Format] = {
    "bool": Format("?", 1, 1, "?"),
    "byte": Format("u1", 1, 1, "i8"),
    "char": Format("u1", 1, 1, "i8"),
    "uint8": Format("u1", 1, 1, "i8"),
    "int8": Format("i1", 1, 1, "i8"),
    "uint16": Format("u2", 2, 2, "i8"),
    "wchar": Format("u2", 2, 2, "i8"),
    "int16": Format("i2", 2, 2, "i8"),
    "uint32": Format("u4", 4, 4, "i8"),
    "int32": Format("i4", 4, 4, "i8"),
    "uint64": Format("u8", 8, 8, "u8"),
    "int64": Format("i8", 8, 8, "i8"),
    "float32": Format("f4", 4, 4, "f8"),
    "float64": Format("f8", 8, 8, "f8"),
    "float128": Format("", 16, 8, ""),
}


def aligned(position: int, align: int) -> int:
    """Return the next position that is a multiple of `align`."""
    return -(-position // align) * align


def advance(extents: Extents, phase: int, count: int) -> int:
    """Return how many bytes `count` parts in a row take if the first begins at `phase`."""
    seen: dict[int, tuple[int, int]] = {}
    total = done = 0
    while done < count and total < HUGE:
        at = (phase + total) % PHASES
        if at in seen:
            before, then = seen[at]
            rounds = (count - done) // (done - before)
            total += rounds * (total - then)
            done += rounds * (done - before)
            seen = {}
            if done == count:
                break
        else:
            seen[at] = (done, total)
        total += extents[at]
        done += 1
    return min(total, HUGE)


class Layouts:
    """Extents and smallest sizes of types, each computed once."""

    def __init__(self) -> None:
        self._extents: dict[int, Extents | None] = {}
        self._least: dict[int, int] = {}
        self._kept: list[FieldType] = []

    def extents(self, field: FieldType) -> Extents | None:
        """Return the extent for each phase, alignment included; None if it depends on the data."""
        if isinstance(field, Primitive):
            if field.is_text:
                return None
            form = FORMATS[field.name]
            return tuple(aligned(p, form.align) + form.size - p for p in range(PHASES))
        if isinstance(field, SequenceOf):
            return None
        if id(field) not in self._extents:
            self._kept.append(field)
            self._extents[id(field)] = self._composite(field)
        return self._extents[id(field)]

    def _composite(self, field: ArrayOf | Struct) -> Extents | None:
        if isinstance(field, ArrayOf):
            element = self.extents(field.element)
            if element is None:
                return None
            return tuple(advance(element, phase, field.length) for phase in range(PHASES))
        parts = [self.extents(member) for member in field.fields.values()]
        return join([part for part in parts if part is not None]) if None not in parts else None

    def least(self, field: FieldType) -> int:
        """Return the least number of bytes that a value can take."""
        if isinstance(field, Primitive):
            return 4 if field.is_text else FORMATS[field.name].size
        if isinstance(field, SequenceOf):
            return 4
        if isinstance(field, ArrayOf):
            return min(field.length * self.least(field.element), HUGE)
        if id(field) not in self._least:
            self._kept.append(field)
            self._least[id(field)] = sum(self.least(member) for member in field.fields.values())
        return min(self._least[id(field)], HUGE)


def join(parts: list[Extents]) -> Extents:
    """Return the extents of parts that follow one another."""
    joined = []
    for phase in range(PHASES):
        total = 0
        for part in parts:
            total += part[(phase + total) % PHASES]
        joined.append(min(total, HUGE))
    return tuple(joined)


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
