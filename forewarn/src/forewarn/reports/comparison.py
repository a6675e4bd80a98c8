"""The page of ``forewarn compare --plot``: precision and recall of contenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forewarn.assessment.comparison import Contender
from forewarn.assessment.ranking import precision_recall
from forewarn.reports.page import assembled, label, part, plot
from forewarn.reports.palette import SERIES, axis, base_layout

LEAD = (
    "Of the moments before a violation, the share with a warning (recall), and the share of "
    "warnings that are right (precision). A curve further up and to the right is better."
)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Curves differ in dashes as well as in colour."""


def comparison_page(curves: Mapping[str, Sequence[Contender]]) -> str:
    """Return a page with the curves of each property, all judged by the same violations."""
    parts = []
    for number, (name, contenders) in enumerate(curves.items()):
        body = plot(f"curves{number}", _figure(contenders))
        parts.append(part(f"compare{number}", name, name, LEAD, body))
    names = dict.fromkeys(each.name for contenders in curves.values() for each in contenders)
    return assembled("Precision and recall", ", ".join(names), parts)


def _figure(contenders: Sequence[Contender]) -> dict[str, Any]:
    data = []
    for place, contender in enumerate(contenders):
        found = precision_recall(contender.runs, contender.rule.out_of_model)
        colour, dash = SERIES[place % len(SERIES)], DASHES[place % len(DASHES)]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label(contender.name),
                # From recall 0 on, and the precision of a step up to its recall: the area is the
                # one that is printed.
                "x": [0.0, *map(float, found.recall)],
                "y": [float(each) for each in (*found.precision[:1], *found.precision)],
                "line": {"shape": "vh", "color": colour, "dash": dash, "width": 1.8},
                "hovertemplate": "recall %{x:.0%}, precision %{y:.0%}",
            }
        )
    layout = base_layout(440, 30, 100)
    layout["xaxis"] = axis(title={"text": "recall"}, range=[0, 1.01], tickformat=".0%")
    layout["yaxis"] = axis(title={"text": "precision"}, range=[0, 1.02], tickformat=".0%")
    layout |= {"showlegend": True, "hovermode": "closest"}
    layout["legend"] = {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"}
    return {"data": data, "layout": layout}
