"""Messages in JSON, with a JSON Schema, as Foxglove writes them to MCAP."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from forewarn.expressions.values import NAN, Record, vector
from forewarn.messages.foreign import Absent, ForeignType
from forewarn.messages.schema import (
    MAX_LEVELS,
    PRESENCE,
    FieldType,
    Primitive,
    SequenceOf,
    Struct,
)

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
