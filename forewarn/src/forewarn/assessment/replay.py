"""One recording through the monitor, and what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import zstandard

from forewarn.assessment.censoring import settled, weighted
from forewarn.assessment.events import Events, find_events
from forewarn.assessment.history import History, Track
from forewarn.assessment.lanes import Lanes, StateLog
from forewarn.assessment.lines import verdict_line
from forewarn.assessment.progress import Bars, overall, unseen
from forewarn.assessment.published import Published, find_published
from forewarn.assessment.reliability import Predictions, predictions
from forewarn.assessment.signal_values import SignalLog, SignalSeries
from forewarn.assessment.watched_runs import WatchedRun, watch
from forewarn.errors import RecordingError, located
from forewarn.learning.executors import Executor, Here
from forewarn.learning.observing import check_playable, digests_alike, wanted_types
from forewarn.messages.definitions import MessageType
from forewarn.models.counts import Provenance
from forewarn.monitoring.session import Session, run_at_once
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import Verdict
from forewarn.recordings.by_name import samples_of
from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import open_recording
from forewarn.signals.snapshots import singly

PROGRESS_EVERY = 256


FLATTERS = "the model was learned from this very recording: figures on it flatter the model"


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """The monitor's verdicts about one recording.

    `start_ns`: time of the first tick.
    `history`: states, stale signals, failures.
    `tracks`: columns of each property.
    `events`: alerts and violations of each property.
    `predictions`: risks and outcomes of each property.
    `lanes`: which predicates and terminal labels held.
    `signals`: raw signals, if they were asked for.
    `messages`, `undecodable`, `out_of_order`: messages read; those of the wrong layout; those left
        out because time went backwards.
    `notes`: what was worked around.
    `published`: the verdicts of a live monitor in this recording; looked for if signals were asked
        for.
    `watched`: the runs in it as they were watched for anomalies, if they were.
    """

    path: Path
    start_ns: int
    history: History
    tracks: tuple[Track, ...]
    events: tuple[Events, ...]
    predictions: tuple[Predictions, ...]
    lanes: Lanes
    signals: tuple[SignalSeries, ...]
    messages: int
    undecodable: int
    out_of_order: int
    notes: tuple[str, ...]
    published: Published | None = None
    watched: tuple[WatchedRun, ...] = ()

    @property
    def name(self) -> str:
        """Name of the recording."""
        return self.path.name


@dataclass(frozen=True, eq=False)
class Replaying:
    """How recordings are replayed. It travels between processes.

    `monitor`: what runs over them.
    `learned_from`: what the model was learned from; a recording among it is pointed out.
    `allow_missing`: go on without topics that the recording lacks; their signals are unknown, as
        live.
    `keep_signals`: keep the values of all signals for a report.
    `lines`: return the verdicts as JSON lines, too.
    """

    monitor: Monitor
    learned_from: Sequence[Provenance] = ()
    allow_missing: bool = False
    keep_signals: bool = False
    lines: bool = False


def replay(
    how: Replaying,
    recording: Recording,
    *,
    on_verdict: Callable[[Verdict], None] | None = None,
    progress: Callable[[float], None] | None = None,
) -> RecordedRun:
    """Run the monitor over a recording.

    Raises RecordingError if the recording is empty or damaged, lacks a topic, or has one of another
    type.
    """
    monitor = how.monitor
    types = types_for(monitor, recording, allow_missing=how.allow_missing)
    session = Session(monitor, types)
    log = SignalLog(monitor.abstraction.signals) if how.keep_signals else None
    history = History(monitor)
    states = StateLog(monitor.abstraction.vocabulary)
    watched = list[WatchedRun]()
    first = session.feed.moments.following(recording.start_ns)
    for verdict in verdicts_of(session, recording, types.keys(), progress):
        history.add(verdict)
        if verdict.anomaly is not None:
            watch(watched, verdict.anomaly)
        states.add(verdict.observation, verdict.repeats + 1)
        if log is not None:
            log.add(verdict.values, verdict.repeats + 1)
        if on_verdict is not None:
            for one, _ in singly(verdict, session.clock):
                on_verdict(one)
    tracks, counters = history.tracks(), session.feed.counters
    start_ns = session.clock.time_ns(first)
    live = find_published(recording, start_ns, first, len(history)) if how.keep_signals else None
    return RecordedRun(
        path=recording.path,
        start_ns=start_ns,
        history=history,
        tracks=tracks,
        events=tuple(map(find_events, tracks)),
        predictions=tuple(predictions(track) for track in tracks),
        lanes=states.lanes(),
        signals=() if log is None else log.series(),
        messages=counters.received,
        undecodable=counters.undecodable,
        out_of_order=counters.out_of_order,
        notes=_notes(session, recording, how.learned_from),
        published=live,
        watched=tuple(watched),
    )


class Replayed(NamedTuple):
    """A run, and its verdicts as JSON lines if they were asked for, packed by zstd."""

    run: RecordedRun
    lines: bytes


def replay_recordings(
    how: Replaying,
    recordings: Sequence[Path],
    *,
    executor: Executor | None = None,
    on_lines: Callable[[Path, bytes], None] | None = None,
    bars: Bars = unseen,
) -> list[RecordedRun]:
    """Replay recordings, and return the runs in the order of the recordings.

    `executor`: who reads them; this process by default. What comes out does not depend on it.
    `on_lines`: called with each recording and its verdicts, as in `Replayed`.
    `bars`: shows how far the work is.
    """
    runs = []
    with bars("replaying") as tell:
        update = overall(recordings, tell)
        with closing((executor or Here()).each(recordings, replayed, (how,), update)) as reading:
            for path, found in reading:
                runs.append(found.run)
                if on_lines is not None:
                    on_lines(path, found.lines)
    return runs


def replayed(
    path: Path, how: Replaying, progress: Callable[[float], None] | None = None
) -> Replayed:
    """Replay one recording."""
    with open_recording(path) as recording:
        return replayed_open(recording, path, how, progress)


def replayed_open(
    recording: Recording,
    path: Path,
    how: Replaying,
    progress: Callable[[float], None] | None = None,
) -> Replayed:
    """Replay a recording that is open, and was asked for by `path`."""
    lines, packer = list[bytes](), zstandard.ZstdCompressor().compressobj()

    def write(verdict: Verdict) -> None:
        lines.append(packer.compress(verdict_line(verdict, how.monitor).encode()))

    on_verdict = write if how.lines else None
    run = replay(how, recording, on_verdict=on_verdict, progress=progress)
    return Replayed(dataclasses.replace(run, path=path), b"".join([*lines, packer.flush()]))


def settled_runs(runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """Return runs once it is judged, over all of them, whether violations end them."""
    tracks = zip(*map(settled, zip(*(run.tracks for run in runs), strict=True)), strict=True)
    return [
        dataclasses.replace(run, tracks=found, predictions=tuple(map(predictions, found)))
        for run, found in zip(runs, tracks, strict=True)
    ]


def weighted_runs(runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """Return runs whose predictions are weighted for what their ends hide (`censoring`)."""
    tracks = zip(*(run.tracks for run in runs), strict=True)
    found = zip(*map(weighted, tracks), strict=True)
    return [
        dataclasses.replace(run, predictions=parts) for run, parts in zip(runs, found, strict=True)
    ]


def verdicts_of(
    session: Session,
    recording: Recording,
    topics: Collection[str],
    progress: Callable[[float], None] | None = None,
) -> Iterator[Verdict]:
    """Yield the verdicts as `run_at_once` does, telling how far the recording is through."""
    samples = samples_of(recording, topics, by_name=session.feed.by_name)
    moments = session.feed.moments
    first = moments.following(recording.start_ns)
    span = moments.expected(recording.start_ns, recording.end_ns, recording.count)
    with located(RecordingError, file=recording.path):
        for verdict in run_at_once(session, samples, recording.start_ns, recording.end_ns):
            yield verdict
            if progress is not None and verdict.tick % PROGRESS_EVERY == 0:
                progress((verdict.tick - first) / span)


def _notes(
    session: Session, recording: Recording, learned_from: Sequence[Provenance]
) -> tuple[str, ...]:
    """Say what was worked around, and if the model has seen the recording.

    Digests are compared where lengths agree.
    """
    notes = (*recording.warnings, *session.feed.notes)
    alike = digests_alike(recording, learned_from, timed=session.clock.timed)
    if alike and recording.digest() in alike:
        return (FLATTERS, *notes)
    return notes


def types_for(
    monitor: Monitor, recording: Recording, *, allow_missing: bool
) -> Mapping[str, MessageType]:
    """Return the topics to read; an empty recording is an error, however the topics are given."""
    check_playable(recording, monitor.clock)
    if not recording.topics:
        return {}
    return wanted_types(monitor.spec, recording, allow_missing=allow_missing)
