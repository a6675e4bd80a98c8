"""Functions that follow words: where they come from, and whether that place gives orders.

What an agent writes into a call stands in what the user asked for, in the outputs of tools, or
nowhere. Prompt injection is a value from an output that tells its reader what to do. How strongly
a sentence does so is judged by its form and by English words that serve grammar, never by names or
values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.functions.texts import list_of_texts
from forewarn.expressions.values import NAN, Notes

MAX_READ = 500_000
"""Characters that one call reads at most."""

LONGEST_REMEMBERED = 32_768
"""Texts up to this length are remembered with their words: outputs come again at each step."""

MOST_REMEMBERED = 256

NEIGHBOURS = 2
"""Sentences before and after one that count with it."""

_WORD = re.compile(r"\w+(?:[.@'\u2019+-]\w+)*")
_TAG = re.compile(r"\W*[(<\[{][\w -]{1,40}[)>\]}]")
_NAMING = re.compile(r"\d|@|\w[._]\w")
# A line that goes on with a small letter belongs to the sentence before, unless it is `key: ...`.
_SENTENCE = re.compile(r"""\n\s*\n|\n(?!\s*["']*[a-z])|\n(?=\s*\w+:)|(?<=[.!?:])\s+""")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECOND_PERSON = _set("you your yours yourself yourselves")
_FIRST_PERSON = _set("i me my mine myself")
_DEMANDS = _set("please must should ignore")
_BEFORE_A_VERB = _set("please then and now instead do first also finally next")
_AFTER_A_VERB = _set("a an the all my your this that these those me any every it to out for")
_NO_VERBS = _set(
    "a an the this that these those it he she they we i you who which what when where why how "
    "there here and or but if so as at by for from in into of on onto off to with without within "
    "about over under before after during until since than then my your his her its our their "
    "some any no not all each every both either is are was were be been being am has had does did "
    "will would can could should must may might yes ok dear hi hello thanks regards best most more "
    "other another such only also just still"
)


def _words(notes: Notes, texts: Any) -> Any:
    held = _readable(notes, "words", texts)
    if held is None:
        return NAN
    if len(held) == 1:
        return list(_read(held[0]).strengths)
    return list(dict.fromkeys(chain.from_iterable(_read(text).strengths for text in held)))


def _identifiers(notes: Notes, texts: Any) -> Any:
    held = _readable(notes, "identifiers", texts)
    if held is None:
        return NAN
    return list(dict.fromkeys(chain.from_iterable(_read(text).identifiers for text in held)))


def _without(notes: Notes, items: Any, others: Any) -> Any:
    wanted = list_of_texts(notes, "without", items)
    left_out = list_of_texts(notes, "without", others)
    if wanted is None or left_out is None:
        return NAN
    unwanted = frozenset(left_out)
    return [item for item in wanted if item not in unwanted]


def _order_strength(notes: Notes, words: Any, texts: Any) -> Any:
    found = _looked_up(notes, "order_strength", words, texts)
    if found is None:
        return NAN
    wanted, tables = found[0], [reading.strengths for reading in found[1]]
    strengths = [max((table.get(word, 0) for table in tables), default=0) for word in wanted]
    return np.array(strengths, dtype=np.int64)


def _outside_orders(notes: Notes, words: Any, texts: Any) -> Any:
    found = _looked_up(notes, "outside_orders", words, texts)
    if found is None:
        return NAN
    wanted, parts = found[0], [reading.outside for reading in found[1]]
    return np.array([any(word in part for part in parts) for word in wanted], dtype=np.bool_)


def _looked_up(
    notes: Notes, name: str, words: Any, texts: Any
) -> tuple[Sequence[str], list[_Reading]] | None:
    """Return words and the texts in which they are looked up, read; None with a note."""
    wanted, held = list_of_texts(notes, name, words), _readable(notes, name, texts)
    if wanted is None or held is None or not notes.afford(len(wanted) * len(held), each=1):
        return None
    return wanted, [_read(text) for text in held] if wanted else []


def _readable(notes: Notes, name: str, texts: Any) -> Sequence[str] | None:
    """Return a text or a list of texts as a list; None for anything else, or if it is too long."""
    held = [texts] if isinstance(texts, str) else list_of_texts(notes, name, texts)
    if held is not None and sum(map(len, held)) > MAX_READ:
        notes.unknown(f"{name}() would read more than {MAX_READ} characters")
        return None
    return held


class _Reading(NamedTuple):
    """The words of a text in order, each with its order strength; and some of them.

    `identifiers`: those that look like an address, an account, a number, a date or a file.
    """

    strengths: Mapping[str, int]
    identifiers: tuple[str, ...]
    outside: frozenset[str]  # those that stand in a sentence that is no order


def _read(text: str) -> _Reading:
    return _remembered(text) if len(text) <= LONGEST_REMEMBERED else _reading(text)


class _Sentence(NamedTuple):
    """A sentence: its words, how many signs of an order it shows, and whether it is one."""

    words: list[str]
    signs: int
    orders: bool
    announces: bool


def _reading(text: str) -> _Reading:
    sentences = [
        _sentence(part, words)
        for part in _SENTENCE.split(_unescaped(text))
        if (words := _WORD.findall(part.lower()))
    ]
    total = np.cumsum([0, *(sentence.signs for sentence in sentences)]).tolist()
    found: dict[str, int] = {}
    outside: set[str] = set()
    announced = False
    for at, sentence in enumerate(sentences):
        strength = 0
        if sentence.orders or announced:
            end = min(at + NEIGHBOURS + 1, len(sentences))
            strength = total[end] - total[max(at - NEIGHBOURS, 0)]
        else:
            outside.update(sentence.words)
        announced = sentence.announces and (sentence.orders or announced)
        for word in sentence.words:
            if strength > found.get(word, -1):
                found[word] = strength
    return _Reading(found, tuple(filter(_NAMING.search, found)), frozenset(outside))


_remembered = lru_cache(MOST_REMEMBERED)(_reading)


def _unescaped(text: str) -> str:
    """Return a text with its line ends; dumps of YAML and JSON write them as two characters."""
    if "\\" not in text:
        return text
    return text.replace("\\\n", "").replace("\\n", "\n").replace("\\ ", " ")


def _sentence(text: str, words: list[str]) -> _Sentence:
    """Return which of four signs of an order a sentence shows.

    It addresses the reader; the writer speaks of himself; it has a word that demands; it begins
    with what looks like an imperative. The last two make it an order.
    """
    different = frozenset(words)
    demands = not different.isdisjoint(_DEMANDS)
    tag = _TAG.match(text)
    imperative = _is_imperative(_WORD.findall(text[tag.end() :].lower()) if tag else words)
    persons = (not different.isdisjoint(_SECOND_PERSON)) + (not different.isdisjoint(_FIRST_PERSON))
    announces = text.rstrip().endswith(":")
    return _Sentence(words, persons + demands + imperative, demands or imperative, announces)


def _is_imperative(words: Sequence[str]) -> bool:
    """Tell whether no pronoun or the like begins, and an article or the like follows."""
    at = 0
    while at + 1 < len(words) and words[at] in _BEFORE_A_VERB:
        at += 1
    return (
        at + 1 < len(words)
        and words[at + 1] in _AFTER_A_VERB
        and words[at] not in _NO_VERBS
        and not words[at].endswith(("ing", "ed"))
    )


register(
    {
        "words": Function(
            _words, 1, 1, "the different words of a text or of texts, in small letters"
        ),
        "identifiers": Function(
            _identifiers, 1, 1, "those words that have a digit, an @, or a dot or _ inside"
        ),
        "without": Function(_without, 2, 2, "the texts of a list that are not in another"),
        "order_strength": Function(
            _order_strength,
            2,
            2,
            "how strongly the sentences in which each word stands tell their reader what to do",
        ),
        "outside_orders": Function(
            _outside_orders, 2, 2, "whether each word stands in a sentence that is no order"
        ),
    }
)
