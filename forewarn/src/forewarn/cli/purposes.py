"""A recording serves one purpose: to learn, to calibrate, to tune, or to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forewarn.errors import RecordingError
from forewarn.learning.pipeline import digests_alike
from forewarn.models import CountModel
from forewarn.recordings import open_recording
from forewarn.signals.clock_kinds import clock_of


def refuse_known(
    recordings: Sequence[Path], model: CountModel, name: str, consequence: str, accepted: str
) -> None:
    """Raise RecordingError if a model was learned from, or calibrated on, one of the recordings."""
    mended = {
        digest for calibration_map in model.recalibration for digest in calibration_map.recordings
    }
    for path in recordings:
        with open_recording(path) as recording:
            timed = clock_of(model.rate).timed
            alike = mended | digests_alike(recording, model.provenance, timed=timed)
            if alike and recording.digest() in alike:
                verb = "calibrated on" if recording.digest() in mended else "learned from"
                raise RecordingError(
                    f"{name} was {verb} this recording: {consequence}", file=path, accepted=accepted
                )


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
