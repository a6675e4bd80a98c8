"""Colours and axes that all pictures share; colour-blind readers can distinguish them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

COLOURS = {
    "paper": "#ffffff",
    "ink": "#1f2733",
    "muted": "#7d899a",
    "grid": "#e9edf2",
    "risk": "#0b5cad",
    "bounds": "rgba(11, 92, 173, 0.17)",
    "warn": "#a86f00",
    "warn_fill": "rgba(240, 178, 40, 0.26)",
    "act": "#b3261e",
    "act_fill": "rgba(214, 69, 56, 0.22)",
    "violation": "#7a0c3a",
    "lead": "#0f8a6d",
    "signal": "#46566b",
    "lane": "#eef2f6",
    "holds": "#5b8fc9",
    "unknown": "#dfc08a",
    "out_of_model": "#8e5bb5",
    "inactive": "#a9b3c0",
    "covered": "#5b8fc9",
    "uncovered": "#d9822b",
}
DARK = {
    "paper": "#18202c",
    "ink": "#e6ebf2",
    "muted": "#8d9aac",
    "grid": "#2a3444",
    "risk": "#6db0f2",
    "bounds": "rgba(109, 176, 242, 0.24)",
    "warn": "#f0b93f",
    "warn_fill": "rgba(240, 178, 40, 0.24)",
    "act": "#ff8a7e",
    "act_fill": "rgba(240, 90, 75, 0.30)",
    "violation": "#ff7bb0",
    "lead": "#4fd1ab",
    "signal": "#b4c2d4",
    "lane": "#212b39",
    "holds": "#4f8bcb",
    "unknown": "#8f7440",
    "out_of_model": "#b98be0",
    "inactive": "#56627a",
    "covered": "#4f8bcb",
    "uncovered": "#e79a4a",
}
SERIES = ("#0b5cad", "#c2410c", "#0f8a6d", "#7c3aed", "#a16207", "#be185d", "#0e7490", "#4d7c0f")
DARK_SERIES = (
    "#6db0f2", "#f08a55", "#4fd1ab", "#a98bf0", "#d9b04a", "#f07bb3", "#5cc3d9", "#a3d05f",
)  # fmt: skip
SYMBOLS = ("circle", "square", "triangle-up", "cross", "pentagon", "star", "hexagon", "bowtie")
"""Series differ in shape as well as in colour."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


CLEAR = "rgba(0, 0, 0, 0)"


def theme() -> dict[str, Any]:
    """Return what the page's script needs: colours, their counterparts in the dark, the style."""
    layout = base_layout(0, 0, 0)
    return {
        "colours": COLOURS,
        "dark": {
            **dict(zip(SERIES, DARK_SERIES, strict=True)),
            **{colour: DARK[name] for name, colour in COLOURS.items()},
        },
        "axis": axis(),
        "layout": {key: layout[key] for key in layout if key not in ("height", "margin")},
    }


def style() -> str:
    """Return the colours as variables of CSS: ``--c-risk``, ``--c-series0`` and so on."""

    def variables(colours: dict[str, str], series: tuple[str, ...]) -> str:
        named = {**colours, **{f"series{i}": colour for i, colour in enumerate(series)}}
        return "".join(f"--c-{name}:{colour};" for name, colour in named.items())

    return (
        f":root{{{variables(COLOURS, SERIES)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK, DARK_SERIES)}}}}}\n"
    )


def axis(**settings: Any) -> dict[str, Any]:
    """Return an axis in the common style."""
    return {
        "gridcolor": COLOURS["grid"],
        "zeroline": False,
        "linecolor": COLOURS["muted"],
        "tickcolor": COLOURS["muted"],
        "tickfont": {"size": 11, "color": COLOURS["ink"]},
        "automargin": True,
        **settings,
    }


def base_layout(height: int, top: int, bottom: int) -> dict[str, Any]:
    """Return a layout in the common style."""
    return {
        "height": height,
        "margin": {"l": 72, "r": 20, "t": top, "b": bottom},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 12, "color": COLOURS["ink"]},
        "modebar": {"bgcolor": CLEAR, "color": COLOURS["muted"], "activecolor": COLOURS["risk"]},
        "hoverlabel": {"font": {"family": FONT, "size": 12}},
        "showlegend": False,
    }


RISK_SCALE = ((0.0, (11, 92, 173)), (0.45, (224, 160, 32)), (1.0, (179, 38, 30)))
"""From safe to violated; blue, ochre and dark red differ in lightness as well."""


def risk_colour(risk: float) -> str:
    """Return the colour of a risk in [0, 1], grey if there is none; small risks are spread."""
    if risk != risk:
        return COLOURS["inactive"]
    place = min(max(risk, 0.0), 1.0) ** 0.5
    for (low, before), (high, after) in pairwise(RISK_SCALE):
        if place <= high:
            share = (place - low) / (high - low)
            mixed = (round(a + share * (b - a)) for a, b in zip(before, after, strict=True))
            return "#" + "".join(f"{part:02x}" for part in mixed)
    return COLOURS["act"]
