"""What a run foresaw: alerts, violations, which belongs to which, and how good that is.

The terms are those of the design. A violation counts once for each excursion (`excursions`). It was
foreseen if the alert that is on when it happens began at least one tick earlier, and not within an
earlier excursion that had not cleared: that is an answer, not foresight. Its *lead time* is the
time since that alert began, or since the excursion before cleared if that was later, and at most
the horizon: what is earlier was no prediction of it. A *false alarm* is an alert with no violation
during it or within the horizon of its start.

A monitor that always alarms foresees everything, so none of these figures is given without the
others, the share of the time in alert among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.excursions import find_excursions
from forewarn.assessment.history import Track
from forewarn.monitoring.policy import Level
from forewarn.monitoring.verdict import PropertyStatus

SECONDS_AN_HOUR = 3600.0


class Outcome(str, Enum):
    """What became of an alert.

    `FORESAW`: a violation happened while it was on, at least one tick after it began.
    `NEAR`: it was over when a violation happened within the horizon of its start.
    `LATE`: it began with a violation, or before one had cleared: no foresight, and not false
        either.
    `FALSE`: None of these.
    """

    FORESAW = "foresaw"
    NEAR = "near"
    LATE = "late"
    FALSE = "false alarm"

    @property
    def told(self) -> str:
        """What became of an alert, in words; one that is late has no violation of its own."""
        return "a breach goes on" if self is Outcome.LATE else str(self.value)


class Alert(NamedTuple):
    """One episode at level ACT.

    `start`, `end`: first and last tick.
    `outcome`: what became of it.
    `peak`: greatest risk in it; NaN if there was none.
    `out_of_model`: it began in a state that the model does not know.
    `cut_short`: the run ends before the horizon of its start, so that a violation may have
        followed.
    """

    name: str
    start: int
    end: int
    outcome: Outcome
    peak: float
    out_of_model: bool
    cut_short: bool


class Violation(NamedTuple):
    """One violation that counts: the first of an excursion.

    `alert`: first tick of the alert that foresaw it; None if it was missed.
    `lead`: lead time in seconds; None if it was missed.
    `answer`: the alert that began with it: it was missed, and answered at once.
    """

    name: str
    tick: int
    alert: int | None
    lead: float | None
    answer: Alert | None = None

    @property
    def outcome(self) -> str:
        """One word: foreseen, late if an alert began with it, or missed."""
        if self.lead is not None:
            return "foreseen"
        return "missed" if self.answer is None else "late"


class Events(NamedTuple):
    """Alerts and violations of one property over one run.

    `alerts`, `violations`: in order of time.
    `hours`, `alert_hours`: time watched, and of it the time at ACT.
    """

    alerts: tuple[Alert, ...]
    violations: tuple[Violation, ...]
    hours: float
    alert_hours: float

    @property
    def early_alerts(self) -> tuple[Alert, ...]:
        """The alerts without those that began with a violation, of which it tells."""
        with_one = {violation.tick for violation in self.violations if violation.answer}
        return tuple(alert for alert in self.alerts if alert.start not in with_one)


class MatchedAlerts(NamedTuple):
    """What became of m alerts of one run, and the v violations that they foresaw.

    `happened` (shape (w,)): rows of all violations that count.
    `foresaw`, `near`, `late` (shape (m,)): see `Outcome`; any other alert is a false one.
    `alert`, `row` (shape (v,)): position of the alert and row of the violation, in the order of
        alerts and time.
    `lead` (shape (v,)): lead times in ticks.
    """

    happened: NDArray[np.int64]
    foresaw: NDArray[np.bool_]
    near: NDArray[np.bool_]
    late: NDArray[np.bool_]
    alert: NDArray[np.int64]
    row: NDArray[np.int64]
    lead: NDArray[np.float64]

    def outcome(self, alert: int) -> Outcome:
        """Return what became of one alert."""
        if self.late[alert]:
            return Outcome.LATE
        if self.foresaw[alert]:
            return Outcome.FORESAW
        return Outcome.NEAR if self.near[alert] else Outcome.FALSE


def judge(
    run: Track | ScoredRun,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
) -> MatchedAlerts:
    """Match alerts with the violations of a run.

    `start`, `end` (shape (m,)): first row of each alert, and the row after its last one.
    """
    excursions = find_excursions(run)
    happened = np.flatnonzero(excursions.begins)
    first = np.searchsorted(happened, start)
    within = np.searchsorted(happened, end) - first
    late = excursions.open[start]
    foresaw = ~late & (within > 0)
    near = ~foresaw & ~late & (first < len(happened))
    if run.horizon is not None and len(happened):
        following = run.ticks[happened[np.minimum(first, len(happened) - 1)]]
        near &= following <= run.ticks[start] + run.horizon
    if isinstance(run, ScoredRun) and run.confirmed is not None:
        confirmed = np.concatenate(([0], np.cumsum(run.confirmed)))
        near |= ~foresaw & ~late & (confirmed[end] > confirmed[start])
    alert = np.repeat(np.arange(len(start)), within)
    row = happened[first[alert] + _count_up(within)]
    base = excursions.base(start[alert], row)
    seen = base < row
    alert, row, base = alert[seen], row[seen], base[seen]
    lead = run.ticks[row] - run.ticks[base]
    if run.horizon is not None:
        lead = np.minimum(lead, run.horizon)
    return MatchedAlerts(happened, foresaw, near, late, alert, row, lead)


def _count_up(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, ... for each length, one behind the other."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def find_events(track: Track) -> Events:
    """Match the alerts of a property with its violations."""
    on = track.level == Level.ACT
    edges = np.flatnonzero(np.diff(on, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    judged = judge(track, starts, ends)
    seen = watched(track)
    hour = track.rate * SECONDS_AN_HOUR
    alerts = tuple(
        _alert(track, start, end - 1, judged.outcome(number))
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
    )
    return Events(
        alerts,
        _violations(track, starts, judged, alerts),
        float(seen.sum()) / hour,
        float((seen & on).sum()) / hour,
    )


def watched(run: Track | ScoredRun) -> NDArray[np.bool_]:
    """Tell for every tick whether the property was judged at it."""
    return ~np.isin(run.status, (PropertyStatus.INACTIVE, PropertyStatus.UNKNOWN))


def _alert(track: Track, start: int, end: int, outcome: Outcome) -> Alert:
    first = int(track.ticks[start])
    limit = math.inf if track.horizon is None else first + track.horizon
    risks = track.probability[start : end + 1]
    known = risks[~np.isnan(risks)]
    return Alert(
        name=track.name,
        start=first,
        end=int(track.ticks[end]),
        outcome=outcome,
        peak=float(known.max()) if known.size else math.nan,
        out_of_model=not track.in_model[start],
        cut_short=outcome is Outcome.FALSE and limit > int(track.ticks[-1]),
    )


def _violations(
    track: Track, starts: NDArray[np.int64], judged: MatchedAlerts, alerts: Sequence[Alert]
) -> tuple[Violation, ...]:
    began = track.ticks[starts[judged.alert]].tolist()
    leads = (judged.lead / track.rate).tolist()
    foreseen = dict(zip(judged.row.tolist(), zip(began, leads, strict=True), strict=True))
    answers = {alert.start: alert for alert in alerts}
    ticks = track.ticks[judged.happened].tolist()
    found = []
    for row, tick in zip(judged.happened.tolist(), ticks, strict=True):
        alert, lead = foreseen.get(row, (None, None))
        found.append(Violation(track.name, tick, alert, lead, answers.get(tick)))
    return tuple(found)


class LeadTimes(NamedTuple):
    """Seconds between alert and violation, over the violations that were foreseen."""

    mean: float
    median: float
    least: float
    fifth_percentile: float
    greatest: float


class Rates:
    """What follows from the counts of violations and alerts that a subclass holds."""

    violations: int
    detected: int
    right: int
    false_alarms: int
    hours: float
    alert_hours: float

    @property
    def missed(self) -> int:
        """Violations that no alert foresaw."""
        return self.violations - self.detected

    @property
    def recall(self) -> float | None:
        """Share of the violations that were foreseen; None if there was none."""
        return self.detected / self.violations if self.violations else None

    @property
    def precision(self) -> float | None:
        """Share of the alerts, without late ones, that a violation followed; None without any."""
        judged = self.right + self.false_alarms
        return self.right / judged if judged else None

    @property
    def false_alarms_per_hour(self) -> float | None:
        """False alarms in an hour of watching; None if nothing was watched."""
        return self.false_alarms / self.hours if self.hours else None

    @property
    def alert_share(self) -> float | None:
        """Share of the time watched that was spent in alert; None if nothing was watched."""
        return self.alert_hours / self.hours if self.hours else None


@dataclass(frozen=True)
class Score(Rates):
    """How well one property was foreseen.

    `violations`, `detected`: how many excursions there were, and how many of them were foreseen.
    `alerts`, `right`, `late`, `false_alarms`: episodes; of these, those followed by a violation,
        those that came with one or before it had cleared, and those without.
    `out_of_model`, `cut_short`: false alarms that began in a state unknown to the model; that the
        end of a recording cut short.
    `hours`, `alert_hours`: time watched, and of it the time at ACT.
    `lead`: None if nothing was detected.
    """

    name: str
    violations: int
    detected: int
    alerts: int
    right: int
    late: int
    false_alarms: int
    out_of_model: int
    cut_short: int
    hours: float
    alert_hours: float
    lead: LeadTimes | None


def score(name: str, runs: Sequence[Events]) -> Score:
    """Add up the events of one property over any number of runs."""
    alerts = [alert for run in runs for alert in run.alerts]
    violations = [violation for run in runs for violation in run.violations]
    leads = [violation.lead for violation in violations if violation.lead is not None]
    kinds = [alert.outcome for alert in alerts]
    false = [alert for alert in alerts if alert.outcome is Outcome.FALSE]
    return Score(
        name=name,
        violations=len(violations),
        detected=len(leads),
        alerts=len(alerts),
        right=kinds.count(Outcome.FORESAW) + kinds.count(Outcome.NEAR),
        late=kinds.count(Outcome.LATE),
        false_alarms=len(false),
        out_of_model=sum(alert.out_of_model for alert in false),
        cut_short=sum(alert.cut_short for alert in false),
        hours=sum(run.hours for run in runs),
        alert_hours=sum(run.alert_hours for run in runs),
        lead=lead_times(leads),
    )


def lead_times(leads: Sequence[float]) -> LeadTimes | None:
    """Summarise lead times in seconds; None without any."""
    if not leads:
        return None
    return LeadTimes(
        mean=float(np.mean(leads)),
        median=float(np.median(leads)),
        least=min(leads),
        fifth_percentile=float(np.percentile(leads, 5)),
        greatest=max(leads),
    )
