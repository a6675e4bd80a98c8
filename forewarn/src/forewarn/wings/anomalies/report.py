"""The page of ``forewarn anomalies``: which runs are unlike the others, and at which step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from forewarn.logic.specification import CompiledSpec
from forewarn.reports.page import Part, absent, assembled, escape, label, part, plot, table
from forewarn.reports.palette import COLOURS, axis, base_layout
from forewarn.reports.thinning import extremes
from forewarn.wings.anomalies.calibration import Calibration
from forewarn.wings.anomalies.drift import Drift
from forewarn.wings.anomalies.judged_runs import (
    STEP_COLUMNS,
    JudgedRun,
    name_of,
    step_cells,
    value_name,
)

MOST_RUNS, MOST_POINTS, MOST_DRAWN = 40, 4_000, 5_000
STILL_SHOWN = 3
OVERVIEW = (
    "Each mark is a run, in the given order; crosses are anomalous. Point at a mark for its name."
)
STEPS = (
    "Above: how surprising each step is, in nats (the negative logarithm of its probability). "
    "Below: its p-value, the share of steps of normal runs that are as surprising, each run "
    "weighing the same. The diamond is the most surprising step. Point at a mark for what was "
    "done there."
)


class Mark(NamedTuple):
    """A run in a picture of many."""

    name: str
    value: float
    anomalous: bool


class Surprise(NamedTuple):
    """What was found out about runs.

    `calibration`: what normal runs look like.
    `drift`: whether they become more surprising; None if they are too few to say.
    """

    judged: Sequence[JudgedRun]
    calibration: Calibration
    drift: Drift | None

    def __str__(self) -> str:
        anomalous = sum(one.finding.anomalous for one in self.judged)
        calibration = self.calibration
        return (
            f"{anomalous} of {len(self.judged):,} runs anomalous by the test {calibration.test} "
            f"(alpha {calibration.alpha:g}, {len(calibration.greatest):,} normal runs)"
        )


def surprise_page(found: Surprise, compiled: CompiledSpec) -> str:
    """Return the page."""
    return assembled("Forewarn: anomalies", str(found), surprise_parts(found, compiled))


def surprise_parts(found: Surprise, compiled: CompiledSpec) -> list[Part]:
    """Return the sections about runs and their steps."""
    judged, calibration, drift = found
    anomalous = [one for one in judged if one.finding.anomalous]
    runs = _overview(judged, calibration) + _table(anomalous, calibration, compiled)
    lead = f"{found}. {_drift(judged, drift)} {OVERVIEW}"
    body = "".join(
        _run(one, calibration, compiled, number)
        for number, one in enumerate(_shown(judged, anomalous))
    )
    if len(anomalous) > MOST_RUNS:
        body += absent(f"{len(anomalous) - MOST_RUNS:,} more anomalous runs are in the table only.")
    return [
        part("surprise", "Surprise", "Surprise of runs", lead, runs),
        part("steps", "Steps", "Surprise over time", STEPS, body),
    ]


def _shown(judged: Sequence[JudgedRun], anomalous: Sequence[JudgedRun]) -> list[JudgedRun]:
    """Return the runs whose steps are drawn: anomalous ones, else the most surprising."""
    if anomalous:
        return list(anomalous[:MOST_RUNS])
    return sorted(judged, key=lambda one: -max(one.run.surprises))[:STILL_SHOWN]


def _drift(judged: Sequence[JudgedRun], drift: Drift | None) -> str:
    if drift is None:
        return "Too few runs to say whether they become more surprising."
    if drift.since is None:
        return (
            f"No drift over {len(judged):,} runs (evidence {drift.evidence:.2f}, limit "
            f"{drift.limit:.2f})."
        )
    return f"Drift: runs become more surprising, first seen at {judged[drift.since].run.name}."


def _overview(judged: Sequence[JudgedRun], calibration: Calibration) -> str:
    marks = [Mark(one.run.name, one.finding.value, one.finding.anomalous) for one in judged]
    limit = judged[0].finding.limit if judged else 0.0
    return runs_plot(marks, limit, value_name(calibration))


def runs_plot(marks: Sequence[Mark], limit: float, what: str) -> str:
    """Return a picture of runs, each with its figure, and the limit; `what` names the figure."""
    if not marks:
        return absent("No run was judged.")
    drawn = marks[:MOST_DRAWN]
    layout = base_layout(320, 16, 48)
    layout["xaxis"] = axis(title={"text": "run"})
    layout["yaxis"] = axis(title={"text": what})
    layout["hovermode"] = "closest"
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "markers", "name": name,
            "x": [i for i, one in enumerate(drawn) if one.anomalous == odd],
            "y": [round(one.value, 6) for one in drawn if one.anomalous == odd],
            "text": [label(one.name) for one in drawn if one.anomalous == odd],
            "marker": {"size": size, "symbol": symbol, "color": COLOURS[colour]},
            "hovertemplate": "%{text}<br>%{y:.3f}<extra></extra>",
        }
        for odd, name, symbol, colour, size in (
            (False, "runs", "circle", "risk", 6), (True, "anomalous runs", "x", "act", 9),
        )
    ]  # fmt: skip
    data.append(level("limit", [0, max(len(drawn) - 1, 1)], limit))
    rest = len(marks) - len(drawn)
    more = absent(f"The first {MOST_DRAWN:,} are drawn, {rest:,} are not.") if rest else ""
    return plot("runs-plot", {"data": data, "layout": layout}) + more


def level(name: str, x: Sequence[float], y: float) -> dict[str, Any]:
    """Return a dashed line at a limit."""
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": list(x), "y": [round(y, 6)] * 2,
        "line": {"color": COLOURS["act"], "dash": "dash", "width": 1.5},
        "hovertemplate": f"{name} %{{y:.3f}}<extra></extra>",
    }  # fmt: skip


def _table(anomalous: Sequence[JudgedRun], calibration: Calibration, compiled: CompiledSpec) -> str:
    if not anomalous:
        return absent("No run is anomalous.")
    clock = compiled.abstraction.clock
    rows = []
    for one in anomalous:
        finding = one.finding
        since = finding.since
        at = "at its end"
        if since is not None:
            at = clock.figure(clock.duration(one.run.transitions[since].tick), ".2f")
        rows.append(
            [
                escape(one.run.name),
                f"{finding.value:.3f}",
                f"{finding.limit:.3f}",
                "-" if finding.p_value is None else f"{finding.p_value:.3g}",
                at,
            ]
        )
    columns = ("run", f">{value_name(calibration)}", ">limit", ">p", ">known at")
    return table(columns, rows, long="run")


def _run(one: JudgedRun, calibration: Calibration, compiled: CompiledSpec, number: int) -> str:
    finding = one.finding
    p_value = "" if finding.p_value is None else f", p = {finding.p_value:.3g}"
    cells = [[escape(cell) for cell in row] for row in step_cells(one, compiled)]
    outcome = "anomalous" if finding.anomalous else "not anomalous"
    return (
        f"<details{'' if number else ' open'}><summary>{escape(one.run.name)}"
        f"<small>{outcome}{p_value}</small></summary>"
        f"{plot(f'steps{number}', _steps(one, calibration, compiled))}"
        f"{table(STEP_COLUMNS, cells, long='expected')}</details>"
    )


def _steps(one: JudgedRun, calibration: Calibration, compiled: CompiledSpec) -> dict[str, Any]:
    clock, run = compiled.abstraction.clock, one.run
    surprises = np.asarray(run.surprises)
    rows = extremes(surprises, MOST_POINTS)
    times = [clock.duration(run.transitions[i].tick) for i in rows.tolist()]
    texts = [
        label(
            f"{name_of(compiled, step.state)}, {step.action or 'no action'}, then "
            f"{name_of(compiled, step.following)}"
        )
        for step in (run.transitions[i] for i in rows.tolist())
    ]
    layout = base_layout(360, 16, 48)
    layout["xaxis"] = axis(title={"text": f"time ({clock.unit})"}, anchor="y2")
    layout["yaxis"] = axis(title={"text": "surprise"}, domain=[0.42, 1], rangemode="tozero")
    layout["yaxis2"] = axis(title={"text": "p"}, domain=[0, 0.32], type="log", nticks=4)
    layout["hovermode"] = "closest"
    shared = {"type": "scatter", "mode": "lines+markers", "x": times, "text": texts}
    data: list[dict[str, Any]] = [
        {**shared, "name": "surprise", "y": [round(float(v), 6) for v in surprises[rows]],
         "line": {"color": COLOURS["risk"], "width": 1}, "marker": {"size": 5},
         "hovertemplate": "%{text}<br>surprise %{y:.3f}<extra></extra>"},
        {**shared, "name": "p", "yaxis": "y2",
         "y": [float(f"{p:.6g}") for p in calibration.step_p(surprises[rows].tolist())],
         "line": {"color": COLOURS["signal"], "width": 1}, "marker": {"size": 4},
         "hovertemplate": "%{text}<br>p %{y:.3g}<extra></extra>"},
    ]  # fmt: skip
    if calibration.test == "conformal":
        data.append(level("limit", [times[0], times[-1]], one.finding.limit))
    worst = int(np.argmax(surprises))
    data.append(
        {"type": "scatter", "mode": "markers", "name": "most surprising",
         "x": [clock.duration(run.transitions[worst].tick)],
         "y": [round(float(surprises[worst]), 6)], "hoverinfo": "skip",
         "marker": {"size": 13, "symbol": "diamond-open", "color": COLOURS["act"],
                    "line": {"width": 2.5}}}
    )  # fmt: skip
    return {"data": data, "layout": layout}
