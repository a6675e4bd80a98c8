"""From recordings to a model: the same signals, predicates and ticks as the live monitor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from forewarn.config import MonitorSpec
from forewarn.errors import RecordingError
from forewarn.learning.actions import KEY, ActionReader
from forewarn.learning.copies import Copies
from forewarn.learning.counting import Counts, TransitionCounter, build_model
from forewarn.learning.folds import unseeing
from forewarn.learning.workers import in_processes
from forewarn.messages import MessageType
from forewarn.models import CountModel, Provenance, Smoothing
from forewarn.models.shards import Judged, Outcomes, Shard
from forewarn.plans.signals import plan_readers
from forewarn.recordings import Recording, open_recording
from forewarn.recordings.by_name import samples_of
from forewarn.recordings.interface import is_timed
from forewarn.signals.clock import Clock
from forewarn.signals.feed import Snapshot
from forewarn.states.abstraction import Abstraction, Past, Seen
from forewarn.states.inputs import open_feed
from forewarn.states.interface import Admission

Progress = Callable[[Path, float], None]
Enough = Callable[[CountModel], float]
Keep = Callable[[int], bool]


class Watcher(Protocol):
    """Watches a recording while it is counted, and tells what followed its moments."""

    def add(self, snapshot: Snapshot) -> None:
        """Take in a moment that counts."""

    def result(self) -> Watched:
        """Return what followed, once the recording is over."""


class Watched(NamedTuple):
    """What a watcher has seen; states are positions in `codes`."""

    codes: Sequence[int]
    outcomes: Mapping[Judged, Outcomes]


Watch = Callable[[Abstraction], Watcher]


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
class RecordingReport:
    """What one recording gave.

    Attributes
    ----------
    inactive, invalid : int
        Ticks outside `active_when`, and ticks in a state that a constraint excludes.
    stale : Counter
        Ticks at which each signal was unknown because it was old or absent.
    failures : Counter
        Reasons why values could not be had, with the number of ticks.
    watched : Watched or None
        What followed its moments, if somebody watched.
    """

    provenance: Provenance
    counts: Counts
    inactive: int = 0
    invalid: int = 0
    stale: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    warnings: tuple[str, ...] = ()
    watched: Watched | None = None


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
    """

    model: CountModel
    reports: tuple[RecordingReport, ...]
    triples: Counter[tuple[int, int, int]]
    unread: tuple[Path, ...] = ()


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
        if info is None and allow_missing:
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
        for tick in feed.play(listened, recording.start_ns, recording.end_ns):
            snapshot = feed.snapshot(tick)
            seen = abstraction.observe(snapshot, past)
            past = seen.past
            yield ObservedTick(snapshot, seen, *actions.at(tick, seen.values))
            if progress is not None and tick % 64 == 0:
                progress((tick - first) / span)
        recording.warnings += [note for note in feed.notes if note not in recording.warnings]
    except RecordingError as error:
        raise error.located(file=recording.path) from None


def count_recording(
    path: Path,
    spec: MonitorSpec,
    abstraction: Abstraction,
    validity: Admission,
    progress: Callable[[float], None] | None = None,
    *,
    allow_missing: bool = False,
    keep: Keep | None = None,
    watch: Watch | None = None,
) -> RecordingReport:
    """Count the transitions of one recording, among the ticks that `keep` does not leave out."""
    counter = TransitionCounter(abstraction.vocabulary, spec.learning.end, validity.allows)
    stale: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    inactive = invalid = 0
    with open_recording(path) as recording:
        abstraction = unseeing(abstraction, recording.digest())
        watcher = None if watch is None else watch(abstraction)
        for snapshot, seen, action, problem in observe(
            recording, spec, abstraction, progress, allow_missing=allow_missing
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
            digest=recording.digest(),
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
    jobs: int = 1,
    progress: Progress | None = None,
    enough: Enough | None = None,
    allow_missing: bool = False,
    keep: Keep | None = None,
    watch: Watch | None = None,
    copies: Copies | None = None,
) -> Learned:
    """Learn a model from recordings.

    Parameters
    ----------
    jobs : int
        Processes to use; recordings are shared out among them.
    enough : callable, optional
        Asked after each recording, in the given order, which share of the data that are needed
        the model has. From 1 on, no further recording counts, whatever `jobs` is.
    allow_missing : bool
        Go on without topics that a recording lacks; their signals are unknown, as live.
    keep : callable, optional
        Tells whether a tick counts; all do by default. With `jobs` it must travel between
        processes.
    watch : callable, optional
        Makes the watcher of each recording, given its abstraction; the model then keeps the counts
        of recordings apart.
    copies : Copies, optional
        What is done about recordings that hold the same data; they are an error by default.

    Raises
    ------
    ConfigError
        If a constraint is wrong.
    RecordingError
        If a recording cannot be read or lacks a topic, or two of them hold the same data.
    """
    validity = abstraction.validity(spec)
    reading = (
        in_processes(paths, _work, (spec, abstraction, allow_missing, keep, watch), jobs, progress)
        if jobs > 1 and len(paths) > 1
        else _serial(paths, spec, abstraction, validity, progress, allow_missing, keep, watch)
    )
    reports: list[RecordingReport] = []
    copies, read = copies or Copies(allowed=False), 0
    with closing(reading):
        for path, report in zip(paths, reading, strict=False):
            read += 1
            if not copies.is_new(path, report.provenance.digest):
                continue
            reports.append(report)
            if enough is not None:
                so_far = assemble(reports, spec, abstraction, validity)
                if enough(so_far.model) >= 1.0:
                    break
    unread = tuple(paths[read:])
    return replace(assemble(reports, spec, abstraction, validity), unread=unread)


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
    about = Shard("", np.zeros((0, 3), dtype=np.int64), report.watched.outcomes).moved(places)
    return replace(shard, outcomes=about.outcomes)


def _work(
    path: Path,
    spec: MonitorSpec,
    abstraction: Abstraction,
    allow_missing: bool,
    keep: Keep | None,
    watch: Watch | None,
) -> RecordingReport:
    validity = abstraction.validity(spec)
    return count_recording(
        path, spec, abstraction, validity, allow_missing=allow_missing, keep=keep, watch=watch
    )


def _serial(
    paths: Sequence[Path],
    spec: MonitorSpec,
    abstraction: Abstraction,
    validity: Admission,
    progress: Progress | None,
    allow_missing: bool,
    keep: Keep | None,
    watch: Watch | None,
) -> Generator[RecordingReport, None, None]:
    for path in paths:
        tell = None if progress is None else partial(progress, path)
        report = count_recording(
            path,
            spec,
            abstraction,
            validity,
            tell,
            allow_missing=allow_missing,
            keep=keep,
            watch=watch,
        )
        if progress is not None:
            progress(path, 1.0)
        yield report
