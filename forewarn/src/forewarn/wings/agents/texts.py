"""Texts in what a tool returned or a user said, as a language model reads them.

A result may be a text, an object, content blocks of a chat, or any of these as JSON text, even
within another text. Its *leaves* are the texts in it without what encodes them, so that a rule
about words holds in whatever shape they come.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import starmap
from typing import Any, NamedTuple

LONGEST_JSON = 1 << 20
"""Characters of a text that is parsed as JSON; of a longer one only the escapes are read."""
MOST_ENCODED = 8
"""How often a text may have been escaped, one escape within the other."""

BLOCKS = frozenset(
    {"text", "input_text", "output_text", "text-plain", "refusal", "thinking", "reasoning",
     "tool_result", "mcp_tool_result", "web_search_tool_result", "server_tool_result", "image",
     "image_url", "input_image", "document", "file", "input_file", "audio", "input_audio", "video",
     "resource", "search_result", "non_standard"}
)  # fmt: skip
"""Types of content blocks of OpenAI, Anthropic, LangChain and MCP."""
OF_BLOCKS = ("text", "refusal", "thinking", "reasoning", "content", "value", "data", "output")
"""Where a block has its content; such keys are no words of it."""
BESIDE = frozenset({"id", "index", "annotations", "tool_use_id", "is_error", "cache_control"})
"""Other keys of blocks that are no words of them; what stands there is."""
SEQUENCES = (list, tuple, set, frozenset, deque)


class Pairs(NamedTuple):
    """A JSON object with all of its pairs: a key that comes twice hides none of its values."""

    pairs: list[tuple[str, Any]]


_reader = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=str, parse_float=str, parse_constant=str, strict=False
)


def text_of(value: object, most: int | None = None) -> str:
    """Return the texts in a value, one a line; of many, the beginning.

    `value`: what a tool returned or a user said: a text, an object, a list, content blocks, JSON
        text, or any Python object. Keys are texts, too. None is no text.
    `most`: the result is cut after one character more than this.
    """
    found, length = [], 0
    for text in leaves(value):
        found.append(text if most is None else text[: most + 1])
        length += len(found[-1]) + 1
        if most is not None and length > most + 1:
            break
    whole = "\n".join(found)
    return whole if most is None else whole[: most + 1]


def says_failed(value: object) -> bool:
    """Tell whether the result of a call says that it failed.

    It does if the first text in it, keys aside, begins with "error", or if the object that it is,
    or a content block in it, has an ``error``, ``success: false`` or ``status: error``.
    """
    first = next((text for text in leaves(value, keys=False) if text.strip()), "")
    return first.lstrip()[:5].lower() == "error" or any(starmap(_is_error, _heads(value, 0)))


def leaves(value: object, *, keys: bool = True) -> Iterator[str]:
    r"""Yield the texts in a value in their order, without what encodes them.

    A text that is JSON is what it stands for. In any other text, lines with escapes such as
    ``\n`` or ``\u0041`` are read as they stand and without the escapes.

    `value`: see `text_of`.
    `keys`: whether keys of objects are texts.
    """
    # By hand, since values may be nested more deeply than functions can be called.
    waiting: list[tuple[object, Iterator[Any]]] = [(None, iter((value,)))]
    begun: set[int] = set()
    while waiting:
        item = next(waiting[-1][1], waiting)
        if item is waiting:
            begun.discard(id(waiting.pop()[0]))
        elif (inner := _parts(item, keys)) is None:
            yield from _texts(item)
        elif id(item) not in begun:  # what holds itself is read once
            begun.add(id(item))
            waiting.append((item, iter(inner)))


def _parts(value: Any, keys: bool) -> Iterable[Any] | None:
    """Return what a value holds, keys and values; None if it is a text, or is printed as one."""
    if isinstance(value, str):
        read = json_of(value)
        return None if read is None else (read,)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return (bytes(value).decode(errors="backslashreplace"),)
    if isinstance(value, Pairs):
        return _members(value.pairs, keys)
    if isinstance(value, Mapping):
        return _members(list(value.items()), keys)
    if isinstance(value, SEQUENCES):
        return value
    if isinstance(value, Enum):
        return (value.value,)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
        printed = [_printed(value)] if type(value).__str__ is not object.__str__ else []
        return (fields, *printed)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        try:
            return (value.model_dump(),)
        except Exception:  # whatever an object raises where it is asked what it is
            return None
    return None


def _members(pairs: list[tuple[Any, Any]], keys: bool) -> Iterator[Any]:
    names = [name for name, _ in pairs]
    block = any(name == "type" and isinstance(v, str) and v in BLOCKS for name, v in pairs)
    if block:  # what stands in a block comes first; no value is left out
        pairs = sorted(pairs, key=lambda pair: pair[0] not in OF_BLOCKS)
    for name, value in pairs:
        if block and name == "type" and names.count("type") == 1:
            continue
        if block and (name in OF_BLOCKS or name in BESIDE):
            if not isinstance(value, bool):
                yield value
            continue
        if keys:
            yield name
        yield value


def _texts(value: Any) -> Iterator[str]:
    """Yield a text, and what its escapes stand for."""
    text = "" if value is None else value if isinstance(value, str) else _printed(value)
    for _ in range(MOST_ENCODED):
        if not text:
            return
        yield text
        lines = filter(_ESCAPE.search, text.split("\n") if "\\" in text else ())
        text = _surrogates(_ESCAPE.sub(_unescaped, "\n".join(lines)))


def _printed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as in JSON
    try:
        return str(value)
    except Exception:  # whatever an object raises where it is asked what it is
        return f"a {type(value).__name__} that is no text"


def json_of(text: str) -> Any:
    """Return what a JSON text stands for; None if it is none."""
    text = text.strip("\ufeff \t\r\n")
    if text[:1] not in ("{", "[", '"') or len(text) > LONGEST_JSON:
        return None
    try:
        return _reader.decode(text)
    except (ValueError, RecursionError):
        return None


_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def _unescaped(found: re.Match[str]) -> str:
    number = found[1] or found[2] or found[3]
    return chr(int(number, 16)) if number else _SIGNS.get(found[4], found[4])


def _surrogates(text: str) -> str:
    """Join the halves of characters that JSON writes as two escapes."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _heads(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the members of the object that a result is, or of those in its list of blocks."""
    if isinstance(value, (Pairs, Mapping)):
        pairs = value.pairs if isinstance(value, Pairs) else list(value.items())
        yield from pairs
        inside = [v for k, v in pairs if k == "content"]
    elif isinstance(value, SEQUENCES):
        inside = list(value)
    else:
        inside = list(_parts(value, keys=False) or ())
    for part in inside if depth < MOST_ENCODED else ():
        yield from _heads(part, depth + 1)


def _is_error(key: object, value: Any) -> bool:
    if key in ("error", "errorMessage", "is_error", "isError"):
        return bool(value) and value != "0"  # numbers of JSON are texts here
    return (key == "success" and value is False) or (key == "status" and value == "error")
