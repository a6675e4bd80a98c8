"""``forewarn validate``: everything that can be wrong with a monitor file, found before it runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import NamedTuple

from forewarn.checking.numeric import horizon_notes, risk_table
from forewarn.cli.common import existing_recordings
from forewarn.cli.output import Output
from forewarn.config import MonitorSpec, load_spec
from forewarn.config.sections import SignalSpec
from forewarn.errors import ConfigErrors, FieldError, ForewarnError, InputError
from forewarn.expressions import parse_expression
from forewarn.logic import Automaton, is_stricter, letter_of, step
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.messages import MessageType, compile_extractor, installed_message_type
from forewarn.models import load_model
from forewarn.monitoring.anomaly_section import open_detector
from forewarn.monitoring.build import build_monitor, check_model
from forewarn.monitoring.step import Monitor
from forewarn.plans.signals import plan_readers
from forewarn.recordings import JsonTrace, Recording, open_recording
from forewarn.recordings.interface import plural
from forewarn.states.kind_check import Misuse, find_misuse

DESCRIPTION = """\
Check monitor files: YAML, keys, names, expressions, formulas, constraints; message fields against
the installed packages or against recordings (--bag); that a model fits the file (--model)."""

EPILOG = """\
Errors keep the monitor from running as it was meant; warnings do not; notes are harmless.

exit codes: 0 valid, 1 warnings only, 2 errors, or wrong usage.

example: forewarn validate monitor.yaml --bag run.mcap --model monitor.model.json"""


# Seconds after which one learns that a file takes long, and need not wait how long.
SOLVING = 10.0
# Functions from the name of a message of other middleware to its type, or None.
LAYOUTS = "forewarn.layouts"


@dataclass(frozen=True)
class Options:
    """The arguments of ``validate``."""

    files: list[Path]
    bags: list[Path]
    model: Path | None


class Finding(NamedTuple):
    """One thing that is wrong, or may be."""

    severity: str
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="monitor files")
    parser.add_argument(
        "-b",
        "--bag",
        dest="bags",
        type=Path,
        action="append",
        default=[],
        metavar="BAG",
        help="check topics, types and fields against this recording (may be repeated)",
    )
    parser.add_argument(
        "-m", "--model", type=Path, metavar="FILE", help="check that this model fits"
    )


def run(options: Options, output: Output) -> int:
    """Check every file and print all findings."""
    bags = existing_recordings(options.bags)
    document = {}
    worst = 0
    for file in options.files:
        # Several recordings may have the same to say.
        findings = list(dict.fromkeys(check_file(file, bags, options.model)))
        for finding in findings:
            output.say(f"{finding.severity}: {finding.text}")
        errors = sum(finding.severity == "error" for finding in findings)
        warnings = sum(finding.severity == "warning" for finding in findings)
        worst = max(worst, 2 if errors else 1 if warnings else 0)
        document[str(file)] = findings
        if errors or warnings:
            output.say(f"{file}: {plural(errors, 'error')}, {plural(warnings, 'warning')}")
        else:
            output.say(f"{file}: valid")
    output.emit(document)
    return worst


def check_file(file: Path, bags: list[Path], model: Path | None) -> Iterator[Finding]:
    """Yield all findings about one monitor file."""
    try:
        compiled = compile_spec(load_spec(file))
        compiled.abstraction.validity(compiled.spec)
        plan_readers(compiled.spec)
    except InputError as error:
        yield from _errors(error)
        return
    yield from _unused(compiled)
    yield from _properties(compiled)
    if bags:
        for bag in bags:
            yield from _against_recording(compiled.spec, compiled, bag)
    else:
        yield from _against_packages(compiled)
    path = model if model is not None else _named_model(compiled.spec)
    if path is not None:
        yield from _against_model(compiled, path)


def _errors(error: InputError) -> Iterator[Finding]:
    for problem in error.errors if isinstance(error, ConfigErrors) else [error]:
        yield Finding("error", str(problem))


def _warning(spec: MonitorSpec, key: str, problem: str, accepted: str = "") -> Finding:
    error = InputError(problem, file=spec.file, key=key, accepted=accepted)
    return Finding("warning", str(error))


def _unused(compiled: CompiledSpec) -> Iterator[Finding]:
    spec, abstraction = compiled.spec, compiled.abstraction
    texts = [
        *spec.predicates.values(),
        *spec.terminal.values(),
        *(
            text
            for text in (spec.active_when, spec.intervened_when, spec.action)
            if text is not None
        ),
        *(s.value for s in spec.signals.values() if s.is_derived and s.value is not None),
    ]
    used = {name for text in texts for name in parse_expression(text).names}
    used |= abstraction.deciding
    for name in spec.signals:
        if name not in used:
            unused = _warning(spec, f"signals.{name}", "no predicate and no other signal uses it")
            yield unused._replace(severity="note")


def _properties(compiled: CompiledSpec) -> Iterator[Finding]:
    spec = compiled.spec
    clock = compiled.abstraction.clock
    for (name, section), automaton in zip(spec.properties.items(), compiled.automata, strict=True):
        key = f"properties.{name}"
        if automaton.violated is None or automaton.satisfied == automaton.initial:
            yield _warning(spec, f"{key}.formula", "it can never be violated")
        for label in _obliging(automaton, spec.terminal):
            problem = f"what {label} asks for later cannot be violated: it ends the episode"
            yield _warning(spec, f"{key}.formula", problem, "a predicate that is no terminal label")
        if section.figure == "upper" and spec.bounds.kind == "none":
            problem = "without bounds there is no upper one: only violations would raise an alert"
            yield _warning(spec, f"{key}.figure", problem, "risk, or bounds: {kind: credible}")
        horizon = None if math.isinf(section.horizon) else clock.ticks(section.horizon)
        if horizon == 0:
            yield _warning(
                spec,
                f"{key}.horizon",
                f"{clock.say(section.horizon)} is less than one {clock.noun}: risk is 0",
                f"at least {clock.duration(1):g}",
            )
        for note in horizon_notes(automaton, horizon):
            yield _warning(spec, f"{key}.horizon", note)
        if horizon is None and not spec.terminal:
            yield _warning(
                spec,
                f"{key}.horizon",
                "without a terminal label an unbounded risk is mostly 0 or 1",
                "a horizon, or terminal: labels such as arrived",
            )


def _obliging(automaton: Automaton, terminals: Iterable[str]) -> Iterator[str]:
    """Yield the terminal labels that raise an obligation in a formula."""
    quiet = step(automaton, automaton.initial, 0)
    for label in terminals:
        read = step(automaton, automaton.initial, letter_of(automaton, {label}))
        if read != automaton.violated and is_stricter(automaton, read, quiet):
            yield label


def _against_packages(compiled: CompiledSpec) -> Iterator[Finding]:
    """Check fields against installed packages; what is not installed cannot be checked."""
    spec = compiled.spec
    types: dict[str, MessageType] = {}
    for topic, name in spec.topics.items():
        found = _installed(name)
        if found is not None:
            types[topic] = found
        else:
            first = next(n for n, s in spec.signals.items() if s.source == topic)
            yield _warning(
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


def _against_recording(spec: MonitorSpec, compiled: CompiledSpec, bag: Path) -> Iterator[Finding]:
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
        for text in recording.warnings:
            yield Finding("warning", f"{bag}: {text}")


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
            yield _warning(compiled.spec, key, note)
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


def _within(seconds: float, task: Callable[[], Monitor]) -> Monitor | None:
    """Return what a task gives, or None if it takes longer; its thread then ends with us."""
    results: Queue[Monitor | BaseException] = Queue()

    def work() -> None:
        try:
            results.put(task())
        except BaseException as error:
            results.put(error)

    Thread(target=work, name="solving", daemon=True).start()
    try:
        result = results.get(timeout=seconds)
    except Empty:
        return None
    if isinstance(result, BaseException):
        raise result
    return result


def _named_model(spec: MonitorSpec) -> Path | None:
    path = spec.model_path
    return path if path is not None and path.exists() else None


def _against_model(compiled: CompiledSpec, path: Path) -> Iterator[Finding]:
    spec = compiled.spec
    # Bounds by sampling say nothing more about whether the model fits, and take most of the time.
    solver = risk_table if spec.bounds.kind == "credible" else None
    try:
        model = load_model(path)
        check_model(compiled, model)
        open_detector(compiled, model)
        monitor = _within(SOLVING, lambda: build_monitor(compiled, model, solver))
    except InputError as error:
        yield Finding("error", str(error.located(file=path)))
        return
    if monitor is None:
        longest = max((s.horizon for s in spec.properties.values()), default=0.0)
        yield Finding(
            "warning",
            f"{path}: it fits, but the risk of {model.size} states and a horizon of up to "
            f"{compiled.abstraction.clock.say(longest)} is not computed within {SOLVING:g} s: "
            "`replay` and the node would have to wait for it (accepted: a shorter horizon, or "
            "fewer predicates)",
        )
        return
    known = {
        f"{name}: {note}"
        for (name, section), automaton in zip(
            compiled.spec.properties.items(), compiled.automata, strict=True
        )
        for note in horizon_notes(
            automaton,
            None
            if math.isinf(section.horizon)
            else compiled.abstraction.clock.ticks(section.horizon),
        )
    }
    for note in monitor.notes:
        if note not in known:
            yield Finding("warning", f"{path}: {note}")
