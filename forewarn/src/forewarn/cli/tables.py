"""What a replay gave, as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from forewarn.assessment.events import Alert, Score, Violation
from forewarn.assessment.reliability import Calibration
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.results import (
    areas,
    calibrations,
    elapsed,
    raw_calibrations,
    remarks_on,
    scores,
    state_name,
)
from forewarn.assessment.verdict import verdict
from forewarn.assessment.watched_runs import limits
from forewarn.cli.common import lasting, share
from forewarn.cli.output import Output
from forewarn.errors import plural
from forewarn.monitoring.composition import values_in_words
from forewarn.monitoring.run_anomaly import DISTANCE, AnomalyRow, shares_in_words, worst_in_words
from forewarn.monitoring.step import Monitor
from forewarn.signals.clock import Clock

#: Characters from which on a state is shown as what changed.
LONG = 40


def print_runs(monitor: Monitor, runs: Sequence[RecordedRun], output: Output) -> None:
    """Print events, scores and everything that was left out."""
    for run in runs:
        _print_events(monitor, run, output, title=run.name if len(runs) > 1 else "")
    found = scores(monitor, runs), calibrations(monitor, runs), raw_calibrations(monitor, runs)
    _print_scores(*found, monitor.clock, output)
    judged = verdict(monitor, runs, found[0])
    hours = max((score.hours for score in found[0]), default=0.0)
    kept_back = " (not learned from)" if judged.kept_back else ""
    watched = f"{monitor.clock.span(hours * 3600)} watched{kept_back}"
    output.say(f"{watched}: {judged.text[0].lower()}{judged.text[1:]}")
    texts = [
        f"{name} {area:.3f}"
        for name, area in zip(monitor.spec.properties, areas(monitor, runs), strict=True)
        if area is not None
    ]
    if texts:
        output.note(f"area under the precision-recall curve: {', '.join(texts)}")
    _print_watched(monitor, runs, output)
    for line in remarks_on(monitor, runs):
        output.warn(line)


def _print_watched(monitor: Monitor, runs: Sequence[RecordedRun], output: Output) -> None:
    """Print which runs are unlike normal ones, since when, and what was farthest from normal."""
    watched = [(run, one) for run in runs for one in run.watched]
    if not watched:
        return
    last = watched[0][1].last
    found = [(run, one.last) for run, one in watched if one.anomalous]
    by_moments = last.statistic == DISTANCE
    figure, why = ("distance", "farthest from normal") if by_moments else ("value", "because")
    columns = ("anomalous run", ">since", f">{figure}", ">limit", ">p", why)
    output.table(columns, [_watched_cells(monitor, run, row) for run, row in found])
    promised = (
        ""
        if math.isnan(last.false_alarm_rate)
        else (f"; of normal runs at most {100 * last.false_alarm_rate:.3g} %")
    )
    output.say(f"{len(found)} of {plural(len(watched), 'run')} anomalous{promised}")
    if by_moments and monitor.detector is not None:
        longest = monitor.detector.longest_normal
        for line in limits([one for _, one in watched], longest):
            output.warn(line)


def _watched_cells(monitor: Monitor, run: RecordedRun, row: AnomalyRow) -> list[str]:
    p_value = "" if math.isnan(row.p_value) else f"{row.p_value:.3g}"
    return [
        run.name if row.run == 0 else f"{run.name}, run {row.run}",
        monitor.clock.figure(elapsed(monitor, run, row.since), ".2f"),
        f"{row.value:.3g}",
        f"{row.limit:.3g}",
        p_value,
        shares_in_words(row.worst) if row.statistic == DISTANCE else worst_in_words(row),
    ]


def _print_events(monitor: Monitor, run: RecordedRun, output: Output, title: str) -> None:
    happened: list[tuple[int, bool, Alert | Violation]] = []
    for events in run.events:
        happened += [(alert.start, False, alert) for alert in events.early_alerts]
        happened += [(violation.tick, True, violation) for violation in events.violations]
    happened.sort(key=lambda timed: timed[:2])
    states = [state_name(monitor, run, tick) for tick, _, _ in happened]
    shown = [
        changed(before, state) if at else state
        for at, (before, state) in enumerate(zip(["", *states], states, strict=False))
    ]
    rows = [
        _cells(monitor, run, event, state)
        for (_, _, event), state in zip(happened, shown, strict=True)
    ]
    named = "property" if len(monitor.spec.properties) > 1 else "?property"
    columns = (">time", named, "event", ">lasts", ">lead time", ">peak risk", "state", "remark")
    output.table(columns, rows, title)
    if rows:
        output.say()


def changed(before: str, state: str) -> str:
    """Return a long state as what it has gained and lost since another one."""
    old, new = before.split(" & "), state.split(" & ")
    gained = [f"+{name}" for name in new if name not in old]
    lost = [f"-{name}" for name in old if name not in new]
    text = ", ".join([*gained, *lost]) or "as before"
    return text if len(state) > LONG and len(text) < len(state) else state


def _cells(monitor: Monitor, run: RecordedRun, event: Alert | Violation, state: str) -> list[str]:
    clock = monitor.clock
    if isinstance(event, Violation):
        alert, outcome = event.answer, event.outcome
        tick, kind, lead = event.tick, "VIOLATION", lasting(event.lead, clock)
        values = values_in_words(run.history.seen.get((event.name, tick), {}))
    else:
        alert, outcome = event, event.outcome.told
        tick, kind, lead, values = event.start, "alert", "", ""
    remark, lasts, risk = [outcome, *filter(None, [values])], "", ""
    if alert is not None:
        lasts = clock.say(clock.duration(alert.end - alert.start + 1), ".1f")
        risk = peak_risk(alert)
        remark += ["state unknown to the model"] * alert.out_of_model
        remark += ["recording ends within the horizon"] * alert.cut_short
    when = clock.figure(elapsed(monitor, run, tick), ".2f")
    return [when, event.name, kind, lasts, lead, risk, state, ", ".join(remark)]


def peak_risk(alert: Alert) -> str:
    """Return the greatest risk of an alert; nothing where the state had none."""
    return "" if alert.peak != alert.peak or alert.out_of_model else f"{alert.peak:.3f}"


def _print_scores(
    found: Sequence[Score],
    calibrated: Sequence[Calibration | None],
    raw: Sequence[Calibration | None],
    clock: Clock,
    output: Output,
) -> None:
    rows = []
    mended = any(before is not None for before in raw)
    for score, calibration, before in zip(found, calibrated, raw, strict=True):
        per_hour = score.false_alarms_per_hour
        rows.append(
            [
                score.name,
                str(score.violations),
                str(score.detected),
                lasting(score.lead.median, clock) if score.lead else "-",
                f"{clock.figure(score.lead.least, '.2f')}..{clock.say(score.lead.greatest, '.2f')}"
                if score.lead
                else "-",
                str(score.alerts),
                str(score.false_alarms),
                "-" if per_hour is None else f"{per_hour:.1f}",
                share(score.alert_share),
                share(score.precision),
                share(score.recall),
                *agreement(calibration),
                *(agreement(before) if mended else ()),
            ]
        )
    columns = (
        "property",
        ">violations",
        ">foreseen",
        ">median lead",
        ">leads",
        ">alerts",
        ">false",
        ">false/h" if clock.timed else f">false {clock.hour}",
        ">in alert",
        ">precision",
        ">recall",
        ">Brier",
        ">ECE",
        *((">chain's Brier", ">chain's ECE") if mended else ()),
    )
    output.table(columns, rows)


def agreement(found: Calibration | None) -> tuple[str, str]:
    """Return Brier score and expected calibration error for a table."""
    return ("-", "-") if found is None else (f"{found.brier:.4f}", f"{found.expected_error:.4f}")
