"""Are there enough data? States covered and not covered, and how many more visits they need."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.replay import RecordedRun
from forewarn.checking.sensitivity import reach_sensitivity
from forewarn.learning.coverage import DELTA, EPSILON, Coverage, coverage
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain
from forewarn.monitoring.step import Monitor
from forewarn.reports.figures import percent
from forewarn.reports.page import absent, escape, label, plot, table
from forewarn.reports.palette import COLOURS, axis, base_layout
from forewarn.reports.states import in_words, state_cell
from forewarn.signals.clock import horizon_ticks
from forewarn.signals.clock_kinds import clock_of

LISTED = 12
LEAST = 0.7
"""Where a state without any visit is drawn on a logarithmic axis."""


class Stay(NamedTuple):
    """How long the recordings stayed where: ticks.

    Attributes
    ----------
    rows : Counter
        Ticks in each state of the model.
    out_of_model : int
        Ticks in states that the model does not have.
    unknown : int
        Ticks whose state was not fully known.
    """

    rows: Counter[int]
    out_of_model: int
    unknown: int


def stays(model: CountModel, runs: Sequence[RecordedRun]) -> Stay:
    """Count the ticks that the recordings spent in each state."""
    index = {code: row for row, code in enumerate(model.states)}
    rows: Counter[int] = Counter()
    out_of_model = unknown = 0
    for run in runs:
        codes = run.history.known_states
        state = run.tracks[0].state if run.tracks else np.zeros(0, dtype=np.int32)
        unknown += int((state < 0).sum())
        for position, ticks in enumerate(np.bincount(state[state >= 0], minlength=len(codes))):
            row = index.get(codes[position])
            if row is None:
                out_of_model += int(ticks)
            elif ticks:
                rows[row] += int(ticks)
    return Stay(rows, out_of_model, unknown)


def cover(monitor: Monitor, model: CountModel, runs: Sequence[RecordedRun]) -> str:
    """Return the part of the page about coverage, as HTML."""
    found, here = coverage(model), stays(model, runs)
    live = ~model.terminal
    covered = int((found.covered & live).sum())
    lead = (
        f"For every transition probability to be right to within {EPSILON:g}, with probability "
        f"{1 - DELTA:g} for all of them together, a state needs a number of visits (PAC bound of "
        f"ProbGuard and Bazille et al.). {covered} of {int(live.sum())} states have theirs; "
        f"{percent(found.share)} of all required visits were made."
    )
    return (
        f'<p class="lead">{escape(lead)}</p>'
        + plot("coverage", coverage_figure(model, found))
        + f'<p class="lead">{escape(_here(here, found) + _for_the_risk(monitor, model))}</p>'
        + _most_wanted(monitor, model, found, here)
    )


def _here(here: Stay, found: Coverage) -> str:
    total = sum(here.rows.values()) + here.out_of_model + here.unknown
    if not total:
        return ""
    good = sum(ticks for row, ticks in here.rows.items() if found.covered[row])
    parts = (
        (good, "in covered states"),
        (sum(here.rows.values()) - good, "in states with too few visits"),
        (here.out_of_model, "in states that the model has never seen"),
        (here.unknown, "in states not fully known"),
    )
    shares = ", ".join(f"{percent(n / total)} {text}" for n, text in parts if n)
    return f"These recordings spent {shares}. "


def _for_the_risk(monitor: Monitor, model: CountModel) -> str:
    horizons = [
        horizon_ticks(clock_of(model.rate), spec.horizon)
        for spec in monitor.spec.properties.values()
    ]
    limited = [horizon for horizon in horizons if horizon is not None]
    horizon = None if len(limited) < len(horizons) else max(limited, default=0)
    factor = reach_sensitivity(model, estimate_chain(model), horizon)
    if not math.isfinite(factor):
        return "Without a horizon, no number of visits tells the risk itself to such an accuracy."
    share = coverage(model, factor=factor).share
    return (
        f"For the risk itself to be right to within {EPSILON:g} in the worst case (an error of a "
        f"transition can grow {factor:,.0f} times), {percent(share)} of the visits were made: "
        "its bounds in the timeline say more."
    )


def _most_wanted(monitor: Monitor, model: CountModel, found: Coverage, here: Stay) -> str:
    missing = found.missing
    waiting = [row for row in np.flatnonzero(missing > 0).tolist() if not model.terminal[row]]
    if not waiting:
        return absent("Every state has the visits it needs.")
    waiting.sort(key=lambda row: (-here.rows[row], -int(model.visits[row])))
    risks = worst_risks(monitor, model)
    rows = [
        [
            state_cell(model.name(row)),
            str(here.rows[row]),
            "-" if risks is None else f"{risks[row]:.3f}",
            f"{int(found.visits[row]):,}",
            f"{int(found.required[row]):,}",
            f"{int(missing[row]):,}",
        ]
        for row in waiting[:LISTED]
    ]
    columns = (
        "state",
        f">{monitor.clock.noun}s here",
        ">worst risk",
        ">visits",
        ">needs",
        ">more needed",
    )
    title = (
        f"{len(rows)} of the {len(waiting)} states that need more visits, the longest stay first"
    )
    return f"<h4>{escape(title)}</h4>{table(columns, rows, long='state')}"


def worst_risks(monitor: Monitor, model: CountModel) -> NDArray[np.float64] | None:
    """Return for each state the greatest risk of any property, obligations at rest, shape (n,)."""
    tables = [prop for prop in monitor.properties if prop.table is not None]
    if not tables:
        return None
    worst = np.zeros(model.size)
    for prop in tables:
        assert prop.table is not None
        after = np.array(
            [prop.successors((prop.automaton.initial,), (int(c),))[0] for c in prop.row_classes]
        )
        values = prop.table.values[np.arange(model.size), after]
        np.fmax(worst, values, out=worst)
    return worst


def coverage_figure(model: CountModel, found: Coverage) -> dict[str, Any]:
    """Return visits and required visits of every state, the most visited first."""
    rows = np.flatnonzero(~model.terminal)
    rows = rows[np.argsort(-model.visits[rows], kind="stable")]
    visits = model.visits[rows]
    place = np.arange(1, len(rows) + 1)
    done = found.covered[rows]
    names = [model.name(int(row)) for row in rows]
    data = []
    for chosen, name, colour in (
        (done, "covered", "covered"),
        (~done, "too few visits", "inactive"),
    ):
        data.append(
            {
                "type": "bar",
                "name": name,
                "x": place[chosen].tolist(),
                "y": np.maximum(visits[chosen], LEAST).tolist(),
                "text": [
                    f"{label(in_words(names[i]))}<br>{int(visits[i]):,} visits, needs "
                    f"{int(found.required[rows[i]]):,}"
                    for i in np.flatnonzero(chosen).tolist()
                ],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"color": COLOURS[colour], "line": {"width": 0}},
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "needed",
            "x": place.tolist(),
            "y": np.maximum(found.required[rows], LEAST).tolist(),
            "hoverinfo": "skip",
            "marker": {"color": COLOURS["ink"], "size": 3, "symbol": "line-ew-open"},
        }
    )
    return {"data": data, "layout": _layout()}


def _layout() -> dict[str, Any]:
    layout = base_layout(350, 30, 92)
    layout["xaxis"] = axis(title={"text": "states, the most visited first"})
    layout["yaxis"] = axis(title={"text": "visits"}, type="log", nticks=6, exponentformat="power")
    layout["showlegend"] = True
    layout["legend"] = {"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top"}
    layout["hovermode"] = "closest"
    layout["bargap"] = 0
    return layout
