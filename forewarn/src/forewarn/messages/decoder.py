"""Runs a plan: gives the program to the compiled interpreter, and its columns the numpy types."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from forewarn.messages.plan import Plan, encode

try:
    from forewarn.messages import _cdr
except ImportError as error:
    raise ImportError(
        "forewarn's decoder of messages is not built: install forewarn anew (`make setup`, pip or "
        "colcon) where there are a C compiler and the headers of Python"
    ) from error

# Of the words that plan.encode() writes.
FORMAT = 1
KINDS = ("f8", "i8", "u8", "?", "str")
if _cdr.FORMAT != FORMAT:
    raise ImportError(
        f"forewarn's decoder of messages was built from other sources ({_cdr.__file__}): install "
        "forewarn anew (`make setup`, pip or colcon)"
    )

Decode: TypeAlias = Callable[[Any], "list[Any]"]


def decoder(plan: Plan) -> Decode:
    """Return a function from the bytes of a message to the columns of `plan`.

    Returns
    -------
    callable
        Gives one item for each slot: a number or text for a scalar slot, a list of texts, or a
        contiguous vector. It raises ValueError if the bytes do not fit.
    """
    kinds = bytes(number for slot in plan.slots for number in (KINDS.index(slot.kind), slot.scalar))
    program = _cdr.Program(array("q", encode(plan.steps)).tobytes(), kinds)
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
