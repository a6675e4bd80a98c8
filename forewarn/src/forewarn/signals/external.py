"""Signals that another process supplies by name, as forewarn_msgs/msg/Signals messages."""

from __future__ import annotations

from typing import Any

from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import compile_extractor
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.snapshots import Aged

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
