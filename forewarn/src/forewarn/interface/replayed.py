"""Replaying recordings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.events import Score
from forewarn.assessment.history import Track
from forewarn.assessment.precursors import Precursors, precursors_of
from forewarn.assessment.replay import RecordedRun, Replaying, replay_recordings, settled_runs
from forewarn.assessment.results import remarks_on, result, scored_runs, scores
from forewarn.assessment.tuning import Goal, Tuning
from forewarn.assessment.tuning import tune as choose
from forewarn.errors import plural
from forewarn.files.outputs import write_output
from forewarn.interface.learned import Recordings, part_of, paths_of
from forewarn.interface.monitors import Monitor
from forewarn.interface.shown import figure_of, frame_of, table_of
from forewarn.monitoring.composition import values_in_words
from forewarn.recordings.registry import existing_recordings

MOMENTS = 10
SCORE_COLUMNS = (
    "property", "violations", "foreseen", "median lead", "alerts", "false alarms",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """The verdicts of a monitor on recordings. `replay` returns it.

    Attributes
    ----------
    monitor : Monitor
        The monitor.
    runs : tuple of RecordedRun
        The verdicts on each recording. This attribute is internal.
    """

    monitor: Monitor
    runs: tuple[RecordedRun, ...]

    def __repr__(self) -> str:
        """Return how many recordings there are, and how each property was foreseen."""
        told = ", ".join(map(_in_words, self.scores.values()))
        return f"Replay({plural(len(self.runs), 'recording')}: {told})"

    def _repr_html_(self) -> str:
        """Return the scores as a table, for notebooks."""
        return table_of(SCORE_COLUMNS, [_cells(found) for found in self.scores.values()])

    @property
    def recordings(self) -> tuple[str, ...]:
        """Names of the recordings. Under ``clock: steps``, each run of a trace is a recording."""
        return tuple(run.name for run in self.runs)

    @cached_property
    def scores(self) -> dict[str, Score]:
        """How well the violations of each property were foreseen, by the name of the property.

        A score has, among others, `violations`, `detected`, `false_alarms` and `lead`.
        """
        return {found.name: found for found in scores(self.monitor.compiled, self.runs)}

    @property
    def events(self) -> list[dict[str, Any]]:
        """Alerts and violations of each recording in order of time, with the recording's name."""
        return [
            {"recording": name, **event}
            for name, found in zip(self.recordings, self.document["recordings"], strict=True)
            for event in found["events"]
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out of the recordings, and why."""
        return tuple(remarks_on(self.monitor.compiled, self.runs))

    @cached_property
    def document(self) -> dict[str, Any]:
        """All results as plain values, as ``forewarn replay --json`` prints them."""
        return result(self.monitor.compiled, self.runs)

    def tracks(self, name: str) -> list[Track]:
        """Return the columns of a property, one `Track` for each recording.

        A track has arrays of shape (n,) for n moments, among them `ticks`, `probability`,
        `lower`, `upper`, `violation` and `level`. Probabilities are in [0, 1], or NaN where there
        is no risk.

        Raises
        ------
        KeyError
            If there is no such property.
        """
        if name not in self.monitor.properties:
            listed = ", ".join(self.monitor.properties)
            raise KeyError(f"{name!r} is no property (accepted: {listed})")
        place = self.monitor.properties.index(name)
        return [run.tracks[place] for run in self.runs]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return signals, risks and levels over time, one row for each moment.

        Returns
        -------
        dict of str to ndarray, shape (n,)
            ``recording`` and ``time`` (seconds from its start, or steps), each signal that has
            numbers (NaN where unknown; the length of an array), and for each property
            ``NAME.risk``, ``NAME.lower``, ``NAME.upper``, ``NAME.level`` and ``NAME.violation``.
        """
        parts = [self._columns(run) for run in self.runs]
        names = dict.fromkeys(name for part in parts for name in part)
        return {
            name: np.concatenate(
                [part.get(name, np.full(len(part["time"]), np.nan)) for part in parts]
            )
            for name in names
        }

    def _columns(self, run: RecordedRun) -> dict[str, NDArray[Any]]:
        ticks = len(run.history)
        found: dict[str, NDArray[Any]] = {
            "recording": np.full(ticks, run.name, dtype=object),
            "time": np.arange(ticks) / self.monitor.compiled.clock.rate,
        }
        found |= {each.name: each.values for each in run.signals if each.kind != "text"}
        for track in run.tracks:
            found |= {
                f"{track.name}.risk": track.probability,
                f"{track.name}.lower": track.lower,
                f"{track.name}.upper": track.upper,
                f"{track.name}.level": track.level,
                f"{track.name}.violation": track.violation,
            }
        return found

    def to_frame(self) -> Any:
        """Return `columns` as a pandas DataFrame.

        Raises
        ------
        ForewarnError
            If pandas is not installed.
        """
        return frame_of(self.columns(), "columns() for plain arrays")

    def plot(self, recording: int = 0) -> Any:
        """Return a Plotly figure of one recording: the risks over its signals.

        Parameters
        ----------
        recording : int
            Place of the recording in `recordings`.
        """
        return figure_of(self.monitor.compiled, self.runs[recording])

    def report(self, path: Path | str) -> None:
        """Write the page that ``forewarn replay --report`` writes.

        Raises
        ------
        ForewarnError
            If the file cannot be written.
        """
        from forewarn.reports.html import render

        write_output(Path(path), render(self.monitor.compiled, self.monitor.counts, self.runs))

    def precursors(self, name: str) -> Precursors:
        """Return whether anything in the signals changes before violations of a property.

        Its `told()` says so in words; `condition(seconds)` is a predicate.

        Raises
        ------
        KeyError
            If there is no such property.
        """
        self.tracks(name)
        return precursors_of(self.runs, self.monitor.properties.index(name))

    def tune(self, name: str, false_alarms_per_hour: float) -> Tuning:
        """Choose thresholds for a property, as ``forewarn tune`` does.

        Its `chosen` has `thresholds`, and `present` is the choice of the monitor file. Recordings
        that the model was learned from would promise too much: `remarks` names them.

        Raises
        ------
        KeyError
            If there is no such property.
        """
        self.tracks(name)
        compiled = self.monitor.compiled
        goal = Goal(false_alarms_per_hour=false_alarms_per_hour, clock=compiled.clock)
        section = compiled.spec.properties[name]
        return choose(name, section, scored_runs(compiled, self.runs, name), goal)

    def expect(
        self,
        name: str | None = None,
        *,
        violations: int | None = None,
        foreseen: float | None = None,
        lead: float | None = None,
        false_alarms: int | None = None,
        false_alarms_per_hour: float | None = None,
    ) -> None:
        """Assert what came of a property, or of all: for tests of robots.

        Parameters
        ----------
        name : str, optional
            The property; all of them by default.
        violations, false_alarms : int, optional
            So many at the most.
        foreseen : float, optional
            Share of the violations that is foreseen at the least, in [0, 1].
        lead : float, optional
            Median lead time at the least, in seconds or steps, of the violations foreseen.
        false_alarms_per_hour : float, optional
            So many in an hour of watching at the most.

        Raises
        ------
        AssertionError
            If it is otherwise; the text names the moments.
        KeyError
            If there is no such property.
        """
        names = self.monitor.properties if name is None else (name,)
        asked = Expected(violations, foreseen, lead, false_alarms, false_alarms_per_hour)
        problems = []
        for each in names:
            self.tracks(each)
            problems += asked.problems(self.scores[each])
        if problems:
            moments = [line for each in names for line in self._moments(each)]
            raise AssertionError("\n".join([*problems, *moments[:MOMENTS]]))

    def _moments(self, name: str) -> list[str]:
        clock = self.monitor.compiled.clock
        found = []
        for event in self.events:
            if event["property"] == name:
                when = clock.say(event["elapsed"], ".2f")
                told = event.get("outcome") or f"lead {event.get('lead')}"
                values = values_in_words(event.get("values") or {})
                line = f"  {event['recording']} at {when}: {event['event']}, {told}"
                found.append(f"{line}, {values}" if values else line)
        return found


class Expected(NamedTuple):
    """What is asserted of a property; None for what is not."""

    violations: int | None
    foreseen: float | None
    lead: float | None
    false_alarms: int | None
    false_alarms_per_hour: float | None

    def problems(self, found: Score) -> list[str]:
        """Return what is otherwise, one line each."""
        recall = 1.0 if found.recall is None else found.recall
        lead = np.inf if found.lead is None else found.lead.median
        # Where nothing was foreseen there is no lead: that is a problem only if there was to be.
        lead = 0.0 if found.violations and found.lead is None else lead
        compared = (
            ("violations", found.violations, self.violations, False),
            ("share of violations foreseen", recall, self.foreseen, True),
            ("median lead", lead, self.lead, True),
            ("false alarms", found.false_alarms, self.false_alarms, False),
            (
                "false alarms an hour",
                found.false_alarms_per_hour or 0.0,
                self.false_alarms_per_hour,
                False,
            ),
        )
        return [
            f"{found.name}: {what} {value:g}, expected {'from' if least else 'up to'} {limit:g}"
            for what, value, limit, least in compared
            if limit is not None and (value < limit if least else value > limit)
        ]


def _in_words(found: Score) -> str:
    return (
        f"{found.name} {found.detected} of {plural(found.violations, 'violation')} foreseen, "
        f"{plural(found.false_alarms, 'false alarm')}"
    )


def _cells(found: Score) -> list[str]:
    lead = "" if found.lead is None else f"{found.lead.median:.2f}"
    counts = found.violations, found.detected, lead, found.alerts, found.false_alarms
    return [found.name, *map(str, counts)]


def replay(
    monitor: Monitor,
    recordings: Recordings,
    *,
    begin: str | float | None = None,
    end: str | float | None = None,
    allow_missing: bool = False,
) -> Replay:
    """Run a monitor over recordings, as the command ``forewarn replay`` does.

    Parameters
    ----------
    monitor : Monitor
        The monitor.
    recordings : path or iterable of paths
        Recordings, or folders of recordings.
    begin, end : float or str, optional
        Only what was recorded between these moments, as ``--from`` and ``--to``: seconds since the
        recording began, or times such as ``2026-03-01T10:15:00Z``.
    allow_missing : bool
        Accept recordings that lack a topic. The signals of that topic are then unknown.

    Returns
    -------
    Replay
        The verdicts, alerts, violations and scores.

    Raises
    ------
    ForewarnError
        If a recording cannot be read, or if it lacks a topic and `allow_missing` is False.
    """
    known = () if monitor.counts is None else monitor.counts.provenance
    runs = replay_recordings(
        Replaying(monitor.compiled, known, allow_missing, keep_signals=True),
        existing_recordings(paths_of(recordings), monitor.compiled.spec, part_of(begin, end)),
    )
    return Replay(monitor, tuple(settled_runs(runs)))
