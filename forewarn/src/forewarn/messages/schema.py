"""The layout of message types: a tree of plain values, whatever language defined it."""

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
