"""Check a monitor file against messages: of recordings, or of the packages installed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

from forewarn.cli.findings import Finding, warning
from forewarn.config import MonitorSpec
from forewarn.config.sections import SignalSpec
from forewarn.errors import DecodeError, FieldError, ForewarnError, InputError, RecordingError
from forewarn.logic.specification import CompiledSpec
from forewarn.messages import MessageType, compile_extractor, installed_message_type
from forewarn.recordings import JsonTrace, Recording, open_recording
from forewarn.signals.channels import check_condition
from forewarn.signals.clock import two_times
from forewarn.signals.stamps import clock_gap, stamp_reader
from forewarn.states.kind_check import Misuse, find_misuse

# Functions from the name of a message of other middleware to its type, or None.
LAYOUTS = "forewarn.layouts"


def against_packages(compiled: CompiledSpec) -> Iterator[Finding]:
    """Check fields against installed packages; what is not installed cannot be checked."""
    spec = compiled.spec
    types: dict[str, MessageType] = {}
    for topic, name in spec.topics.items():
        found = _installed(name)
        if found is not None:
            types[topic] = found
        else:
            first = next(n for n, s in spec.signals.items() if s.source == topic)
            yield warning(
                spec,
                f"signals.{first}.{_keys(spec.signals[first])[1]}",
                f"{name} is not installed here: its fields are not checked",
                "a recording to check against: --bag",
            )
    yield from _fields(compiled, types)


def _installed(name: str) -> MessageType | None:
    if "/" not in name:
        found = (point.load()(name) for point in entry_points(group=LAYOUTS))
        return next((finding for finding in found if finding is not None), None)
    try:
        return installed_message_type(name)
    except InputError:
        return None


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
            return
        yield from _topics(spec, recording)
        types = {
            topic: info.message_type
            for topic in spec.topics
            if (info := recording.topics.get(topic)) is not None
            and info.msgtype == spec.topics[topic]
            and info.message_type is not None
        }
        yield from _fields(compiled, types)
        yield from _damage(compiled, recording, types)


def _damage(
    compiled: CompiledSpec, recording: Recording, types: Mapping[str, MessageType]
) -> Iterator[Finding]:
    """Read what the monitor would, for damage and stamps of another clock only show then."""
    stamped = compiled.spec.time == "stamp"
    stamps = {topic: stamp_reader(mtype) for topic, mtype in types.items() if stamped}
    far: dict[str, str] = {}
    if compiled.abstraction.clock.timed and two_times(recording.start_ns, recording.end_ns):
        told = "its times are of two clocks, simulated time (or time since a start) and system time"
        accepted = "a part with one of them: --from and --to"
        yield Finding("error", str(InputError(told, file=recording.path, accepted=accepted)))
    try:
        for time_ns, topic, payload in recording.read(types if recording.topics else None):
            read = stamps.get(topic)
            if read is not None and topic not in far:
                with suppress(DecodeError):
                    if told := clock_gap(read(payload), time_ns):
                        far[topic] = told
    except RecordingError as error:
        yield Finding("error", str(error.located(file=recording.path)))
    for text in (*recording.warnings, *(f"{topic}: {told}" for topic, told in far.items())):
        yield Finding("warning", f"{recording.path}: {text}")


def _keys(signal: SignalSpec) -> tuple[str, str]:
    """Return how the file calls what a signal is read from, and the type of it."""
    return ("topic", "type") if signal.channel is None else ("channel", "message")


def _topics(spec: MonitorSpec, recording: Recording) -> Iterator[Finding]:
    for topic, wanted in spec.topics.items():
        name = next(n for n, s in spec.signals.items() if s.source == topic)
        info = recording.topics.get(topic)
        key, of_type = _keys(spec.signals[name])
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


def _fields(compiled: CompiledSpec, types: dict[str, MessageType]) -> Iterator[Finding]:
    for source in compiled.abstraction.sources:
        if source.topic not in types or source.expression is None:
            continue
        key = f"signals.{source.name}.value"
        try:
            extractor = compile_extractor(types[source.topic], [source.expression])
        except FieldError as error:
            yield Finding("error", str(error.located(file=compiled.spec.file, key=key)))
            continue
        for note in extractor.notes:
            yield warning(compiled.spec, key, note)
        try:
            check_condition(types[source.topic], source)
        except FieldError as error:
            yield Finding("error", str(error.located(file=compiled.spec.file)))
    yield from _kinds(compiled, types)


def _kinds(compiled: CompiledSpec, types: dict[str, MessageType]) -> Iterator[Finding]:
    """Check that numbers are compared with numbers, and that conditions are true or false."""
    told = set()
    for misuse in find_misuse(compiled.abstraction, types):
        key = _key(compiled, misuse)
        if key not in told:
            told.add(key)
            yield Finding("error", str(misuse.error.located(file=compiled.spec.file, key=key)))


def _key(compiled: CompiledSpec, misuse: Misuse) -> str:
    """Return where an expression stands: thresholds are predicates, and so are comparisons."""
    spec, name = compiled.spec, misuse.name
    if misuse.place == "signals":
        return f"signals.{name}.value"
    if misuse.place != "predicates" or name in spec.predicates:
        return f"{misuse.place}.{name}".rstrip(".")
    cut = compiled.abstraction.vocabulary.cut(name)
    if cut is not None and cut[0] in spec.bins:
        return f"bins.{cut[0]}"
    for rule, automaton in zip(spec.properties, compiled.automata, strict=True):
        if name in automaton.atoms:
            return f"properties.{rule}.formula"
    return f"predicates.{name}"
