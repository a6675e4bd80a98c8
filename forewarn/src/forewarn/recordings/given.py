"""From the paths that a user gives to recordings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from forewarn.config.file import MonitorSpec
from forewarn.errors import RecordingError
from forewarn.files.remote import expanded
from forewarn.recordings.parts import Part
from forewarn.recordings.registry import find_recordings
from forewarn.recordings.trajectories.recording import find_trajectories

WHOLE = Part(None, None)


def existing_recordings(
    paths: Iterable[Path], spec: MonitorSpec | None = None, part: Part = WHOLE
) -> list[Path]:
    """Return the paths of all recordings in `paths`, with the `part` of each that is asked for.

    With a monitor file whose clock is steps, each run within a trace is one; with one that reads
    trajectories, each ego.

    Raises RecordingError if there is none, or the store of a URL does not answer.
    """
    key = None if spec is None else spec.episode_key
    found: dict[Path, None] = {}
    for pattern in paths:
        try:
            matching = expanded(pattern)
        except OSError as error:
            reason = error.strerror or error
            raise RecordingError(f"cannot be listed ({reason})", file=pattern) from error
        if not matching:
            raise RecordingError(
                "no file has such a name", file=pattern, accepted="a pattern that matches some"
            )
        for path in matching:
            if spec is not None and spec.trajectories is not None:
                found.update(dict.fromkeys(find_trajectories(path, spec.trajectories)))
            else:
                found.update(dict.fromkeys(find_recordings(path, key)))
    return [part.of(path) for path in found]
