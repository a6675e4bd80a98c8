"""Where the parts of a message lie in its serialized form (XCDR version 1, as all rmw write it).

A primitive is aligned to its size, counted from the first byte after the encapsulation header. So
the extent of a part without text or sequences depends only on where it begins modulo eight;
each such part is described by eight numbers and skipped in one step.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from forewarn.messages.schema import ArrayOf, FieldType, Primitive, SequenceOf, Struct

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
