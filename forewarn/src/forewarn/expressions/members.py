"""The members of JSON objects: what an agent gives to a tool, by name and of its own type."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from forewarn.expressions.values import NAN, Notes, Record, vector

LARGEST = sys.float_info.max
LONGEST_REMEMBERED = 32_768


class Members(Record):
    """A JSON object inside an evaluation: it equals nothing, and what it lacks is unknown."""

    __slots__ = ("_texts", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self._texts: tuple[str, ...] | None = None

    def get(self, notes: Notes, name: str) -> Any:
        """Return a member; unknown, with a note, if there is none or it is null."""
        value = self.values.get(name)
        if value is None:
            return notes.unknown(f"there is no {name!r}")
        return _value(value)

    def texts(self) -> tuple[str, ...]:
        """Return all texts and numbers in it, as texts."""
        if self._texts is None:
            self._texts = tuple(texts_in(self.values))
        return self._texts


def members_of(text: str) -> Members | None:
    """Return the members of a text that is a JSON object; None for any other text."""
    return _remembered(text) if len(text) <= LONGEST_REMEMBERED else _members(text)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a value of JSON, numbers and truth values as JSON writes them."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, Members):
        yield from value.texts()
    elif value is not None and value == value:
        yield value if isinstance(value, str) else json.dumps(value)


def _members(text: str) -> Members | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return Members(_reader.decode(text))
    except (ValueError, RecursionError):
        return None


_remembered = lru_cache(256)(_members)


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return Members(value)
    if isinstance(value, list):
        return vector([_value(item) for item in value])
    if value is None or (isinstance(value, (int, float)) and not -LARGEST <= value <= LARGEST):
        return NAN
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key comes twice")
    return values


_reader = json.JSONDecoder(object_pairs_hook=_unique)
