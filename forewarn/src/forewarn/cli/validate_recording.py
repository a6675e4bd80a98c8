"""Check a monitor file against a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from forewarn.assessment.modelling import notes_of_ends
from forewarn.assessment.outcome_counts import EndObserver
from forewarn.cli.findings import Finding
from forewarn.cli.validate_messages import check_fields, keys_of
from forewarn.cli.validate_scanners import Scanners
from forewarn.config.file import MonitorSpec
from forewarn.errors import DecodeError, ForewarnError, InputError, RecordingError
from forewarn.learning.observing import observe_at_once
from forewarn.logic.specification import CompiledSpec
from forewarn.messages.definitions import MessageType
from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import open_recording
from forewarn.recordings.traces import JsonTrace
from forewarn.signals.channels import note_of_faster_topics
from forewarn.signals.clock import two_times
from forewarn.signals.sources import clock_gap, stamp_reader


def against_recording(compiled: CompiledSpec, bag: Path) -> Iterator[Finding]:
    """Check topics, their types and fields against a recording; a trace, the names of signals."""
    spec = compiled.spec
    try:
        recording = open_recording(bag)
    except ForewarnError as error:
        yield Finding("error", str(error))
        return
    with recording:
        if recording.count == 0:
            yield Finding(
                "error", f"{bag}: the recording is empty (accepted: at least one message)"
            )
        if isinstance(recording, JsonTrace):
            yield from _against_trace(compiled, recording)
            yield from _damage(compiled, recording, {})
            yield from _ends(compiled, recording)
            return
        yield from _topics(spec, recording)
        types = {
            topic: info.message_type
            for topic in spec.topics
            if (info := recording.topics.get(topic)) is not None
            and info.msgtype == spec.topics[topic]
            and info.message_type is not None
        }
        yield from check_fields(compiled, types)
        yield from _damage(compiled, recording, types)
        yield from _ends(compiled, recording)


def _ends(compiled: CompiledSpec, recording: Recording) -> Iterator[Finding]:
    """Say which violations lie at the end of the recording."""
    watcher, spec = EndObserver(compiled), compiled.spec
    try:
        ticks = observe_at_once(recording, spec, compiled.abstraction, allow_missing=True)
        for tick in ticks:
            watcher.add(tick.snapshot, tick.seen.observation)
    except ForewarnError:
        return  # which is an error of its own above
    for text in notes_of_ends(compiled, [watcher.result().ends]):
        yield Finding("note", f"{recording.path}: {text}")


def _damage(
    compiled: CompiledSpec, recording: Recording, types: Mapping[str, MessageType]
) -> Iterator[Finding]:
    """Read what the monitor would, for damage and stamps of another clock only show then."""
    stamped = compiled.spec.timestamp_source == "header"
    stamps = {topic: stamp_reader(mtype) for topic, mtype in types.items() if stamped}
    far: dict[str, str] = {}
    counts: Counter[str] = Counter()
    scanners = Scanners(compiled, types)
    if compiled.abstraction.clock.timed and two_times(recording.start_ns, recording.end_ns):
        problem = (
            "its times are of two clocks, simulated time (or time since a start) and system time"
        )
        accepted = "a part with one of them: --from and --to"
        yield Finding("error", str(InputError(problem, file=recording.path, accepted=accepted)))
    try:
        for time_ns, topic, payload in recording.read(types if recording.topics else None):
            counts[topic] += 1
            scanners.add(topic, payload)
            read = stamps.get(topic)
            if read is not None and topic not in far:
                with suppress(DecodeError):
                    if problem := clock_gap(read(payload), time_ns):
                        far[topic] = problem
    except RecordingError as error:
        yield Finding("error", str(error.located(file=recording.path)))
    rates = {topic: n / recording.duration for topic, n in counts.items() if recording.duration}
    if note := note_of_faster_topics(compiled.spec, rates):
        yield Finding("note", f"{recording.path}: {note}")
    yield from scanners.findings(str(recording.path))
    for text in (*recording.warnings, *(f"{topic}: {note}" for topic, note in far.items())):
        yield Finding("warning", f"{recording.path}: {text}")


def _topics(spec: MonitorSpec, recording: Recording) -> Iterator[Finding]:
    for topic, wanted in spec.topics.items():
        name = next(n for n, s in spec.signals.items() if s.reads(topic))
        info = recording.topics.get(topic)
        if info is None and topic in spec.optional_topics:
            continue
        key, of_type = keys_of(spec.signals[name])
        problem, accepted = "", ""
        if info is None:
            problem = f"the topic {topic} is not in {recording.path}"
            accepted = "one of its topics: " + (
                ", ".join(sorted(recording.topics)) or "it has none"
            )
        elif info.msgtype != wanted:
            problem = f"the topic {topic} has type {info.msgtype} in {recording.path}, not {wanted}"
            accepted, key = info.msgtype, of_type
        elif info.message_type is None:
            problem = f"the topic {topic} of {recording.path} cannot be decoded: {info.error}"
        elif info.count == 0:
            problem = f"the topic {topic} has no messages in {recording.path}"
        if problem:
            error = InputError(
                problem, file=spec.file, key=f"signals.{name}.{key}", accepted=accepted
            )
            yield Finding("error", str(error))


def _against_trace(compiled: CompiledSpec, trace: JsonTrace) -> Iterator[Finding]:
    for source in compiled.abstraction.sources:
        if source.name not in trace.signals:
            error = InputError(
                f"the trace {trace.path} has no values for it",
                file=compiled.spec.file,
                key=f"signals.{source.name}",
                accepted=f"one of its names: {', '.join(trace.signals)}",
            )
            yield Finding("error", str(error))
