"""What was foreseen: the figures of each property, and what other thresholds would have given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from forewarn.assessment.episodes import AlertRule, ScoredRun, scored_run
from forewarn.assessment.events import LeadTimes, Score
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.tradeoff import Point, every_threshold, trade_off
from forewarn.assessment.verdict import ALWAYS
from forewarn.monitoring.step import Monitor
from forewarn.reports.figures import percent, rounded
from forewarn.reports.page import absent, escape, label, plot, section
from forewarn.reports.palette import COLOURS, SERIES, SYMBOLS, axis, base_layout
from forewarn.signals.clock import Clock

Figure = dict[str, Any]
MAX_THRESHOLDS = 400
CARDS = (
    "A breach counts as one violation until it has cleared. Lead time is the time from the start "
    "of the alert that is on when it happens to the violation, at most the horizon. A false alarm "
    "is an alert with no violation during it or within the horizon of its start. None of these "
    "figures means anything without the others."
)
TRADE = (
    "What other thresholds would have given on these recordings: further left is fewer false "
    "alarms, further up is more foresight. Each dot is a threshold (point at it); the diamond is "
    f"the present one. A missed violation counts as a lead of 0 s. Thresholds in alert for more "
    f"than {ALWAYS:.0%} of the time are left out. forewarn tune chooses one for a budget of false "
    "alarms."
)


def cards(monitor: Monitor, found: Sequence[Score]) -> str:
    """Return the section with one card for each property."""
    body = "".join(_card(monitor, score) for score in found)
    return section(
        "foresight", "What was foreseen", escape(CARDS), f'<div class="cards">{body}</div>'
    )


def _card(monitor: Monitor, score: Score) -> str:
    per_hour, lead, clock = score.false_alarms_per_hour, score.lead, monitor.clock
    figures = [
        (f"{score.detected} / {score.violations}", "violations foreseen"),
        (clock.say(lead.median, ".2f") if lead else "-", f"median lead time{_between(lead)}"),
        ("-" if score.alert_share is None else percent(score.alert_share), "time in alert"),
        (f"{score.false_alarms} / {score.alerts}", "alerts were false"),
        ("-" if per_hour is None else f"{per_hour:.1f}", f"false alarms {clock.hour}"),
        ("-" if score.precision is None else f"{100 * score.precision:.0f} %", "precision"),
    ]
    cells = "".join(f"<div><b>{escape(v)}</b><span>{escape(t)}</span></div>" for v, t in figures)
    spec = monitor.spec.properties[score.name]
    description = f"<p>{escape(spec.description)}</p>" if spec.description else ""
    notes = "; ".join(_card_notes(score))
    return (
        f'<div class="card"><h3>{escape(score.name)}</h3>{description}'
        f'<p class="formula">{escape(spec.formula)}</p><div class="figures">{cells}</div>'
        + (absent(notes) if notes else "")
        + "</div>"
    )


def _between(lead: LeadTimes | None) -> str:
    if lead is None or lead.least == lead.greatest:
        return ""
    return f" (of {lead.least:.1f} to {lead.greatest:.1f})"


def _card_notes(score: Score) -> list[str]:
    counts = (
        (score.out_of_model, "false alarms that began in a state unknown to the model"),
        (score.cut_short, "false alarms cut short by the end of a recording"),
        (score.late, "alerts that came with a violation, or before it had cleared"),
    )
    notes = [f"{text}: {number}" for number, text in counts if number]
    if not score.hours:
        notes.append("never watched: inactive, or its inputs were unknown all the time")
    return notes


def trade_offs(monitor: Monitor, runs: Sequence[RecordedRun]) -> str:
    """Return the section with the trade-off of lead time and false alarms."""
    title = "What other thresholds would give"
    if monitor.model is None:
        reason = "Without a model there is no risk, so no threshold to choose."
        return section("trade-off", title, "", absent(reason))
    found, without = [], []
    for index, (name, spec) in enumerate(monitor.spec.properties.items()):
        scored_runs = [scored_run(run.tracks[index]) for run in runs]
        if all(np.isnan(scored.score).all() for scored in scored_runs):
            without.append((name, f"it had no risk at any {monitor.clock.noun}"))
            continue
        curve = _curve(name, scored_runs, AlertRule.of(spec), spec.thresholds.act, monitor.clock)
        if curve.present.hours:
            found.append(curve)
        else:
            without.append((name, "it was never watched"))
    body = "".join(absent(f"{name}: {reason}.") for name, reason in without)
    if found:
        body = _figures(found) + body
    return section("trade-off", title, escape(TRADE) if found else "", body)


class Curve(NamedTuple):
    """What thresholds of one property give.

    Attributes
    ----------
    points : tuple of Point
        From the highest threshold to the lowest that does not alarm nearly always.
    present : Point
        The threshold in the monitor file.
    clock : Clock
        Says durations for people.
    """

    name: str
    points: tuple[Point, ...]
    present: Point
    clock: Clock


def _curve(
    name: str, scored_runs: Sequence[ScoredRun], rule: AlertRule, act: float, clock: Clock
) -> Curve:
    levels = np.union1d(every_threshold(scored_runs, MAX_THRESHOLDS), [act])
    points = trade_off(scored_runs, levels, rule=rule)
    present = next(p for p in points if p.threshold == act)
    fair = [p for p in points if (p.alert_share or 0.0) <= ALWAYS]
    return Curve(name, tuple(reversed(thin(fair))), present, clock)


def thin(points: Sequence[Point]) -> list[Point]:
    """Leave out thresholds that give the same as both of their neighbours."""

    def outcome(point: Point) -> tuple[float | None, ...]:
        return point.false_alarms_per_hour, point.recall, point.median_lead

    kept = [True, *(outcome(a) != outcome(b) for a, b in pairwise(points)), True]
    return [point for i, point in enumerate(points) if kept[i] or kept[i + 1]]


def _figures(found: Sequence[Curve]) -> str:
    if not any(curve.present.violations for curve in found):
        return plot("trade-alarms", _alarms(found)) + absent(
            "No violation in these recordings: there is no lead time to show, only how many false "
            "alarms each threshold would give."
        )
    shown = [curve for curve in found if curve.present.violations]
    foreseen = _figure("violations foreseen, %", shown, _recall)
    foreseen["layout"]["yaxis"] |= {"range": [-4, 104]}
    lead = _figure(f"median lead time, {found[0].clock.unit}", shown, _lead)
    quiet = ", ".join(curve.name for curve in found if not curve.present.violations)
    note = absent(
        f"{quiet}: no violation in these recordings, so there is no lead time to show; false "
        "alarms are those of the cards above."
    )
    return (
        f'<div class="pair"><div>{plot("trade-foreseen", foreseen)}</div>'
        f"<div>{plot('trade-lead', lead)}</div></div>{note if quiet else ''}"
    )


def _recall(point: Point) -> float | None:
    return None if point.recall is None else round(100 * point.recall, 3)


def _lead(point: Point) -> float | None:
    return point.median_lead


def _figure(title: str, curves: Sequence[Curve], value: Callable[[Point], float | None]) -> Figure:
    layout = _layout()
    layout["xaxis"] = axis(
        title={"text": f"false alarms {curves[0].clock.hour}"}, rangemode="tozero"
    )
    layout["yaxis"] = axis(title={"text": title}, rangemode="tozero")
    data = []
    for index, curve in enumerate(curves):
        colour, symbol = SERIES[index % len(SERIES)], SYMBOLS[index % len(SYMBOLS)]
        data += _traces(curve, value, colour, symbol)
    return {"data": data, "layout": layout}


def _layout() -> Figure:
    layout = base_layout(420, 30, 100)
    layout["showlegend"] = True
    layout["legend"] = {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"}
    layout["hovermode"] = "closest"
    return layout


def _traces(
    curve: Curve, value: Callable[[Point], float | None], colour: str, symbol: str
) -> list[Figure]:
    name, present = label(curve.name), curve.present
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": f"{name} (act at {present.threshold:g})",
            "x": [_per_hour(p) for p in curve.points],
            "y": [value(p) for p in curve.points],
            "text": [_point_text(p, curve.clock) for p in curve.points],
            "hovertemplate": f"%{{text}}<extra>{name}</extra>",
            "line": {"color": colour, "width": 1},
            "marker": {"size": 6, "color": colour, "symbol": symbol},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"present: {name}",
            "showlegend": False,
            "x": [_per_hour(present)],
            "y": [value(present)],
            "text": [_point_text(present, curve.clock)],
            "hovertemplate": f"%{{text}}<extra>present: {name}</extra>",
            "cliponaxis": False,
            "marker": {
                "size": 13,
                "symbol": "diamond",
                "color": colour,
                "line": {"color": COLOURS["ink"], "width": 1.5},
            },
        },
    ]


def _per_hour(point: Point) -> float:
    return round(point.false_alarms_per_hour or 0.0, 4)


def _point_text(p: Point, clock: Clock) -> str:
    lead = "" if p.median_lead is None else f", median lead {clock.say(p.median_lead, '.2f')}"
    watched = f"{rounded(p.hours)} h" if clock.timed else clock.span(3600 * p.hours)
    return (
        f"threshold {p.threshold:.4g}: {p.detected} of {p.violations} foreseen{lead}<br>"
        f"{p.false_alarms} false alarms in {watched}, precision "
        + ("-" if p.precision is None else f"{p.precision:.0%}")
        + f"<br>in alert {percent(p.alert_share or 0.0)} of the time"
    )


def _alarms(found: Sequence[Curve]) -> Figure:
    layout = _layout()
    layout["xaxis"] = axis(title={"text": "threshold"}, range=[-0.02, 1.02])
    layout["yaxis"] = axis(
        title={"text": f"false alarms {found[0].clock.hour}"}, rangemode="tozero"
    )
    data = []
    for index, curve in enumerate(found):
        colour = SERIES[index % len(SERIES)]
        for kind, name, shown in (
            ("lines", curve.name, curve.points),
            ("markers", f"act at {curve.present.threshold:g}", (curve.present,)),
        ):
            data.append(
                {
                    "type": "scatter",
                    "mode": kind,
                    "name": label(name),
                    "x": [p.threshold for p in shown],
                    "y": [_per_hour(p) for p in shown],
                    "text": [_point_text(p, curve.clock) for p in shown],
                    "hovertemplate": "%{text}<extra></extra>",
                    "line": {"color": colour, "width": 1.5, "shape": "vh"},
                    "marker": {"size": 12, "symbol": "diamond", "color": colour},
                }
            )
    return {"data": data, "layout": layout}
