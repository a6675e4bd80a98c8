"""The verdict on a replay: what was foreseen, false alarms, the time in alert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forewarn.assessment.events import LeadTimes, Score, lead_times
from forewarn.assessment.replay import FLATTERS, RecordedRun
from forewarn.errors import plural
from forewarn.monitoring.policy import Level
from forewarn.monitoring.step import Monitor

ALWAYS = 0.25
"""Share of the time in alert above which foreseeing is no feat."""


class Alarm(NamedTuple):
    """Share of the ticks of some runs with an alert of any property, and their duration."""

    share: float
    duration: float


class Verdict(NamedTuple):
    """What a replay showed.

    `text`: one sentence without its full stop.
    `good`: whether every violation was foreseen in time; None where the replay cannot tell.
    `kept_back`: the model learned from none of the recordings.
    """

    text: str
    good: bool | None
    kept_back: bool


def verdict(monitor: Monitor, runs: Sequence[RecordedRun], scores: Sequence[Score]) -> Verdict:
    """Return what was foreseen, and at what price."""
    alarm = time_in_alert(monitor, runs)
    violations = sum(score.violations for score in scores)
    missed = sum(score.missed for score in scores)
    text = (
        f"{_violations(monitor, runs, violations, missed)}, {_false_alarms(scores)}, and "
        f"{100 * alarm.share:.1f} % of the time ({monitor.clock.say(alarm.duration, '.1f')}) was "
        "spent in alert"
    )
    always = alarm.share > ALWAYS
    if monitor.model is None:
        text = f"{_happened(runs, violations)}; without a model there is no risk to judge"
    elif not any(score.hours for score in scores):
        text = "Nothing was watched: no rule was active with its inputs known"
    elif always:
        text += ": who alarms most of the time foresees everything"
    learned = sum(FLATTERS in run.notes for run in runs)
    if learned:
        text += f"; the model was learned from {_of(learned, len(runs))}, which flatters it"
    good = False if missed or always else True if violations and not learned else None
    return Verdict(text, good, monitor.model is not None and not learned)


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
