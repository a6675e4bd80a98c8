"""Which recordings are left out together where something is fitted without those that it judges."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from forewarn.config import MonitorSpec
from forewarn.errors import ConfigError, InputError, RecordingError
from forewarn.recordings import open_recording
from forewarn.recordings.groups import Grouping, grouping
from forewarn.states.abstraction import Abstraction


def grouping_of(spec: MonitorSpec) -> Grouping | None:
    """Return what a monitor file says about which recordings belong together.

    Raises
    ------
    InputError
        If a key is none, or the table or the pattern cannot be used.
    """
    learning = spec.learning
    if learning.together is None:
        return None
    source = learning.groups
    if source is not None and "{" not in source:
        source = str(spec.beside(source))
    try:
        return grouping(learning.together, source)
    except InputError as error:
        if error.file is not None:  # the table says what is wrong with it
            raise
        key = "learning.together" if error.key == "--group-by" else "learning.groups"
        raise ConfigError(error.problem, file=spec.file, key=key, accepted=error.accepted) from None


def clusters_of(spec: MonitorSpec, paths: Sequence[Path]) -> list[str]:
    """Return the name of each recording's group; its path if it is in none, or cannot be read.

    Raises
    ------
    InputError
        If a recording has no value for a key of the groups, or these cannot be used.
    """
    groups = grouping_of(spec)
    return [str(path) if groups is None else _cluster(path, groups) for path in paths]


def _cluster(path: Path, groups: Grouping) -> str:
    try:
        recording = open_recording(path)
    except RecordingError:
        return str(path)  # who reads it says what is wrong with it
    with recording:
        return groups.of(recording)


def dealt(clusters: Sequence[str], folds: int) -> list[int]:
    """Return the fold of each recording: groups are dealt out in turn, as they come."""
    number = {name: i for i, name in enumerate(dict.fromkeys(clusters))}
    return [number[name] % folds for name in clusters]


def fold_of(name: str, folds: int) -> int:
    """Return the fold of a recording, from 0 to `folds` - 1.

    It depends on nothing but the name of its group, or its digest if it is in none, so that it
    stays where others come.
    """
    return int(hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest(), 16) % folds


def unseeing(abstraction: Abstraction, digest: str) -> Abstraction:
    """Return the abstraction for a recording that is learned from.

    Its danger scores were fitted without the recording, where they have just been fitted.
    """
    folds = abstraction.folds
    if not folds:
        return abstraction
    # All scores were fitted to the same recordings.
    return abstraction.without(fold_of(abstraction.fitted[0].group_of(digest), folds))
