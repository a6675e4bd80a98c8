"""What a requirement of FRET's language means on a finite trace, from the words of its publication.

Nothing is shared with the translation. `Templates` evaluates FRET's own templates, where a copy of
its ``semantics.json`` is at hand; it is not part of this repository.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

ATOMS = ("m", "c", "p", "s")


class Trace(NamedTuple):
    """Truth values of mode, trigger, response and stop condition, each of shape (moments,)."""

    m: list[bool]
    c: list[bool]
    p: list[bool]
    s: list[bool]


def holds(scope: str, condition: str, timing: str, n: int, trace: Trace) -> bool:
    """Tell whether a finite trace satisfies a requirement."""
    return all(
        _demand(timing, t, end, n, trace, only=scope.startswith("only"))
        for start, end in intervals(scope, trace.m)
        for t in _triggers(condition, start, end, trace.c)
    )


def intervals(scope: str, m: list[bool]) -> list[tuple[int, int]]:
    """Return first and last moment of each interval of a scope."""
    last = len(m) - 1
    first_mode = m.index(True) if True in m else None
    end_of_first = None
    if first_mode is not None:
        later = m[first_mode:]
        end_of_first = first_mode + later.index(False) - 1 if False in later else None
    if scope == "null":
        return [(0, last)]
    if scope in ("in", "notin", "onlyIn"):
        inside = m if scope == "in" else [not value for value in m]
        starts = [i for i, x in enumerate(inside) if x and (i == 0 or not inside[i - 1])]
        ends = [i for i, x in enumerate(inside) if x and (i == last or not inside[i + 1])]
        return list(zip(starts, ends, strict=True))
    if scope == "before":
        return [(0, last)] if first_mode is None else [(0, first_mode - 1)] if first_mode else []
    if scope == "after":
        return [] if end_of_first is None else [(end_of_first + 1, last)]
    if scope == "onlyAfter":
        return [(0, last if end_of_first is None else end_of_first)]
    return [] if first_mode is None else [(first_mode, last)]


def _triggers(condition: str, start: int, end: int, c: list[bool]) -> list[int]:
    if condition == "null":
        return [start]
    inside = range(start, end + 1)
    if condition == "holding":
        return [i for i in inside if c[i]]
    return [i for i in inside if c[i] and (i == start or not c[i - 1])]


def _demand(timing: str, t: int, end: int, n: int, trace: Trace, *, only: bool) -> bool:
    p, s = trace.p, trace.s
    if only and timing != "after":
        p = [not value for value in p]
        timing = {
            "always": "eventually", "eventually": "always", "for": "within", "within": "for",
            "until": "before", "before": "until", "never": "eventually",
        }.get(timing, timing) if timing != "never" else "sometime"  # fmt: skip
    rest, soon = p[t : end + 1], p[t : min(t + n, end) + 1]
    if timing == "after":
        if only:
            none = not any(p[t : min(t + n + 1, end) + 1])
            return any(soon) or end < t + n or none
        return not any(soon) and (t + n + 1 > end or p[t + n + 1])
    stopped = next((i for i in range(t, end + 1) if s[i]), None)
    return {
        "immediately": p[t],
        "next": t == end or p[min(t + 1, end)],
        "always": all(rest),
        "never": not any(rest),
        "sometime": not all(rest),  # the response, negated above, is false at some moment
        "eventually": any(rest),
        "finally": p[end],
        "for": all(soon),
        "within": any(soon) or end < t + n,
        "until": all(p[t : end + 1 if stopped is None else stopped]),
        "before": stopped is None or any(p[t:stopped]),
    }[timing]


_TOKEN = re.compile(r"\s*(\$\w+\$|[A-Z][A-Za-z]*_\$\w+\$|[A-Z]+|->|[()!&|]|\[[^\]]*\])")
_NAMES = {"$scope_mode$": 0, "$regular_condition$": 1, "$post_condition$": 2, "$stop_condition$": 3}


class Templates:
    """FRET's finite-trace templates on all traces at once.

    Parameters
    ----------
    letters : ndarray of bool, shape (traces, moments, 4)
        The values of `ATOMS`.
    """

    def __init__(self, letters: np.ndarray, n: int) -> None:
        self.letters = letters
        self.n = n
        self.moments = letters.shape[1]

    def value(self, text: str) -> np.ndarray:
        """Return the truth of a template at the first moment, shape (traces,)."""
        self.tokens = _TOKEN.findall(text)
        assert "".join(self.tokens) == re.sub(r"\s", "", text), text
        self.at = 0
        result = self._infix()
        assert self.at == len(self.tokens)
        return result[:, 0]

    def _infix(self) -> np.ndarray:
        left = self._prefix()
        while self.at < len(self.tokens) and self.tokens[self.at] in ("&", "|", "->", "U", "V"):
            word = self.tokens[self.at]
            self.at += 1
            bound = self._bound()
            assert bound is None
            left = self._joined(word, left, self._prefix())
        return left

    def _bound(self) -> range | None:
        if self.at < len(self.tokens) and self.tokens[self.at].startswith("["):
            sign, number, more = re.fullmatch(
                r"\[(<=|<|=)(\$duration\$|\d+)(\+1)?\]", self.tokens[self.at]
            ).groups()  # type: ignore[union-attr]
            self.at += 1
            value = (self.n if number.startswith("$") else int(number)) + bool(more)
            return {"<=": range(value + 1), "<": range(value), "=": range(value, value + 1)}[sign]
        return None

    def _prefix(self) -> np.ndarray:
        token = self.tokens[self.at]
        self.at += 1
        if token == "(":
            inner = self._infix()
            assert self.tokens[self.at] == ")"
            self.at += 1
            return inner
        if token == "!":
            return ~self._prefix()
        if token == "LAST":
            last = np.zeros(self.letters.shape[:2], bool)
            last[:, -1] = True
            return last
        if token == "X":
            return self._later(self._prefix(), 1, beyond=False)
        if token in ("F", "G"):
            window = self._bound()
            inner = self._prefix()
            steps = range(self.moments) if window is None else window
            shifted = [self._later(inner, k, beyond=token == "G") for k in steps]
            join = np.logical_or if token == "F" else np.logical_and
            return join.reduce(shifted, axis=0) if shifted else np.full(inner.shape, token == "G")
        if token in _NAMES:
            return self.letters[:, :, _NAMES[token]]
        return self._endpoint(token)

    def _endpoint(self, token: str) -> np.ndarray:
        """Return FRET's names for ends of intervals, for formulas about the future."""
        m = self.letters[:, :, 0]
        last = np.zeros(m.shape, bool)
        last[:, -1] = True
        after = self._later(m, 1, beyond=False)
        return {
            "Fin": ~m & after, "Lin": m & ~after & ~last,
            "FNin": m & ~after & ~last, "LNin": ~m & after,
            "FFin": ~m & after, "FLin": m & ~after & ~last,
        }[token.partition("_")[0]]  # fmt: skip

    def _later(self, value: np.ndarray, steps: int, *, beyond: bool) -> np.ndarray:
        result = np.full(value.shape, beyond)
        if steps < self.moments:
            result[:, : self.moments - steps] = value[:, steps:]
        return result

    def _joined(self, word: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if word in ("&", "|", "->"):
            return {"&": x & y, "|": x | y, "->": ~x | y}[word]
        result = y.copy()
        for i in range(self.moments - 2, -1, -1):
            later = result[:, i + 1]
            result[:, i] = (
                y[:, i] | (x[:, i] & later) if word == "U" else y[:, i] & (x[:, i] | later)
            )
        return result
