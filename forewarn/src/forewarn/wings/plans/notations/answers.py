"""What translators put around a formula: code fences, labels, bullets, closing words."""

from __future__ import annotations

import re
from collections.abc import Collection

_FENCE = re.compile(r"```[\w-]*\n?(.*?)```", re.S)
_LABEL = re.compile(
    r"(?i)(?:^|[\s*_`(])(?:ltl|formula|pattern|final|answer|output)[\s*_`]*:[\s*_`]*"
)
#: nl2ltl's own form: a template, and what it is about on the next line.
_PATTERN = re.compile(r"(?i)\bPATTERN:[ \t]*(\w+)[ \t]*\n\s*SYMBOLS:[ \t]*([^\n]+)")
_BULLET = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*•])(?:\s+|$)")
_CLOSING = re.compile(r"\s*\bFINISH\b.*$", re.S)
#: What stands in formulas and not in sentences.
_MARK = re.compile(
    r"[()\[\]&|!~^<>=¬∧∨→↔⇒⇔□◇○]|(?<!\w)-+>|\b(?:[GFXURWM]{1,8}|globally|finally|implies|iff"  # noqa: RUF001
    r"|double_implies|historically)\b"
)
_WRAPPERS = (("`", "`"), ("$$", "$$"), ("$", "$"), ("**", "**"), ("*", "*"))


def unwrapped(text: str) -> str:
    r"""Return the formula of a translator's answer without what stands around it.

    Of several labels (``LTL:``) what stands behind the last one counts, to the end of its line.
    nl2ltl's two lines, ``PATTERN: Response`` and ``SYMBOLS: a, b``, become ``(Response a b)``, and
    nl2spec's ``FINISH`` ends a formula. Empty where an answer holds none.
    """
    fences: list[str] = _FENCE.findall(text)
    if fences:
        text = fences[-1]
    patterns: list[tuple[str, str]] = _PATTERN.findall(text)
    if patterns:
        name, symbols = patterns[-1]
        return f"({name} {' '.join(symbols.replace(',', ' ').split())})"
    labels = list(_LABEL.finditer(text))
    if labels:
        text = text[labels[-1].end() :].lstrip().partition("\n")[0]
    text = _CLOSING.sub("", text).strip()
    text = _BULLET.sub("", text, count=1).strip()
    changed = True
    while changed:
        changed = False
        for opening, closing in _WRAPPERS:
            inner = text[len(opening) : len(text) - len(closing)]
            if (
                len(text) >= len(opening) + len(closing)
                and text.startswith(opening)
                and text.endswith(closing)
                and opening not in inner
            ):
                text, changed = inner.strip(), True
        if text.endswith((".", ";")):
            text, changed = text[:-1].rstrip(), True
    return text


def is_prose(text: str, names: Collection[str]) -> bool:
    """Tell whether a text that is no formula is a sentence: without marks, and without `names`."""
    words = set(re.findall(r"[\w.]+", text))
    return len(words) > 1 and not _MARK.search(text) and words.isdisjoint(names)
