"""The fields of a message type, for comments and for guesses."""

from __future__ import annotations

from collections.abc import Iterator

from forewarn.messages.definitions import MessageType
from forewarn.messages.schema import ArrayOf, FieldType, Primitive, SequenceOf, Struct

MAX_FIELDS = 16
STAMPS = ("std_msgs/msg/Header", "apollo.common.Header", "builtin_interfaces/msg/Time")
MAX_DEPTH = 8  # messages of protobuf may contain themselves


def leaves(struct: Struct, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield path and type of all fields that are one value, stamps and the like left out."""
    for name, kind in struct.fields.items():
        if isinstance(kind, Primitive):
            yield f"{prefix}{name}", kind.name
        elif isinstance(kind, Struct) and kind.name not in STAMPS and prefix.count(".") < MAX_DEPTH:
            yield from leaves(kind, f"{prefix}{name}.")


def fields(mtype: MessageType | None) -> tuple[str, ...]:
    """Return the fields of a type for a comment: path and type, arrays not opened up."""
    if mtype is None:
        return ()
    found: list[str] = []

    def walk(struct: Struct, prefix: str) -> None:
        for name, kind in struct.fields.items():
            header = isinstance(kind, Struct) and kind.name in STAMPS[:2]
            if isinstance(kind, Struct) and not header and prefix.count(".") < MAX_DEPTH:
                walk(kind, f"{prefix}{name}.")
            else:
                found.append(f"{prefix}{name}: {_short(kind)}")

    walk(mtype.struct, "")
    rest = len(found) - MAX_FIELDS
    return (*found[:MAX_FIELDS], *((f"and {rest} more",) if rest > 0 else ()))


def _short(kind: FieldType) -> str:
    if isinstance(kind, (ArrayOf, SequenceOf)):
        return f"array of {_short(kind.element)}"
    return str(kind)
