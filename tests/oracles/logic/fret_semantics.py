"""What a requirement of FRET's language means on a finite trace, from the words of its publication.

Nothing is shared with the translation.
"""

from __future__ import annotations

from typing import NamedTuple

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
