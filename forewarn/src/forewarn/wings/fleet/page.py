"""The page of a fleet: how often rules are broken, by which group, and the worst incidents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from forewarn.assessment.events import SECONDS_AN_HOUR
from forewarn.errors import plural
from forewarn.monitoring.step import Monitor
from forewarn.reports.event_table import LONG_RUN, clock
from forewarn.reports.figures import percent, rounded
from forewarn.reports.html import YEAR_2000
from forewarn.reports.page import Part, absent, assembled, escape, label, part, plot, table
from forewarn.reports.palette import SERIES, SYMBOLS, axis, base_layout
from forewarn.reports.states import state_cell
from forewarn.signals.clock import NANOSECONDS
from forewarn.wings.fleet.rates import Rate
from forewarn.wings.fleet.summary import GroupSummary, Incident, RunSummary

RATES = (
    "Violations, and near ones: alerts (the risk was above act) that no violation followed. "
    "Intervals are 95 % over recordings: where these differ more than chance lets them, the "
    "interval is as much wider. Intervals of groups that do not overlap differ."
)
COVERED = (
    "Of the time: states that are not fully known (a signal is missing or old), states that the "
    "model has never seen, and states with as many visits as they need. Elsewhere a risk is little "
    "more than a guess."
)
WORST = (
    "Missed violations come first, then those foreseen latest, then near ones by "
    "their risk. A page opens on the moment; an MCAP file has its messages."
)
Clips = Mapping[tuple[Path, str, float], Sequence[Path]]


def fleet_page(
    monitor: Monitor,
    groups: Sequence[GroupSummary],
    incidents: Sequence[tuple[RunSummary, Incident]],
    clips: Clips,
) -> str:
    """Return the page.

    `groups`: that of all recordings first.
    `incidents` (sequence of (RunSummary, Incident)): the worst first.
    `clips`: files about an incident, relative to the page, by recording, property and moment.
    """
    every = groups[0]
    file = monitor.spec.file.name if monitor.spec.file else "monitor"
    subtitle = f"{file} on {plural(every.recordings, 'recording')}, {_long(every.hours, monitor)}"
    if len(groups) > 1:
        subtitle += f", {plural(len(groups) - 1, 'group')}"
    parts = [
        part("rates", "How often", "How often", RATES, _rates(monitor, groups)),
        _incidents(monitor, incidents, clips),
        part("covered", "Coverage", "Coverage", COVERED, _coverage(monitor, groups)),
    ]
    return assembled("A fleet's recordings", subtitle, parts)


def _long(hours: float, monitor: Monitor) -> str:
    return monitor.clock.span(SECONDS_AN_HOUR * hours)


def _rates(monitor: Monitor, groups: Sequence[GroupSummary]) -> str:
    body = ""
    for number, name in enumerate(monitor.spec.properties):
        rows = [
            [
                escape(group.name),
                f"{group.recordings:,}",
                rounded(group.violations[name].hours) if group.violations[name].hours else "0",
                f"{group.violations[name].events:,}",
                _rate(group.violations[name]),
                f"{group.near[name].events:,}",
                _rate(group.near[name]),
            ]
            for group in groups
        ]
        hour = monitor.clock.hour
        columns = (
            "group", ">recordings", ">hours watched", ">violations", f">{hour}", ">near ones",
            f">{hour} ",
        )  # fmt: skip
        body += f"<h3>{escape(name)}</h3>{table(columns, rows)}"
        if groups[0].violations[name].hours:
            kinds = (
                ("violations", {group.name: group.violations[name] for group in groups}),
                ("near ones", {group.name: group.near[name] for group in groups}),
            )
            drawn = "".join(
                f"<div>{plot(f'rates{number}-{at}', _figure(f'{kind} {hour}', at, rates))}</div>"
                for at, (kind, rates) in enumerate(kinds)
            )
            body += f'<div class="pair">{drawn}</div>'
        else:
            body += absent("Never watched: inactive, or its inputs were unknown all the time.")
    return body


def _rate(rate: Rate) -> str:
    if not rate.hours:
        return "-"
    return f"{_figure_of(rate.rate)} ({_figure_of(rate.lower)} to {_figure_of(rate.upper)})"


def _figure_of(value: float) -> str:
    return rounded(value, 2 if value < 10 else 3)


def _figure(title: str, place: int, rates: Mapping[str, Rate]) -> dict[str, Any]:
    """Return rates of groups with their intervals, groups from top to bottom."""
    known = {label(name): rate for name, rate in rates.items() if rate.hours}
    colour = SERIES[place]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "y": [*known],
        "x": [rate.rate for rate in known.values()],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [rate.upper - rate.rate for rate in known.values()],
            "arrayminus": [rate.rate - rate.lower for rate in known.values()],
            "color": colour,
            "thickness": 1.5,
        },
        "marker": {"size": 9, "color": colour, "symbol": SYMBOLS[place]},
        "hovertemplate": "%{y}: %{x:.3g}<extra></extra>",
    }
    layout = base_layout(min(110 + 34 * len(known), 1200), 30, 50)
    layout["xaxis"] = axis(title={"text": title}, rangemode="tozero")
    layout["yaxis"] = axis(autorange="reversed", automargin=True)
    return {"data": [trace], "layout": layout}


def _coverage(monitor: Monitor, groups: Sequence[GroupSummary]) -> str:
    rows = [
        [
            escape(group.name),
            _long(group.hours, monitor),
            percent(group.unknown),
            percent(group.out_of_model) if monitor.model is not None else "-",
            percent(group.covered) if monitor.model is not None else "-",
        ]
        for group in groups
    ]
    columns = ("group", ">length", ">not known", ">never seen", ">enough visits")
    return table(columns, rows)


def _incidents(
    monitor: Monitor, incidents: Sequence[tuple[RunSummary, Incident]], clips: Clips
) -> Part:
    named = "incidents", "Worst incidents", "Worst incidents"
    if not incidents:
        return part(*named, "", absent("No violation, and no near one."))
    rows = [
        [
            _links(clips.get((run.path, one.rule, one.at), ())),
            escape(run.path.name),
            escape(run.group),
            _when(monitor, run, one),
            escape(one.rule),
            _kind(one),
            "" if one.lead is None else monitor.clock.figure(one.lead, ".2f"),
            "" if math.isnan(one.peak) else f"{one.peak:.3f}",
            state_cell(one.state),
        ]
        for run, one in incidents
    ]
    columns = (
        "clip", "recording", "group", ">time", "property", "what", f">lead, {monitor.clock.unit}",
        ">peak risk", "state",
    )  # fmt: skip
    used = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    shown = [[row[at] for at in used] for row in rows]
    body = table([columns[at] for at in used], shown, long="state")
    return part(*named, WORST, body)


def _links(files: Sequence[Path]) -> str:
    names = {".html": "page", ".mcap": "MCAP"}
    places = (quote(file.as_posix(), errors="surrogateescape") for file in files)
    return " ".join(
        f'<a href="{escape(place)}">{names.get(file.suffix, file.suffix)}</a>'
        for place, file in zip(places, files, strict=True)
    )


def _kind(one: Incident) -> str:
    if not one.violation:
        return '<span class="tag ">near</span>'
    outcome = "missed" if one.lead is None else "foreseen"
    return f'<span class="tag bad">violation, {outcome}</span>'


def _when(monitor: Monitor, run: RunSummary, one: Incident) -> str:
    if not monitor.clock.timed:
        return monitor.clock.figure(one.at, ".2f")
    began = run.start_ns // NANOSECONDS
    if began < YEAR_2000:
        return clock(one.at, LONG_RUN if one.at >= LONG_RUN else 0.0)
    moment = datetime.fromtimestamp(began + one.at, tz=timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S}"
