"""The study's plot, as SVG text: width of the bounds against the number of transitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log10

from evaluation.svg import side_by_side

PANEL, HEIGHT, MARGIN = 240, 220, 46
COLOURS = {"credible": "#1f77b4", "sound": "#d62728"}
Row = dict[str, "float | int | str"]


def plot_widths(rows: Sequence[Row]) -> str:
    """Return one panel for each horizon, with a line for each kind of bound."""
    horizons = sorted({int(row["horizon"]) for row in rows})
    panels = [
        partial(_panel, [row for row in rows if row["horizon"] == horizon], horizon)
        for horizon in horizons
    ]
    return side_by_side(panels, PANEL, HEIGHT, MARGIN)


def _panel(rows: Sequence[Row], horizon: int, left: int) -> list[str]:
    counts = sorted({int(row["transitions"]) for row in rows})
    low, high = log10(counts[0]), log10(counts[-1])

    def x(transitions: float) -> float:
        return left + PANEL * (log10(transitions) - low) / (high - low)

    def y(value: float) -> float:
        return MARGIN + HEIGHT * (1 - value)

    parts = [
        f'<text x="{left + PANEL / 2}" y="24" text-anchor="middle">horizon {horizon} steps</text>',
        f'<rect x="{left}" y="{MARGIN}" width="{PANEL}" height="{HEIGHT}" fill="none" '
        'stroke="#888"/>',
        f'<text x="{left + PANEL / 2}" y="{HEIGHT + MARGIN + 36}" text-anchor="middle">'
        "transitions learned from</text>",
    ]
    parts.extend(
        f'<text x="{left - 4}" y="{y(value) + 4:.0f}" text-anchor="end">{value}</text>'
        for value in (0, 0.25, 0.5, 0.75, 1)
    )
    below = HEIGHT + MARGIN + 18
    parts.extend(
        f'<text x="{x(count):.0f}" y="{below}" text-anchor="middle">{count:,}</text>'
        for count in counts
    )
    for k, (kind, colour) in enumerate(COLOURS.items()):
        line = sorted(
            (int(row["transitions"]), float(row["width"])) for row in rows if row["kind"] == kind
        )
        points = " ".join(f"{x(count):.1f},{y(value):.1f}" for count, value in line)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{left + PANEL - 6}" y="{MARGIN + 18 + 16 * k}" text-anchor="end" '
            f'fill="{colour}">{kind}: mean width</text>'
        )
    return parts
