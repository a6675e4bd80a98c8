"""Check a monitor file against types of messages, above all of the packages installed here."""

from __future__ import annotations

from collections.abc import Iterator

from forewarn.cli.findings import Finding, warning
from forewarn.config.signals import SignalSpec
from forewarn.errors import FieldError, InputError
from forewarn.logic.specification import CompiledSpec
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.foreign import foreign_type
from forewarn.signals.channels import check_choice
from forewarn.signals.frames import value_type
from forewarn.states.kind_check import Misuse, find_misuse


def against_packages(compiled: CompiledSpec) -> Iterator[Finding]:
    """Check fields against installed packages; what is not installed cannot be checked."""
    spec = compiled.spec
    types: dict[str, MessageType] = {}
    for topic, name in spec.topics.items():
        found = _installed(name)
        if found is not None:
            types[topic] = found
        else:
            first = next(n for n, s in spec.signals.items() if s.reads(topic))
            yield warning(
                spec,
                f"signals.{first}.{keys_of(spec.signals[first])[1]}",
                f"{name} is not installed here: its fields are not checked",
                "a recording to check against: --bag",
            )
    yield from check_fields(compiled, types)


def _installed(name: str) -> MessageType | None:
    if "/" not in name:
        return foreign_type(name)
    try:
        return installed_message_type(name)
    except InputError:
        return None


def keys_of(signal: SignalSpec) -> tuple[str, str]:
    """Return how the file calls what a signal is read from, and the type of it."""
    if signal.frame is not None:
        return ("frame", "frame")
    return ("topic", "type") if signal.channel is None else ("channel", "message")


def check_fields(compiled: CompiledSpec, types: dict[str, MessageType]) -> Iterator[Finding]:
    """Check that the messages have what signals are read from."""
    for source in compiled.abstraction.sources:
        mtype = value_type(source, types)
        if mtype is None or source.expression is None:
            continue
        key = f"signals.{source.name}.value"
        try:
            extractor = compile_extractor(mtype, [source.expression])
        except FieldError as error:
            yield Finding("error", str(error.located(file=compiled.spec.file, key=key)))
            continue
        for note in extractor.notes:
            yield warning(compiled.spec, key, note)
        try:
            check_choice(mtype, source)
        except FieldError as error:
            yield Finding("error", str(error.located(file=compiled.spec.file)))
    yield from _kinds(compiled, types)


def _kinds(compiled: CompiledSpec, types: dict[str, MessageType]) -> Iterator[Finding]:
    """Check that numbers are compared with numbers, and that conditions are true or false."""
    reported = set()
    for misuse in find_misuse(compiled.abstraction, types):
        key = _key(compiled, misuse)
        if key not in reported:
            reported.add(key)
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
