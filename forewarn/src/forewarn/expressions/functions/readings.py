"""Texts that are read for what they speak of: sentences and fields, with stems of their words."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import chain
from threading import Lock

from forewarn.expressions.functions.effects import WORD, set_of, stem

MAX_REMEMBERED = 2_000_000
"""Characters of results whose sentences are remembered, of all runs of a process together."""

LEAST_FIELDS = 3
"""Fields with a name in capital letters that make a line a row of fields."""

_MARKS = re.compile(
    # Only a long line goes on in the next: results that are JSON have a line for each field.
    r"""(?:\\?\n|\\n)\s*(?:\\?\n|\\n)|(?<![^\n]{40})\n|(?:\n|\\n)(?!\s*["'(]*[a-z])|(?:\n|\\n)(?=\s*\w+:)"""
    r"""|(?<=[.!?;])\s+|['"]\s*[,:}\])]+\s*|[{\[](?=\s*["'{\[\d])|\(\s*['"]|,\s*['"]|:\s*['"]"""
)
_LABEL = re.compile(r"\s(?=(?:[A-Z][\w-]*\s){0,3}[A-Z][\w-]*:\s)")
SPELLED = re.compile(r"[\s([{<]+(?:at|dot|punkt)[\s)\]}>]+|[^a-z0-9]+")
INNER = re.compile(r"[\W_]+")
_STOP = set_of(
    "the this that these those she they you your his her our their him them who which what when "
    "where why how there here and but for from into off with without within about over under "
    "before after during until since than then some any not all each every both either are was "
    "were been being has had have having does did done doing will would can could should must may "
    "might yes please also just only more most other another such new first last next one two make "
    "sure get give need want know like use using tell find look check user name"
)


class Sentence:
    """A sentence of running text, or a field: in small letters, with stems of its words."""

    def __init__(self, text: str, in_row: bool = False) -> None:
        self.text = text
        self.in_row = in_row

    @cached_property
    def listed(self) -> list[str]:
        """Return its words in order."""
        return WORD.findall(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of its words that mean something."""
        return stems_of(self.listed)


class Reading:
    """A result of a tool in small letters; what is not asked for is not computed."""

    def __init__(self, text: str) -> None:
        self.text = text.lower()
        self._lines = text
        self.words = frozenset(WORD.findall(self.text))
        self.stems = stems_of(self.words)

    @cached_property
    def bare(self) -> str:
        """Return its letters and digits alone, in which a spelled address is found."""
        return SPELLED.sub("", self.text)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Return its sentences and fields."""
        found: list[Sentence] = []
        for part in _MARKS.split(self._lines):  # capital letters tell where a line is no sentence
            fields = _LABEL.split(part) if part.count(": ") >= LEAST_FIELDS else ()
            if len(fields) >= LEAST_FIELDS:  # Name: Bob Account Number: 12 City: Rome
                found += [Sentence(field.lower(), True) for field in fields]
            elif part.strip():
                found.append(Sentence(part.lower()))
        return found


def stands(wanted: str, text: str) -> bool:
    """Tell whether a value stands in a text with no letter or digit beside it."""
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not (at and text[at - 1].isalnum()) and not (end < len(text) and text[end].isalnum()):
            return True
        at = text.find(wanted, at + 1)
    return False


def is_running(wanted: str, sentence: Sentence) -> bool:
    """Tell whether a sentence says something with a value, and is no field: not its name either."""
    rest = len(sentence.listed) - len(WORD.findall(wanted))
    if rest >= 3 and not sentence.in_row:
        return True
    before, _, after = sentence.text.partition(wanted)
    return rest >= 1 and not (before.rstrip("\"' ").endswith(":") or after.startswith(":"))


def stems_of(words: Iterable[str]) -> frozenset[str]:
    """Return the stems of words that mean something."""
    return frozenset(chain.from_iterable(map(_parts_of, words)))


@lru_cache(65_536)
def _parts_of(word: str) -> tuple[str, ...]:
    parts = (word, *INNER.split(word)) if INNER.search(word) else (word,)
    return tuple(stem(part) for part in parts if len(part) > 2 and part not in _STOP)


class ReadingStore:
    """The readings of the texts that came last; results come again at each step of a run."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[str, Reading] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def read(self, text: str) -> Reading:
        """Return the reading of a text."""
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                return known
        reading = Reading(text)
        with self._lock:
            if text not in self._known:
                self._known[text] = reading
                self._characters += len(text)
            while self._characters > self._most:
                oldest, _ = self._known.popitem(last=False)
                self._characters -= len(oldest)
        return reading


read = ReadingStore(MAX_REMEMBERED).read
