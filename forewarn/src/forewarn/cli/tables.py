"""What a replay gave, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn.assessment.events import Alert, Score, Violation
from forewarn.assessment.reliability import Calibration
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.results import (
    calibrations,
    elapsed,
    raw_calibrations,
    remarks,
    scores,
    state_name,
)
from forewarn.cli.common import seconds, share, span
from forewarn.cli.output import Output
from forewarn.monitoring.step import Monitor


def print_runs(monitor: Monitor, runs: Sequence[RecordedRun], output: Output) -> None:
    """Print events, scores and everything that was left out."""
    for run in runs:
        _print_events(monitor, run, output, title=run.name if len(runs) > 1 else "")
    _print_scores(
        scores(monitor, runs), calibrations(monitor, runs), raw_calibrations(monitor, runs), output
    )
    for run in runs:
        for line in remarks(run):
            output.warn(f"{run.name}: {line}")


def _print_events(monitor: Monitor, run: RecordedRun, output: Output, title: str) -> None:
    happened: list[tuple[int, bool, Alert | Violation]] = []
    for events in run.events:
        happened += [(alert.start, False, alert) for alert in events.alerts]
        happened += [(violation.tick, True, violation) for violation in events.violations]
    happened.sort(key=lambda timed: timed[:2])
    rows = [_cells(monitor, run, event) for _, _, event in happened]
    columns = (">time", "property", "event", ">lasts", ">lead time", ">risk", "state", "remark")
    output.table(columns, rows, title)
    if rows:
        output.say()


def _cells(monitor: Monitor, run: RecordedRun, event: Alert | Violation) -> list[str]:
    rate = monitor.spec.rate
    if isinstance(event, Violation):
        verdict = "missed" if event.lead is None else "foreseen"
        return [
            f"{elapsed(monitor, run, event.tick):.2f}",
            event.name,
            "VIOLATION",
            "",
            seconds(event.lead),
            "",
            state_name(monitor, run, event.tick),
            verdict,
        ]
    remark = [event.outcome.value]
    if event.unseen:
        remark.append("state unknown to the model")
    if event.cut_short:
        remark.append("recording ends within the horizon")
    return [
        f"{elapsed(monitor, run, event.start):.2f}",
        event.name,
        "alert",
        f"{(event.end - event.start + 1) / rate:.1f} s",
        "",
        "" if event.peak != event.peak else f"{event.peak:.3f}",
        state_name(monitor, run, event.start),
        ", ".join(remark),
    ]


def _print_scores(
    found: Sequence[Score],
    agreement: Sequence[Calibration | None],
    raw: Sequence[Calibration | None],
    output: Output,
) -> None:
    rows = []
    mended = any(before is not None for before in raw)
    for score, calibration, before in zip(found, agreement, raw, strict=True):
        per_hour = score.false_alarms_per_hour
        rows.append(
            [
                score.name,
                str(score.violations),
                str(score.detected),
                seconds(score.lead.median) if score.lead else "-",
                f"{score.lead.least:.2f}..{score.lead.greatest:.2f} s" if score.lead else "-",
                str(score.alerts),
                str(score.false_alarms),
                "-" if per_hour is None else f"{per_hour:.1f}",
                share(score.alert_share),
                share(score.precision),
                share(score.recall),
                *_agreement(calibration),
                *(_agreement(before) if mended else ()),
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
        ">false/h",
        ">in alert",
        ">precision",
        ">recall",
        ">Brier",
        ">ECE",
        *((">chain's Brier", ">chain's ECE") if mended else ()),
    )
    output.table(columns, rows)
    hours = max((score.hours for score in found), default=0.0)
    output.say(f"{span(hours * 3600)} watched")


def _agreement(found: Calibration | None) -> tuple[str, str]:
    return ("-", "-") if found is None else (f"{found.brier:.4f}", f"{found.expected_error:.4f}")
