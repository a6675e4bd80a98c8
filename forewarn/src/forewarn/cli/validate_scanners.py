"""Rules that ask for a distance at which a scanner measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from forewarn.cli.findings import Finding
from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.specification import CompiledSpec
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import Extractor, compile_extractor
from forewarn.messages.range_readings import TYPES
from forewarn.states.abstraction import Abstraction

NEARER = "any((isinf({beams}) and {beams} < 0) or ({beams} > 0 and {beams} < {low}))"
"""Tells whether a scan says that something is nearer than its sensor measures."""


class Scanner(NamedTuple):
    """A signal that is the least distance of a scan, and what is read of it."""

    slot: int
    topic: str
    read: Any


class Scanners:
    """The scanners of a monitor file, as a recording shows them.

    Parameters
    ----------
    types : mapping of str to MessageType
        Those of the topics that the recording has.
    """

    def __init__(self, compiled: CompiledSpec, types: Mapping[str, MessageType]) -> None:
        self._compiled = compiled
        self._found = [
            Scanner(slot, source.topic, _reader(types[source.topic]))
            for slot, source in enumerate(compiled.abstraction.sources)
            if source.topic in types
            and types[source.topic].name in TYPES
            and source.expression is not None
            and source.expression.source.startswith("nearest_beam(")
        ]
        self._least: dict[str, float] = {}
        self._nearer: set[str] = set()

    def add(self, topic: str, payload: Any) -> None:
        """Take in a message."""
        for one in self._found:
            if one.topic == topic and topic not in self._nearer:
                try:
                    least, nearer = one.read(payload)
                except DecodeError:
                    continue
                self._least.setdefault(topic, least)
                if nearer is True:
                    self._nearer.add(topic)

    def findings(self, where: str) -> Iterator[Finding]:
        """Name the conditions that hold only below a sensor's range, if none reports -inf there."""
        for one in self._found:
            least = self._least.get(one.topic)
            if least is None or one.topic in self._nearer:
                continue
            if names := ", ".join(_only_below(self._compiled.abstraction, one.slot, least)):
                yield Finding(
                    "warning",
                    f"{where}: {names} changes only below {least:g} m, which is range_min of "
                    f"{one.topic}, and no beam of it says that something is nearer (accepted: a "
                    "driver that sends -inf then (REP-117), or a limit above it)",
                )


def _reader(mtype: MessageType) -> Extractor:
    readings = TYPES[mtype.name]
    nearer = NEARER.format(beams=readings.beams, low=readings.low)
    made = compile_extractor(mtype, [parse_expression(readings.low), parse_expression(nearer)])
    assert isinstance(made, Extractor)
    return made


def _only_below(abstraction: Abstraction, slot: int, least: float) -> Iterator[str]:
    """Yield what is otherwise at 0 than at the least distance that is measured."""

    def seen(distance: float) -> Any:
        values: list[Any] = [None] * len(abstraction.sources)
        values[slot] = distance
        return abstraction.evaluate(abstraction.complete(values)[0])

    space, near, there = abstraction.vocabulary, seen(0.0), seen(least)
    for name in (*space.present, *space.terminals):
        truth = space.truth(name, there)
        if truth is not None and truth is not space.truth(name, near):
            yield name
