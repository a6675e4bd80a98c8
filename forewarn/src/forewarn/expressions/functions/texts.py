"""Functions of texts: what an agent's calls say, and where it comes from."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.members import Members, members_of, texts_in
from forewarn.expressions.values import NAN, Notes, Record, is_unknown, kind

MAX_COMPARED = 50_000_000
"""Characters that one call of `taken` looks through at most."""


def list_of_texts(notes: Notes, name: str, items: Any) -> Sequence[str] | None:
    """Return a list of texts; None, with a note, for anything else."""
    if isinstance(items, (list, tuple)) and all(
        issubclass(each, str) for each in {*map(type, items)}
    ):
        return items
    if not isinstance(items, str) and hasattr(items, "__len__") and not len(items):
        return []  # an empty list has become a vector
    if isinstance(items, (list, tuple)) and any(each is None for each in items):
        notes.unknown(f"a text that {name}() needs was cut, or left out")
    elif not is_unknown(items):
        notes.unknown(f"{name}() needs a list of texts, not {kind(items)}")
    return None


def _lower(notes: Notes, text: Any) -> Any:
    if isinstance(text, str):
        return text.lower()
    texts = list_of_texts(notes, "lower", text)
    return NAN if texts is None else [item.lower() for item in texts]


def _taken(notes: Notes, items: Any, *lists: Any) -> Any:
    wanted, held, complete = list_of_texts(notes, "taken", items), list[str](), True
    for sources in lists:
        known = sources
        if isinstance(sources, (list, tuple)) and None in sources:
            known, complete = [text for text in sources if text is not None], False
        texts = list_of_texts(notes, "taken", known)
        if texts is None:
            return NAN
        held.extend(texts)
    if wanted is None:
        return NAN
    parts = [values_in(item) for item in wanted]
    if (len(parts) + sum(map(len, parts))) * sum(map(len, held)) > MAX_COMPARED:
        return notes.unknown(f"taken() would look through more than {MAX_COMPARED} characters")
    found = [
        item
        for item, values in zip(wanted, parts, strict=True)
        if _stands_in_one(item, held)
        or (values and all(_stands_in_one(value, held) for value in values))
    ]
    if not complete and len(found) < sum(map(bool, map(str.strip, wanted))):
        return notes.unknown("a text that taken() looks through was cut, or left out")
    return found


def values_in(item: str) -> list[str]:
    """Return the texts in an object or a list that is written as JSON, keys aside."""
    if not item.lstrip().startswith(("{", "[")):
        return []
    try:
        parsed = json.loads(item, parse_int=str, parse_float=str, parse_constant=str)
        texts = list(texts_in(parsed))
    except (ValueError, RecursionError):
        return []
    values = itertools.chain.from_iterable(values_in(text) or [text] for text in texts)
    return list(filter(str.strip, values))


def _stands_in_one(item: str, texts: Sequence[str]) -> bool:
    return any(_stands_in(item.strip(), text) for text in texts)


def _stands_in(item: str, text: str) -> bool:
    """Tell whether `item` stands in `text` with no letter or digit of another word beside it."""
    at = text.find(item) if item else -1
    while at >= 0:
        end = at + len(item)
        begins = not (at and item[0].isalnum() and text[at - 1].isalnum())
        if begins and not (end < len(text) and item[-1].isalnum() and text[end].isalnum()):
            return True
        at += 1
        while at < len(text) and item[0].isalnum() and text[at - 1].isalnum():
            at += 1  # the next one begins after this word
        at = text.find(item, at)
    return False


def _texts_of(notes: Notes, value: Any) -> Any:
    if is_unknown(value):
        return NAN
    members = members_of(value) if isinstance(value, str) else None
    if members is None and isinstance(value, Record) and not isinstance(value, Members):
        return notes.unknown(f"texts_of() of {kind(value)}")
    return list(texts_in(plain(value)) if members is None else members.texts())


def plain(value: Any) -> Any:
    """Return a value without arrays of numpy."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _index_of(notes: Notes, items: Any, text: Any) -> Any:
    texts = list_of_texts(notes, "index_of", items)
    if texts is None:
        return NAN
    if not isinstance(text, str):
        return NAN if is_unknown(text) else notes.unknown("index_of() looks for a text")
    return texts.index(text) if text in texts else notes.unknown(f"no element is {text!r}")


def _like(notes: Notes, text: Any, pattern: Any) -> Any:
    if not isinstance(pattern, str):
        return NAN if is_unknown(pattern) else notes.unknown("like() needs a pattern, a text")
    if isinstance(text, str):
        return is_like(text, pattern)
    texts = list_of_texts(notes, "like", text)
    return NAN if texts is None else [is_like(item, pattern) for item in texts]


def is_like(text: str, pattern: str) -> bool:
    """Tell whether a whole text has the form of a pattern.

    ``*`` stands for any text, ``?`` for one character, ``#`` for a number, all its digits; all
    else stands for itself.
    """
    first, *rest = _parts(pattern)
    if not rest:
        return first.fullmatch(text) is not None
    found = first.match(text)
    for part in rest[:-1]:
        found = found and part.search(text, found.end())
    # The last part has to reach the end, and may begin nowhere before the others are over.
    return found is not None and rest[-1].search(text, found.end()) is not None


@lru_cache(maxsize=512)
def _parts(pattern: str) -> tuple[re.Pattern[str], ...]:
    texts = pattern.split("*")
    last = len(texts) - 1
    return tuple(
        re.compile(
            "".join(_SIGNS.get(sign) or re.escape(sign) for sign in text)
            + (r"\Z" if last and number == last else ""),
            re.DOTALL,
        )
        for number, text in enumerate(texts)
    )


_SIGNS = {"?": ".", "#": "(?<![0-9])[0-9]+(?![0-9])"}


register(
    {
        "index_of": Function(_index_of, 2, 2, "index of the first element that is a text"),
        "like": Function(_like, 2, 2, "whether a text, or each of a list, has a form such as a#.*"),
        "texts_of": Function(
            _texts_of, 1, 1, "all texts and numbers in an argument, as a list of texts"
        ),
        "lower": Function(_lower, 1, 1, "a text, or each text of a list, in small letters"),
        "taken": Function(
            _taken,
            2,
            None,
            "the texts of a list that stand within one of others; JSON if each text in it does",
        ),
    }
)
