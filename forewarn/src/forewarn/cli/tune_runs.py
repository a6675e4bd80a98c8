"""Runs to tune on: recordings that the model has not learned from, or folds that take turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from forewarn.assessment.outcome_counts import watch_for
from forewarn.assessment.replay import RecordedRun, Replaying
from forewarn.cli.readers import Readers
from forewarn.cli.train_test_separation import without_known
from forewarn.config.sections import Estimator
from forewarn.errors import InputError, ModelError, located, plural
from forewarn.learning.copies import Copies
from forewarn.learning.folds import dealt
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.file import merge_models
from forewarn.monitoring.build import build_for_decisions, compile_for
from forewarn.monitoring.loading import find_model
from forewarn.monitoring.step import Monitor
from forewarn.states import learned_signal


def held_out_runs(
    compiled: CompiledSpec,
    model: Path | None,
    recordings: Sequence[Path],
    readers: Readers,
    *,
    accepted: str,
    keep_signals: bool = False,
) -> tuple[Monitor, list[RecordedRun], list[str]]:
    """Replay recordings with a model that has not seen them, and tell the group of each run.

    Parameters
    ----------
    accepted : str
        Where a model may come from, for the error without one.

    Raises
    ------
    ModelError
        If there is no model.
    RecordingError
        If the model was learned from one of the recordings.
    """
    counts = find_model(model, compiled.spec)
    compiled = compile_for(compiled.spec, counts)
    path = model if model is not None else compiled.spec.model_path
    if counts is None:
        raise ModelError(
            "there is no model, so there are no risks",
            file=compiled.spec.file,
            key="model",
            accepted=accepted,
        )
    fresh = without_known(
        recordings,
        counts,
        compiled.spec,
        f"the model {path}",
        "thresholds chosen on it would promise too much",
        "recordings that were kept back, or --folds K to learn from all but one part of them in "
        "turn",
        readers,
    )
    with located(ModelError, file=path):
        monitor = build_for_decisions(compiled, counts)
    how = Replaying(monitor, (), readers.allow_missing, keep_signals)
    runs = readers.replay(how, [*fresh])
    return monitor, runs, [fresh[run.path].cluster for run in runs]


Folded = tuple[Monitor, list[RecordedRun]]


def folded_runs(
    compiled: CompiledSpec,
    clusters: Mapping[Path, str],
    folds: int,
    readers: Readers,
    *,
    keep_signals: bool = False,
    estimators: Sequence[Estimator] = (),
) -> list[Folded]:
    """Replay every recording with a model learned from the other folds.

    Parameters
    ----------
    clusters : mapping of Path to str
        The recordings, each with what it is left out with (`identified`).
    estimators : sequence of str
        Replay once with each of these as the estimator of all properties, learning only once; by
        default once with those of the monitor file.

    Returns
    -------
    list of (Monitor, list of RecordedRun)
        For each estimator: the monitor of the last fold, for names and sections, and its verdicts,
        in the order of `clusters`, without those that could not be read.

    Raises
    ------
    InputError
        If there are fewer groups than folds.
    """
    number = len({*clusters.values()})
    if number < folds:
        alone = compiled.spec.learning.group_by is None
        what = "group" if not alone else "recording" if number == len(clusters) else "distinct run"
        raise InputError(
            f"{folds} folds of {plural(number, what)}",
            key="--folds",
            accepted=(f"2 to {number}" if number > 1 else f"more {what}s")
            + "; or --blocks SECONDS, which deals blocks of recordings out to the folds",
        )
    parts: list[list[Path]] = [[] for _ in range(folds)]
    for path, fold in zip(clusters, dealt([*clusters.values()], folds), strict=True):
        parts[fold].append(path)
    # Who counts for `ensemble` counts for all.
    counts_all = bool({*estimators} - {"chain"})
    learned = _learned(compiled, parts, readers, counts_all)
    found: list[Folded] = []
    for estimator in estimators or (None,):
        runs: dict[Path, RecordedRun] = {}
        monitor = None
        for part, (own, model) in zip(parts, learned, strict=True):
            variant = own if estimator is None else with_estimator(own, estimator)
            monitor = build_for_decisions(variant, model)
            how = Replaying(monitor, (), readers.allow_missing, keep_signals)
            runs.update((run.path, run) for run in readers.replay(how, part))
        assert monitor is not None
        found.append((monitor, [runs[path] for path in clusters if path in runs]))
    return found


def _learned(
    compiled: CompiledSpec,
    parts: Sequence[Sequence[Path]],
    readers: Readers,
    counts_all: bool,
) -> list[tuple[CompiledSpec, CountModel]]:
    """Return for each part what was learned from the others, and the monitor file it belongs to.

    Without learned scores each part is read once, and counts add up. Scores are fitted to all but
    one part in turn. A copy of a recording would be judged by what was learned from the other one,
    whatever parts they are in; of runs of traces that are alike, one is learned from.
    """
    copies, output = Copies(allowed=True), readers.output
    executor, allow_missing = readers.executor, readers.allow_missing

    def counted(paths: Sequence[Path], own: CompiledSpec) -> CountModel:
        return learn(
            paths,
            own.spec,
            own.abstraction,
            executor=executor,
            allow_missing=allow_missing,
            watch=watch_for(with_estimator(own, "ensemble") if counts_all else own),
            copies=copies,
            store=readers.store,
        ).model

    found: list[tuple[CompiledSpec, CountModel]] = []
    models: list[CountModel] = []
    read: dict[Path, Any] = {}  # each recording is read once for the scores of all folds
    with output.progress(f"learning from {len(parts)} folds") as tell:
        for index, part in enumerate(parts):
            tell(index, len(parts))
            if not compiled.spec.learned_score:
                models.append(counted(part, compiled))
                continue
            others = [path for one in parts if one is not part for path in one]
            own, _ = learned_signal.wing("fitting").fit_scores(
                compiled, others, executor=executor, allow_missing=allow_missing, read=read
            )
            found.append((own, counted(others, own)))
    for index in range(len(models)):
        rest = [model for i, model in enumerate(models) if i != index]
        found.append((compiled, merge_models(rest)))
    if remark := copies.remark():
        output.warn(remark)
    return found


def with_estimator(compiled: CompiledSpec, estimator: Estimator) -> CompiledSpec:
    """Return a monitor file whose risks of states are all estimated alike; its models fit."""
    properties = {
        name: section.model_copy(update={"estimator": estimator})
        if section.risk_of == "state"
        else section
        for name, section in compiled.spec.properties.items()
    }
    spec = compiled.spec.model_copy(update={"properties": properties})
    return replace(compiled, spec=spec)


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
    compiled: CompiledSpec,
    recordings: Sequence[Path],
    folds: int,
    block: float,
    readers: Readers,
) -> tuple[Monitor, list[RecordedRun]]:
    """Replay every block of the recordings with a model learned from the blocks of other folds.

    Blocks are dealt out to the folds in turn. Each run stays in one piece: only its risks come
    from the model of the fold that a tick belongs to.
    """
    if compiled.spec.learned_score:
        raise InputError(
            "a learned score is fitted without whole recordings, not without blocks of them",
            key="--blocks",
            accepted="--folds K of recordings",
        )
    size = max(1, round(block * compiled.abstraction.clock.rate))
    found: list[list[RecordedRun]] = []
    monitor = None
    for fold in range(folds):
        with readers.output.progress(f"learning without fold {fold + 1} of {folds}"):
            learned = learn(
                recordings,
                compiled.spec,
                compiled.abstraction,
                executor=readers.executor,
                allow_missing=readers.allow_missing,
                keep=Elsewhere(size, folds, fold),
                watch=watch_for(compiled),
                store=readers.store,
            )
        monitor = build_for_decisions(compiled, learned.model)
        how = Replaying(monitor, allow_missing=readers.allow_missing)
        found.append(readers.replay(how, recordings))
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
