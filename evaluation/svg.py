"""Plots as SVG text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def side_by_side(
    panels: Sequence[Callable[[int], Iterable[str]]], width: int, height: int, margin: int
) -> str:
    """Return a drawing of panels of one size; each is told its left edge, the top is `margin`."""
    whole = margin + len(panels) * (width + margin)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{height + 2 * margin}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for place, panel in enumerate(panels):
        parts.extend(panel(margin + place * (width + margin)))
    return "\n".join([*parts, "</svg>\n"])
