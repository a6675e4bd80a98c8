"""Plain records in JSON files, checked by the annotations of what they become."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar

from annotated_types import Interval
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from forewarn.errors import ModelError

Kind = TypeVar("Kind")

Count = Annotated[int, Interval(ge=0, le=1 << 53)]
NumberOrNull = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""A number, of which JSON has null where it is none."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def checked(kind: Callable[..., Kind], value: Any, path: str = "") -> Kind:
    """Return what a value of a JSON file stands for.

    `kind`: a NamedTuple or dataclass whose annotations say what is accepted, or a container of
        them.
    `value`: the value; numbers, texts and truth values are not converted into one another.
    `path`: key path that leads to it.

    Raises ModelError naming key path, value and what is accepted.
    """
    try:
        found: Kind = _adapter(kind).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise _told(error, path) from None
    return found


def _told(error: ValidationError, path: str) -> ModelError:
    first = error.errors(include_url=False)[0]
    key = path
    for part in first["loc"]:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    if first["type"].startswith("missing"):
        return ModelError("missing", accepted="a value", key=key)
    if first["type"].startswith("unexpected"):
        return ModelError("unknown key", accepted="no other keys", key=key)
    accepted = first["msg"].removeprefix("Input should be ")
    return ModelError(f"{first['input']!r:.80} is not accepted", accepted=accepted, key=key)
