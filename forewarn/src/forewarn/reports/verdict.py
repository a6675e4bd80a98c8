"""What stands on top of the report: one sentence, and the moments that went worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forewarn.assessment.events import Alert, LeadTimes, Outcome, Score, Violation, lead_times
from forewarn.assessment.replay import FLATTERS, RecordedRun
from forewarn.errors import plural
from forewarn.monitoring.policy import Level
from forewarn.monitoring.step import Monitor
from forewarn.reports.event_table import columns_of, event_row
from forewarn.reports.figures import percent
from forewarn.reports.foresight import ALWAYS
from forewarn.reports.page import absent, escape, section, table

LISTED = 8
WORST = (
    "Missed violations come first, then those foreseen latest, then false alarms by "
    "their risk. A click on a time shows the moment in the picture."
)


class Alarm(NamedTuple):
    """Share of the ticks of some runs with an alert of any property, and their duration."""

    share: float
    duration: float


def verdict(monitor: Monitor, runs: Sequence[RecordedRun], scores: Sequence[Score]) -> str:
    """Return one sentence on how the monitor did, as HTML."""
    alarm = time_in_alert(monitor, runs)
    violations = sum(score.violations for score in scores)
    missed = sum(score.missed for score in scores)
    sentence = (
        f"{_violations(monitor, runs, violations, missed)}, {_false_alarms(scores)}, and "
        f"{percent(alarm.share)} of the time ({monitor.clock.say(alarm.duration, '.1f')}) was "
        "spent in alert"
    )
    always = alarm.share > ALWAYS
    if monitor.model is None:
        sentence = f"{_happened(runs, violations)}; without a model there is no risk to judge"
    elif not any(score.hours for score in scores):
        sentence = "Nothing was watched: no rule was active with its inputs known"
    elif always:
        sentence += ": who alarms most of the time foresees everything"
    learned = sum(FLATTERS in run.notes for run in runs)
    if learned:
        sentence += f"; the model was learned from {_of(learned, len(runs))}, which flatters it"
    kind = "bad" if missed or always else "good" if violations and not learned else ""
    return f'<p class="verdict {kind}" id="verdict">{escape(sentence)}.</p>'


def _of(some: int, number: int) -> str:
    if some < number:
        return f"{some:,} of the {number:,} recordings"
    return "this very recording" if number == 1 else "these very recordings"


def time_in_alert(monitor: Monitor, runs: Sequence[RecordedRun]) -> Alarm:
    """Return how long any property was at ACT; two at once count once."""
    on = [
        np.any([track.level == Level.ACT for track in run.tracks], axis=0)
        for run in runs
        if run.tracks
    ]
    ticks = sum(len(each) for each in on)
    alerted = sum(int(each.sum()) for each in on)
    return Alarm(alerted / ticks if ticks else 0.0, alerted / monitor.clock.rate)


def _violations(monitor: Monitor, runs: Sequence[RecordedRun], count: int, missed: int) -> str:
    if not count:
        return _happened(runs, count)
    leads = lead_times(
        [
            violation.lead
            for run in runs
            for events in run.events
            for violation in events.violations
            if violation.lead is not None
        ]
    )
    seen = count - missed
    if leads is None:
        return "The violation was missed" if count == 1 else f"All {count:,} violations were missed"
    if missed:
        text = f"{seen:,} of {plural(count, 'violation')} {_was(seen)} foreseen"
        return f"{text} {_ahead(monitor, leads)}, {missed:,} {_was(missed)} missed"
    all_of_them = "The violation was" if count == 1 else f"All {count:,} violations were"
    return f"{all_of_them} foreseen {_ahead(monitor, leads)}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _ahead(monitor: Monitor, leads: LeadTimes) -> str:
    say = monitor.clock.say
    if leads.least == leads.greatest:
        return f"{say(leads.least, '.2f')} ahead"
    return f"{say(leads.least, '.2f')} to {say(leads.greatest, '.2f')} ahead"


def _happened(runs: Sequence[RecordedRun], count: int) -> str:
    where = "" if len(runs) == 1 else f" in {len(runs):,} recordings"
    return f"{plural(count, 'violation') if count else 'No violation'} happened{where}"


def _false_alarms(scores: Sequence[Score]) -> str:
    false, alerts = sum(score.false_alarms for score in scores), sum(s.alerts for s in scores)
    if not alerts:
        return "there was no alert"
    if not false:
        return (
            f"none of {plural(alerts, 'alert')} was false" if alerts > 1 else "the alert was right"
        )
    return f"{false:,} of {plural(alerts, 'alert')} {_was(false)} false"


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
