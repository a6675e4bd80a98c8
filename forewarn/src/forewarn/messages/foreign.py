"""Messages of other middleware, and in JSON with a JSON Schema: types whose bytes are no CDR.

The package that knows the format gives the layout, for checking expressions, and a function that
opens the bytes as a record; the language of expressions is the same. Values are computed element by
element.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from forewarn.errors import DecodeError
from forewarn.expressions.compiler import compile_tree, settle
from forewarn.expressions.syntax import Expression
from forewarn.expressions.values import NAN, Notes, Record, Unknown, Value, vector
from forewarn.messages.definitions import MessageType
from forewarn.messages.inference import ROOT, infer
from forewarn.messages.range_readings import note_elsewhere
from forewarn.messages.schema import MAX_LEVELS, PRESENCE, FieldType, Primitive, SequenceOf, Struct

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


SPELLED = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": NAN}
"""Numbers that JSON has no form for, as protobuf writes them."""
PRIMITIVES = {"number": "float64", "integer": "int64", "string": "string", "boolean": "bool"}


def json_type(name: str, schema: str) -> ForeignType:
    """Return the type that a JSON Schema describes; what it says otherwise has no fields.

    `name`: full name, ``foxglove.PoseInFrame``.
    `schema`: the schema: an object with ``properties``.
    Raises ValueError if it is no JSON, or no schema of an object with properties.
    """
    try:
        layout = _field(json.loads(schema), name, 0)
    except RecursionError:
        layout = None
    if not isinstance(layout, Struct):
        raise ValueError("it is no JSON Schema of an object with properties")
    struct = layout

    def opened(data: bytes | memoryview) -> Record:
        try:
            found = json.loads(bytes(data))
        except (UnicodeDecodeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        return JsonRecord(found, struct)

    return ForeignType(name, {}, struct, opened, "json", schema.encode())


def _field(schema: Any, name: str, level: int) -> FieldType | None:
    """Return the layout of a part; None if it is not given, or not of one kind."""
    if not isinstance(schema, dict) or level > MAX_LEVELS:
        return None
    kind = schema.get("type")
    choices = schema.get("oneOf")
    if isinstance(choices, list) and all(isinstance(c, dict) and "const" in c for c in choices):
        # What Foxglove makes of an enumeration.
        return Primitive("int64") if all(type(c["const"]) is int for c in choices) else None
    if kind == "array":
        element = _field(schema.get("items"), f"{name}[]", level + 1)
        return None if element is None else SequenceOf(element, 0)
    if kind == "object" or "properties" in schema:
        parts = schema.get("properties")
        if not isinstance(parts, dict):
            return None
        found = ((key, _field(part, f"{name}.{key}", level + 1)) for key, part in parts.items())
        fields = {key: part for key, part in found if part is not None}
        return Struct(name, fields, {}, optional=True) if fields else None
    return Primitive(PRIMITIVES[kind]) if isinstance(kind, str) and kind in PRIMITIVES else None


class JsonRecord(Record):
    """A JSON object inside an evaluation: what it lacks, or has as another kind, is unknown."""

    __slots__ = ("struct", "values")

    def __init__(self, values: Mapping[str, Any], struct: Struct) -> None:
        self.values = values
        self.struct = struct

    def field(self, name: str) -> Any:
        """Return a field, or whether it is set."""
        if name.startswith(PRESENCE):
            return self.values.get(name[len(PRESENCE) :]) is not None
        return _value(self.values.get(name), self.struct.fields[name])


def _value(value: Any, part: FieldType) -> Any:
    if isinstance(part, Struct):
        return JsonRecord(value, part) if isinstance(value, dict) else Absent()
    if isinstance(part, Primitive):
        if isinstance(value, str) and part.name == "float64":
            return SPELLED.get(value, NAN)
        accepted = {"string": (str,), "bool": (bool,)}.get(part.name, (int, float))
        fits = isinstance(value, accepted) and (part.name == "bool" or not isinstance(value, bool))
        return value if fits else NAN
    if not isinstance(value, list):
        return NAN
    return vector([_value(one, part.element) for one in value])
