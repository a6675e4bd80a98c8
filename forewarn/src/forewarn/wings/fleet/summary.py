"""What a fleet's recordings come to: how often rules are broken or nearly so, by which group.

Each recording is replayed where it is read, and only a summary of it travels and is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.events import SECONDS_AN_HOUR, Alert, Outcome, Violation
from forewarn.assessment.replay import RecordedRun, Replaying, replayed_open
from forewarn.assessment.results import elapsed, state_name
from forewarn.models.counts import CountModel
from forewarn.monitoring.step import Monitor
from forewarn.recordings.groups import Grouping
from forewarn.recordings.registry import open_recording
from forewarn.wings.fleet.rates import Rate, event_rate


class Incident(NamedTuple):
    """A violation, or an alert that none followed.

    `at`, `begin`, `end`: when it was, in seconds since the first tick: the violation or the start
        of the alert, and from the start of the alert to the end.
    `violation`: whether the rule was broken.
    `lead`: lead time of a violation that was foreseen.
    `peak`: greatest risk of an alert; NaN for a violation.
    """

    rule: str
    at: float
    begin: float
    end: float
    violation: bool
    lead: float | None
    peak: float
    state: str

    @property
    def badness(self) -> tuple[int, float]:
        """What sorts them: missed violations, those foreseen latest, then alerts by risk."""
        if self.violation:
            return (0, 0.0) if self.lead is None else (1, self.lead)
        return 2, -self.peak if self.peak == self.peak else 0.0


class Tally(NamedTuple):
    """What a recording says of one property: violations, near ones, and hours watched."""

    violations: int
    near: int
    hours: float
    alert_hours: float


@dataclass(frozen=True)
class RunSummary:
    """What is kept of a recording.

    `tallies`: one for each property.
    `ticks`, `unknown`, `out_of_model`, `covered`: all ticks, those whose state is not fully known,
        those in states that the model has not seen, and those in states with as many visits as they
        need.
    `incidents`: the worst ones, the worst first.
    """

    path: Path
    group: str
    start_ns: int
    tallies: tuple[Tally, ...]
    ticks: int
    unknown: int
    out_of_model: int
    covered: int
    incidents: tuple[Incident, ...]


@dataclass(frozen=True, eq=False)
class Summing:
    """How recordings are summed up. It travels between processes.

    `covered`: codes of states with as many visits as they need.
    `top`: how many incidents of a recording are kept at most.
    """

    how: Replaying
    grouping: Grouping | None
    covered: frozenset[int]
    top: int


def summed_up(
    path: Path, summing: Summing, progress: Callable[[float], None] | None = None
) -> RunSummary:
    """Replay a recording and sum it up."""
    with open_recording(path) as recording:
        group = "" if summing.grouping is None else summing.grouping.of(recording)
        run = replayed_open(recording, path, summing.how, progress).run
    return summary(run, summing.how.monitor, group, summing.covered, summing.top)


def summary(
    run: RecordedRun, monitor: Monitor, group: str, covered: frozenset[int], top: int
) -> RunSummary:
    """Return what is kept of a run."""
    incidents = []
    for events in run.events:
        incidents += [_incident(run, monitor, event) for event in events.violations]
        incidents += [_incident(run, monitor, event) for event in _near(events.alerts)]
    incidents.sort(key=lambda one: one.badness)
    track = run.tracks[0]
    known = track.state >= 0
    codes = [state in covered for state in run.history.known_states]
    marks = np.array(codes, dtype=bool)
    return RunSummary(
        run.path,
        group,
        run.start_ns,
        tuple(
            Tally(len(e.violations), len(_near(e.alerts)), e.hours, e.alert_hours)
            for e in run.events
        ),
        len(track.ticks),
        int((~known).sum()),
        int((known & ~track.in_model).sum()),
        int(marks[track.state[known]].sum()) if len(marks) else 0,
        tuple(incidents[:top]),
    )


def _near(alerts: Sequence[Alert]) -> list[Alert]:
    """Return alerts that no violation followed: the risk was above `act`, and nothing happened."""
    return [alert for alert in alerts if alert.outcome is Outcome.FALSE]


def _incident(run: RecordedRun, monitor: Monitor, event: Alert | Violation) -> Incident:
    if isinstance(event, Violation):
        first = event.tick if event.alert is None else event.alert
        at, ends, lead, peak = event.tick, event.tick, event.lead, float("nan")
    else:
        first, at, ends, lead, peak = event.start, event.start, event.end, None, event.peak
    when, begin, end = (elapsed(monitor, run, tick) for tick in (at, first, ends))
    state = state_name(monitor, run, at)
    violation = isinstance(event, Violation)
    return Incident(event.name, when, begin, end, violation, lead, peak, state)


class GroupSummary(NamedTuple):
    """What a group of recordings comes to.

    `violations`, `near`: by property.
    `hours`: length of the recordings.
    `unknown`, `out_of_model`, `covered`: shares of all ticks; see `RunSummary`.
    """

    name: str
    recordings: int
    hours: float
    violations: Mapping[str, Rate]
    near: Mapping[str, Rate]
    unknown: float
    out_of_model: float
    covered: float


def group_summaries(runs: Sequence[RunSummary], monitor: Monitor) -> list[GroupSummary]:
    """Return what all recordings come to, and then each group if there are several."""
    names = sorted({run.group for run in runs})
    found = [_group("all", runs, monitor)]
    if len(names) > 1:
        members = {name: [run for run in runs if run.group == name] for name in names}
        found += [_group(name, own, monitor) for name, own in members.items()]
    return found


def _group(name: str, runs: Sequence[RunSummary], monitor: Monitor) -> GroupSummary:
    violations, near = {}, {}
    for at, rule in enumerate(monitor.spec.properties):
        hours = [run.tallies[at].hours for run in runs]
        violations[rule] = event_rate([run.tallies[at].violations for run in runs], hours)
        near[rule] = event_rate([run.tallies[at].near for run in runs], hours)
    ticks = sum(run.ticks for run in runs)
    parts = (
        [run.unknown for run in runs],
        [run.out_of_model for run in runs],
        [r.covered for r in runs],
    )
    unknown, out_of_model, covered = (sum(part) / ticks if ticks else 0.0 for part in parts)
    length = monitor.clock.duration(ticks) / SECONDS_AN_HOUR
    return GroupSummary(name, len(runs), length, violations, near, unknown, out_of_model, covered)


def worst(runs: Sequence[RunSummary], top: int) -> list[tuple[RunSummary, Incident]]:
    """Return the worst incidents of all recordings, the worst first."""
    found = [(run, incident) for run in runs for incident in run.incidents]
    found.sort(key=lambda one: (one[1].badness, str(one[0].path), one[1].at))
    return found[:top]


def covered_states(model: CountModel | None, mask: NDArray[np.bool_] | None) -> frozenset[int]:
    """Return the codes of the states that a mask marks."""
    if model is None or mask is None:
        return frozenset()
    return frozenset(model.states[i] for i in np.flatnonzero(mask))
