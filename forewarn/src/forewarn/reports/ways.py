"""Ways to a goal, with what runs say of them, and the part of a process that suffices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forewarn.checking.critical import CriticalPart
from forewarn.reports.figures import percent
from forewarn.reports.page import absent, escape

MOST_STATES = 60


class ShownWay(NamedTuple):
    """A path to the goal.

    Attributes
    ----------
    path : tuple of str
        States and actions in turn.
    seen : int
        How many of its states, from the beginning, recordings bear out.
    remark : str
        What they say of it.
    """

    path: tuple[str, ...]
    probability: float
    seen: int
    remark: str


def ways_body(ways: Sequence[ShownWay], critical: CriticalPart | None) -> str:
    """Return the counterexamples: paths with what runs say of them, and the part that suffices."""
    if not ways:
        return absent("No way to the goal is known.")
    body = "".join(
        f"<div class=path>{_way_text(way)}{path_body(way.path, way.seen)}</div>" for way in ways
    )
    return body + (_critical(critical) if critical is not None else "")


def _way_text(way: ShownWay) -> str:
    kind = "bad" if way.seen == len(way.path[::2]) else "good"
    return (
        f"<span class=tag>{percent(way.probability, 3)}</span> "
        f'<span class="tag {kind}">{escape(way.remark)}</span><br>'
    )


def path_body(path: Sequence[str], seen: int) -> str:
    """Return a path, of which so many states were seen."""
    parts = []
    for i, text in enumerate(path):
        if i % 2:
            parts.append(f"<i>{escape(text) if text else ''} \N{RIGHTWARDS ARROW}</i>")
        else:
            parts.append(f"<b{'' if i // 2 < seen else ' class=unseen'}>{escape(text)}</b>")
    return "".join(parts)


def _critical(part: CriticalPart) -> str:
    size = "the smallest" if part.minimal else f"at least {part.at_least:,} are needed"
    shown = ", ".join(map(escape, part.states[:MOST_STATES]))
    rest = len(part.states) - MOST_STATES
    return (
        "<h3>The part that breaks the bound</h3><p class=lead>"
        f"{len(part.states):,} states ({size}) reach the goal with a probability of "
        f"{part.probability:.4g} if all else is taken away; the bound is {part.bound:g} "
        f"({escape(part.method)}).</p>"
        f"<p class=path>{shown}{f' and {rest:,} more' if rest > 0 else ''}</p>"
    )
