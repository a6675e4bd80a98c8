"""The page of ``forewarn tune --plot``: what each threshold would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forewarn.assessment.tuning import Candidate, Tuning
from forewarn.reports.page import assembled, part, plot
from forewarn.reports.palette import COLOURS, SERIES, SYMBOLS, axis, base_layout

Figure = dict[str, Any]


def tuning_page(tunings: Sequence[Tuning]) -> str:
    """Return a page with lead time and misses against false alarms of each property."""
    goal = tunings[0].goal
    budget = f"the budget of {goal.false_alarms_per_hour:g} {goal.clock.hour}"
    share = f"in alert for more than {100 * goal.alert_share:g} % of the time"
    lead = f"Dotted: {budget}. Grey dots: {share}. Point at a dot for its threshold."
    parts = []
    for number, tuning in enumerate(tunings):
        unit = tuning.goal.clock.unit
        figures = (
            ("lead", f"median lead time, misses as 0, {unit}", lambda each: each.lead),
            ("missed", "violations missed, %", _missed),
        )
        drawn = "".join(
            f"<div>{plot(f'{key}{number}', _figure(tuning, title, value))}</div>"
            for key, title, value in figures
        )
        body = f'<div class="pair">{drawn}</div>'
        parts.append(part(f"tune{number}", tuning.name, tuning.name, lead, body))
    return assembled("What each threshold would give", f"{budget}; {share}: grey", parts)


def _missed(candidate: Candidate) -> float | None:
    point = candidate.point
    return 100 * point.missed / point.violations if point.violations else None


def _figure(tuning: Tuning, title: str, value: Callable[[Candidate], float | None]) -> Figure:
    limit, budget = tuning.goal.alert_share, tuning.goal.false_alarms_per_hour
    data: list[Figure] = []
    for place, enter in enumerate(sorted({each.enter for each in tuning.candidates})):
        found = [each for each in tuning.candidates if each.enter == enter]
        within = [each for each in found if (each.point.alert_share or 0.0) <= limit]
        beyond = [each for each in found if each not in within]
        symbol = SYMBOLS[place % len(SYMBOLS)]
        colour = SERIES[place % len(SERIES)]
        faint = {"size": 5, "color": COLOURS["inactive"], "symbol": symbol}
        marker = {"size": 6, "color": colour, "symbol": symbol}
        if beyond:
            name = f"enter {enter}, too long in alert"
            data.append(_dots(beyond, value, name) | {"mode": "markers", "marker": faint})
        if within:
            line = {"color": colour, "width": 1}
            style = {"mode": "lines+markers", "marker": marker, "line": line}
            data.append(_dots(within, value, f"enter {enter}") | style)
    data.append(_mark(tuning.present, value, "in the file", COLOURS["signal"], "diamond"))
    if tuning.chosen is not None:
        data.append(_mark(tuning.chosen, value, "chosen", COLOURS["uncovered"], "star"))
    layout = base_layout(400, 30, 100)
    layout["xaxis"] = axis(
        title={"text": f"false alarms {tuning.goal.clock.hour}"}, rangemode="tozero"
    )
    layout["yaxis"] = axis(title={"text": title}, rangemode="tozero")
    layout["shapes"] = [
        {"type": "line", "x0": budget, "x1": budget, "y0": 0, "y1": 1, "yref": "paper",
         "line": {"color": COLOURS["risk"], "width": 1, "dash": "dot"}}
    ]  # fmt: skip
    layout |= {"showlegend": True, "hovermode": "closest"}
    layout["legend"] = {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"}
    return {"data": data, "layout": layout}


def _dots(
    candidates: Sequence[Candidate], value: Callable[[Candidate], float | None], name: str
) -> Figure:
    values = [value(each) for each in candidates]
    return {
        "type": "scatter",
        "name": name,
        "x": [each.point.false_alarms_per_hour for each in candidates],
        "y": [None if each != each else each for each in values],
        "text": [f"act {each.thresholds.act:g}, {name}" for each in candidates],
        "hovertemplate": "%{text}<br>%{x:.3g} false alarms, %{y:.3g}<extra></extra>",
    }


def _mark(
    candidate: Candidate,
    value: Callable[[Candidate], float | None],
    name: str,
    colour: str,
    symbol: str,
) -> Figure:
    outline = {"color": COLOURS["ink"], "width": 1.5}
    return _dots([candidate], value, name) | {
        "mode": "markers",
        "cliponaxis": False,
        "marker": {"size": 13, "color": colour, "symbol": symbol, "line": outline},
    }
