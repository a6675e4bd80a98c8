"""Inputs near to good ones: bytes and texts with a few changes, and soups of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

ODD_WORDS = tuple(
    number.to_bytes(size, "little")
    for size in (1, 2, 4, 8)
    for number in (0, 1, (1 << (8 * size - 1)) - 1, 1 << (8 * size - 1), (1 << (8 * size)) - 1)
)
"""Numbers that lengths, counts and offsets are known to fail on."""


@st.composite
def changed_bytes(draw: st.DrawFn, originals: Sequence[bytes]) -> bytes:
    """Draw one of `originals` after up to six changes."""
    content = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["flip", "word", "cut", "drop", "insert", "repeat"]))
        length = draw(st.integers(1, 40))
        if kind == "flip" and at < len(content):
            content[at] ^= draw(st.integers(1, 255))
        elif kind == "word":
            word = draw(st.sampled_from(ODD_WORDS))
            content[at : at + len(word)] = word
        elif kind == "cut":
            del content[at:]
        elif kind == "drop":
            del content[at : at + length]
        elif kind == "insert":
            content[at:at] = draw(st.binary(min_size=1, max_size=40))
        elif kind == "repeat":
            content[at:at] = content[at : at + length] * draw(st.sampled_from([1, 3, 50]))
    return bytes(content)


@st.composite
def changed_text(draw: st.DrawFn, originals: Sequence[str], words: Sequence[str]) -> str:
    """Draw one of `originals` after up to five changes; `words` are put in among them."""
    text = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 20)))
        kind = draw(st.sampled_from(["word", "drop", "text", "repeat", "move"]))
        if kind == "word":
            text = text[:at] + draw(st.sampled_from(words)) + text[at:]
        elif kind == "drop":
            text = text[:at] + text[end:]
        elif kind == "text":
            text = text[:at] + draw(st.text(max_size=6)) + text[end:]
        elif kind == "repeat":
            text = text[:at] + text[at:end] * draw(st.sampled_from([2, 10, 300])) + text[end:]
        else:
            to = draw(st.integers(0, len(text)))
            text = text[:to] + text[at:end] + text[to:]
    return text


def soup(words: Sequence[str]) -> st.SearchStrategy[str]:
    """Draw words in a row that need not make sense."""
    return st.lists(st.sampled_from(words), max_size=25).map(" ".join)


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([-1, 0, 1, 1e308, "", "0", "!", "01", "é", "\x00"]),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=6,
)


@st.composite
def changed_document(draw: st.DrawFn, original: Any) -> Any:
    """Draw a JSON document with one to three values replaced, dropped or doubled."""
    document = original
    for _ in range(draw(st.integers(1, 3))):
        document = _change(draw, document)
    return document


def _change(draw: st.DrawFn, value: Any) -> Any:
    """Walk down by chance and change what is there."""
    inside = isinstance(value, (dict, list)) and len(value) > 0
    if not inside or draw(st.integers(0, 5)) == 0:
        return draw(JSON_VALUES)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    kind = draw(st.sampled_from(["down", "down", "down", "drop", "double"]))
    if kind == "drop":
        del changed[key]
    elif kind == "double" and isinstance(changed, list):
        changed.append(changed[key])
    else:
        changed[key] = _change(draw, value[key])
    return changed
