"""Runs a plan: gives the program to the compiled interpreter, and its columns the numpy types."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from forewarn.errors import NotBuiltError
from forewarn.messages.plan import Plan, encode

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
