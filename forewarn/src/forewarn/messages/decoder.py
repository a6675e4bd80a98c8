"""Runs a plan: the compiled interpreter where it was built, else the one in Python."""

from __future__ import annotations

import importlib
import os
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from forewarn.messages.interpreter import Malformed, interpreter
from forewarn.messages.plan import Plan, encode

# Of the words that plan.encode() writes; a module built from older sources has another one.
FORMAT = 1
KINDS = ("f8", "i8", "u8", "?", "str")


def _load() -> Any:
    """Return the extension module, or None where it was not built or is not wanted."""
    if os.environ.get("FOREWARN_PURE_PYTHON"):
        return None
    try:
        module = importlib.import_module("forewarn.messages._cdr")
    except ImportError:
        return None
    return module if module.FORMAT == FORMAT else None


COMPILED = _load()


def decoder(plan: Plan, compiled: bool = COMPILED is not None) -> Callable[[Any], list[Any]]:
    """Return a function from the bytes of a message to the columns of `plan`.

    Parameters
    ----------
    plan : Plan
        What to read.
    compiled : bool, optional
        Whether to run the compiled interpreter.

    Returns
    -------
    callable
        Gives one item for each slot: a number or text for a scalar slot, a list of texts, or a
        contiguous vector. It raises ValueError or Malformed if the bytes do not fit.
    """
    if not compiled:
        return interpreter(plan)
    kinds = bytes(number for slot in plan.slots for number in (KINDS.index(slot.kind), slot.scalar))
    program = COMPILED.Program(array("q", encode(plan.steps)).tobytes(), kinds)
    vectors = [
        (at, np.dtype(slot.kind))
        for at, slot in enumerate(plan.slots)
        if not slot.scalar and slot.kind != "str"
    ]
    if not vectors:
        run: Callable[[Any], list[Any]] = program
        return run

    def decode(data: Any) -> list[Any]:
        columns: list[Any] = program(data)
        for at, dtype in vectors:
            columns[at] = np.frombuffer(columns[at], dtype)
        return columns

    return decode


__all__ = ["COMPILED", "Malformed", "decoder"]
