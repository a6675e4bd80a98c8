"""Replaying recordings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from forewarn.assessment.events import Score
from forewarn.assessment.history import Track
from forewarn.assessment.replay import RecordedRun, Replaying, replay_recordings, settled_runs
from forewarn.assessment.results import remarks_on, result, scores
from forewarn.interface.learned import Recordings, paths_of
from forewarn.interface.monitors import Monitor
from forewarn.recordings.given import existing_recordings


@dataclass(frozen=True, eq=False)
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


def replay(monitor: Monitor, recordings: Recordings, *, allow_missing: bool = False) -> Replay:
    """Run a monitor over recordings, as the command ``forewarn replay`` does.

    Parameters
    ----------
    monitor : Monitor
        The monitor.
    recordings : path or iterable of paths
        Recordings, or folders of recordings.
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
        Replaying(monitor.compiled, known, allow_missing),
        existing_recordings(paths_of(recordings), monitor.compiled.spec),
    )
    return Replay(monitor, tuple(settled_runs(runs)))
