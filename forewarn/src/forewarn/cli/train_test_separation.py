"""A recording serves one purpose: to learn, to calibrate, to tune, or to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from forewarn.cli.readers import Readers
from forewarn.config.file import MonitorSpec
from forewarn.errors import RecordingError, plural
from forewarn.learning.copies import Copies
from forewarn.learning.executors import Executor
from forewarn.learning.folds import Identity, grouping_of, identity_of, in_order
from forewarn.models.counts import CountModel
from forewarn.recordings.parts import trace_of


def without_known(
    recordings: Sequence[Path],
    model: CountModel,
    spec: MonitorSpec,
    name: str,
    consequence: str,
    accepted: str,
    readers: Readers,
) -> dict[Path, Identity]:
    """Return the recordings that a model was not learned from, nor calibrated on, `in_order`.

    Their identities are read here once for all that follows.

    A run of a trace that equals a known one is left out with a warning, for agents that are asked
    the same often do the same. All runs of a trace, or any other recording, are no accident.

    Raises
    ------
    RecordingError
        If such a recording is known to the model, or others of its group are: a model keeps the
        groups that it was learned from where it keeps counts per recording, or has learned scores,
        and those that it was calibrated on. Also if two of them hold the same data, unless they are
        runs of traces.
    """
    copies = Copies(allowed=True)
    mended = _mended(model)
    learned = {source.digest for source in model.provenance if source.digest}
    kept: dict[Path, Identity] = {}
    known: dict[Path, str] = {}
    with closing(readers.executor.each(recordings, identity_of, (grouping_of(spec),))) as reading:
        for path, identity in reading:
            if identity.digest in mended:
                known[path] = "calibrated on"
            elif identity.digest in learned:
                known[path] = "learned from"
            else:
                copies.is_new(path, identity.digest)  # an error if not, but for runs of traces
                kept[path] = identity
    traces = {trace_of(path) for path in kept} - {None}
    for path, verb in known.items():
        if trace_of(path) not in traces:
            raise RecordingError(
                f"{name} was {verb} this recording: {consequence}", file=path, accepted=accepted
            )
    if known:
        path, verb = next(iter(known.items()))
        more = f", and {plural(len(known) - 1, 'more run')}" if len(known) > 1 else ""
        readers.output.warn(
            f"left out: {path.name}{more}: {name} was {verb} runs that hold the same data"
        )
    groups = _groups_of(model)
    for path, identity in kept.items():
        if (group := identity.cluster) in groups:
            what = f"{groups[group]} other recordings of its group {group!r}"
            raise RecordingError(f"{name} was {what}: {consequence}", file=path, accepted=accepted)
    return in_order(kept)


def _groups_of(model: CountModel) -> dict[str, str]:
    """Return what each group that a model keeps was used for."""
    mended = (group for one in model.recalibration for group in one.groups)
    learned = [shard.group for shard in model.shards]
    learned += [group for fit in model.learned_score for group in fit.groups]
    used = dict.fromkeys(mended, "calibrated on") | dict.fromkeys(learned, "learned from")
    return {group: verb for group, verb in used.items() if group}


def identified(
    recordings: Sequence[Path], spec: MonitorSpec, executor: Executor
) -> dict[Path, Identity]:
    """Return the recordings that can be read with their identities, `in_order`.

    Raises
    ------
    RecordingError
        If one cannot be read and the executor has no way to report it, or two hold the same data,
        unless they are runs of traces.
    InputError
        If one has no value for a key of the groups, or these cannot be used.
    """
    copies, known = Copies(allowed=True), {}
    with closing(executor.each(recordings, identity_of, (grouping_of(spec),))) as reading:
        for path, identity in reading:
            copies.is_new(path, identity.digest)
            known[path] = identity
    return in_order(known)


def calibrated_on(
    recordings: Sequence[Path], model: CountModel | None, executor: Executor
) -> list[Path]:
    """Return the recordings that a model's risks were calibrated on."""
    mended = set[str]() if model is None else _mended(model)
    if not mended:
        return []
    with closing(executor.each(recordings, identity_of, (None,))) as reading:
        return [path for path, identity in reading if identity.digest in mended]


def _mended(model: CountModel) -> set[str]:
    """Return the digests of the recordings that a model's risks were calibrated on."""
    return {digest for one in model.recalibration for digest in one.recordings}
