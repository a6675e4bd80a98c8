"""Runs to tune on: recordings that the model has not learned from, or folds that take turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from forewarn.assessment.replay import RecordedRun
from forewarn.cli.common import find_model, load_compiled
from forewarn.cli.output import Output
from forewarn.cli.purposes import refuse_known
from forewarn.cli.replay_command import replay_all
from forewarn.errors import InputError, ModelError
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, merge_models
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor


def held_out_runs(
    compiled: CompiledSpec,
    model: Path | None,
    recordings: Sequence[Path],
    output: Output,
    *,
    allow_missing: bool = False,
    keep_signals: bool = False,
) -> tuple[Monitor, list[RecordedRun]]:
    """Replay recordings with a model that has not seen them.

    Raises
    ------
    ModelError
        If there is no model.
    RecordingError
        If the model was learned from one of the recordings.
    """
    counts = find_model(model, compiled.spec)
    path = model if model is not None else compiled.spec.model_path
    if counts is None:
        raise ModelError(
            "there is no model, so no risk to tune thresholds for",
            file=compiled.spec.file,
            key="model",
            accepted="-m FILE, a model that the monitor file names, or --folds to learn from these "
            "recordings in turn",
        )
    refuse_known(
        recordings,
        counts,
        f"the model {path}",
        "thresholds chosen on it would promise too much",
        "recordings that were kept back, or --folds K to learn from all but one part of them in "
        "turn",
    )
    try:
        monitor = build_monitor(compiled, counts)
    except ModelError as error:
        raise error.located(file=path) from error
    return monitor, replay_all(
        monitor, recordings, output, allow_missing=allow_missing, keep_signals=keep_signals
    )


def folded_runs(
    compiled: CompiledSpec,
    recordings: Sequence[Path],
    folds: int,
    jobs: int,
    output: Output,
    *,
    allow_missing: bool = False,
    keep_signals: bool = False,
) -> tuple[Monitor, list[RecordedRun]]:
    """Replay every recording with a model learned from the other folds.

    Recording i belongs to fold i modulo `folds`.

    Returns
    -------
    Monitor
        The one of the last fold, for names and sections.
    list of RecordedRun
        In the order of the recordings.

    Raises
    ------
    InputError
        If there are fewer recordings than folds.
    """
    if len(recordings) < folds:
        raise InputError(
            f"{folds} folds of {len(recordings)} recordings",
            key="--folds",
            accepted=(f"2 to {len(recordings)}" if len(recordings) > 1 else "more recordings")
            + "; or --blocks SECONDS, which deals blocks of recordings out to the folds",
        )
    parts = [list(recordings[index::folds]) for index in range(folds)]
    models = []
    with output.progress(f"learning from {folds} folds") as tell:
        for index, part in enumerate(parts):
            tell(index, folds)
            learned = learn(
                part, compiled.spec, compiled.abstraction, jobs=jobs, allow_missing=allow_missing
            )
            models.append(learned.model)
    found: dict[Path, RecordedRun] = {}
    monitor = None
    for index, part in enumerate(parts):
        monitor = _without(compiled, models, index)
        runs = replay_all(
            monitor, part, output, allow_missing=allow_missing, keep_signals=keep_signals
        )
        found.update(zip(part, runs, strict=True))
    assert monitor is not None
    return monitor, [found[path] for path in recordings]


@dataclass(frozen=True)
class Elsewhere:
    """Tells which ticks lie in blocks of other folds than the one that is held out."""

    block: int
    folds: int
    fold: int

    def __call__(self, tick: int) -> bool:
        """Tell whether to learn from a tick."""
        return tick // self.block % self.folds != self.fold


def blocked_runs(
    config: Path,
    recordings: Sequence[Path],
    folds: int,
    block: float,
    jobs: int,
    output: Output,
    *,
    allow_missing: bool = False,
) -> tuple[Monitor, list[RecordedRun]]:
    """Replay every block of the recordings with a model learned from the blocks of other folds.

    Blocks are dealt out to the folds in turn. Each run stays in one piece: only its risks come
    from the model of the fold that a tick belongs to.
    """
    compiled = load_compiled(config)
    size = max(1, round(block * compiled.abstraction.clock.rate))
    found: list[list[RecordedRun]] = []
    monitor = None
    for fold in range(folds):
        with output.progress(f"learning without fold {fold + 1} of {folds}"):
            learned = learn(
                recordings,
                compiled.spec,
                compiled.abstraction,
                jobs=jobs,
                allow_missing=allow_missing,
                keep=Elsewhere(size, folds, fold),
            )
        monitor = build_monitor(compiled, learned.model)
        found.append(replay_all(monitor, recordings, output, allow_missing=allow_missing))
    assert monitor is not None
    return monitor, [_woven(runs, size) for runs in zip(*found, strict=True)]


def _woven(runs: Sequence[RecordedRun], block: int) -> RecordedRun:
    """Return one run whose risks are those of run f at the ticks of fold f."""
    tracks = []
    for versions in zip(*(run.tracks for run in runs), strict=True):
        fold = versions[0].ticks // block % len(runs)
        columns = {
            name: np.choose(fold, [getattr(track, name) for track in versions])
            for name in ("probability", "lower", "upper", "in_model")
        }
        tracks.append(replace(versions[0], **columns))
    return replace(runs[0], tracks=tuple(tracks))


def _without(compiled: CompiledSpec, models: Sequence[CountModel], index: int) -> Monitor:
    others = [model for i, model in enumerate(models) if i != index]
    return build_monitor(compiled, merge_models(others))
