"""Replaying recordings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from forewarn.assessment.events import Score
from forewarn.assessment.history import Track
from forewarn.assessment.replay import RecordedRun, Replaying, replay_recordings
from forewarn.assessment.results import remarks_on, result, scores
from forewarn.interface.learned import Recordings, paths_of
from forewarn.interface.monitors import Monitor
from forewarn.recordings.given import existing_recordings


@dataclass(frozen=True, eq=False)
class Replay:
    """What a monitor said of recordings; `replay` makes it.

    Attributes
    ----------
    monitor : Monitor
        The monitor.
    runs : tuple of RecordedRun
        For Forewarn itself.
    """

    monitor: Monitor
    runs: tuple[RecordedRun, ...]

    @property
    def recordings(self) -> tuple[str, ...]:
        """Names of the recordings; under ``clock: steps`` each run of a trace is one."""
        return tuple(run.name for run in self.runs)

    @cached_property
    def scores(self) -> dict[str, Score]:
        """How well each property was foreseen: `violations`, `detected`, `false_alarms`, `lead`."""
        return {found.name: found for found in scores(self.monitor.compiled, self.runs)}

    @property
    def events(self) -> list[dict[str, Any]]:
        """Alerts and violations in the order of time, each with its recording."""
        return [
            {"recording": name, **event}
            for name, found in zip(self.recordings, self.document["recordings"], strict=True)
            for event in found["events"]
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out or worked around."""
        return tuple(remarks_on(self.runs))

    @cached_property
    def document(self) -> dict[str, Any]:
        """All of it as plain values: what ``forewarn replay --json`` prints."""
        return result(self.monitor.compiled, self.runs)

    def tracks(self, name: str) -> list[Track]:
        """Return the columns of a property, one `Track` for each recording.

        A track has arrays with one entry for each moment, among them `ticks`, `probability`,
        `lower`, `upper`, `violation` and `level`.

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
        Recordings, or folders of them.
    allow_missing : bool
        Go on without topics that a recording lacks: their signals are unknown.

    Raises
    ------
    ForewarnError
        If a recording cannot be read, or lacks a topic.
    """
    known = () if monitor.counts is None else monitor.counts.provenance
    runs = replay_recordings(
        Replaying(monitor.compiled, known, allow_missing),
        existing_recordings(paths_of(recordings), monitor.compiled.spec),
    )
    return Replay(monitor, tuple(runs))
