"""What to read from a message: a program that walks its bytes and fills columns.

The wanted paths form a tree along the layout of the message. From it comes a short program: skip a
part of fixed extent (and read some numbers inside), skip or read a text, repeat for the elements
of a sequence. ``_cdr.c`` runs it, and its columns get numpy's types here.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from forewarn.errors import NotBuiltError
from forewarn.messages.schema import (
    FORMATS,
    ArrayOf,
    Extents,
    FieldType,
    Format,
    Layouts,
    Primitive,
    SequenceOf,
    Struct,
    join,
)

ALL = "*"
NO_SLOT = -1
UNLIMITED = (1 << 62) - 1

# Steps from the message down: names of fields, and ALL for "each element".
Path: TypeAlias = "tuple[str, ...]"


class Read(NamedTuple):
    """Read a number: into which slot, in which format, how far from the start of the part."""

    slot: int
    code: str
    offsets: Extents


class Fixed(NamedTuple):
    """A part whose extent depends only on where it begins modulo eight."""

    extents: Extents
    reads: tuple[Read, ...]


class Text(NamedTuple):
    """A string, or a wide string."""

    slot: int
    wide: bool


class Repeat(NamedTuple):
    """The elements of an array (`length` >= 0) or a sequence (-1: the count is in the data).

    `body` runs for the first `cap` elements, `skip` for the others. `least` is the smallest size of
    an element: a count that cannot fit in the message is refused before anything is done.
    """

    length: int
    counts: int
    cap: int
    least: int
    body: tuple[Step, ...]
    skip: tuple[Step, ...]


Step: TypeAlias = "Fixed | Text | Repeat"


class Slot(NamedTuple):
    """A column to fill: `kind` is ``f8``, ``i8``, ``u8``, ``?`` or ``str``.

    A scalar slot gets exactly one value from each message.
    """

    kind: str
    scalar: bool


@dataclass(frozen=True)
class Plan:
    """A program and the columns it fills.

    `slots` are filled in order; `values` and `counts` tell which slot has the values of a path,
    and the numbers of elements of the sequence at a path. `caps` tells how many elements of a
    sequence are read at most.
    """

    steps: tuple[Step, ...]
    slots: tuple[Slot, ...]
    values: dict[Path, int]
    counts: dict[Path, int]
    caps: dict[Path, int]


@dataclass
class Want:
    """A part of the message of which something is wanted."""

    value: bool = False
    counts: bool = False
    cap: int = 0
    below: dict[str, Want] = field(default_factory=dict)

    def at(self, path: Iterable[str]) -> Want:
        """Return the node at a path, made if need be."""
        node = self
        for step in path:
            node = node.below.setdefault(step, Want())
        return node


class Wants:
    """The wanted parts of a message, collected from all expressions."""

    def __init__(self) -> None:
        self.root = Want()

    def add(self, path: Path, counted: bool, picks: Mapping[int, int] | None = None) -> None:
        """Ask for the values at a path, or for the numbers of elements of the sequence there.

        `path`: from the message down; all elements are read of the sequences on the way.
        `counted`: whether the numbers of elements are wanted, not values.
        `picks`: for steps of the path that are ALL: the index of the only element wanted.
        """
        for depth, step in enumerate(path):
            if step == ALL:
                index = (picks or {}).get(depth, -1)
                node = self.root.at(path[:depth])
                node.counts = True
                node.cap = max(node.cap, min(index + 1, UNLIMITED) if index >= 0 else UNLIMITED)
        target = self.root.at(path)
        target.counts |= counted
        target.value |= not counted


class _Program:
    """A program under construction: parts of fixed extent in a row become one step."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._parts: list[Extents] = []
        self._reads: list[tuple[int, str, int]] = []

    def fixed(self, extents: Extents) -> None:
        """Skip a part of fixed extent."""
        self._parts.append(extents)

    def read(self, slot: int, form: Format, extents: Extents) -> None:
        """Read a number."""
        self._reads.append((slot, form.code, len(self._parts)))
        self._parts.append(extents)

    def append(self, step: Step) -> None:
        """Do something whose extent depends on the data."""
        self.finish()
        self.steps.append(step)

    def finish(self) -> tuple[Step, ...]:
        """Return the steps."""
        if self._parts:
            reads = []
            for slot, code, number in self._reads:
                size = int(code[1:] or 1) if code != "?" else 1
                ends = join(self._parts[: number + 1])
                reads.append(Read(slot, code, tuple(end - size for end in ends)))
            self.steps.append(Fixed(join(self._parts), tuple(reads)))
        self._parts, self._reads = [], []
        return tuple(self.steps)


class Planner:
    """Makes the program for the wanted parts of a message."""

    def __init__(self) -> None:
        self.layouts = Layouts()
        self.slots: list[Slot] = []
        self.values: dict[Path, int] = {}
        self.counts: dict[Path, int] = {}
        self.caps: dict[Path, int] = {}

    def plan(self, struct: Struct, wants: Wants) -> Plan:
        """Return the plan that reads `wants` from messages with the layout `struct`."""
        steps = self._steps(struct, wants.root, ())
        return Plan(steps, tuple(self.slots), self.values, self.counts, self.caps)

    def _steps(self, part: FieldType, want: Want | None, path: Path) -> tuple[Step, ...]:
        program = _Program()
        self._part(part, want, path, program)
        return program.finish()

    def _part(self, part: FieldType, want: Want | None, path: Path, program: _Program) -> None:
        extents = self.layouts.extents(part)
        if extents is not None and want is None:
            program.fixed(extents)
        elif isinstance(part, Struct):
            for name, member in part.fields.items():
                below = None if want is None else want.below.get(name)
                self._part(member, below, (*path, name), program)
        elif isinstance(part, Primitive) and extents is not None:
            program.read(self._slot(part, path), FORMATS[part.name], extents)
        elif isinstance(part, Primitive):
            slot = NO_SLOT if want is None else self._slot(part, path)
            program.append(Text(slot, part.name == "wstring"))
        else:
            program.append(self._repeat(part, want, path))

    def _repeat(self, part: ArrayOf | SequenceOf, want: Want | None, path: Path) -> Repeat:
        want = want or Want()
        counts = NO_SLOT
        if want.counts:
            counts = self.counts[path] = self._new_slot("i8", path)
            self.caps[path] = want.cap
        inner = want.below.get(ALL)
        body = self._steps(part.element, inner, (*path, ALL)) if want.cap else ()
        return Repeat(
            length=part.length if isinstance(part, ArrayOf) else -1,
            counts=counts,
            cap=want.cap,
            least=self.layouts.least(part.element),
            body=body,
            skip=self._steps(part.element, None, ()),
        )

    def _slot(self, part: Primitive, path: Path) -> int:
        kind = "str" if part.is_text else FORMATS[part.name].column
        self.values[path] = self._new_slot(kind, path)
        return self.values[path]

    def _new_slot(self, kind: str, path: Path) -> int:
        self.slots.append(Slot(kind, ALL not in path))
        return len(self.slots) - 1


_OPERATIONS = {Fixed: 1, Text: 2, Repeat: 3}
CODES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def encode(steps: Iterable[Step]) -> list[int]:
    """Return the program as numbers, as ``_cdr.c`` takes it."""
    words: list[int] = []
    for step in steps:
        words.append(_OPERATIONS[type(step)])
        if isinstance(step, Fixed):
            words += [len(step.reads), *step.extents]
            for read in step.reads:
                words += [read.slot, CODES.index(read.code), *read.offsets]
        elif isinstance(step, Text):
            words += [step.slot, int(step.wide)]
        else:
            body, skip = encode(step.body), encode(step.skip)
            words += [step.length, step.counts, step.cap, step.least, len(body), len(skip)]
            words += [*body, *skip]
    return words


try:
    from forewarn.messages import _cdr
except ImportError as error:
    raise NotBuiltError("decoder of messages") from error

# Of the words that plan.encode() writes, and of what a program can do.
FORMAT = 2
KINDS = ("f8", "i8", "u8", "?", "str")
if _cdr.FORMAT != FORMAT:
    raise NotBuiltError("decoder of messages", f"was built from other sources ({_cdr.__file__})")

Decode: TypeAlias = Callable[[Any], "list[Any]"]


def decoder(plan: Plan) -> Decode:
    """Return a function from the bytes of a message to the columns of `plan`.

    Gives one item for each slot: a number or text for a scalar slot, a list of texts, or a
    contiguous vector. It raises ValueError if the bytes do not fit.
    """
    program = _program(plan)
    vectors = [
        (at, np.dtype(slot.kind))
        for at, slot in enumerate(plan.slots)
        if not slot.scalar and slot.kind != "str"
    ]
    if not vectors:
        return program

    def decode(data: Any) -> list[Any]:
        columns = program(data)
        for at, dtype in vectors:
            columns[at] = np.frombuffer(columns[at], dtype)
        return columns

    return decode


def decoder_of_many(plan: Plan) -> Callable[[list[Any]], list[Any]]:
    """Return a function from the bytes of many messages to the columns of `plan`.

    Gives for each slot what it has in all messages, end to end: a list of texts, or a
    contiguous vector. It raises ValueError if the bytes of a message do not fit.
    """
    program = _program(plan)
    dtypes = [None if slot.kind == "str" else np.dtype(slot.kind) for slot in plan.slots]

    def decode(messages: list[Any]) -> list[Any]:
        return [
            column if dtype is None else np.frombuffer(column, dtype)
            for column, dtype in zip(program.many(messages), dtypes, strict=True)
        ]

    return decode


def _program(plan: Plan) -> _cdr.Program:
    kinds = bytes(number for slot in plan.slots for number in (KINDS.index(slot.kind), slot.scalar))
    return _cdr.Program(array("q", encode(plan.steps)).tobytes(), kinds)
