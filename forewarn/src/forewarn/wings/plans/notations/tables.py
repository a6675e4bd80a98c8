"""What each notation writes, and how it groups what has no parentheses.

Sources: Spot's `tl.pdf` (precedences of LTL), RTAMT's grammar, PRISM's `PrismParser.jj` (temporal
operators bind less tightly than Boolean ones), the prompts of nl2spec and of VLTL-Bench for words.
"""

from __future__ import annotations

from typing import NamedTuple

#: For each operator its spellings, each with the notations that have it: s(pot), w(ords),
#: r(tamt), p(rism). Words are read without regard to case, single letters as they are.
SPELLINGS: dict[str, dict[str, str]] = {
    "not": {"!": "srp", "~": "s", "not": "wr", "¬": "s"},
    "and": {"&": "srp", "&&": "s", "/\\": "s", "and": "wr", "∧": "s"},
    "or": {"|": "srp", "||": "s", "\\/": "s", "or": "wr", "∨": "s"},  # noqa: RUF001
    "implies": {
        "->": "sr", "=>": "sp", "-->": "s", "implies": "wr", "imply": "w", "→": "s", "⇒": "sw",
        "⟹": "s",
    },
    "iff": {
        "<->": "sr", "<=>": "sp", "<-->": "s", "iff": "wr", "double_implies": "w",
        "equiv": "w", "equivalent": "w", "↔": "s", "⇔": "sw", "⟺": "s",
    },
    "xor": {"^": "s", "xor": "swr", "⊕": "s"},
    "always": {"G": "srp", "[]": "s", "always": "wr", "globally": "w", "□": "s"},
    "eventually": {"F": "srp", "<>": "s", "eventually": "wr", "finally": "w", "◇": "s", "◊": "s"},
    "next": {"X": "srp", "next": "wr", "()": "s", "○": "s", "◯": "s", "X[!]": "s", "s_next": "r",
             "sX": "r", "strong_next": "w"},
    "weak_next": {"weak_next": "w", "wX": "w", "WX": "w"},
    "until": {"U": "srp", "until": "wr"},
    "unless": {"W": "srp", "unless": "wr", "weak_until": "w"},
    "release": {"R": "sp", "V": "s", "release": "w", "releases": "w"},
    "strong_release": {"M": "s", "strong_release": "w"},
    "historically": {"H": "r", "historically": "wr"},
    "once": {"O": "r", "once": "wr"},
    "since": {"S": "r", "since": "wr"},
    "prev": {"Y": "r", "prev": "r", "previous": "w"},
    "s_prev": {"sY": "r", "s_prev": "r"},
    "rise": {"rise": "r"},
    "fall": {"fall": "r"},
    "true": {"true": "swrp", "tt": "s"},
    "false": {"false": "swrp", "ff": "s"},
}  # fmt: skip
UNARY = frozenset(
    {"not", "always", "eventually", "next", "weak_next", "historically", "once", "prev", "s_prev",
     "rise", "fall"}
)  # fmt: skip
#: Operators that may have bounds.
TIMED = frozenset(
    {"always", "eventually", "historically", "once", "until", "unless", "since", "next"}
)


class Notation(NamedTuple):
    """How a notation groups: binding powers, and which operators group to the right.

    `prefix` is the power of what stands in front of its operand; in PRISM only `not` binds tightly.
    """

    name: str
    letter: str
    power: dict[str, int]
    to_the_right: frozenset[str]
    prefix: int = 90
    not_power: int = 90


_SPOT = {"iff": 20, "implies": 20, "xor": 30, "or": 40, "and": 50, "since": 80, "unless": 80,
         "until": 80, "release": 80, "strong_release": 80}  # fmt: skip
_RIGHT = frozenset({"iff", "implies", "since", "unless", "until", "release", "strong_release"})
_RTAMT = {"xor": 10, "iff": 20, "implies": 30, "or": 40, "and": 50, "since": 60, "unless": 70,
          "until": 80, "release": 80, "strong_release": 80}  # fmt: skip
_PRISM = {"until": 10, "unless": 10, "release": 10, "since": 10, "strong_release": 10, "iff": 20,
          "implies": 30, "xor": 35, "or": 40, "and": 50}  # fmt: skip

_FRET = {"iff": 20, "implies": 20, "xor": 40, "or": 40, "and": 50}

SPOT = Notation("spot", "s", _SPOT, _RIGHT)
WORDS = Notation("words", "w", _SPOT, _RIGHT)
RTAMT = Notation("rtamt", "r", _RTAMT, frozenset())
PRISM = Notation("prism", "p", _PRISM, frozenset({"implies"}), prefix=10)
#: Boolean conditions of FRET's structured English; only where it is asked for.
FRET = Notation("fret", "f", _FRET, frozenset())
#: In the order in which they are taken for a text that several of them could have written.
INFIX = (SPOT, WORDS, RTAMT, PRISM)
#: What is read as well: Polish notation, as in Lang2LTL.
PREFIX = "prefix"
#: The operators of PREFIX that are other ones, or names, elsewhere.
PREFIX_LETTERS = {"i": "implies", "e": "iff"}
#: A mixture of several notations; it is grouped as Spot groups.
MIXED = "mixed"
#: Templates with names, as in nl2ltl; what joins them is written as in Spot.
DECLARE = "declare"
NOTATIONS = (*(notation.name for notation in INFIX), PREFIX, DECLARE)

WORD_OF: dict[str, tuple[str, frozenset[str]]] = {
    spelling: (word, frozenset(letters))
    for word, spellings in SPELLINGS.items()
    for spelling, letters in spellings.items()
}


def operator_of(text: str) -> tuple[str, frozenset[str]] | None:
    """Return the operator that `text` writes and the letters of the notations that do."""
    return WORD_OF.get(text) or (WORD_OF.get(text.lower()) if len(text) > 1 else None)
