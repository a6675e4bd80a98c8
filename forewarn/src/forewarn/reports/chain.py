"""The chain as a picture: how risky each state is, how often it was seen, where it leads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forewarn.models.counts import CountModel
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.page import label
from forewarn.reports.palette import COLOURS, axis, base_layout
from forewarn.reports.paths import Way
from forewarn.reports.states import RiskyState, in_words, risk_text, riskiest, successors

STATES, EDGES = 300, 700
TICKS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1)


def chain_figure(compiled: CompiledProperty, model: CountModel, way: Way | None) -> dict[str, Any]:
    """Return the picture of a property's chain.

    Further right is riskier (on a scale that spreads small risks), further up was seen more
    often; lines are transitions. The likeliest way to a violation stands out.
    """
    ranked = {state.row: state for state in riskiest(compiled, model, model.size)}
    shown = [i for i in np.argsort(-model.visits, kind="stable").tolist() if not model.terminal[i]]
    on_way = [stay.row for stay in way.stays] if way else []
    rows = list(dict.fromkeys([*(r for r in on_way if r in shown), *list(ranked)[:40], *shown]))
    rows = rows[:STATES]
    place = {row: _place(row, ranked, model) for row in rows}
    layout = base_layout(400, 16, 56)
    layout["xaxis"] = axis(
        title={"text": "risk"},
        tickvals=[math.sqrt(tick) for tick in TICKS],
        ticktext=[f"{tick:g}" for tick in TICKS],
        range=[-0.03, 1.06],
    )
    layout["yaxis"] = axis(title={"text": "visits"}, type="log", nticks=5)
    layout["hovermode"] = "closest"
    data = [_edges(rows, place, model), _nodes(rows, place, ranked, model)]
    if way is not None:
        data.append(_way(way, place, model))
    return {"data": data, "layout": layout}


def _place(row: int, ranked: dict[int, RiskyState], model: CountModel) -> tuple[float, float]:
    risk = ranked[row].risk if row in ranked else 0.0
    return round(math.sqrt(min(max(risk, 0.0), 1.0)), 4), max(float(model.visits[row]), 0.7)


def _edges(
    rows: list[int], place: dict[int, tuple[float, float]], model: CountModel
) -> dict[str, Any]:
    found = [
        (number, row, target)
        for row in rows
        for target, number in successors(model, row)[:6]
        if target != row and target in place
    ]
    found.sort(key=lambda edge: (-edge[0], edge[1], edge[2]))
    x: list[float | None] = []
    y: list[float | None] = []
    for _, row, target in found[:EDGES]:
        x += [place[row][0], place[target][0], None]
        y += [place[row][1], place[target][1], None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "transitions",
        "x": x,
        "y": y,
        "line": {"color": "rgba(90, 105, 125, 0.16)", "width": 1},
        "hoverinfo": "skip",
    }


def _nodes(
    rows: list[int],
    place: dict[int, tuple[float, float]],
    ranked: dict[int, RiskyState],
    model: CountModel,
) -> dict[str, Any]:
    texts = [
        f"{label(in_words(model.name(row)))}<br>"
        f"risk {risk_text(ranked[row].risk if row in ranked else 0)}, "
        f"{int(model.visits[row])} visits"
        for row in rows
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "states",
        "x": [place[row][0] for row in rows],
        "y": [place[row][1] for row in rows],
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "size": 8,
            "color": [place[row][0] for row in rows],
            "cmin": 0,
            "cmax": 1,
            "colorscale": [[0, COLOURS["risk"]], [0.45, COLOURS["warn"]], [1, COLOURS["act"]]],
            "line": {"width": 0.5, "color": "#ffffff"},
        },
    }


def _way(way: Way, place: dict[int, tuple[float, float]], model: CountModel) -> dict[str, Any]:
    last = max(float(model.visits[way.stays[-1].row]), 0.7)
    points = [place.get(stay.row, (1.0, last)) for stay in way.stays[:-1]]
    # The violation itself is certain: it lies at risk 1.
    points.append((1.0, points[-1][1] if points else last))
    texts = [label(in_words(model.name(stay.row))) for stay in way.stays]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "likeliest way to a violation",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "text": texts,
        "hovertemplate": "%{text}<extra>likeliest way</extra>",
        "line": {"color": COLOURS["violation"], "width": 2.5},
        "marker": {
            "size": [9] * (len(points) - 1) + [14],
            "symbol": ["circle-open"] * (len(points) - 1) + ["x"],
            "color": COLOURS["violation"],
        },
    }
