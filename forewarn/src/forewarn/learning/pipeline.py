"""From recordings to a model: the same signals, predicates and ticks as the live monitor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forewarn.config import MonitorSpec
from forewarn.errors import InputError, RecordingError
from forewarn.files.remote import fetched
from forewarn.learning.actions import KEY, ActionReader
from forewarn.learning.copies import Copies
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.learning.executors import Executor, Here, Progress
from forewarn.learning.folds import unseeing
from forewarn.learning.recording_report import RecordingReport, Watch
from forewarn.learning.shard_key import Keep, Question, question_digest, shard_key
from forewarn.learning.shard_store import ShardStore
from forewarn.messages import MessageType
from forewarn.models import CountModel, Provenance, Smoothing
from forewarn.models.shards import Shard, of_outcomes
from forewarn.plans.signals import plan_readers
from forewarn.recordings import Recording, open_recording
from forewarn.recordings.by_name import samples_of
from forewarn.recordings.interface import is_timed
from forewarn.signals.clock import Clock
from forewarn.signals.feed import Snapshot
from forewarn.states.abstraction import Abstraction, Past, Seen
from forewarn.states.inputs import open_feed
from forewarn.states.interface import Admission

Enough = Callable[[CountModel], float]


class ObservedTick(NamedTuple):
    """One tick of a recording.

    Attributes
    ----------
    snapshot : Snapshot
        The source signals.
    seen : Seen
        What they show.
    action : str or None
        What was done then; None if it is not known.
    problem : str
        Why the action could not be had, if that is so.
    """

    snapshot: Snapshot
    seen: Seen
    action: str | None
    problem: str


@dataclass(frozen=True)
class Learned:
    """A model and how it came about.

    Attributes
    ----------
    reports : tuple of RecordingReport
        One for each recording that was read, in the given order.
    triples : Counter
        Second-order counts, for the Markov test.
    unread : tuple of Path
        Recordings that were left out because those before them were enough.
    kept : int
        How many reports come from the store.
    fetched : int
        Bytes that came over the network.
    problems : tuple of str
        What went wrong with the store; the model is right nevertheless.
    """

    model: CountModel
    reports: tuple[RecordingReport, ...]
    triples: Counter[tuple[int, int, int]]
    unread: tuple[Path, ...] = ()
    kept: int = 0
    fetched: int = 0
    problems: tuple[str, ...] = ()


class FoundShard(NamedTuple):
    """What a recording gave, and how it was had.

    Attributes
    ----------
    kept : bool
        Whether the store had it.
    fetched : int
        Bytes that came over the network meanwhile, to this process.
    problems : tuple of str
        What went wrong with the store.
    """

    report: RecordingReport
    kept: bool = False
    fetched: int = 0
    problems: tuple[str, ...] = ()


def wanted_types(
    spec: MonitorSpec, recording: Recording, *, allow_missing: bool = False
) -> dict[str, MessageType]:
    """Return the definitions of the monitor's topics in a recording.

    Parameters
    ----------
    allow_missing : bool
        Leave out topics that the recording lacks.

    Raises
    ------
    RecordingError
        If a topic is missing and must not be, has another type, or cannot be decoded.
    """
    found: dict[str, MessageType] = {}
    for topic, wanted in spec.topics.items():
        info = recording.topics.get(topic)
        if info is None and (allow_missing or topic in spec.optional_topics):
            continue
        if info is None:
            listed = ", ".join(sorted(recording.topics)) or "none"
            raise RecordingError(
                f"the topic {topic} is not in the recording",
                file=recording.path,
                accepted=f"one of its topics: {listed}",
            )
        if info.msgtype != wanted:
            raise RecordingError(
                f"the topic {topic} has type {info.msgtype}",
                file=recording.path,
                accepted=f"{wanted}, as the monitor file says",
            )
        if info.message_type is None:
            raise RecordingError(
                f"the topic {topic} cannot be decoded: {info.error}",
                file=recording.path,
                accepted="a recording with a readable definition of the type",
            )
        found[topic] = info.message_type
    return found


def check_playable(recording: Recording, clock: Clock) -> None:
    """Check that a recording can be played by a clock; raises RecordingError."""
    if recording.count == 0:
        raise RecordingError(
            "the recording is empty", file=recording.path, accepted="at least one message"
        )
    if clock.timed and not is_timed(recording):
        raise RecordingError(
            "the lines have no time (key t)",
            file=recording.path,
            accepted='a line like {"t": 12.3, "speed": 1.2}, or clock: steps in the monitor file',
        )


def digests_alike(
    recording: Recording, sources: Iterable[Provenance], *, timed: bool
) -> frozenset[str]:
    """Return the digests that `recording` may have: of those of its length, where it has one.

    Steps are counted and not timed: there the length says nothing.
    """
    return frozenset(
        source.digest
        for source in sources
        if source.digest and (not timed or abs(source.duration - recording.duration) < 1e-3)
    )


def observe(
    recording: Recording,
    spec: MonitorSpec,
    abstraction: Abstraction,
    progress: Callable[[float], None] | None = None,
    *,
    allow_missing: bool = False,
) -> Iterator[ObservedTick]:
    """Yield every tick of a recording.

    Raises
    ------
    RecordingError
        If the recording lacks a topic, or is damaged.
    """
    named = not recording.topics
    types = {} if named else wanted_types(spec, recording, allow_missing=allow_missing)
    feed = open_feed(spec, abstraction, types, plan_readers(spec))
    past: Past | None = None
    check_playable(recording, abstraction.clock)
    actions = ActionReader(spec, abstraction)
    samples = samples_of(
        recording,
        spec.topics.keys(),
        by_name=feed.by_name,
        apart=feed.moments.part,
        properties=spec.properties,
    )
    span = feed.moments.expected(recording.start_ns, recording.end_ns, recording.count)
    first = feed.moments.following(recording.start_ns)
    try:
        listened = actions.listen(samples, feed.moments)
        ticks = feed.play(listened, recording.start_ns, recording.end_ns)
        for snapshot in abstraction.outlook.over(map(feed.snapshot, ticks)):
            tick = snapshot.tick
            seen = abstraction.observe(snapshot, past)
            past = seen.past
            yield ObservedTick(snapshot, seen, *actions.at(tick, seen.values))
            if progress is not None and tick % 64 == 0:
                progress((tick - first) / span)
        recording.warnings += [note for note in feed.notes if note not in recording.warnings]
    except RecordingError as error:
        raise error.located(file=recording.path) from None


def count_recording(
    recording: Recording,
    digest: str,
    question: Question,
    progress: Callable[[float], None] | None = None,
) -> RecordingReport:
    """Count the transitions of one recording, which has the digest `digest`."""
    spec, keep, watch = question.spec, question.keep, question.watch
    validity = question.validity
    abstraction = unseeing(question.abstraction, digest)
    counter = TransitionCounter(abstraction.vocabulary, spec.learning.end, validity.allows)
    stale: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    inactive = invalid = 0
    watcher = None if watch is None else watch(abstraction)
    for snapshot, seen, action, problem in observe(
        recording, spec, abstraction, progress, allow_missing=question.allow_missing
    ):
        if keep is not None and not keep(snapshot.tick):
            continue
        if watcher is not None:
            watcher.add(snapshot)
        observation = seen.observation
        state = observation.state
        if observation.active is not True:
            inactive += 1
            state = None
        elif state is not None and not validity.admits(state):
            invalid += 1
            state = None
        counter.add(snapshot.tick, state, observation.intervened is not False, action)
        stale.update(signal.name for signal in snapshot.stale)
        failed = snapshot.failures + seen.failures
        failures.update(f"{f.where}: {f.reason}" for f in failed)
        failures.update([f"{KEY}: {problem}"] if problem else [])
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
    watch: Watch | None = None,
    copies: Copies | None = None,
    store: ShardStore | None = None,
) -> Learned:
    """Learn a model from recordings.

    Parameters
    ----------
    executor : Executor, optional
        Who reads the recordings; this process by default. What is learned does not depend on it.
    enough : callable, optional
        Asked after each recording, in the given order, which share of the data that are needed
        the model has. From 1 on, no further recording counts, whoever reads them.
    allow_missing : bool
        Go on without topics that a recording lacks; their signals are unknown, as live.
    keep : callable, optional
        Tells whether a tick counts; all do by default. It must travel between processes, and its
        `repr` say all that it depends on.
    watch : callable, optional
        Makes the watcher of each recording, given its abstraction; the model then keeps the counts
        of recordings apart.
    copies : Copies, optional
        What is done about recordings that hold the same data; they are an error by default.
    store : ShardStore, optional
        Where shards are kept: a recording whose shard is there is not read.

    Raises
    ------
    ConfigError
        If a constraint is wrong.
    RecordingError
        If a recording cannot be read or lacks a topic, or two of them hold the same data.
    """
    question = Question(spec, abstraction, allow_missing, keep, watch)
    validity = question.validity
    address = None if store is None else question_digest(question)
    reports: list[RecordingReport] = []
    learned: Learned | None = None
    copies, last = copies or Copies(allowed=False), len(paths)
    kept, over_network, problems = 0, 0, list[str]()
    work = (question, store, address)
    reading = (executor or Here()).each(paths, shard_of, work, progress)
    places = {path: place for place, path in enumerate(paths)}
    with closing(reading):
        for path, found in reading:
            problems += found.problems
            over_network += found.fetched
            if not copies.is_new(path, found.report.provenance.digest):
                continue
            kept += found.kept
            reports.append(found.report)
            if enough is not None:
                learned = assemble(reports, spec, abstraction, validity)
                if enough(learned.model) >= 1.0:
                    last = places[path] + 1
                    break
    if learned is None:
        learned = assemble(reports, spec, abstraction, validity)
    return replace(
        learned,
        unread=tuple(paths[last:]),
        kept=kept,
        fetched=over_network,
        problems=tuple(problems),
    )


def assemble(
    reports: Iterable[RecordingReport],
    spec: MonitorSpec,
    abstraction: Abstraction,
    validity: Admission,
) -> Learned:
    """Add up the counts of recordings into one model."""
    reports = tuple(reports)
    total = TransitionCounter(abstraction.vocabulary, spec.learning.end)
    total.include(report.counts for report in reports)
    learning = spec.learning
    model = build_model(
        total,
        rate=spec.rate,
        digest=abstraction.digest,
        smoothing=Smoothing(learning.alpha, learning.candidates),
        admissible=validity.states() if learning.candidates == "admissible" else (),
        forbid=validity.forbidden_matrix,
        provenance=tuple(report.provenance for report in reports),
        grown=abstraction.learned_from,
        danger=abstraction.fitted,
    )
    shards = tuple(_shard(report, model) for report in reports if report.watched is not None)
    return Learned(replace(model, shards=shards), reports, total.result.triples)


def _shard(report: RecordingReport, model: CountModel) -> Shard:
    """Return what a recording gave, as the model keeps it; states that it lacks are left out."""
    assert report.watched is not None
    source, index = report.provenance, model.index
    moves = sorted((index[i], index[j], n) for (i, j), n in report.counts.transitions.items())
    shard = Shard(
        source.digest or source.recording,
        np.array(moves, dtype=np.int64).reshape(-1, 3),
    )
    places = np.array([index.get(code, -1) for code in report.watched.codes], dtype=np.int64)
    about = of_outcomes(report.watched.outcomes).moved(places)
    return replace(shard, outcomes=about.outcomes)


def shard_of(
    path: Path,
    question: Question,
    store: ShardStore | None,
    address: str | None,
    progress: Callable[[float], None] | None = None,
) -> FoundShard:
    """Return what a recording gives: from the store, or by reading the recording.

    Parameters
    ----------
    store : ShardStore or None
        Where the shard may be, and is put if it is not.
    address : str or None
        The digest of the question (`question_digest`), with which a store is asked.
    """
    before = fetched()
    found = _shard_of(path, question, store, address, progress)
    return found._replace(fetched=fetched() - before)


def _shard_of(
    path: Path,
    question: Question,
    store: ShardStore | None,
    address: str | None,
    progress: Callable[[float], None] | None,
) -> FoundShard:
    with open_recording(path) as recording:
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
