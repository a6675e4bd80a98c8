"""A recording serves one purpose: to learn, to calibrate, to tune, or to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forewarn.cli.output import Output
from forewarn.errors import RecordingError, plural
from forewarn.learning.pipeline import digests_alike
from forewarn.models import CountModel
from forewarn.recordings import open_recording
from forewarn.recordings.runs import trace_of
from forewarn.signals.clock_kinds import clock_of


def without_known(
    recordings: Sequence[Path],
    model: CountModel,
    name: str,
    consequence: str,
    accepted: str,
    output: Output,
) -> list[Path]:
    """Return the recordings that a model was not learned from, nor calibrated on.

    A run of a trace that equals a known one is left out with a warning, for agents that are asked
    the same often do the same. All runs of a trace, or any other recording, are no accident.

    Raises
    ------
    RecordingError
        If such a recording is known to the model.
    """
    mended = {
        digest for calibration_map in model.recalibration for digest in calibration_map.recordings
    }
    kept: list[Path] = []
    known: dict[Path, str] = {}
    for path in recordings:
        with open_recording(path) as recording:
            timed = clock_of(model.rate).timed
            alike = mended | digests_alike(recording, model.provenance, timed=timed)
            if alike and recording.digest() in alike:
                known[path] = "calibrated on" if recording.digest() in mended else "learned from"
            else:
                kept.append(path)
    traces = {trace_of(path) for path in kept} - {None}
    for path, verb in known.items():
        if trace_of(path) not in traces:
            raise RecordingError(
                f"{name} was {verb} this recording: {consequence}", file=path, accepted=accepted
            )
    if known:
        path, verb = next(iter(known.items()))
        more = f", and {plural(len(known) - 1, 'more run')}" if len(known) > 1 else ""
        output.warn(f"left out: {path.name}{more}: {name} was {verb} runs that hold the same data")
    return kept


def mended_on(recordings: Sequence[Path], model: CountModel | None) -> list[Path]:
    """Return the recordings that a model's risks were calibrated on."""
    mended = (
        {d for calibration_map in model.recalibration for d in calibration_map.recordings}
        if model
        else set()
    )
    found = []
    for path in recordings if mended else ():
        with open_recording(path) as recording:
            if recording.digest() in mended:
                found.append(path)
    return found
