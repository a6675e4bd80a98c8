"""The oracle of the decoder: extraction programs in Python.

It does step by step what ``_cdr.c`` does, and gives the same columns and the same errors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from struct import Struct as Packing
from typing import Any, TypeAlias

import numpy as np

from forewarn.expressions.values import Vector
from forewarn.messages.plan import CODES, Fixed, Plan, Repeat, Step, Text, decoder
from forewarn.messages.schema import PHASES

HEADER = 4
PADDING = 3
# rmw_serialize, and so rclpy.serialize_message, makes its result as large as get_serialized_size()
# of the type support says, which counts an alignment for empty sequences and a terminator for wide
# texts that are not there, and leaves the rest unused.
SLACK = 8
_LETTERS = dict(zip(CODES, "?bBhHiIqQfd", strict=True))
_NATIVE = "<" if sys.byteorder == "little" else ">"

# Read or skip from a position on, and return the position after it.
Stride: TypeAlias = Callable[["Walk", int], int]
Strides: TypeAlias = Callable[["Walk", int, int], int]


class Malformed(ValueError):
    """The bytes do not have the layout of the message."""


def interpreter(plan: Plan) -> Callable[[bytes | memoryview], list[Any]]:
    """Return a function that fills the columns of `plan` from the bytes of a message."""
    orders = {order: _sequence(plan.steps, order) for order in "<>"}

    def run(data: bytes | memoryview) -> list[Any]:
        walk = Walk(data, len(plan.slots))
        at = orders[walk.order](walk, 0)
        if walk.size - at > walk.padding:
            raise Malformed(f"{walk.size - at} bytes are left over after the last field")
        return [
            _column(items, slot.kind, slot.scalar)
            for items, slot in zip(walk.columns, plan.slots, strict=True)
        ]

    return run


class Walk:
    """One message on the way: its bytes after the header, and the columns so far."""

    __slots__ = ("columns", "data", "order", "padding", "size")

    def __init__(self, data: bytes | memoryview, slots: int) -> None:
        whole = memoryview(data).cast("B")
        header = bytes(whole[:HEADER])
        if len(header) < HEADER or header[0] != 0 or header[1] > 1:
            raise Malformed(
                "it does not begin with the header of plain CDR "
                "(0x0000 or 0x0001 and two more bytes)"
            )
        self.order = "<" if header[1] else ">"
        self.data = whole[HEADER:]
        self.size = len(self.data)
        self.padding = PADDING
        self.columns: list[list[Any]] = [[] for _ in range(slots)]

    def short(self, at: int, needed: int) -> Malformed:
        """Return the error of a message that ends too early."""
        missing = needed - (self.size - at)
        return Malformed(
            f"it ends at byte {self.size + HEADER}, where at least {missing} more are needed"
        )

    def too_many(self, at: int, count: int) -> Malformed:
        """Return the error of a count that the message has no room for."""
        return Malformed(
            f"{count} elements at byte {at + HEADER} do not fit in its {self.size + HEADER} bytes"
        )


def _column(items: list[Any], kind: str, scalar: bool) -> Any:
    if scalar:
        return items[0]
    if kind == "str":
        return items
    if not items:
        return np.zeros(0, dtype=kind)
    if isinstance(items[0], np.ndarray) or any(
        isinstance(element, np.ndarray) for element in items
    ):
        parts = [np.atleast_1d(np.asarray(element, dtype=kind)) for element in items]
        return np.concatenate(parts)
    return np.array(items, dtype=kind)


def _sequence(steps: tuple[Step, ...], order: str) -> Stride:
    parts = [_step(step, order) for step in steps]
    if len(parts) == 1:
        return parts[0]

    def run(walk: Walk, at: int) -> int:
        for part in parts:
            at = part(walk, at)
        return at

    return run


def _step(step: Step, order: str) -> Stride:
    if isinstance(step, Fixed):
        return _fixed(step, order)
    return _text(step, order) if isinstance(step, Text) else _repeat(step, order)


def _fixed(step: Fixed, order: str) -> Stride:
    extents = step.extents
    reads = [(read.slot, Packing(order + _LETTERS[read.code]).unpack_from, read.offsets)
             for read in step.reads]  # fmt: skip

    def run(walk: Walk, at: int) -> int:
        phase = at & 7
        end = at + extents[phase]
        if end > walk.size:
            raise walk.short(at, extents[phase])
        for slot, unpack, offsets in reads:
            walk.columns[slot].append(unpack(walk.data, at + offsets[phase])[0])
        return end

    return run


def _times(steps: tuple[Step, ...], order: str) -> Strides:
    """Return a function that does the steps a number of times."""
    if len(steps) == 1 and isinstance(steps[0], Fixed):
        return _fixed_times(steps[0], order)
    once = _sequence(steps, order)

    def run(walk: Walk, at: int, count: int) -> int:
        for _ in range(count):
            at = once(walk, at)
        return at

    return run


def _fixed_times(step: Fixed, order: str) -> Strides:
    once = _fixed(step, order)
    steady = [_steady(step, phase) for phase in range(PHASES)]
    reads = [
        (read.slot, "u1" if read.code == "?" else order + read.code, read.offsets)
        for read in step.reads
    ]

    def run(walk: Walk, at: int, count: int) -> int:
        while count > 1 and not steady[at & 7]:
            at = once(walk, at)
            count -= 1
        if count < 2:
            return once(walk, at) if count else at
        phase = at & 7
        extent, left = step.extents[phase], walk.size - at
        if extent * count > left:
            raise walk.short(at, extent * (left // extent + 1))
        for (slot, dtype, offsets), read in zip(reads, step.reads, strict=True):
            raw: Vector = np.ndarray((count,), dtype, walk.data, at + offsets[phase], (extent,))
            walk.columns[slot].append(raw != 0 if read.code == "?" else raw)
        return at + extent * count

    return run


def _steady(step: Fixed, phase: int) -> bool:
    """Tell whether parts in a row, the first at `phase`, all look like the first."""
    following = phase
    for _ in range(PHASES):
        following = (following + step.extents[following]) % PHASES
        if step.extents[following] != step.extents[phase] or any(
            read.offsets[following] != read.offsets[phase] for read in step.reads
        ):
            return False
    return True


def _count(order: str) -> Callable[[Walk, int], int]:
    unpack = Packing(f"{order}I").unpack_from

    def read(walk: Walk, at: int) -> int:
        """Return the number at the next multiple of four, where it also begins."""
        start = (at + 3) & -4
        if walk.size - start < 4:
            raise walk.short(at, start + 4 - at)
        value: int = unpack(walk.data, start)[0]
        return value

    return read


def _text(step: Text, order: str) -> Stride:
    count = _count(order)
    slot, wide, unit = step.slot, step.wide, 4 if step.wide else 1

    def run(walk: Walk, at: int) -> int:
        length = count(walk, at)
        at = ((at + 3) & -4) + 4
        end = at + length * unit
        if end > walk.size:
            raise walk.too_many(at, length)
        if wide:
            walk.padding += SLACK
        elif length and walk.data[end - 1]:
            raise Malformed(f"the text at byte {at + HEADER} does not end in a zero")
        if slot >= 0:
            raw = bytes(walk.data[at:end])
            walk.columns[slot].append(_wide(raw, order, at) if wide else _narrow(raw))
        return end

    return run


def _narrow(raw: bytes) -> str:
    try:
        return raw[:-1].decode()
    except UnicodeDecodeError as error:
        raise Malformed(str(error)) from error


def _wide(raw: bytes, order: str, at: int) -> str:
    units = np.frombuffer(raw, f"{order}u4")
    if (units > 0xFFFF).any():
        raise Malformed(f"no UTF-16 text at byte {at + HEADER}")
    try:
        return units.astype(f"{_NATIVE}u2").tobytes().decode(f"utf-16-{sys.byteorder[0]}e")
    except UnicodeDecodeError as error:
        raise Malformed(str(error)) from error


def _repeat(step: Repeat, order: str) -> Stride:
    read = _count(order)
    body, skip = _times(step.body, order), _times(step.skip, order)
    counts, length, cap, least = step.counts, step.length, step.cap, step.least

    def run(walk: Walk, at: int) -> int:
        count = length
        if length < 0:
            count = read(walk, at)
            at = ((at + 3) & -4) + 4
            if not count:
                walk.padding += SLACK
        if count > (walk.size - at) // least:
            raise walk.too_many(at, count)
        if counts >= 0:
            walk.columns[counts].append(count)
        first = min(count, cap)
        at = body(walk, at, first) if first else at
        return skip(walk, at, count - first) if count > first else at

    return run


DECODERS = (decoder, interpreter)
"""Each takes a plan and returns a function from bytes to columns; they must not differ."""
