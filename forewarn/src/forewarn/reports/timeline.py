"""The picture of one run as plain values: rows that the page's script stacks over one time axis.

Long columns travel whole and packed; the script draws, for whatever part is in view, the least and
the greatest value behind each pixel. So a peak of one tick shows in a view of two hours, and its
surroundings when a reader zooms in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.events import Events, Outcome
from forewarn.assessment.history import Track
from forewarn.assessment.lanes import OFF, UNKNOWN, Lanes, requests
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.results import differs
from forewarn.assessment.signal_values import SignalSeries
from forewarn.config.sections import PropertySpec
from forewarn.monitoring.policy import Level
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.reports.packing import Column
from forewarn.reports.page import label
from forewarn.reports.palette import COLOURS
from forewarn.reports.states import in_words
from forewarn.signals.clock import Clock, within

SHOWN_SIGNALS = 8
MAX_TEXTS = 12
RISK_HEIGHT, SIGNAL_HEIGHT, LANE_HEIGHT = 150, 86, 18
TOP, EVENTS_AT, STRIP = 1.18, 1.09, 0.05

INACTIVE, INPUTS_UNKNOWN, NEVER_SEEN = 1, 2, 3
MISSING = (
    (INACTIVE, "not monitored (inactive)", "inactive"),
    (INPUTS_UNKNOWN, "inputs unknown", "unknown"),
    (NEVER_SEEN, "state never seen by the model", "out_of_model"),
)

PlotlyTrace = dict[str, Any]
Row = dict[str, Any]


class Timeline(NamedTuple):
    """One run.

    Attributes
    ----------
    columns : dict of str to Column
        What the traces refer to by name.
    rows : list of dict
        From the top; `yaxis` is plotly's, `traces` are what the script draws.
    rate : float
        Ticks a second; tick 0 is the run's first.
    unit : str
        Of the axis: ``s``, or ``steps``.
    ticks : int
        How many there are.
    never : tuple of str
        Predicates and terminal labels that never held, and have no lane.
    """

    columns: dict[str, Column]
    rows: list[Row]
    rate: float
    unit: str
    ticks: int
    never: tuple[str, ...]

    @property
    def meanings(self) -> set[str]:
        """Return names of what occurs in the picture: traces, and ``unknown`` in a lane."""
        found: set[str] = set()
        for row in self.rows:
            for trace in row["traces"]:
                plain = trace.get("trace", trace)
                found.add(str(plain.get("means", plain.get("name"))))
                if any(UNKNOWN in lane for lane in trace.get("table", ())):
                    found.add("unknown")
        return found


def timeline(monitor: Monitor, run: RecordedRun) -> Timeline:
    """Return the picture of a run."""
    columns: dict[str, Column] = {}
    rows = [
        _risk_row(monitor, run, index, track, columns) for index, track in enumerate(run.tracks)
    ]
    asked = requests(monitor.spec, run.tracks)
    columns["asked"] = Column(asked.position.astype(np.float64), exact=True, whole=True)
    if asked.names:
        observes = "" if monitor.spec.mode == "act" else " (observing)"
        title = f"<b>intervention</b>  asked for{observes}"
        words = [name.lower().replace("_", " ") for name in asked.names]
        rows.append(_lanes_row("asked", title, asked, words))
    columns["state"] = Column(run.lanes.position.astype(np.float64), exact=True, whole=True)
    held, never = used(run.lanes)
    words = list(map(in_words, held.names))
    rows.append(_lanes_row("state", "<b>state</b>  what holds", held, words))
    rows += _signal_rows(monitor, run, columns)
    clock = monitor.clock
    return Timeline(columns, rows, clock.rate, clock.unit, len(run.history), never)


def used(lanes: Lanes) -> tuple[Lanes, tuple[str, ...]]:
    """Return the lanes that are not empty all the time, and the names of the others."""
    shown = [
        number
        for number in range(len(lanes.names))
        if any(lane[number] != OFF for lane in lanes.table)
    ]
    names = tuple(lanes.names[number] for number in shown)
    table = tuple(tuple(lane[number] for number in shown) for lane in lanes.table)
    never = tuple(name for name in lanes.names if name not in names)
    return Lanes(names, lanes.position, table), never


def _row(key: str, title: str, height: int, traces: list[PlotlyTrace], **yaxis: Any) -> Row:
    return {
        "key": key,
        "title": title,
        "height": height,
        "shown": True,
        "yaxis": {"fixedrange": True, **yaxis},
        "traces": traces,
    }


def _risk_row(
    monitor: Monitor, run: RecordedRun, index: int, track: Track, columns: dict[str, Column]
) -> Row:
    section = monitor.spec.properties[track.name]
    horizon = within(monitor.clock, section.horizon)
    names = {
        column: f"{column}{index}" for column in ("risk", "lower", "upper", "level", "missing")
    }
    columns[names["risk"]] = Column(track.probability, exact=True)
    columns[names["level"]] = Column(track.level.astype(np.float64), exact=True, whole=True)
    traces = [_where(names["level"], level, TOP, colour, name) for level, colour, name in LEVELS]
    traces += _gaps(track, names["missing"], columns)
    if not np.isnan(track.upper).all():
        columns[names["lower"]] = Column(track.lower)
        columns[names["upper"]] = Column(track.upper)
        ends = {"lower": names["lower"], "upper": names["upper"]}
        traces.append({"draw": "between", "name": "bounds", **ends})
    line = {"color": COLOURS["risk"], "width": 1.8}
    risk: PlotlyTrace = {"draw": "line", "column": names["risk"], "name": "risk", "line": line}
    if names["upper"] in columns:
        risk["bounds"] = [names["lower"], names["upper"]]
    traces.append(risk)
    if track.expected is not None and not np.isnan(track.expected).all():
        columns[f"expected{index}"] = Column(track.expected, exact=True)
        plain = {"color": COLOURS["lead"], "width": 1.6, "dash": "dashdot"}
        shown = {"column": f"expected{index}", "name": "expected", "line": plain}
        traces.append({"draw": "line", **shown})
    traces += _live(run, index, track, columns)
    traces += [_level_line(value, colour, name, run) for value, colour, name in _limits(section)]
    traces += _events(run.events[index], track, monitor.clock)
    row = _row(
        f"risk:{track.name}",
        f"<b>{label(track.name)}</b>  risk of a violation {horizon}",
        RISK_HEIGHT,
        traces,
        range=[-0.03, TOP],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
        ticktext=["0", "", "0.5", "", "1"],
    )
    row["marks"] = [
        {"at": value, "text": f"{name} {value:g}", "colour": COLOURS[colour]}
        for value, colour, name in _limits(section)
    ]
    if monitor.model is None or np.isnan(track.probability).all():
        row["note"] = _why_no_risk(monitor, track)
    return row


LEVELS = (
    (int(Level.WARN), "warn_fill", "warning"),
    (int(Level.ACT), "act_fill", "alert"),
)


def _limits(section: PropertySpec) -> tuple[tuple[float, str, str], ...]:
    levels = section.thresholds
    return (levels.warn, "warn", "warn"), (levels.act, "act", "act")


def _live(
    run: RecordedRun, index: int, track: Track, columns: dict[str, Column]
) -> Iterator[PlotlyTrace]:
    """Draw the risk that a live monitor published, where it is not the replay's."""
    values = None if run.published is None else run.published.risks.get(track.name)
    if values is not None and differs(values, track.probability).any():
        columns[f"live{index}"] = Column(values, exact=True)
        line = {"color": COLOURS["uncovered"], "width": 1.8, "dash": "dot"}
        yield {"draw": "line", "column": f"live{index}", "name": "published live", "line": line}


def _where(column: str, equals: int, top: float, colour: str, name: str) -> PlotlyTrace:
    """Fill a row up to `top` where a column has a value."""
    return {
        "draw": "where",
        "column": column,
        "equals": equals,
        "top": top,
        "colour": COLOURS[colour],
        "name": name,
        "means": colour,
    }


def _gaps(track: Track, name: str, columns: dict[str, Column]) -> Iterator[PlotlyTrace]:
    """Mark where there is no risk, and why."""
    missing = _missing(track)
    if missing.any():
        columns[name] = Column(missing, exact=True, whole=True)
    for code, text, colour in MISSING:
        if (missing == code).any():
            yield _where(name, code, STRIP, colour, text)


def _missing(track: Track) -> NDArray[np.float64]:
    """Return for every tick why there is no risk; 0 where there is one."""
    missing = np.zeros(len(track.ticks))
    without = np.isnan(track.probability)
    missing[without & ~track.in_model] = NEVER_SEEN
    missing[without & (track.status == PropertyStatus.UNKNOWN)] = INPUTS_UNKNOWN
    missing[without & (track.state < 0) & track.in_model] = INPUTS_UNKNOWN
    missing[track.status == PropertyStatus.INACTIVE] = INACTIVE
    return missing


def _why_no_risk(monitor: Monitor, track: Track) -> str:
    if monitor.model is None:
        return "without a model there is no risk; signals and violations are shown"
    if (track.status == PropertyStatus.INACTIVE).all():
        return "no risk: never active (active_when)"
    if (track.state < 0).all():
        return "no risk: the state was never fully known (see what was left out, below)"
    if not track.in_model.any():
        return "no risk: the model knows none of these states"
    return f"no risk at any {monitor.clock.noun}"


def _level_line(value: float, colour: str, name: str, run: RecordedRun) -> PlotlyTrace:
    end = max(len(run.history) - 1, 1) / run.tracks[0].rate
    return _static(
        mode="lines",
        name=f"{name} at {value:g}",
        x=[0, end],
        y=[value, value],
        line={"color": COLOURS[colour], "width": 1, "dash": "dash"},
        hoverinfo="skip",
    )


def _static(**trace: Any) -> PlotlyTrace:
    return {"draw": "static", "trace": {"type": "scatter", **trace}}


def _events(events: Events, track: Track, clock: Clock) -> Iterator[PlotlyTrace]:
    """Mark alerts and violations above the risk."""
    first = int(track.ticks[0]) if len(track.ticks) else 0

    def at(tick: int) -> float:
        return round((tick - first) / track.rate, 3)

    foreseen = [v for v in events.violations if v.alert is not None]
    if foreseen:
        spans = [(at(v.alert), at(v.tick)) for v in foreseen if v.alert is not None]
        yield _static(
            mode="lines", name="lead time", x=[x for a, b in spans for x in (a, b, None)],
            y=[EVENTS_AT, EVENTS_AT, None] * len(spans),
            line={"color": COLOURS["lead"], "width": 4}, hoverinfo="skip",
        )  # fmt: skip
    if events.violations:
        when = [at(violation.tick) for violation in events.violations]
        yield _static(
            mode="lines", name="violation", x=[x for t in when for x in (t, t, None)],
            y=[0, EVENTS_AT, None] * len(when),
            line={"color": COLOURS["violation"], "width": 1}, hoverinfo="skip",
        )  # fmt: skip
    groups = (
        ("false alarm", "triangle-down-open", "act",
         [(a.start, "false alarm") for a in events.alerts if a.outcome is Outcome.FALSE]),
        ("alert", "triangle-down", "act",
         [(a.start, f"alert: {a.outcome.value}") for a in events.alerts
          if a.outcome is not Outcome.FALSE]),
        ("violation, foreseen", "x", "violation",
         [(v.tick, f"violation, {clock.say(v.lead or 0.0, '.2f')} lead") for v in foreseen]),
        ("violation, missed", "x-open", "violation",
         [(v.tick, "violation, missed") for v in events.violations if v.lead is None]),
    )  # fmt: skip
    for name, symbol, colour, points in groups:
        if points:
            yield _static(
                mode="markers", name=name, x=[at(tick) for tick, _ in points],
                y=[EVENTS_AT] * len(points), text=[text for _, text in points],
                hovertemplate="%{text}<extra></extra>",
                marker={"symbol": symbol, "size": 9, "color": COLOURS[colour],
                        "line": {"width": 1.5}},
            )  # fmt: skip


def _lanes_row(key: str, title: str, lanes: Lanes, words: Sequence[str]) -> Row:
    """Draw a lane for each condition, to be read from top to bottom."""
    count = len(words)
    trace = {"draw": "lanes", "column": key, "table": [list(entry) for entry in lanes.table]}
    row = _row(
        key,
        title,
        max(2, count) * LANE_HEIGHT,
        [trace] if count else [],
        tickvals=list(range(count)),
        ticktext=list(map(label, words)),
        range=[max(2, count) - 0.5, -0.5],
        showgrid=False,
    )
    if not count:
        row["note"] = "nothing of what states are made of held in this recording"
    row["long"] = True
    return row


def _signal_rows(monitor: Monitor, run: RecordedRun, columns: dict[str, Column]) -> Iterator[Row]:
    """Yield a row for each signal; the first `SHOWN_SIGNALS` of those that decide are shown."""
    decides = monitor.abstraction.deciding
    units = {name: signal.unit for name, signal in monitor.spec.signals.items()}
    order = sorted(run.signals, key=lambda series: series.name not in decides)
    shown = 0
    for series in order:
        key = f"signal:{series.name}"
        values = np.where(np.isinf(series.values), np.nan, series.values)
        columns[key] = Column(values, exact=series.kind != "number")
        row = _signal_row(series, key, units.get(series.name, ""))
        row["decides"] = series.name in decides
        if np.isnan(values).all():
            never = np.isnan(series.values).all()
            row["note"] = "never had a value here" if never else "infinite all the time"
        row["shown"] = series.name in decides and "note" not in row and shown < SHOWN_SIGNALS
        shown += row["shown"]
        yield row


def _signal_row(series: SignalSeries, key: str, unit: str) -> Row:
    what = {"array": "number of elements", "truth": "1 true, 0 false"}.get(series.kind, unit)
    settings: dict[str, Any] = {"nticks": 4}
    if series.kind == "text":
        settings = {
            "tickvals": list(range(len(series.texts)))[:MAX_TEXTS],
            "ticktext": [label(text[:24]) for text in series.texts[:MAX_TEXTS]],
        }
    elif series.kind == "truth":
        settings = {"tickvals": [0, 1], "range": [-0.1, 1.1]}
    line = {"color": COLOURS["signal"], "width": 1.3}
    trace = {"draw": "line", "column": key, "name": series.name, "line": line, "unit": unit}
    row = _row(
        key,
        f"<b>{label(series.name)}</b>  {label(what)}".rstrip(),
        SIGNAL_HEIGHT,
        [trace],
        **settings,
    )
    row["signal"] = series.name
    row["unit"] = unit
    return row
