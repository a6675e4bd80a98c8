"""Which recordings are left out together where something is fitted without those that it judges."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from forewarn.config.file import MonitorSpec
from forewarn.errors import ConfigError, InputError, plural
from forewarn.recordings.groups import Grouping, grouping
from forewarn.recordings.registry import open_recording
from forewarn.states.abstraction import Abstraction

FEW = 25
"""Groups from which on a hash deals them out.

By a hash, few would differ much from fold to fold, or leave folds without any. In turn, the folds
of many would change wherever others come.
"""


def grouping_of(spec: MonitorSpec) -> Grouping | None:
    """Return what a monitor file says about which recordings belong together.

    Raises InputError if a key is none, or the table or the pattern cannot be used.
    """
    learning = spec.learning
    if learning.group_by is None:
        return None
    source = learning.group_source
    if source is not None and "{" not in source:
        source = str(spec.beside(source))
    try:
        return grouping(learning.group_by, source)
    except InputError as error:
        if error.file is not None:  # the table says what is wrong with it
            raise
        key = "learning.group_by" if error.key == "--group-by" else "learning.group_source"
        raise ConfigError(error.problem, file=spec.file, key=key, accepted=error.accepted) from None


class Identity(NamedTuple):
    """What is left out as a whole, the group or the digest of a recording in none; the digest."""

    cluster: str
    digest: str


def identity_of(
    path: Path, groups: Grouping | None, progress: Callable[[float], None] | None = None
) -> Identity:
    """Return the identity of a recording, and its group."""
    del progress
    with open_recording(path) as recording:
        digest = recording.digest()
        return Identity(digest if groups is None else groups.of(recording), digest)


def in_order(identities: Mapping[Path, Identity]) -> dict[Path, Identity]:
    """Return recordings in an order that does not depend on the one in which they were given."""
    return dict(sorted(identities.items(), key=itemgetter(1)))


def parted(clusters: Sequence[str], folds: int) -> list[int]:
    """Return the fold of each recording, whatever their order.

    `clusters`: the group of each recording, or its digest if it is in none.
    """
    names = frozenset(clusters)
    own = {name: fold_among(names, name, folds) for name in names}
    return [own[name] for name in clusters]


def fold_among(names: Collection[str], name: str, folds: int) -> int:
    """Return the fold of a group, from 0 to `folds` - 1.

    Fewer groups than `FEW` are dealt out in turn, in the order of their names. Of more, each has
    the fold that its name gives it, and stays there where others come.

    `names`: all groups, each once; recordings that are in none by their digests.
    """
    if len(names) >= FEW:
        return fold_of(name, folds)
    return bisect_left(sorted(names), name) % folds


def groups_in_words(recordings: int, groups: int, keys: str) -> str:
    """Say how many groups recordings are in, and what that means."""
    counted = f"{plural(recordings, 'recording')} in {plural(groups, 'group')}"
    return f"{counted} of {keys}: those of a group are left out together"


def dealt(clusters: Sequence[str], folds: int) -> list[int]:
    """Return the fold of each recording: groups are dealt out in turn, in the order of their names.

    For what is judged once: folds of equal size, which other recordings may change. `parted` is for
    what is fitted, and is to stay where others come.
    """
    number = {name: i for i, name in enumerate(sorted({*clusters}))}
    return [number[name] % folds for name in clusters]


def fold_of(name: str, folds: int) -> int:
    """Return the fold of a name, from 0 to `folds` - 1, by nothing but its hash."""
    return int(hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest(), 16) % folds


def unseeing(abstraction: Abstraction, digest: str) -> Abstraction:
    """Return the abstraction for a recording that is learned from.

    Its learned scores were fitted without the recording, where they have just been fitted. Each has
    folds of its own: how many they are depends on the violations that it foresees.
    """
    own = {
        fit.name: fold_among(fit.clusters, fit.group_of(digest), len(fit.unseeing))
        for fit in abstraction.fitted
        if fit.unseeing
    }
    return abstraction.without(own) if own else abstraction
