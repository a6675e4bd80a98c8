"""Colours and axes that all pictures share; told apart by those who do not see red or green."""

from __future__ import annotations

from typing import Any

COLOURS = {
    "ink": "#1f2733",
    "muted": "#8792a2",
    "grid": "#edf0f4",
    "risk": "#0b5cad",
    "bounds": "rgba(11, 92, 173, 0.16)",
    "warn": "#c98a00",
    "warn_fill": "rgba(240, 178, 40, 0.24)",
    "act": "#b3261e",
    "act_fill": "rgba(214, 69, 56, 0.20)",
    "violation": "#7a0c3a",
    "lead": "#0f8a6d",
    "signal": "#46566b",
    "lane": "#f1f4f8",
    "holds": "#5b8fc9",
    "unknown": "#e8d3b0",
}
SERIES = ("#0b5cad", "#c2410c", "#0f8a6d", "#7c3aed", "#a16207", "#be185d", "#0e7490", "#4d7c0f")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def axis(**settings: Any) -> dict[str, Any]:
    """Return an axis in the common style."""
    return {
        "gridcolor": COLOURS["grid"],
        "zeroline": False,
        "linecolor": COLOURS["muted"],
        "tickfont": {"size": 11},
        "automargin": True,
        **settings,
    }


def base_layout(height: int, top: int, bottom: int) -> dict[str, Any]:
    """Return a layout in the common style."""
    return {
        "height": height,
        "margin": {"l": 110, "r": 24, "t": top, "b": bottom},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"family": FONT, "size": 12, "color": COLOURS["ink"]},
        "hoverlabel": {"font": {"family": FONT, "size": 12}},
        "showlegend": False,
    }
