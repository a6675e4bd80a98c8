"""Messages of other middleware: types whose bytes are no CDR.

The package that knows the format gives the layout, for checking expressions, and a function that
opens the bytes as a record; the language of expressions is the same. Values are computed element by
element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from forewarn.errors import DecodeError
from forewarn.expressions.compiler import compile_tree, settle
from forewarn.expressions.syntax import Expression
from forewarn.expressions.values import NAN, Notes, Record, Unknown, Value
from forewarn.messages.definitions import MessageType
from forewarn.messages.inference import ROOT, infer
from forewarn.messages.range_readings import note_elsewhere
from forewarn.messages.schema import PRESENCE, Struct

# Entry points: functions from the name of a message, and its schema if there is one, to its type.
LAYOUTS = "forewarn.layouts"


@dataclass(frozen=True)
class ForeignType(MessageType):
    """A message type of another middleware.

    `name`: full name, such as ``apollo.canbus.Chassis``.
    `open`: from bytes to a record. Fields that are not set are `Absent`; presence is read as the
    field named by `presence`. Raises ValueError if the bytes do not fit.
    """

    layout: Struct = field(repr=False, compare=False)  # fields and constants
    open: Callable[[bytes | memoryview], Record] = field(repr=False, compare=False)
    encoding: str = field(repr=False)  # name of the serialization in MCAP's registry: ``protobuf``
    definition: bytes = field(repr=False, compare=False)  # the schema that MCAP wants for it

    @cached_property
    def struct(self) -> Struct:
        """The layout."""
        return self.layout


def foreign_type(name: str, schema: bytes = b"") -> MessageType | None:
    """Return a message of other middleware, from a package that knows it.

    `name`: full name of the message.
    `schema`: what the data say of it, a FileDescriptorSet of protobuf; without it, what packages
    bring along.
    Returns None if no package knows it.
    Raises ValueError if the schema is damaged.
    """
    found = (point.load()(name, schema) for point in entry_points(group=LAYOUTS))
    return next((one for one in found if one is not None), None)


class Absent(Record):
    """A part of a message that is not set: all its fields are unknown."""

    __slots__ = ()

    def field(self, name: str) -> Any:
        """Return unknown, and False for the presence of a field."""
        return False if name.startswith(PRESENCE) else NAN


class ForeignExtractor:
    """Evaluates expressions over the bytes of messages of one foreign type.

    `notes`: expressions that leave out readings of a sensor. That foreign messages are computed
    element by element is no news.
    """

    def __init__(self, mtype: ForeignType, expressions: Sequence[Expression]) -> None:
        self.message_type = mtype
        typed = [infer(expression, mtype.struct) for expression in expressions]
        self.notes = tuple(text for one in typed if (text := note_elsewhere(one)))
        self._functions = [
            compile_tree(expression.tree, [ROOT], expression.expression.source)
            for expression in typed
        ]

    def __call__(self, data: bytes | memoryview) -> list[Value | Unknown]:
        """Return the value of each expression; see `Extractor`.

        Raises DecodeError if the bytes are no message of the type.
        """
        try:
            record = self.message_type.open(data)
        except ValueError as error:
            raise DecodeError(
                f"{len(data)} bytes are no {self.message_type.name}: {error}",
                accepted="a message with the layout of the definition that the monitor uses",
            ) from error
        values = []
        with np.errstate(all="ignore"):
            for function in self._functions:
                notes = Notes()
                values.append(settle(function(notes, record), notes))
        return values
