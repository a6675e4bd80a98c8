"""From recordings to a model, with all steps that a monitor file asks for.

Learned scores are fitted first, then transitions are counted, and last the estimator of
each risk is chosen. The command ``learn`` and `forewarn.learn` both call this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forewarn.assessment.censoring import ends_remark
from forewarn.assessment.outcome_counts import PropertyObservers
from forewarn.assessment.progress import Bar, Bars, overall, unseen
from forewarn.assessment.results import stale_remark
from forewarn.assessment.sufficiency import Requirement
from forewarn.config.file import MonitorSpec
from forewarn.errors import ModelError, RecordingError, plural
from forewarn.learning.copies import Copies, refuse_counted_twice
from forewarn.learning.executors import Executor, local, processes_for
from forewarn.learning.folds import groups_in_words
from forewarn.learning.pipeline import Learned, learn
from forewarn.learning.recording_report import RecordingReport
from forewarn.learning.shard_store import ShardStore
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.file import merge_models
from forewarn.models.run_ends import RunEnd, judge_ends
from forewarn.monitoring.build import compile_for, with_estimates
from forewarn.recordings.groups import Grouping
from forewarn.registry import has, part
from forewarn.signals.clock import horizon_ticks
from forewarn.states import learned_signal

MANY_NORMAL = 10
"""Recordings without a violation, and none with one, from which on normal runs are learned."""
NORMAL = "normal_moments"
"""Key of the model file where the wing anomalies keeps them."""
FALSE_DISCOVERY_RATE = 0.05
"""Share of the states that are named because groups differ there, and where they do not."""


@dataclass(frozen=True)
class LearnedModel:
    """A model and how it came about.

    `compiled`: the monitor file with its learned scores.
    `model`: the model, with the counts of others that it was added to.
    `counted`: what the recordings gave.
    `scored`: the learned scores that were fitted.
    `notes`, `warnings`: what the user should know.
    `groups`: a model for each group, where recordings are grouped.
    """

    compiled: CompiledSpec
    model: CountModel
    counted: Learned
    scored: list[Any]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    groups: Any | None = None

    @property
    def normal(self) -> Any | None:
        """What the wing anomalies learned of normal runs; None if nothing."""
        return next(iter(self.model.sections.get(NORMAL, ())), None)


def learn_model(
    compiled: CompiledSpec,
    recordings: Sequence[Path],
    *,
    others: Sequence[CountModel] = (),
    executor: Executor | None = None,
    store: ShardStore | None = None,
    allow_missing: bool = False,
    until: Requirement | None = None,
    grouping: Grouping | None = None,
    level: float = FALSE_DISCOVERY_RATE,
    normal: bool = False,
    bars: Bars = unseen,
) -> LearnedModel:
    """Learn a model, and one for each group of recordings if they are grouped.

    `compiled`: the monitor file.
    `recordings`: what is learned from.
    `others`: models whose counts are added.
    `executor`: who reads the recordings; by default one process per core, and one for a few small
        recordings.
    `store`: where what each recording gives is kept.
    `allow_missing`: go on without topics that a recording lacks.
    `until`: no more recordings are read once the model meets it.
    `grouping`: tells the group of each recording.
    `level`: false discovery rate of what differs between groups.
    `normal`: keep moments of normal runs in the model, if the monitor file asks for it or no
        recording has a violation. Recordings are then read once more.
    `bars`: shows how far the work is.

    Raises InputError if a recording cannot be read, or nothing can be learned from what was read.
    """
    executor = executor or local(processes_for(recordings))
    compiled, scored, notes = _with_scores(
        compiled, recordings, others, executor, bars, allow_missing=allow_missing
    )
    before = [origin for other in others for origin in other.provenance]
    refuse_counted_twice(before)
    copies = Copies(allowed=True, counted=before)
    with bars(f"learning from {plural(len(recordings), 'recording')}") as tell:
        counted = learn(
            recordings,
            compiled.spec,
            compiled.abstraction,
            executor=executor,
            progress=overall(recordings, tell),
            enough=None if until is None else _Stop(until, others, tell),
            allow_missing=allow_missing,
            watch=PropertyObservers(compiled),
            copies=copies,
            store=store,
            per_recording=False,
            grouping=grouping,
        )
    _check_counted(counted, compiled, recordings[0])
    model = merge_models([counted.model, *others]) if others else counted.model
    model, groups = _estimated(compiled, model, counted, level, bars)
    kept = kept_normal(model)
    safe = _normal(compiled, counted, added=bool(others)) if normal else None
    if safe is not None and (not kept or len(safe) > kept):
        with bars(f"reading {plural(len(recordings), 'recording')} for normal moments") as tell:
            found = part("anomalies", "normal_fit", "learning what is normal").learn_normal(
                compiled,
                recordings,
                safe,
                executor=executor,
                progress=overall(recordings, tell),
                allow_missing=allow_missing,
            )
        model = replace(model, sections={**model.sections, NORMAL: (found,)})
        if (number := len(found.recordings)) < len(safe):
            notes += (f"normal moments are those of {number} of {len(safe)} such recordings",)
    if kept:
        notes += (_which_normal(kept, kept_normal(model)),)
    notes += _together(counted, compiled.spec)
    warnings = (
        *filter(None, [copies.remark()]),
        *remarks(counted.reports, compiled.abstraction.clock.noun),
        *notes_of_ends(
            compiled, [one.watched.ends for one in counted.reports if one.watched is not None]
        ),
    )
    return LearnedModel(compiled, model, counted, scored, notes, warnings, groups)


def notes_of_ends(
    compiled: CompiledSpec, recordings: Sequence[Mapping[str, Sequence[RunEnd]]]
) -> list[str]:
    """Say which violations lie at the ends of recordings, each given by property."""
    spec, clock = compiled.spec, compiled.abstraction.clock
    notes: list[str] = []
    for (name, section), automaton in zip(spec.properties.items(), compiled.automata, strict=True):
        runs = [end for one in recordings for end in one[name]]
        ends = judge_ends(runs, horizon_ticks(clock, section.horizon))
        notes += ends_remark(spec, clock, name, automaton, ends)
    return notes


def kept_normal(model: CountModel) -> int:
    """Return from how many recordings without a violation a model keeps normal moments."""
    return sum(len(one.recordings) for one in model.sections.get(NORMAL, ()))


def _which_normal(before: int, now: int) -> str:
    told = "those of two models cannot be joined, and those of the most recordings are kept"
    if now > before:
        return f"normal moments of {before} recordings added to are left out: {told}"
    return f"normal moments stay those of {before} recordings added to: {told}"


def _normal(compiled: CompiledSpec, counted: Learned, *, added: bool) -> frozenset[str] | None:
    """Return the digests of the recordings without a violation; None if nothing is learned."""
    section = compiled.spec.anomaly
    safe = frozenset(
        report.provenance.digest
        for report in counted.reports
        if report.watched is not None
        and not any(end.violations for ends in report.watched.ends.values() for end in ends)
    )
    if section is not None:
        return None if section.file else safe
    alone = not added and len(safe) == len(counted.reports)
    return safe if alone and len(safe) >= MANY_NORMAL and has("anomalies") else None


def _estimated(
    compiled: CompiledSpec, model: CountModel, counted: Learned, level: float, bars: Bars
) -> tuple[CountModel, Any | None]:
    """Return the model with what its risks are made of, and likewise those of groups."""
    groups = None
    if counted.groups is not None:
        with bars("comparing groups"):
            fleet = part("fleet", "grouped_models", "--group-by")
            groups = fleet.grouped_models(counted.groups, model, level)
    if any(section.estimator != "chain" for section in compiled.spec.properties.values()):
        with bars("choosing what risks are made of"):
            model = with_estimates(compiled, model)
            groups = groups and groups.with_estimates(compiled)
    return model, groups


def _check_counted(counted: Learned, compiled: CompiledSpec, first: Path) -> None:
    """Raise RecordingError if no transition was counted."""
    if any(report.provenance.transitions for report in counted.reports):
        return
    noun = compiled.abstraction.clock.noun
    raise RecordingError(
        "no transition could be counted: " + _why_nothing(counted.reports, noun),
        file=first,
        accepted=f"recordings in which two consecutive {noun}s have all predicates known",
    )


def _together(counted: Learned, spec: MonitorSpec) -> tuple[str, ...]:
    """Say which recordings are left out together, if the monitor file says so."""
    groups = {report.group for report in counted.reports} - {""}
    if not groups:
        return ()
    return (groups_in_words(len(counted.reports), len(groups), spec.learning.group_by or ""),)


def _with_scores(
    compiled: CompiledSpec,
    recordings: Sequence[Path],
    others: Sequence[CountModel],
    executor: Executor,
    bars: Bars,
    *,
    allow_missing: bool,
) -> tuple[CompiledSpec, list[Any], tuple[str, ...]]:
    """Return the monitor file with its learned scores, those that were fitted, and notes.

    Scores of models that recordings are added to stay, or their counts would mean nothing.
    """
    spec = compiled.spec
    if not spec.learned_score:
        return compiled, [], ()
    if others:
        missing = spec.learned_score.keys() - {fit.name for fit in others[0].learned_score}
        if missing:
            raise ModelError(
                f"lacks the learned score {min(missing)!r}, so that nothing can be added to it",
                key="learned_score",
                accepted="a model learned with this monitor file; or to learn from all recordings",
            )
        note = "learned scores stay as they are in the model that is added to"
        return compile_for(spec, others[0]), [], (note,)
    with bars(f"reading {plural(len(recordings), 'recording')} for learned scores") as bar:
        found, scored = learned_signal.wing("fitting").fit_scores(
            compiled,
            recordings,
            executor=executor,
            progress=overall(recordings, bar),
            tell=lambda name, done, of: bar(done, of, f"fitting {name}"),
            allow_missing=allow_missing,
        )
    return found, scored, ()


@dataclass(frozen=True)
class _Stop:
    """Tells after each recording how far the data suffice, and shows it on the bar."""

    requirement: Requirement
    others: Sequence[CountModel]
    tell: Bar

    def __call__(self, model: CountModel) -> float:
        """Return the share of the required visits that were made."""
        share = self.requirement.judge(merge_models([model, *self.others])).share
        self.tell(label=f"learning, coverage {100 * share:.3g} %")
        return share


def _why_nothing(reports: Sequence[RecordingReport], noun: str) -> str:
    stale = sum((report.stale for report in reports), Counter[str]())
    failures = sum((report.failures for report in reports), Counter[str]())
    # Signals are stale for some ticks in any recording: the cause is what lasts longest.
    if failures and max(failures.values()) > max(stale.values(), default=0):
        return failures.most_common(1)[0][0]
    if stale:
        return "signals without a value: " + ", ".join(name for name, _ in stale.most_common(8))
    if any(report.counts.ticks > report.counts.unknown for report in reports):
        return f"no {noun} with a known state follows another one"
    return f"no {noun} had a known state while `active_when` held"


def remarks(reports: Iterable[RecordingReport], noun: str = "tick") -> list[str]:
    """Return what was left out of the counts, and why; nothing is skipped in silence.

    `noun` is what the clock counts: ``tick`` or ``step``.
    """
    parts = list(reports)
    ticks = sum(part.counts.ticks for part in parts)
    stale = sum((part.stale for part in parts), Counter[str]())
    failures = sum((part.failures for part in parts), Counter[str]())
    invalid = sum(part.invalid for part in parts)
    refused = sum((part.counts.refused for part in parts), Counter[tuple[int, int]]())
    lines = [
        f"{part.provenance.recording}: {warning}" for part in parts for warning in part.warnings
    ]
    if stale:
        lines.append(stale_remark(stale, plural(ticks, noun)))
    lines += [f"{reason} ({plural(number, noun)})" for reason, number in failures.most_common(10)]
    if invalid:
        lines.append(
            f"{plural(invalid, noun)} in states that a constraint or the thresholds on a signal "
            "exclude: not counted"
        )
    if refused:
        lines.append(
            f"{plural(sum(refused.values()), 'transition')} recorded that a constraint forbids: "
            "not counted"
        )
    return lines
