"""A small graph as SVG: states in columns, by how many steps they are from where runs begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from forewarn.reports.figures import percent
from forewarn.reports.page import escape
from forewarn.reports.palette import risk_colour

MOST_DRAWN = 14
BOX, HEIGHT, ACROSS, DOWN, EDGE = 150, 56, 250, 92, 20
MAX_LETTERS = 21
ROWS = 5
HEAD = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0,0 L8,4 L0,8 z"/></marker>'
    '<marker id="tip-chosen" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'markerUnits="userSpaceOnUse" orient="auto"><path class="tip chosen" d="M0,0 L8,4 L0,8 z"/>'
    "</marker></defs>"
)


class Node(NamedTuple):
    """A box: name, value that colours its edge, further lines, and runs that begin there."""

    name: str
    value: float
    lines: tuple[str, ...]
    starts: int = 0


class Arrow(NamedTuple):
    """A way from one box to another, with its share of all that leaves the first.

    Attributes
    ----------
    text : str
        Which actions lead there.
    chosen : bool
        One of them is the policy's.
    """

    source: str
    target: str
    share: float
    text: str
    chosen: bool


Places = dict[str, tuple[float, float]]


def drawing(nodes: Sequence[Node], arrows: Sequence[Arrow], title: str) -> str:
    """Return the graph as HTML that scrolls where it is too large."""
    places = _places(nodes, arrows)
    width = max(x for x, _ in places.values()) + BOX + EDGE
    height = max(y for _, y in places.values()) + HEIGHT + 2 * EDGE
    # What is chosen is drawn last, above the rest.
    lines = [_arrow(arrow, places) for arrow in sorted(arrows, key=lambda one: one.chosen)]
    boxes = [_box(node, *places[node.name]) for node in nodes]
    return (
        f'<div class="tree graph"><svg role="img" aria-label="{escape(title)}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{HEAD}'
        f"{''.join(lines)}{''.join(boxes)}</svg></div>"
    )


def _places(nodes: Sequence[Node], arrows: Sequence[Arrow]) -> Places:
    columns = _columns(nodes, arrows)
    into: dict[str, list[str]] = defaultdict(list)
    for arrow in arrows:
        into[arrow.target].append(arrow.source)
    places: Places = {}
    for number, column in enumerate(columns):

        def middle(name: str) -> float:
            found = [places[source][1] for source in into[name] if source in places]
            return sum(found) / len(found) if found else 0.0

        for row, name in enumerate(sorted(column, key=middle)):
            # Every other column lies lower, so that arrows between others pass beside boxes.
            y = EDGE + DOWN * row + (DOWN / 2 if number % 2 else 0)
            places[name] = (EDGE + ACROSS * number, y)
    return places


def _columns(nodes: Sequence[Node], arrows: Sequence[Arrow]) -> list[list[str]]:
    """Return the names by their distance from the first ones, at most ROWS in a column.

    Those that nothing leaves come last.
    """
    onward: dict[str, list[str]] = defaultdict(list)
    for arrow in sorted(arrows, key=lambda one: -one.share):
        onward[arrow.source].append(arrow.target)
    ends = [node.name for node in nodes if node.name not in onward and not node.starts]
    left = [node.name for node in nodes if node.name not in ends]
    begin = [node.name for node in nodes if node.starts] or left[:1]
    columns: list[list[str]] = []
    while left:
        here = [name for name in begin if name in left] or left[:1]
        left = [name for name in left if name not in here]
        columns += [here[i : i + ROWS] for i in range(0, len(here), ROWS)]
        begin = list(dict.fromkeys(target for name in here for target in onward[name]))
    return [*columns, *(ends[i : i + ROWS] for i in range(0, len(ends), ROWS))]


def _arrow(arrow: Arrow, places: Places) -> str:
    (x1, y1), (x2, y2) = places[arrow.source], places[arrow.target]
    if x2 > x1:
        path, x, y = _forward(x1 + BOX, y1 + HEIGHT / 2, x2, y2 + HEIGHT / 2)
    elif x2 == x1:
        path, x, y = _beside(x1 + BOX, y1 + HEIGHT / 2, y2 + HEIGHT / 2)
    else:
        path, x, y = _back(x1 + BOX / 2, y1 + HEIGHT, x2 + BOX / 2, y2 + HEIGHT)
    kind, tip = (" chosen", "tip-chosen") if arrow.chosen else ("", "tip")
    tooltip = f"{arrow.source} to {arrow.target}: {percent(arrow.share)} ({arrow.text})"
    return (
        f'<g class="arrow{kind}"><title>{escape(tooltip)}</title><path class="edge" d="{path}" '
        f'stroke-width="{1 + 3 * arrow.share:.1f}" marker-end="url(#{tip})"/>'
        f'<text class="soft halo" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">'
        f"{percent(arrow.share)}</text></g>"
    )


Curve = tuple[str, float, float]
"""The path, and where its label stands."""


def _forward(x1: float, y1: float, x2: float, y2: float) -> Curve:
    bend = (x2 - x1) / 2
    path = (
        f"M{x1:.1f},{y1:.1f} C{x1 + bend:.1f},{y1:.1f} {x2 - bend:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    )
    # The label is nearer to where the arrow comes from: there fewer of them meet.
    at = 0.3 * min(ACROSS / (x2 - x1), 1.0)
    x = x1 + (x2 - x1) * (1.5 * at * (1 - at) + at**3)
    y = y1 + (y2 - y1) * (3 * at**2 - 2 * at**3)
    return path, x, y - 4


def _beside(x: float, y1: float, y2: float) -> Curve:
    far = 20 + 14 * abs(y2 - y1) / DOWN
    out = x + far
    path = f"M{x:.1f},{y1:.1f} C{out:.1f},{y1:.1f} {out:.1f},{y2:.1f} {x:.1f},{y2:.1f}"
    return path, x + 0.75 * far, (y1 + y2) / 2 + (5 if y2 > y1 else -9)


def _back(x1: float, y1: float, x2: float, y2: float) -> Curve:
    low = max(y1, y2) + 22
    path = f"M{x1:.1f},{y1:.1f} C{x1:.1f},{low:.1f} {x2:.1f},{low:.1f} {x2:.1f},{y2:.1f}"
    return path, (x1 + x2) / 2, (y1 + y2) / 8 + low * 0.75 - 3


def _box(node: Node, x: float, y: float) -> str:
    lines = "".join(
        f'<text class="soft" x="{x + 13:.1f}" y="{y + 34 + 15 * i:.1f}">{escape(line)}</text>'
        for i, line in enumerate(node.lines)
    )
    begins = f", {node.starts:,} runs begin here" if node.starts else ""
    tooltip = f"{node.name}: {', '.join(node.lines)}{begins}"
    short = node.name
    if len(short) > MAX_LETTERS:
        short = f"{short[: MAX_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    start = " start" if node.starts else ""
    return (
        f"<g><title>{escape(tooltip)}</title>"
        f'<rect class="box{start}" x="{x:.1f}" y="{y:.1f}" width="{BOX}" height="{HEIGHT}" rx="5"/>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="6" height="{HEIGHT}" rx="3" '
        f'fill="{risk_colour(node.value)}"/>'
        f'<text class="strong" x="{x + 13:.1f}" y="{y + 18:.1f}">{escape(short)}</text>{lines}</g>'
    )
