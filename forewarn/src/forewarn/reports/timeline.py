"""The picture of one run: risk, alerts and violations of each property, states, raw signals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.monitoring.events import Events, Outcome
from forewarn.monitoring.history import Track
from forewarn.monitoring.monitor import Monitor
from forewarn.monitoring.policy import Level
from forewarn.reports.palette import COLOURS, axis, base_layout
from forewarn.reports.run import RecordedRun
from forewarn.reports.signals import SignalSeries
from forewarn.reports.thinning import buckets, changes, extremes
from forewarn.sections import PropertySpec

POINTS = 4000
MAX_SIGNALS = 16
LANE_COLUMNS = 1600
RISK_HEIGHT, SIGNAL_HEIGHT, LANE_HEIGHT, GAP = 150, 86, 19, 34
TOP, BOTTOM = 64, 60

Figure = dict[str, Any]
Points = list[Any]


class _Builder:
    """Stacks rows with a common time axis, from the top down."""

    def __init__(self, heights: Sequence[int], points: int) -> None:
        self.points = points
        self.height = TOP + BOTTOM + sum(heights) + GAP * (len(heights) - 1)
        plot = self.height - TOP - BOTTOM
        self.domains: list[list[float]] = []
        above = 0
        for height in heights:
            self.domains.append([max(0.0, 1 - (above + height) / plot), 1 - above / plot])
            above += height + GAP
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = base_layout(self.height, TOP, BOTTOM)
        self.layout["annotations"] = []

    def row(self, index: int, title: str, **settings: Any) -> str:
        """Declare the y axis of a row and return its short name."""
        number = "" if index == 0 else str(index + 1)
        self.layout[f"yaxis{number}"] = axis(domain=self.domains[index], anchor="x", **settings)
        self.layout["annotations"].append(
            {
                "text": title,
                "x": 0,
                "y": self.domains[index][1],
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "yshift": 0 if index else 18,  # above the tick labels of the upper axis
                "showarrow": False,
                "font": {"size": 12, "color": COLOURS["ink"]},
            }
        )
        return f"y{number}"

    def add(self, row: str, **trace: Any) -> None:
        """Add a trace to a row."""
        self.data.append({"yaxis": row, "xaxis": "x", "showlegend": False, **trace})


def timeline(monitor: Monitor, run: RecordedRun, points: int = POINTS) -> Figure:
    """Return the figure of a run, as plotly's plain values, with about `points` a line."""
    drawn = _drawn(monitor, run)
    names = _lanes(monitor)
    lanes = max(60, LANE_HEIGHT * len(names))
    heights = [RISK_HEIGHT] * len(run.tracks) + [lanes] + [SIGNAL_HEIGHT] * len(drawn)
    builder = _Builder(heights, points)
    seconds = _seconds(monitor, run)
    for index, track in enumerate(run.tracks):
        section = monitor.spec.properties[track.name]
        _risk_row(builder, index, track, run.events[index], section, seconds)
    _state_row(builder, len(run.tracks), monitor, run, seconds, names)
    for offset, series in enumerate(drawn):
        unit = monitor.spec.signals[series.name].unit
        _signal_row(builder, len(run.tracks) + 1 + offset, series, unit, seconds)
    last = len(heights)
    builder.layout["xaxis"] = axis(
        anchor=f"y{last if last > 1 else ''}",
        title={"text": "seconds since the start", "font": {"size": 12}},
        range=[0, float(seconds[-1]) if len(seconds) else 1],
        showspikes=True,
        spikemode="across",
        spikethickness=1,
        spikedash="dot",
        spikecolor=COLOURS["muted"],
    )
    # The same axis once more at the top, so that a long page need not be scrolled for it.
    builder.layout["xaxis2"] = axis(
        matches="x", overlaying="x", anchor="y", side="top", showgrid=False
    )
    builder.add("y", type="scatter", x=[0], y=[None], hoverinfo="skip")
    builder.data[-1]["xaxis"] = "x2"
    builder.layout["hovermode"] = "x"
    return {"data": builder.data, "layout": builder.layout}


def _drawn(monitor: Monitor, run: RecordedRun) -> list[SignalSeries]:
    """Choose `MAX_SIGNALS` to draw: those that predicates use, then those received; no arrays."""
    used = {name for each in monitor.abstraction.predicates for name in each.names}
    found = [
        series
        for series in run.signals
        if series.kind != "array" and np.isfinite(series.values).any()
    ]
    derived = {each.name for each in monitor.abstraction.derived}
    found.sort(key=lambda series: (series.name not in used, series.name in derived))
    return found[:MAX_SIGNALS]


def _lanes(monitor: Monitor) -> tuple[str, ...]:
    """Return what has a lane; the predicates of the tick before (`history: 2`) have none."""
    vocabulary = monitor.abstraction.vocabulary
    declared = vocabulary.predicates[: len(monitor.abstraction.predicates)]
    return (*declared, *vocabulary.terminals)


def _seconds(monitor: Monitor, run: RecordedRun) -> NDArray[np.float64]:
    ticks = run.history.ticks
    if not len(ticks):
        return np.zeros(0)
    return np.asarray((ticks - ticks[0]) / monitor.spec.rate)


def _risk_row(
    builder: _Builder,
    index: int,
    track: Track,
    events: Events,
    section: PropertySpec,
    seconds: NDArray[np.float64],
) -> None:
    horizon = "ever" if math.isinf(section.horizon) else f"within {section.horizon:g} s"
    row = builder.row(
        index,
        f"<b>{_safe(track.name)}</b>  risk of a violation {horizon}",
        range=[-0.03, 1.16],
        tickvals=[0, 0.5, 1],
        fixedrange=True,
    )
    _levels(builder, row, track, seconds)
    _bounds(builder, row, track, seconds)
    rows = extremes(track.probability, builder.points)
    builder.add(
        row,
        type="scatter",
        mode="lines",
        name="risk",
        x=_round(seconds[rows]),
        y=_round(track.probability[rows]),
        line={"color": COLOURS["risk"], "width": 1.8, "shape": "hv"},
        connectgaps=False,
    )
    _thresholds(builder, row, section, seconds)
    _events(builder, row, events, track, seconds)


def _levels(builder: _Builder, row: str, track: Track, seconds: NDArray[np.float64]) -> None:
    for level, colour, name in (
        (Level.WARN, COLOURS["warn_fill"], "WARN"),
        (Level.ACT, COLOURS["act_fill"], "ACT"),
    ):
        on = (track.level == level).astype(np.float64)
        if on.any():
            rows = changes(on)
            builder.add(
                row,
                type="scatter",
                mode="lines",
                name=name,
                x=_round(seconds[rows]),
                y=[1.16 if on[r] else 0 for r in rows],
                fill="tozeroy",
                fillcolor=colour,
                line={"width": 0, "shape": "hv"},
                hoverinfo="skip",
            )


def _bounds(builder: _Builder, row: str, track: Track, seconds: NDArray[np.float64]) -> None:
    if np.isnan(track.upper).all():
        return
    half = builder.points // 2
    rows = np.union1d(extremes(track.lower, half), extremes(track.upper, half))
    for values, fill in ((track.lower, None), (track.upper, "tonexty")):
        builder.add(
            row,
            type="scatter",
            mode="lines",
            name="upper bound" if fill else "lower bound",
            x=_round(seconds[rows]),
            y=_round(values[rows]),
            line={"width": 0, "shape": "hv"},
            **({"fill": fill, "fillcolor": COLOURS["bounds"]} if fill else {}),
        )


def _thresholds(
    builder: _Builder, row: str, section: PropertySpec, seconds: NDArray[np.float64]
) -> None:
    levels = section.thresholds
    for value, colour, name in (
        (levels.warn, COLOURS["warn"], "warn"),
        (levels.act, COLOURS["act"], "act"),
    ):
        builder.add(
            row,
            type="scatter",
            mode="lines",
            name=f"{name} at {value:g}",
            x=[0, float(seconds[-1])] if len(seconds) else [],
            y=[value, value] if len(seconds) else [],
            line={"color": colour, "width": 1, "dash": "dash"},
            hoverinfo="skip",
        )


def _events(
    builder: _Builder, row: str, events: Events, track: Track, seconds: NDArray[np.float64]
) -> None:
    def at(tick: int) -> float:
        return round(float(seconds[tick - int(track.ticks[0])]), 3)

    lead_x: Points = []
    lead_y: Points = []
    for violation in events.violations:
        if violation.alert is not None:
            lead_x += [at(violation.alert), at(violation.tick), None]
            lead_y += [1.1, 1.1, None]
    if lead_x:
        builder.add(
            row, type="scatter", mode="lines", name="lead time", x=lead_x, y=lead_y,
            line={"color": COLOURS["lead"], "width": 4}, hoverinfo="skip",
        )  # fmt: skip
    if events.violations:
        when = [at(violation.tick) for violation in events.violations]
        builder.add(
            row, type="scatter", mode="lines", name="violation",
            x=[x for t in when for x in (t, t, None)], y=[0, 1.1, None] * len(when),
            line={"color": COLOURS["violation"], "width": 1}, hoverinfo="skip",
        )  # fmt: skip
    foreseen = [(v.tick, v.lead) for v in events.violations if v.lead is not None]
    groups = (
        ("violation, foreseen", "x", COLOURS["violation"],
         [(tick, f"violation, {lead:.2f} s lead") for tick, lead in foreseen]),
        ("violation, missed", "x-open", COLOURS["violation"],
         [(v.tick, "violation, missed") for v in events.violations if v.lead is None]),
        ("false alarm", "triangle-down-open", COLOURS["act"],
         [(a.start, "false alarm") for a in events.alerts if a.outcome is Outcome.FALSE]),
        ("alert", "triangle-down", COLOURS["act"],
         [(a.start, f"alert ({a.outcome.value})") for a in events.alerts
          if a.outcome is not Outcome.FALSE]),
    )  # fmt: skip
    for name, symbol, colour, points in groups:
        if points:
            builder.add(
                row,
                type="scatter",
                mode="markers",
                name=name,
                x=[at(tick) for tick, _ in points],
                y=[1.1] * len(points),
                text=[text for _, text in points],
                hovertemplate="%{text}<extra></extra>",
                marker={"symbol": symbol, "size": 8, "color": colour, "line": {"width": 1.5}},
            )


def _state_row(
    builder: _Builder,
    index: int,
    monitor: Monitor,
    run: RecordedRun,
    seconds: NDArray[np.float64],
    names: Sequence[str],
) -> None:
    """Draw a lane for each predicate: the state, read from top to bottom."""
    row = builder.row(
        index,
        "<b>state</b>  predicates and terminal labels that hold",
        tickvals=list(range(len(names))),
        ticktext=[_safe(name) for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
        fixedrange=True,
    )
    width = len(monitor.abstraction.predicates)
    table = np.zeros((len(run.history.known_states) + 1, len(names)), dtype=np.int8)
    for position, code in enumerate(run.history.known_states):
        if code < 0:
            table[position, width - code - 1] = 2
        else:
            table[position, :width] = [code >> i & 1 for i in range(width)]
    table[-1] = -1  # row -1: the state is not fully known
    state = run.tracks[0].state if run.tracks else np.zeros(0, dtype=np.int32)
    parts = buckets(len(state), builder.points * LANE_COLUMNS // POINTS)
    columns = [table[state[start:end]].max(axis=0).tolist() for start, end in parts]
    scale = [
        [0, COLOURS["unknown"]], [0.25, COLOURS["unknown"]], [0.25, COLOURS["lane"]],
        [0.5, COLOURS["lane"]], [0.5, COLOURS["holds"]], [0.75, COLOURS["holds"]],
        [0.75, COLOURS["violation"]], [1, COLOURS["violation"]],
    ]  # fmt: skip
    builder.add(
        row,
        type="heatmap",
        x=_round(np.array([seconds[start] for start, _ in parts])),
        z=[list(lane) for lane in zip(*columns, strict=True)],
        zmin=-1.5,
        zmax=2.5,
        colorscale=scale,
        showscale=False,
        ygap=2,
        hoverinfo="skip",
    )


def _signal_row(
    builder: _Builder, index: int, series: SignalSeries, unit: str, seconds: NDArray[np.float64]
) -> None:
    what = {"array": "number of elements", "truth": "0 or 1"}.get(series.kind, unit)
    settings: dict[str, Any] = {"nticks": 4, "fixedrange": True}
    if series.kind == "text":
        settings |= {"tickvals": list(range(len(series.texts))), "ticktext": list(series.texts)}
    row = builder.row(index, f"<b>{_safe(series.name)}</b>  {_safe(what)}".rstrip(), **settings)
    values = np.where(np.isinf(series.values), np.nan, series.values)
    rows = changes(values)
    if series.kind == "number" or len(rows) > builder.points:
        rows = extremes(values, builder.points)
    builder.add(
        row,
        type="scatter",
        mode="lines",
        name=series.name,
        x=_round(seconds[rows]),
        y=_round(values[rows], 4),
        line={"color": COLOURS["signal"], "width": 1.3, "shape": "hv"},
    )


def _round(values: NDArray[np.float64], digits: int = 4) -> Points:
    return [None if v != v else round(v, digits) for v in values.tolist()]


def _safe(text: str) -> str:
    """Return text that plotly shows as it is: it takes some HTML tags as formatting."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
