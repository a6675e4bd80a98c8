"""The part of a report about how far the moments of runs are from those of normal runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forewarn.assessment.replay import Replaying, replay
from forewarn.assessment.watched_runs import WatchedRun, limits
from forewarn.errors import plural
from forewarn.monitoring.run_anomaly import PART_KNOWN, AnomalyRow, shares_in_words
from forewarn.monitoring.verdict import Verdict
from forewarn.recordings.registry import open_recording
from forewarn.reports.page import Part, absent, escape, label, part, plot, table
from forewarn.reports.palette import COLOURS, axis, base_layout
from forewarn.reports.thinning import extremes
from forewarn.signals.clock import NANOSECONDS, Clock
from forewarn.wings.anomalies.judged_runs import TOP
from forewarn.wings.anomalies.report import (
    MOST_POINTS,
    MOST_RUNS,
    OVERVIEW,
    STILL_SHOWN,
    Mark,
    level,
    runs_plot,
)

MOMENTS = (
    "How far each moment is from the nearest one of normal runs, in standard deviations of the "
    "signals. The diamond is where the run first came above the limit. A gap is a moment that was "
    "not judged. Point at the line for the signals that are farthest; the table lists the farthest "
    "moments, with the share of normal runs that ever get as far (p)."
)
COLUMNS = (">time", "state", ">distance", ">p", "farthest from normal", "judged by")


class DistantRun(NamedTuple):
    """A run, with the verdict at each of its moments.

    `name`: the recording, and the number of the run if it is not the first there.
    `times`: of the moments, in seconds or steps from the beginning of the recording.
    `rows`: the verdicts at them.
    `watched`: the run as a whole.
    """

    name: str
    times: list[float]
    rows: list[AnomalyRow]
    watched: WatchedRun

    @property
    def last(self) -> AnomalyRow:
        """The verdict at its last moment, and so about all of it."""
        return self.watched.last

    @property
    def anomalous(self) -> bool:
        """It became anomalous."""
        return self.watched.anomalous

    @property
    def since(self) -> float:
        """When it became anomalous."""
        return self.times[self.last.since - self.rows[0].tick]


def distant_runs(
    path: Path, how: Replaying, progress: Callable[[float], None] | None = None
) -> list[DistantRun]:
    """Return the runs of a recording as the monitor watches them."""
    rows: list[AnomalyRow] = []

    def take(verdict: Verdict) -> None:
        if verdict.anomaly is not None:
            rows.append(verdict.anomaly)

    with open_recording(path) as recording:
        run = replay(how, recording, on_verdict=take, progress=progress)
    clock, found = how.monitor.clock, []
    parts = groupby(rows, key=lambda row: row.run)
    for (number, some), watched in zip(parts, run.watched, strict=True):
        own = list(some)
        times = [(clock.time_ns(row.tick) - run.start_ns) / NANOSECONDS for row in own]
        name = f"{path}, run {number}" if number else str(path)
        found.append(DistantRun(name, times, own, watched))
    return found


def distance_parts(runs: Sequence[DistantRun], clock: Clock, longest: int) -> list[Part]:
    """Return the sections about runs and their moments; `longest` is the longest normal run."""
    judged = [run for run in runs if run.last.transitions]
    anomalous = [run for run in judged if run.anomalous]
    marks = [Mark(run.name, run.last.value, run.anomalous) for run in judged]
    limit = judged[0].last.limit if judged else 0.0
    overview = runs_plot(marks, limit, "greatest distance") + _table(anomalous, clock)
    shown = anomalous or sorted(judged, key=lambda run: -run.last.value)[:STILL_SHOWN]
    body = "".join(_run(run, clock, number) for number, run in enumerate(shown[:MOST_RUNS]))
    if len(shown) > MOST_RUNS:
        body += absent(f"{len(shown) - MOST_RUNS:,} more anomalous runs are in the table only.")
    lines = limits([run.watched for run in runs], longest)
    said = " ".join(f"{line[0].upper()}{line[1:]}." for line in lines)
    lead = f"{_summary(judged, anomalous)} {said} {OVERVIEW}"
    return [
        part("distance", "Distance", "Distance of runs from normal ones", lead, overview),
        part("moments", "Moments", "Distance over time", MOMENTS, body),
    ]


def _summary(judged: Sequence[DistantRun], anomalous: Sequence[DistantRun]) -> str:
    if not judged:
        return ""
    last = judged[0].last
    return (
        f"{len(anomalous)} of {plural(len(judged), 'run')} anomalous; of normal runs at most "
        f"{100 * last.false_alarm_rate:.3g} % (limit {last.limit:.3g}, "
        f"{plural(last.normal_runs, 'normal run')})."
    )


def _table(anomalous: Sequence[DistantRun], clock: Clock) -> str:
    if not anomalous:
        return absent("No run is anomalous.")
    rows = [
        [
            escape(run.name),
            clock.figure(run.since, ".2f"),
            f"{run.last.value:.3g}",
            f"{run.last.limit:.3g}",
            f"{run.last.p_value:.3g}",
            escape(shares_in_words(run.last.worst)),
        ]
        for run in anomalous
    ]
    columns = ("run", ">since", ">distance", ">limit", ">p", "farthest from normal")
    return table(columns, rows, long="run")


def _run(run: DistantRun, clock: Clock, number: int) -> str:
    outcome = f"anomalous since {clock.say(run.since, '.2f')}" if run.anomalous else "not anomalous"
    return (
        f"<details{'' if number else ' open'}><summary>{escape(run.name)}"
        f"<small>{outcome}, p = {run.last.p_value:.3g}</small></summary>"
        f"{plot(f'moments{number}', _moments(run, clock))}"
        f"{table(COLUMNS, _farthest(run, clock), long='farthest from normal')}</details>"
    )


def _farthest(run: DistantRun, clock: Clock) -> list[list[str]]:
    judged = [(time, row.step) for time, row in zip(run.times, run.rows, strict=True)]
    known = [(time, step) for time, step in judged if step.tick >= 0]
    known.sort(key=lambda pair: -pair[1].surprise)
    return [
        [
            clock.figure(time, ".2f"),
            escape(step.following),
            f"{step.surprise:.3g}",
            f"{step.p_value:.3g}",
            escape(shares_in_words(step)),
            "known signals only" if step.part == PART_KNOWN else "all signals",
        ]
        for time, step in known[:TOP]
    ]


def _moments(run: DistantRun, clock: Clock) -> dict[str, Any]:
    distances = np.array([row.step.surprise for row in run.rows])
    drawn = extremes(distances, MOST_POINTS).tolist()
    layout = base_layout(320, 16, 48)
    layout["xaxis"] = axis(title={"text": f"time ({clock.unit})"})
    layout["yaxis"] = axis(title={"text": "distance"}, rangemode="tozero")
    layout["hovermode"] = "closest"
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines+markers", "name": "distance",
         "x": [run.times[i] for i in drawn],
         "y": [None if np.isnan(distances[i]) else round(float(distances[i]), 6) for i in drawn],
         "text": [label(shares_in_words(run.rows[i].step)) for i in drawn],
         "line": {"color": COLOURS["risk"], "width": 1}, "marker": {"size": 4},
         "hovertemplate": "%{text}<br>distance %{y:.3f}<extra></extra>"},
        level("limit", [run.times[0], run.times[-1]], run.last.limit),
    ]  # fmt: skip
    if run.anomalous:
        first = run.last.since - run.rows[0].tick
        data.append(
            {"type": "scatter", "mode": "markers", "name": "first above the limit",
             "x": [run.since], "y": [round(float(distances[first]), 6)], "hoverinfo": "skip",
             "marker": {"size": 13, "symbol": "diamond-open", "color": COLOURS["act"],
                        "line": {"width": 2.5}}}
        )  # fmt: skip
    return {"data": data, "layout": layout}
