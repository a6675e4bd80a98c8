"""Functions of texts against regular expressions, and where they know nothing."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.values import Notes

TEXT = st.text(alphabet="aab1 .-é", max_size=12)
taken, lower, like = FUNCTIONS["taken"], FUNCTIONS["lower"], FUNCTIONS["like"]


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


def forms(pattern: str, text: str, at: int = 0) -> bool:
    """Tell the same as `like` by trying every way: a sign takes what it may, and the rest follows.

    A number is taken whole: from its first digit to its last.
    """
    if not pattern:
        return at == len(text)
    sign, rest = pattern[0], pattern[1:]
    if sign == "*":
        return any(forms(rest, text, end) for end in range(at, len(text) + 1))
    if sign == "#":
        digits = re.match("[0-9]+", text[at:])
        begins = at == 0 or text[at - 1] not in "0123456789"
        return digits is not None and begins and forms(rest, text, at + digits.end())
    return at < len(text) and sign in ("?", text[at]) and forms(rest, text, at + 1)


SIGNS = st.text(alphabet="ab12*?#.", max_size=7)


@given(SIGNS, st.text(alphabet="ab123.\n", max_size=10))
def test_like_is_what_trying_every_way_finds(pattern: str, text: str) -> None:
    assert like(text, pattern) is forms(pattern, text)
    assert like([text, "a"], pattern) == [forms(pattern, text), forms(pattern, "a")]


def test_like_is_quick_on_long_texts_and_says_what_it_cannot_take() -> None:
    assert like("a" * 20_000, "*a*b*a*b") is False
    assert like("1" * 20_000 + "x", "*#y") is False
    notes = Notes()
    assert np.isnan(float(FUNCTIONS["like"].call(notes, 3, "*")))
    assert np.isnan(float(FUNCTIONS["like"].call(notes, "a", 3)))


def test_index_of_finds_the_first_element_that_is_the_text() -> None:
    index_of = FUNCTIONS["index_of"]
    assert index_of(["a", "b", "b"], "b") == 1
    assert np.isnan(float(index_of([], "b")))
    assert np.isnan(float(index_of(["ab"], "b")))
    notes = Notes()
    assert np.isnan(float(index_of.call(notes, ["a"], "b")))
    assert "no element is 'b'" in notes[0]
    assert np.isnan(float(index_of(["3"], 3)))
    assert np.isnan(float(index_of("abc", "b")))


def test_an_object_is_taken_where_each_value_in_it_is() -> None:
    both = '{"to": ["DE77", {"n": 20}], "why": null, "text": "{\\"a\\": \\"x\\"}"}'
    assert taken([both], ["pay 20 to DE77"], ["x"]) == [both]
    assert taken([both], ["pay 20 to DE77"]) == []
    assert taken(["{}", '{"to": ""}', "[", "{x}"], ["pay 20 {x}"]) == ["{x}"]
    assert taken(["{}"], ["the object {} is empty"]) == ["{}"]
