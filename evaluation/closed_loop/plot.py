"""The trade-off, as SVG text: violations against time lost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from evaluation.svg import side_by_side

WIDTH, HEIGHT, MARGIN = 380, 300, 56
PANELS = (
    ("red_lights_per_km", "red lights run per km"),
    ("collisions_per_km", "collisions per km"),
)
FAMILIES = {"Forewarn": "#0b5cad", "physical": "#b3261e"}
OTHER = "#46566b"


def plot_trade_off(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one panel for each kind of violation; thresholds of one family are joined."""
    panels = [partial(_panel, rows, figure, title) for figure, title in PANELS]
    return side_by_side(panels, WIDTH, HEIGHT, MARGIN)


def _panel(rows: Mapping[str, Mapping[str, Any]], figure: str, title: str, left: int) -> list[str]:
    points = {
        arm: (row["seconds_per_km"]["difference"], row[figure]["value"])
        for arm, row in rows.items()
    }
    low = min(0.0, *(x for x, _ in points.values()))
    right = max(x for x, _ in points.values()) or 1.0
    top = max(y for _, y in points.values()) * 1.08 or 1.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x, y = point
        return left + WIDTH * (x - low) / (right - low), MARGIN + HEIGHT * (1 - y / top)

    parts = [
        f'<text x="{left + WIDTH / 2}" y="24" text-anchor="middle">{title}</text>',
        f'<rect x="{left}" y="{MARGIN}" width="{WIDTH}" height="{HEIGHT}" fill="none" '
        'stroke="#888"/>',
        f'<text x="{left + WIDTH / 2}" y="{MARGIN + HEIGHT + 36}" text-anchor="middle">'
        "time lost against nobody, seconds per km</text>",
    ]
    for share in (0, 0.5, 1):
        x, y = low + share * (right - low), share * top
        parts.append(
            f'<text x="{place((x, 0))[0]:.0f}" y="{MARGIN + HEIGHT + 17}" text-anchor="middle">'
            f"{x:.0f}</text>"
            f'<text x="{left - 5}" y="{place((low, y))[1] + 4:.0f}" text-anchor="end">'
            f"{y:.2f}</text>"
        )
    for family, colour in FAMILIES.items():
        members = sorted(
            (place(at) for arm, at in points.items() if arm.startswith(family) and " at " in arm)
            if family == "Forewarn"
            else (
                place(at)
                for arm, at in points.items()
                if arm.startswith(family) and "adapted" not in arm
            )
        )
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in members)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" opacity="0.5"/>')
    for arm, at in points.items():
        x, y = place(at)
        colour = next((c for family, c in FAMILIES.items() if arm.startswith(family)), OTHER)
        anchor, shift = ("end", -6) if x > left + 0.6 * WIDTH else ("start", 6)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
            f'<text x="{x + shift:.1f}" y="{y - 5:.1f}" text-anchor="{anchor}" font-size="10" '
            f'fill="{colour}">{arm}</text>'
        )
    return parts
