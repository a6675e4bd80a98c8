"""What a replay gave: scores, calibration, remarks, and all of it as one document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.calibration import raw_track
from forewarn.assessment.censoring import ends_of, ends_remark, judge
from forewarn.assessment.episodes import ScoredRun, scored_run
from forewarn.assessment.events import Outcome, Score, Violation, score
from forewarn.assessment.published import Published
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.reliability import Calibration, calibrate, pool
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.watched_runs import run_record
from forewarn.errors import plural
from forewarn.models.run_ends import RunEnds
from forewarn.monitoring.step import Monitor
from forewarn.signals.clock import NANOSECONDS

MOST_ALIKE = 3
"""Runs that the same remark is made of one by one."""

_NUMBERS = re.compile(r"(?<![\w.])\d[\d.,]*(?!\w)")


def scores(monitor: Monitor, runs: Sequence[RecordedRun]) -> list[Score]:
    """Return the score of every property over all runs."""
    return [
        score(name, [run.events[i] for run in runs])
        for i, name in enumerate(monitor.spec.properties)
    ]


def scored_runs(monitor: Monitor, runs: Sequence[RecordedRun], name: str) -> list[ScoredRun]:
    """Return what the policy of a property was shown in each run."""
    index = list(monitor.spec.properties).index(name)
    return [scored_run(run.tracks[index]) for run in runs]


def areas(monitor: Monitor, runs: Sequence[RecordedRun]) -> list[float | None]:
    """Return the area under the precision-recall curve of every property; None if undefined."""
    found = [
        precision_recall(scored_runs(monitor, runs, name), section.out_of_model).area
        for name, section in monitor.spec.properties.items()
    ]
    return [area if area == area else None for area in found]


def calibrations(monitor: Monitor, runs: Sequence[RecordedRun]) -> list[Calibration | None]:
    """Return the calibration of every property over all runs."""
    return [
        calibrate(pool([run.predictions[i] for run in runs]))
        for i in range(len(monitor.spec.properties))
    ]


def raw_calibrations(monitor: Monitor, runs: Sequence[RecordedRun]) -> list[Calibration | None]:
    """Return the calibration of the chain by itself, None where the model does not mend it."""
    return [
        None
        if monitor.model is None or compiled.raw is compiled.table
        else calibrate(
            pool(
                judge(
                    [raw_track(compiled, monitor.model, r.history, r.tracks[i]) for r in runs],
                    weigh=any(run.predictions[i].weight is not None for run in runs),
                )
            )
        )
        for i, compiled in enumerate(monitor.properties)
    ]


def run_ends(monitor: Monitor, runs: Sequence[RecordedRun]) -> list[RunEnds]:
    """Return for every property whether violations end the runs."""
    return [ends_of([run.tracks[i] for run in runs]) for i in range(len(monitor.properties))]


def _ends_remarks(monitor: Monitor, runs: Sequence[RecordedRun]) -> list[str]:
    return [
        text
        for one, ends in zip(monitor.properties, run_ends(monitor, runs), strict=True)
        for text in ends_remark(monitor.spec, monitor.clock, one.name, one.automaton, ends)
    ]


def elapsed(monitor: Monitor, run: RecordedRun, tick: int) -> float:
    """Return the seconds from the start of a run to a tick."""
    return (monitor.clock.time_ns(tick) - run.start_ns) / NANOSECONDS


def state_name(monitor: Monitor, run: RecordedRun, tick: int) -> str:
    """Return the name of the state at a tick, empty where it is unknown."""
    position = int(run.tracks[0].state[tick - int(run.tracks[0].ticks[0])])
    if position < 0:
        return "(unknown)"
    return monitor.abstraction.vocabulary.name(run.history.known_states[position])


def remarks(run: RecordedRun) -> list[str]:
    """Return what was left out or worked around in a run."""
    noun, ticks = run.history.clock.noun, len(run.history)
    lines = list(run.notes)
    if run.history.stale:
        lines.append(stale_remark(run.history.stale, plural(ticks, noun)))
    lines += [
        f"{where}: {run.history.reasons[where]} ({plural(number, noun)})"
        for where, number in run.history.failures.most_common(10)
    ]
    if run.undecodable:
        lines.append(f"{plural(run.undecodable, 'message')} without the layout of the type")
    if run.out_of_order:
        lines.append(f"{plural(run.out_of_order, 'message')} left out: older than one before")
    if run.published is not None:
        lines += _live_remarks(run, run.published)
    worst = max((int((~track.in_model).sum()) for track in run.tracks), default=0)
    if worst:
        lines.append(f"the state was unknown to the model on {worst} of {plural(ticks, noun)}")
    return lines


def remarks_on(monitor: Monitor, runs: Sequence[RecordedRun]) -> list[str]:
    """Say which violations lie at the ends of runs, and return the remarks on each with its run.

    A line that more than `MOST_ALIKE` runs share, but for its numbers, is printed once.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for run in runs:
        for line in remarks(run):
            alike.setdefault(_NUMBERS.sub("#", line), []).append((run.name, line))
    lines = _ends_remarks(monitor, runs)
    for group in alike.values():
        (name, line), *others = group
        if len(group) > MOST_ALIKE:
            lines.append(f"{name}, and {len(others):,} more recordings like it: {line}")
        else:
            lines += [f"{name}: {line}" for name, line in group]
    return lines


def _live_remarks(run: RecordedRun, live: Published) -> Iterator[str]:
    """Say whether the replay agrees with what a live monitor published."""
    noun = run.history.clock.noun
    names = {track.name: track for track in run.tracks}
    missing = [name for name in names if name not in live.risks]
    if missing:
        yield f"{live.topic} in the recording says nothing of {', '.join(missing)} at these {noun}s"
    for name, values in live.risks.items():
        if name in names:
            differing = differs(values, names[name].probability)
            compared = int((~np.isnan(values)).sum())
            if not differing.any():
                yield f"{name}: the same risk as published on {live.topic} at {compared} {noun}s"
            else:
                yield (
                    f"{name}: another risk than published on {live.topic} at "
                    f"{int(differing.sum())} of {compared} {noun}s (another monitor file or model, "
                    "a command, or a lost message)"
                )
    if live.elsewhere:
        yield f"{live.elsewhere} risks in {live.topic} belong to other {noun}s than the replay's"


def differs(published: NDArray[np.float64], replayed: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell where a published risk is not the replayed one, shape (n,)."""
    return ~np.isnan(published) & ~np.isclose(published, replayed, rtol=0, atol=1e-9)


def result(monitor: Monitor, runs: Sequence[RecordedRun]) -> dict[str, Any]:
    """Return everything as plain values for ``--json``."""
    found = scores(monitor, runs)
    agreement = calibrations(monitor, runs)
    raw, area = raw_calibrations(monitor, runs), areas(monitor, runs)
    return {
        "recordings": [
            {
                "path": run.path,
                "start_ns": run.start_ns,
                "ticks": len(run.history),
                "messages": run.messages,
                "unknown_ticks": run.history.unknown,
                "events": _event_records(monitor, run),
                "remarks": remarks(run),
                **({"runs": [run_record(one) for one in run.watched]} if run.watched else {}),
            }
            for run in runs
        ],
        "properties": {
            scored.name: {
                "violations": scored.violations,
                "detected": scored.detected,
                "missed": scored.missed,
                "alerts": scored.alerts,
                "late": scored.late,
                "false_alarms": scored.false_alarms,
                "false_alarms_out_of_model": scored.out_of_model,
                "false_alarms_cut_short": scored.cut_short,
                "hours": scored.hours,
                "false_alarms_per_hour": scored.false_alarms_per_hour,
                "alert_share": scored.alert_share,
                "precision": scored.precision,
                "recall": scored.recall,
                "lead": scored.lead,
                "pr_area": ranked,
                "calibration": calibration,
                "calibration_of_the_chain": before,
                "run_ends": ends._asdict(),
            }
            for scored, ranked, calibration, before, ends in zip(
                found, area, agreement, raw, run_ends(monitor, runs), strict=True
            )
        },
        "notes": monitor.all_notes,
    }


def _event_records(monitor: Monitor, run: RecordedRun) -> list[dict[str, Any]]:
    grid = monitor.clock
    records: list[dict[str, Any]] = []
    for events in run.events:
        records += [
            {
                "event": "alert",
                "property": alert.name,
                "tick": alert.start,
                "time_ns": grid.time_ns(alert.start),
                "elapsed": elapsed(monitor, run, alert.start),
                "last_tick": alert.end,
                "outcome": Outcome(alert.outcome),
                "peak_risk": alert.peak,
                "out_of_model": alert.out_of_model,
                "cut_short": alert.cut_short,
            }
            for alert in events.early_alerts
        ]
        records += [
            {
                "event": "violation",
                "property": violation.name,
                "tick": violation.tick,
                "time_ns": grid.time_ns(violation.tick),
                "elapsed": elapsed(monitor, run, violation.tick),
                "alert_tick": violation.alert,
                "lead": violation.lead,
                "outcome": violation.outcome,
                "values": run.history.seen.get((violation.name, violation.tick), {}),
                **_answered(violation),
            }
            for violation in events.violations
        ]
    return sorted(records, key=lambda record: record["tick"])


def _answered(violation: Violation) -> dict[str, Any]:
    """Return the alert that began with a violation as plain data, if one did."""
    alert = violation.answer
    if alert is None:
        return {}
    return {"last_tick": alert.end, "peak_risk": alert.peak, "out_of_model": alert.out_of_model}


def stale_remark(stale: Counter[str], ticks: str) -> str:
    """Say which signals had no value, and how often, of `ticks`: ``120 ticks``, or steps."""
    listed = ", ".join(f"{name} on {number}" for name, number in stale.most_common())
    return f"signals without a value, of {ticks}: {listed} (not yet received, or too old)"
