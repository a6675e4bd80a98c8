"""Functions of texts against regular expressions, and where they know nothing."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forewarn.expressions import FUNCTIONS
from forewarn.expressions.values import Notes

TEXT = st.text(alphabet="aab1 .-é", max_size=12)
taken, lower = FUNCTIONS["taken"], FUNCTIONS["lower"]


def stands_in(item: str, text: str) -> bool:
    """Tell the same as `taken` by a pattern: no letter or digit beside one at either end."""
    item = item.strip()
    letter = r"[^\W_]"
    before = rf"(?<!{letter})" if item[:1].isalnum() else ""
    after = rf"(?!{letter})" if item[-1:].isalnum() else ""
    return bool(item) and re.search(before + re.escape(item) + after, text) is not None


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=3))
def test_taken_is_what_a_pattern_finds(items: list[str], texts: list[str]) -> None:
    assert taken(items, texts) == [i for i in items if any(stands_in(i, t) for t in texts)]


def test_only_whole_words_are_taken() -> None:
    assert taken(["AB12", "20", "a b"], ["to AB12, 2020", "a\nb"]) == ["AB12"]
    assert taken(["20"], ["pay 2020 or 20."]) == ["20"]


def test_an_empty_list_is_known_and_no_text_is_not() -> None:
    assert taken(np.array([]), ["x"]) == [] and taken(["x"], np.array([])) == []
    for call, values in ((taken, ([1.0], ["x"])), (taken, (["x"], "x")), (lower, (3.0,))):
        notes = Notes()
        answer = call.call(notes, *values)
        assert answer != answer and "needs a list of texts" in notes[0]
    nan = float("nan")
    assert taken(nan, ["x"]) != 0 and lower(nan) != 0


def test_lower() -> None:
    assert lower("ÄB") == "äb" and lower(["A", "b"]) == ["a", "b"]


def test_the_work_is_bounded() -> None:
    notes = Notes()
    answer = taken.call(notes, ["a"] * 10_000, ["b" * 10_000])
    assert answer != answer and "50000000 characters" in notes[0]
    assert taken(["a" * 10_000], ["a" * 1_000_000]) == []
