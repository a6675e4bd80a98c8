"""Pictures as SVG text: panels side by side, each with its axes, points and lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

MARGIN = 56


@dataclass
class Panel:
    """A panel: what it and its axes are called, where these begin and end, and what is drawn."""

    title: str
    across: str
    upright: str
    xs: tuple[float, float]
    ys: tuple[float, float]
    left: int = 0
    width: int = 380
    height: int = 300
    parts: list[str] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Return where a value lies across."""
        return self.left + self.width * (value - self.xs[0]) / (self.xs[1] - self.xs[0])

    def y(self, value: float) -> float:
        """Return where a value lies upright."""
        return MARGIN + self.height * (1 - (value - self.ys[0]) / (self.ys[1] - self.ys[0]))

    def text(self, x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> None:
        """Write something at a place of the drawing."""
        self.parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{more}>{text}</text>'
        )

    def dot(self, x: float, y: float, colour: str, more: str = 'r="4"') -> None:
        """Draw a point at values."""
        at = f'cx="{self.x(x):.1f}" cy="{self.y(y):.1f}"'
        self.parts.append(f'<circle {at} fill="{colour}" {more}/>')

    def line(self, points: Iterable[tuple[float, float]], colour: str, more: str = "") -> None:
        """Draw a line through values."""
        through = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{through}" fill="none" stroke="{colour}" {more}/>')

    def frame(self, marks: Sequence[float], form: Callable[[float], str]) -> None:
        """Draw the axes, with marks at these shares of both."""
        foot, middle = MARGIN + self.height, MARGIN + self.height / 2
        size = f'width="{self.width}" height="{self.height}"'
        self.parts.append(f'<rect x="{self.left}" y="{MARGIN}" {size} fill="none" stroke="#888"/>')
        self.text(self.left + self.width / 2, 20, self.title)
        self.text(self.left + self.width / 2, foot + 36, self.across)
        turned = f' transform="rotate(-90 {self.left - 36} {middle:.0f})"'
        self.text(self.left - 36, middle, self.upright, more=turned)
        for share in marks:
            (x0, x1), (y0, y1) = self.xs, self.ys
            x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
            self.text(self.x(x), foot + 17, form(x))
            self.text(self.left - 5, self.y(y) + 4, form(y), "end")


def drawing(panels: Sequence[Panel], draw: Callable[[Panel], None]) -> str:
    """Return panels side by side; `draw` fills each once it has its place."""
    left = MARGIN
    parts = ['<rect width="100%" height="100%" fill="white"/>']
    for panel in panels:
        panel.left = left
        draw(panel)
        parts += panel.parts
        left += panel.width + MARGIN
    height = 2 * MARGIN + max(panel.height for panel in panels)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" '
    return "\n".join([f'{head}font-family="sans-serif" font-size="12">', *parts, "</svg>\n"])
