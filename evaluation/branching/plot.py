"""The study's plot, as SVG text: measured frequency against predicted risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from evaluation.svg import side_by_side

SIDE, MARGIN = 380, 56
COLOURS = {"red_light": "#b3261e", "collision": "#0b5cad"}
TITLES = {"red_light": "red_light within 5 s", "collision": "collision within 2 s"}


def plot_frequencies(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return one panel for each property; a dot is a moment, a cross a product state.

    A cross has the predicted bounds across, and those of the recorded share upright.
    """
    panels = [
        partial(_panel, [row for row in rows if row["property"] == name], name) for name in TITLES
    ]
    return side_by_side(panels, SIDE, SIDE, MARGIN)


def _panel(rows: Sequence[Mapping[str, Any]], name: str, left: int) -> list[str]:
    def x(value: float) -> float:
        return left + SIDE * value

    def y(value: float) -> float:
        return MARGIN + SIDE * (1 - value)

    colour = COLOURS[name]
    parts = [
        f'<text x="{x(0.5):.0f}" y="20" text-anchor="middle">{TITLES[name]}</text>',
        f'<text x="{x(0.5):.0f}" y="38" text-anchor="middle" fill="#7d899a">'
        "dots: futures of single moments; crosses: product states as recorded, 95 %</text>",
        f'<rect x="{left}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>',
        f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" stroke="#bbb"/>',
        f'<text x="{x(0.5):.0f}" y="{y(0) + 36:.0f}" text-anchor="middle">predicted risk</text>',
        f'<text x="{left - 36}" y="{y(0.5):.0f}" text-anchor="middle" '
        f'transform="rotate(-90 {left - 36} {y(0.5):.0f})">share with a violation</text>',
    ]
    parts += [
        f'<text x="{left - 5}" y="{y(mark) + 4:.0f}" text-anchor="end">{mark}</text>'
        f'<text x="{x(mark):.0f}" y="{y(0) + 17:.0f}" text-anchor="middle">{mark}</text>'
        for mark in (0, 0.25, 0.5, 0.75, 1)
    ]
    for row in rows:
        at = x(row["risk"])
        parts += [
            f'<circle cx="{at:.1f}" cy="{y(frequency):.1f}" r="3.5" fill="{colour}" opacity="0.3"/>'
            for frequency in row["frequencies"]
        ]
        recorded = row["recorded"]
        if recorded is None:
            continue
        parts.append(
            f'<line x1="{at:.1f}" y1="{y(recorded["low"]):.1f}" x2="{at:.1f}" '
            f'y2="{y(recorded["high"]):.1f}" stroke="{colour}" stroke-width="2"/>'
            f'<line x1="{x(row["lower"]):.1f}" y1="{y(recorded["share"]):.1f}" '
            f'x2="{x(row["upper"]):.1f}" y2="{y(recorded["share"]):.1f}" stroke="{colour}" '
            'stroke-width="2"/>'
        )
    return parts
