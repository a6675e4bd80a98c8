"""The stamp that a message carries: when it was made, which is before it arrived."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from forewarn.errors import DecodeError, FieldError
from forewarn.expressions import parse_expression
from forewarn.messages import (
    Extractor,
    ForeignExtractor,
    ForeignType,
    MessageType,
    compile_extractor,
)
from forewarn.signals.clock import NANOSECONDS, Payload

STAMPS = ("header.stamp", "stamp")
SECONDS = "header.timestamp_sec"  # Apollo: apollo.common.Header


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
