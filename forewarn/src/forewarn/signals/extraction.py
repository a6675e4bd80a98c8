"""From the bytes of a message to the values of its expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from forewarn.errors import DecodeError
from forewarn.signals.compiler import compile_tree, settle
from forewarn.signals.definitions import MessageType
from forewarn.signals.inference import ROOT, infer
from forewarn.signals.syntax import Expression
from forewarn.signals.values import Notes, Record, Unknown, Value, canonical


class _Decoded(Record):
    __slots__ = ("message",)

    def __init__(self, message: Any) -> None:
        self.message = message

    def field(self, name: str) -> Any:
        value = getattr(self.message, name, None)
        if value is None:
            value = getattr(self.message, f"{name}_")
        return _wrap(value)


def _wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return canonical(value)
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    if isinstance(value, (bool, int, float, str)):
        return value
    return _Decoded(value)


class Extractor:
    """Evaluates expressions over the bytes of messages of one type.

    Attributes
    ----------
    notes : tuple of str
        Which expressions could not be planned, and what that costs.
    """

    def __init__(self, mtype: MessageType, functions: Sequence[Callable[..., Any]]) -> None:
        self.message_type = mtype
        self.notes: tuple[str, ...] = ()
        self._functions = functions

    def __call__(self, data: bytes | memoryview) -> list[Value | Unknown]:
        """Return the value of each expression.

        Raises
        ------
        DecodeError
            If the bytes do not have the layout of the message type.
        """
        try:
            message = _Decoded(
                self.message_type.typestore.deserialize_cdr(data, self.message_type.name)
            )
        except Exception as error:
            raise DecodeError(
                f"{len(data)} bytes are no {self.message_type.name}: {error}"
            ) from error
        results = []
        with np.errstate(all="ignore"):
            for function in self._functions:
                notes = Notes()
                results.append(settle(function(notes, message), notes))
        return results


def compile_extractor(mtype: MessageType, expressions: Sequence[Expression]) -> Extractor:
    """Prepare the evaluation of `expressions` over messages of type `mtype`.

    Raises
    ------
    FieldError
        If an expression reads a field that the type does not have, or uses one in a way that its
        type does not allow.
    """
    functions = [
        compile_tree(infer(each, mtype.struct).tree, [ROOT], each.source) for each in expressions
    ]
    return Extractor(mtype, functions)
