"""The stamp that a message carries: when it was made, which is before it arrived."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from forewarn.errors import DecodeError, FieldError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import Extractor, compile_extractor
from forewarn.messages.foreign import ForeignExtractor, ForeignType
from forewarn.signals.clock import NANOSECONDS, Payload, two_times

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
