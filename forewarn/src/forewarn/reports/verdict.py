"""What stands on top of the report: one sentence, and the moments that went worst."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn.assessment.events import Alert, Outcome, Violation
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.verdict import Verdict
from forewarn.monitoring.step import Monitor
from forewarn.reports.event_table import columns_of, event_row
from forewarn.reports.page import absent, escape, section, table

LISTED = 8
WORST = (
    "Missed violations come first, then those foreseen latest, then false alarms by "
    "their risk. A click on a time shows the moment in the picture."
)


def verdict_line(found: Verdict) -> str:
    """Return the verdict as HTML."""
    kind = {None: "", False: "bad", True: "good"}[found.good]
    return f'<p class="verdict {kind}" id="verdict">{escape(found.text)}.</p>'


def worst_moments(monitor: Monitor, runs: Sequence[RecordedRun], drawn: int) -> str:
    """Return the section with the worst moments of all runs, the worst first.

    Parameters
    ----------
    drawn : int
        So many runs have a picture, which a click on the time shows.
    """
    found: list[tuple[tuple[int, float], int, Alert | Violation]] = []
    for number, run in enumerate(runs):
        for events in run.events:
            false = (alert for alert in events.alerts if alert.outcome is Outcome.FALSE)
            found += [(_badness(event), number, event) for event in events.violations]
            found += [(_badness(event), number, event) for event in false]
    found.sort(key=lambda each: each[:2])
    many = len(runs) > 1
    rows = [
        [
            *([escape(runs[number].name)] if many else []),
            *event_row(
                monitor, runs[number], event, f"timeline{number}" if number < drawn else None
            ),
        ]
        for _, number, event in found[:LISTED]
    ]
    if not rows:
        return section("worst", "Worst moments", "", absent("No violation and no false alarm."))
    left = len(found) - len(rows)
    more = absent(f"{left:,} more are in the tables of events below.") if left else ""
    columns = (*(["recording"] if many else []), *columns_of(monitor))
    used = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    columns, rows = tuple(columns[at] for at in used), [[row[at] for at in used] for row in rows]
    body = table(columns, rows, long="state", cards=True) + more
    return section("worst", "Worst moments", escape(WORST), body)


def _badness(event: Alert | Violation) -> tuple[int, float]:
    if isinstance(event, Violation):
        return (0, 0.0) if event.lead is None else (1, event.lead)
    return 2, -event.peak if event.peak == event.peak else 0.0
