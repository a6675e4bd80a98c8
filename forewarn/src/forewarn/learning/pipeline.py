"""From recordings to a model: the same signals, predicates and ticks as the live monitor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forewarn.config.file import MonitorSpec
from forewarn.errors import InputError
from forewarn.files.remote import RemotePath, fetched
from forewarn.learning.actions import KEY
from forewarn.learning.copies import Copies
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.learning.executors import Executor, Here, Progress
from forewarn.learning.folds import grouping_of, unseeing
from forewarn.learning.observing import observe, observe_at_once
from forewarn.learning.recording_report import OutcomeObservers, RecordingReport
from forewarn.learning.shard_key import Keep, ShardQuery, question_digest, shard_key
from forewarn.learning.shard_store import ShardStore
from forewarn.models.counts import CountModel, Provenance, Smoothing
from forewarn.models.shards import Shard, of_outcomes
from forewarn.recordings.groups import Grouping
from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import open_recording
from forewarn.registry import part
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Admission, StateSpace
from forewarn.states.learned_signal import SECTION

Enough = Callable[[CountModel], float]


@dataclass(frozen=True)
class Learned:
    """A model and how it came about.

    `reports`: one for each recording that was read, in the given order.
    `triples`: second-order counts, for the Markov test.
    `unread`: recordings that were left out because those before them were enough.
    `kept`: how many reports come from the store.
    `fetched`: bytes that came over the network.
    `problems`: what went wrong with the store; the model is right nevertheless.
    `groups`: what each group has counted, where recordings are grouped.
    """

    model: CountModel
    reports: tuple[RecordingReport, ...]
    triples: Counter[tuple[int, int, int]]
    unread: tuple[Path, ...] = ()
    kept: int = 0
    fetched: int = 0
    problems: tuple[str, ...] = ()
    groups: Any | None = None


class FoundShard(NamedTuple):
    """What a recording gave, and how it was had.

    `kept`: whether the store had it.
    `fetched`: bytes that came over the network meanwhile, to this process.
    `problems`: what went wrong with the store.
    `group`: the group of the recording, where recordings are grouped.
    """

    report: RecordingReport
    kept: bool = False
    fetched: int = 0
    problems: tuple[str, ...] = ()
    group: str = ""


def count_recording(
    recording: Recording,
    digest: str,
    question: ShardQuery,
    progress: Callable[[float], None] | None = None,
) -> RecordingReport:
    """Count the transitions of one recording, which has the digest `digest`."""
    spec, keep, watch = question.spec, question.keep, question.watch
    validity = question.validity
    abstraction = unseeing(question.abstraction, digest)
    counter = TransitionCounter(
        abstraction.vocabulary, spec.learning.recording_end, validity.allows
    )
    stale: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    inactive = invalid = 0
    watcher = None if watch is None else watch(abstraction)
    ticks = observe_at_once if keep is None else observe
    for snapshot, seen, action, problem in ticks(
        recording, spec, abstraction, progress, allow_missing=question.allow_missing
    ):
        if keep is not None and not keep(snapshot.tick):
            continue
        times = snapshot.repeats + 1
        observation = seen.observation
        if watcher is not None:
            watcher.add(snapshot, observation)
        state = observation.state
        if observation.active is not True:
            inactive += times
            state = None
        elif state is not None and not validity.admits(state):
            invalid += times
            state = None
        for tick in range(snapshot.tick, snapshot.tick + times):
            counter.add(tick, state, observation.intervened is not False, action)
        failed = snapshot.failures + seen.failures
        problems = [f"{f.where}: {f.reason}" for f in failed]
        if observation.active and observation.state is None and not (failed or snapshot.stale):
            problems += _forgotten(abstraction, seen.values)
        problems += [f"{KEY}: {problem}"] if problem else []
        for signal in snapshot.stale:
            stale[signal.name] += times
        for one in problems:
            failures[one] += times
    counter.end_recording()
    counts = counter.result
    provenance = Provenance(
        recording=recording.path.name,
        digest=digest,
        duration=recording.duration if abstraction.clock.timed else float(counts.ticks),
        ticks=counts.ticks,
        transitions=sum(counts.transitions.values()),
    )
    warnings = tuple(recording.warnings)
    watched = None if watcher is None else watcher.result()
    return RecordingReport(
        provenance, counts, inactive, invalid, stale, failures, warnings, watched
    )


def _forgotten(abstraction: Abstraction, values: Sequence[Any]) -> Iterator[str]:
    """Yield which expressions with memory have no value although all signals have one."""
    for signal, value in zip(abstraction.derived, values[len(abstraction.sources) :], strict=True):
        if signal.memory is not None and value is None:
            yield f"{signal.name}: no value, because an earlier moment has none or is missing"


def learn(
    paths: Sequence[Path],
    spec: MonitorSpec,
    abstraction: Abstraction,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    enough: Enough | None = None,
    allow_missing: bool = False,
    keep: Keep | None = None,
    watch: OutcomeObservers | None = None,
    copies: Copies | None = None,
    store: ShardStore | None = None,
    per_recording: bool = True,
    grouping: Grouping | None = None,
) -> Learned:
    """Learn a model from recordings.

    `executor`: who reads the recordings; this process by default. What is learned does not depend
        on it.
    `enough`: asked after each recording, in the given order, which share of the data that are
        needed the model has. From 1 on, no further recording counts, in any executor.
    `allow_missing`: go on without topics that a recording lacks; their signals are unknown, as
        live.
    `keep`: tells whether a tick counts; all do by default. It must travel between processes, and
        its `repr` say all that it depends on.
    `watch`: makes the watcher of each recording, given its abstraction; the model then keeps the
        counts separately for each recording.
    `copies`: what is done about recordings that hold the same data; they are an error by default.
    `store`: where shards are kept: a recording whose shard is there is not read.
    `per_recording`: keep the counts of each recording in its report. Without them, memory hardly
        grows with the number of recordings (`RecordingReport.summed`).
    `grouping`: tells the group of each recording; the counts of groups are then added up as well.

    Raises ConfigError if a constraint is wrong; RecordingError if a recording cannot be read or
    lacks a topic, or two of them hold the same data.
    """
    question = ShardQuery(spec, abstraction, allow_missing, keep, watch, grouping_of(spec))
    validity = question.validity
    address = None if store is None else question_digest(question)
    total = Sum(spec, abstraction, validity)
    groups = None if grouping is None else _group_counts(total.vocabulary)
    copies, last = copies or Copies(allowed=False), len(paths)
    kept, over_network, problems = 0, 0, list[str]()
    far = any(isinstance(path, RemotePath) for path in paths)
    work = (question, store, address, grouping)
    reading = (executor or Here()).each(paths, shard_of, work, progress)
    with closing(reading):
        for path, found in reading:
            problems += found.problems
            over_network += found.fetched
            counts = found.report.likeness if far else ""
            if not copies.is_new(path, found.report.provenance.digest, counts):
                continue
            kept += found.kept
            if groups is not None:
                groups.add(found.group, found.report)
            total.add(found.report, per_recording=per_recording)
            if enough is not None and enough(total.learned().model) >= 1.0:
                last = paths.index(path) + 1
                break
    return replace(
        total.learned(),
        unread=tuple(paths[last:]),
        kept=kept,
        fetched=over_network,
        problems=tuple(problems),
        groups=groups,
    )


class Sum:
    """Adds up the counts of recordings into one model, in the order in which they come."""

    def __init__(self, spec: MonitorSpec, abstraction: Abstraction, validity: Admission) -> None:
        self._spec, self._abstraction, self._validity = spec, abstraction, validity
        self._total = TransitionCounter(abstraction.vocabulary, spec.learning.recording_end)
        self._reports: list[RecordingReport] = []

    @property
    def vocabulary(self) -> StateSpace:
        """The states that are counted, with one for the end where there is one."""
        return self._total.vocabulary

    def add(self, report: RecordingReport, *, per_recording: bool = True) -> None:
        """Add what a recording gave, and keep its own counts if that is wanted.

        Raises ValueError if its counts were added up before, and not kept.
        """
        if not report.whole:
            raise ValueError(
                f"{report.provenance.recording}: its counts were not kept per recording"
            )
        self._total.include([report.counts])
        self._reports.append(report if per_recording else report.summed())

    def learned(self) -> Learned:
        """Return the model of all that was added."""
        learning, validity, reports = self._spec.learning, self._validity, tuple(self._reports)
        model = build_model(
            self._total,
            rate=self._spec.rate,
            digest=self._abstraction.digest,
            smoothing=Smoothing(learning.alpha, learning.candidates),
            admissible=validity.states() if learning.candidates == "admissible" else (),
            forbid=validity.forbidden_matrix,
            provenance=tuple(report.provenance for report in reports),
            state_source_recordings=self._abstraction.learned_from,
            sections={SECTION: fitted} if (fitted := self._abstraction.fitted) else {},
        )
        shards = tuple(
            _shard(report, model)
            for report in reports
            if report.watched is not None and report.watched.outcomes
        )
        return Learned(replace(model, shards=shards), reports, self._total.result.triples)


def assemble(
    reports: Iterable[RecordingReport],
    spec: MonitorSpec,
    abstraction: Abstraction,
    validity: Admission,
) -> Learned:
    """Add up the counts of recordings into one model."""
    total = Sum(spec, abstraction, validity)
    for report in reports:
        total.add(report)
    return total.learned()


def _shard(report: RecordingReport, model: CountModel) -> Shard:
    """Return what a recording gave, as the model keeps it; states that it lacks are left out."""
    assert report.watched is not None
    source, index = report.provenance, model.index
    moves = sorted((index[i], index[j], n) for (i, j), n in report.counts.transitions.items())
    shard = Shard(
        source.digest or source.recording,
        np.array(moves, dtype=np.int64).reshape(-1, 3),
        group=report.group,
    )
    places = np.array([index.get(code, -1) for code in report.watched.codes], dtype=np.int64)
    about = of_outcomes(report.watched.outcomes).moved(places)
    return replace(shard, outcomes=about.outcomes)


def shard_of(
    path: Path,
    question: ShardQuery,
    store: ShardStore | None,
    address: str | None,
    grouping: Grouping | None = None,
    progress: Callable[[float], None] | None = None,
) -> FoundShard:
    """Return what a recording gives: from the store, or by reading the recording.

    `store`: where the shard may be, and is put if it is not.
    `address`: the digest of the question (`question_digest`), with which a store is asked.
    `grouping`: tells the group of the recording; no part of the shard.
    """
    before = fetched()
    with open_recording(path) as recording:
        group = "" if grouping is None else grouping.of(recording)
        found = _shard_of(recording, question, store, address, progress)
        if question.grouping is not None:
            together = question.grouping.of(recording)
            found = found._replace(report=replace(found.report, group=together))
    return found._replace(fetched=fetched() - before, group=group)


def _shard_of(
    recording: Recording,
    question: ShardQuery,
    store: ShardStore | None,
    address: str | None,
    progress: Callable[[float], None] | None,
) -> FoundShard:
    digest = recording.digest()
    if store is None or address is None:
        return FoundShard(count_recording(recording, digest, question, progress))
    key, problems = shard_key(digest, address), list[str]()
    try:
        if (found := store.get(key)) is not None:
            source = replace(found.provenance, recording=recording.path.name)
            return FoundShard(replace(found, provenance=source), kept=True)
    except InputError as error:
        problems.append(f"{error}; it is computed again")
    report = count_recording(recording, digest, question, progress)
    try:
        store.put(key, report)
    except InputError as error:
        problems.append(f"{error}; it will be computed again")
    return FoundShard(report, problems=tuple(problems))


def _group_counts(states: StateSpace) -> Any:
    return part("fleet", "group_counts", "--group-by").GroupCounts(states)
