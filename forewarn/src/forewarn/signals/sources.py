"""Signals that arrive: from topics with their stamps, or by name; and how values are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from forewarn.errors import DecodeError, FieldError, located
from forewarn.expressions.syntax import Expression, parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import Extractor, compile_extractor
from forewarn.messages.foreign import ForeignExtractor, ForeignType
from forewarn.signals.clock import NANOSECONDS, Payload, two_times
from forewarn.signals.snapshots import Aged, Snapshot, StaleSignal

if TYPE_CHECKING:
    from forewarn.config.signals import FrameSpec


@dataclass(frozen=True)
class SourceSignal:
    """A signal that arrives: from a topic, or by name where `topic` is empty.

    `where`: holds for the messages that are meant; None for all of the topic.
    `frame`: the signal is a value of this pose, and `topic` is that of its transforms.
    `within`: which messages of a tick count: ``last``, or all of them as `channels.TOGETHER` says.
    """

    name: str
    topic: str
    message_type: str
    expression: Expression | None
    timeout_ns: int  # greatest age at which a sample still counts; negative for never stale
    default: float | bool | str | list[float] | None
    stale: str = "worst"  # what an older one means: ``worst``, ``hold`` or ``ignore``
    where: Expression | None = None
    frame: FrameSpec | None = None
    within: str = "last"

    @property
    def by_platform(self) -> bool:
        """Tell whether the last bits are those of the processor at hand."""
        used = [one for one in (self.expression, self.where) if one is not None]
        return self.frame is not None or any(one.by_platform for one in used)


def stored_value(value: Any) -> Any:
    """Return a signal value in the form that is stored: Python scalar, array, list or None."""
    kind = type(value)
    if kind is float:
        return None if value != value else value
    if kind is bool or kind is int or kind is str or kind is list:
        return value
    if isinstance(value, Unknown):
        return None
    if isinstance(value, np.generic):
        return stored_value(value.item())
    return (
        stored_value(value.item()) if isinstance(value, np.ndarray) and value.ndim == 0 else value
    )


def extractor_of(
    mtype: MessageType, sources: Sequence[SourceSignal]
) -> Extractor | ForeignExtractor:
    """Return what reads the values of signals from messages of one type, all at once.

    Raises FieldError if an expression does not fit the type; names the signal.
    """
    expressions = [source.expression for source in sources if source.expression is not None]
    try:
        return compile_extractor(mtype, expressions)
    except FieldError:
        for source, expression in zip(sources, expressions, strict=True):
            with located(FieldError, key=f"signals.{source.name}.value"):
                compile_extractor(mtype, [expression])
        raise


def snapshot_of(
    sources: Sequence[SourceSignal],
    values: Mapping[str, Any],
    tick: int,
    time_ns: int,
    action: str | None = None,
) -> Snapshot:
    """Return the snapshot of a moment at which these values arrived, and nothing else ever did."""
    found = tuple([stored_value(values.get(s.name, s.default)) for s in sources])
    missing = [s.name for s in sources if s.name not in values and s.default is None]
    stale = tuple([StaleSignal(name, None) for name in missing])
    return Snapshot(tick, found, stale, (), False, time_ns, action)


STAMPS = ("header.stamp", "stamp")
SECONDS = "header.timestamp_sec"  # Apollo: apollo.common.Header
APART_NS = 60 * NANOSECONDS
"""The least difference between stamp and arrival that is reported."""
AHEAD_NS = NANOSECONDS
"""Clocks are not quite alike: by so much a stamp may lie ahead of the arrival."""


def not_yet(stamp_ns: int, arrival_ns: int) -> DecodeError | None:
    """Return why a stamp is not believed: nothing arrives before it was made. None if it may be.

    Believed, it would keep out all that comes until then, or let old values count as new.
    """
    gap_ns = stamp_ns - arrival_ns
    if gap_ns <= AHEAD_NS:
        return None
    return DecodeError(
        f"its stamp is {gap_ns / NANOSECONDS:.4g} s ahead of its arrival",
        accepted=f"at most {AHEAD_NS / NANOSECONDS:g} s; one clock for both, "
        "or timestamp_source: arrival",
    )


def clock_gap(stamp_ns: int, arrival_ns: int) -> str:
    """Say that a stamp is of another clock than the arrival; empty if they are near."""
    gap_ns = stamp_ns - arrival_ns
    if abs(gap_ns) <= APART_NS:
        return ""
    if stamp_ns == 0:
        return "its stamps are 0, as if the driver sets none (accepted: timestamp_source: arrival)"
    side = "ahead of" if gap_ns > 0 else "behind"
    offset = f"its stamps are {abs(gap_ns) / NANOSECONDS:.4g} s {side} its arrivals"
    if not two_times(stamp_ns, arrival_ns):
        return f"{offset}: another clock, or messages that were kept for late subscribers"
    clocks = ("system time", "simulated time or time since a start")
    stamps, arrivals = clocks if gap_ns > 0 else clocks[::-1]
    return (
        f"{offset}: stamps are {stamps}, arrivals are {arrivals} (accepted: timestamp_source: "
        f"arrival, or one "
        "clock for all, see use_sim_time)"
    )


def stamp_reader(mtype: MessageType) -> Callable[[Payload], int] | None:
    """Return a function from payload to its header stamp in nanoseconds, or None."""
    if isinstance(mtype, ForeignType):
        return _seconds_reader(mtype)
    for path in STAMPS:
        try:
            extractor = compile_extractor(
                mtype, [parse_expression(f"{path}.sec"), parse_expression(f"{path}.nanosec")]
            )
        except FieldError:
            continue

        def read(payload: Payload, extractor: Extractor | ForeignExtractor = extractor) -> int:
            assert not isinstance(payload, Mapping)
            seconds, nanoseconds = extractor(payload)
            return int(seconds) * NANOSECONDS + int(nanoseconds)  # type: ignore[arg-type]

        return read
    return None


def _seconds_reader(mtype: MessageType) -> Callable[[Payload], int] | None:
    try:
        extractor = compile_extractor(mtype, [parse_expression(SECONDS)])
    except FieldError:
        return None

    def read(payload: Payload) -> int:
        assert not isinstance(payload, Mapping)
        (seconds,) = extractor(payload)
        if not isinstance(seconds, float) or not math.isfinite(seconds):
            raise DecodeError(f"{SECONDS} is {seconds!r}", accepted="seconds")
        return round(seconds * NANOSECONDS)

    return read


EXTERNAL_TYPE = "forewarn_msgs/msg/Signals"
FIELDS = (
    "names",
    "values",
    "header.stamp.sec",
    "header.stamp.nanosec",
    "[each.sec for each in stamps]",
    "[each.nanosec for each in stamps]",
)


class ExternalSignals:
    """Reads the names, values and ages of serialized Signals messages.

    The age of a value is the header's stamp less its own. Stamps may be left out, all or, as
    zeros, some of them: such a value is as new as its message.

    `mtype`: definition of the message.
    """

    def __init__(self, mtype: MessageType) -> None:
        self._extract = compile_extractor(
            mtype, [parse_expression(field_name) for field_name in FIELDS]
        )

    def __call__(self, data: bytes | memoryview) -> dict[str, float | Aged]:
        """Return the values by name.

        Raises DecodeError if the bytes are no such message, or names, values and stamps differ in
        number.
        """
        extracted: list[Any] = list(self._extract(data))
        names, values, sec, nanosec, secs, nanosecs = extracted
        if len(names) != len(values):
            raise DecodeError(f"{len(names)} names and {len(values)} values: they must be in step")
        if len(secs) not in (0, len(names)):
            raise DecodeError(f"{len(names)} names and {len(secs)} stamps: they must be in step")
        found: dict[str, float | Aged] = dict(zip(names, map(float, values), strict=True))
        sent = int(sec) * NANOSECONDS + int(nanosec)
        for name, seconds, rest in zip(names, secs, nanosecs, strict=False):
            stamp = int(seconds) * NANOSECONDS + int(rest)
            if 0 < stamp < sent:
                found[name] = Aged(found[name], sent - stamp)
        return found
