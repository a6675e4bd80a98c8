"""Proposed rules over their recordings: how often they are broken, and what comes before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.excursions import find_excursions
from forewarn.assessment.precursors import Precursors, precursors_of
from forewarn.assessment.replay import RecordedRun, Replaying, replay_recordings
from forewarn.cli.init.examples import MOST_BROKEN
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.policy import Broken
from forewarn.recordings.interface import Recording
from forewarn.recordings.parts import Part

MANY, FEWEST_SECONDS = 5, 10.0
"""As many violations, one in so many seconds, describe how a robot moves."""


class Trial(NamedTuple):
    """What came of a rule.

    Attributes
    ----------
    violations : int
        How often it was broken.
    broken : float
        Share of the moments at which it was.
    """

    violations: int
    broken: float
    precursors: Precursors

    def is_usual(self, seconds: float) -> bool:
        """Tell whether the rule is broken all the time, over so many seconds, or steps."""
        often = self.violations >= MANY and self.violations * FEWEST_SECONDS > seconds
        return often or self.broken > MOST_BROKEN

    def told(self) -> str:
        """Return in words how often it was broken, and what can be foreseen."""
        if not self.violations:
            return "never broken here"
        times = "once" if self.violations == 1 else f"{self.violations} times"
        return f"broken {times}: {self.precursors.told()}"


def parts_of(recordings: Sequence[Recording], seconds: float) -> list[Path]:
    """Return the recordings, or what of each is looked at within so many seconds together."""
    found, left = [], seconds
    for rest, recording in zip(range(len(recordings), 0, -1), recordings, strict=True):
        share = left / rest
        left -= min(share, recording.duration)
        whole = not recording.timed or recording.duration <= share
        found.append(Part(None, None if whole else f"{share:.3f}").of(recording.path))
    return found


def run_trial(
    text: str, paths: Sequence[Path], progress: Callable[[float, float], None]
) -> list[RecordedRun]:
    """Return what a monitor file without a model says of recordings."""
    monitor = build_monitor(compile_spec(parse_spec(parse_document(text))), None)
    how = Replaying(monitor, (), allow_missing=True, keep_signals=True)
    runs = []
    for number, path in enumerate(paths):
        runs += replay_recordings(how, [path])
        progress(number + 1, len(paths))
    return runs


def series_of(runs: Sequence[RecordedRun]) -> dict[str, NDArray[np.float64]]:
    """Return the numbers of each signal over all runs, one behind the other."""
    found: dict[str, list[NDArray[np.float64]]] = {}
    for run in runs:
        for series in run.signals:
            if series.kind in ("number", "truth"):
                found.setdefault(series.name, []).append(series.values)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def trials_of(runs: Sequence[RecordedRun]) -> Mapping[str, Trial]:
    """Return what came of each rule, by its name."""
    found = {}
    for index, track in enumerate(runs[0].tracks):
        excursions = [find_excursions(run.tracks[index]) for run in runs]
        counted = sum(int(each.begins.sum()) for each in excursions)
        lasts = np.concatenate([run.tracks[index].broken >= Broken.LASTS for run in runs])
        broken = float(lasts.mean()) if len(lasts) else 0.0
        found[track.name] = Trial(counted, broken, precursors_of(runs, index))
    return found
