"""The reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forewarn.assessment.reliability import Calibration
from forewarn.reports.page import label
from forewarn.reports.palette import COLOURS, SERIES, SYMBOLS, axis, base_layout

Figure = dict[str, Any]


def reliability(found: Sequence[tuple[str, Calibration]], noun: str) -> Figure:
    """Return the reliability diagram: observed against predicted frequency, and how many ticks.

    `noun` is what the clock counts: ``tick`` or ``step``.
    """
    layout = base_layout(470, 30, 92)
    layout["xaxis"] = axis(
        range=[-0.02, 1.02], title={"text": "predicted risk"}, anchor="y2", constrain="domain"
    )
    layout["yaxis"] = axis(
        range=[-0.02, 1.02], title={"text": "share followed by a violation"}, domain=[0.3, 1]
    )
    layout["yaxis2"] = axis(type="log", domain=[0, 0.2], title={"text": f"{noun}s"}, nticks=4)
    layout["showlegend"] = True
    layout["legend"] = {"orientation": "h", "y": -0.16, "yanchor": "top"}
    layout["barmode"] = "group"
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [0, 1],
            "y": [0, 1],
            "line": {"color": COLOURS["muted"], "dash": "dot", "width": 1},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]
    for index, (name, calibration) in enumerate(found):
        colour, symbol = SERIES[index % len(SERIES)], SYMBOLS[index % len(SYMBOLS)]
        data += _traces(label(name), calibration, colour, symbol, noun)
    return {"data": data, "layout": layout}


def _traces(
    name: str, found: Calibration, colour: str, symbol: str, noun: str
) -> list[dict[str, Any]]:
    bins = found.bins
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [round(bucket.predicted, 5) for bucket in bins],
            "y": [round(bucket.observed, 5) for bucket in bins],
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [round(bucket.observed_high - bucket.observed, 5) for bucket in bins],
                "arrayminus": [round(bucket.observed - bucket.observed_low, 5) for bucket in bins],
                "thickness": 1,
                "width": 3,
            },
            "line": {"color": colour, "width": 1.5},
            "marker": {"size": 8, "symbol": symbol},
            "text": [f"{bucket.ticks} {noun}s" for bucket in bins],
            "hovertemplate": "predicted %{x:.3f}, observed %{y:.3f}, %{text}",
        },
        {
            "type": "bar",
            "name": name,
            "x": [(bucket.low + bucket.high) / 2 for bucket in bins],
            "y": [bucket.ticks for bucket in bins],
            "yaxis": "y2",
            "marker": {"color": colour, "opacity": 0.55},
            "showlegend": False,
            "hovertemplate": f"%{{y}} {noun}s",
        },
    ]
