"""What a refinement did: its rounds, the counterexamples, and the part that breaks the bound."""

from __future__ import annotations

import math
from typing import Any

from forewarn.cli.editing import shortened
from forewarn.registry import part
from forewarn.reports.page import absent, escape, plot, table
from forewarn.reports.palette import COLOURS, SERIES, axis, base_layout
from forewarn.reports.ways import ShownWay, path_body
from forewarn.wings.trees.refined import GoalEstimate, Refined, Way

FIGURES = "What each split did to the bound"


def rounds_body(query: str, refined: Refined) -> str:
    """Return every round: what was split, why, and what it did."""
    lead = '<p class="lead">Loss is that of the next action in held-out runs.</p>'
    rejected = "".join(
        f"<li>{escape(leaf)} by <code>{escape(shortened(condition))}</code></li>"
        for leaf, condition in refined.rejected
    )
    return (
        (lead + _rounds(refined) if refined.rounds else absent("No leaf was split."))
        + (plot("rounds-plot", _progress(query, refined)) if refined.rounds else "")
        + (
            "<h3>Splits that were tried and not made</h3>"
            f"<p class=lead>Held-out runs are predicted no better by them.</p><ul>{rejected}</ul>"
            if rejected
            else ""
        )
    )


def _rounds(refined: Refined) -> str:
    rows = [
        [
            str(number),
            escape(one.leaf),
            f"<code>{escape(shortened(one.condition))}</code>",
            f"{one.gain:.3f}",
            f"{one.lost:.3g}",
            f"<span class=path>{path_body(one.path, len(one.path))}</span>" if one.path else "-",
            f"{one.before.leaves} to {one.after.leaves}",
            _change(one.before, one.after),
            f"{_loss(one.before)}<br>to {_loss(one.after)}",
        ]
        for number, one in enumerate(refined.rounds, 1)
    ]
    columns = (
        ">round", "leaf", "was split by", ">gain (bits)", ">promised, not shown",
        "likeliest way through it", ">leaves", ">estimate and bounds", ">loss (bits)",
    )  # fmt: skip
    return table(columns, rows, long="likeliest way through it")


def _change(before: GoalEstimate, after: GoalEstimate) -> str:
    return f"{_bounded(before)}<br>to {_bounded(after)}"


def _bounded(answer: GoalEstimate) -> str:
    return f"{answer.estimate:.3g} [{answer.lower:.3g}, {answer.upper:.3g}]"


def _loss(answer: GoalEstimate) -> str:
    return f"{answer.loss:.3f}" if math.isfinite(answer.loss) else "-"


def _progress(query: str, refined: Refined) -> dict[str, Any]:
    """Return estimate with its bounds over the rounds, and below it the loss."""
    answers = [*(one.before for one in refined.rounds), refined.answer]
    rounds = list(range(len(answers)))
    asked = part("decisions", "process_query", "a refinement").parse_process_query(query)
    layout = base_layout(420, 16, 100)
    layout["xaxis"] = axis(title={"text": "splits"}, dtick=max(1, len(rounds) // 12), anchor="y2")
    layout["yaxis"] = axis(title={"text": "probability"}, range=[-0.03, 1.05], domain=[0.42, 1])
    layout["yaxis2"] = axis(title={"text": "loss (bits)"}, domain=[0, 0.3], rangemode="tozero")
    layout["showlegend"] = True
    layout["legend"] = {"orientation": "h", "y": -0.2, "yanchor": "top"}
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines+markers", "name": "estimate with its bounds",
            "x": rounds, "y": [round(one.estimate, 6) for one in answers],
            "error_y": {
                "type": "data", "symmetric": False, "thickness": 1.2, "width": 4,
                "array": [round(max(one.upper - one.estimate, 0.0), 6) for one in answers],
                "arrayminus": [round(max(one.estimate - one.lower, 0.0), 6) for one in answers],
            },
            "line": {"color": COLOURS["risk"], "width": 1.5}, "marker": {"size": 8},
            "hovertemplate": "after %{x} splits: %{y:.4f}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines+markers", "name": "held-out loss", "yaxis": "y2",
            "x": rounds,
            "y": [round(one.loss, 6) if math.isfinite(one.loss) else None for one in answers],
            "line": {"color": SERIES[2], "width": 1.5}, "marker": {"size": 7, "symbol": "square"},
            "hovertemplate": "after %{x} splits: %{y:.4f} bits<extra></extra>",
        },
    ]  # fmt: skip
    if asked is not None:
        data.insert(1, {
            "type": "scatter", "mode": "lines", "name": "the bound", "x": [rounds[0], rounds[-1]],
            "y": [asked.threshold] * 2, "hoverinfo": "skip",
            "line": {"color": COLOURS["act"], "dash": "dash", "width": 1.5},
        })  # fmt: skip
    return {"data": data, "layout": layout}


def shown_way(way: Way) -> ShownWay:
    """Return a way with what runs say of it."""
    states = len(way.path[::2])
    remark = f"real: {way.runs:,} runs took it"
    if not way.runs:
        remark = f"not borne out: runs show its first {way.seen} of {states} states"
    return ShownWay(way.path, way.probability, way.seen, remark)
