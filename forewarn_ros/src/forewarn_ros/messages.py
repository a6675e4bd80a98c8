"""Times, headers and diagnostics as messages."""

from __future__ import annotations

from collections.abc import Iterable

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

from forewarn.signals.clock import NANOSECONDS
from forewarn_ros.status import Status

HALF = NANOSECONDS << 31


def to_time(time_ns: int) -> Time:
    """Return nanoseconds as a Time message."""
    seconds, rest = divmod(time_ns, NANOSECONDS)
    return Time(sec=seconds, nanosec=rest)


def from_time(time: Time) -> int:
    """Return a Time message in nanoseconds."""
    return int(time.sec) * NANOSECONDS + int(time.nanosec)


def seconds_since(time: Time, now_ns: int) -> float:
    """Return how long a stamp lies back, in s; negative if it is ahead. Seconds have 32 bits."""
    span = (now_ns - from_time(time) + HALF) % (2 * HALF) - HALF
    return span / NANOSECONDS


def header(time_ns: int) -> Header:
    """Return a header without a frame."""
    return Header(stamp=to_time(time_ns))


def diagnostics(time_ns: int, node: str, statuses: Iterable[Status]) -> DiagnosticArray:
    """Return diagnostics under REP 107's names, ``node: subcomponent``."""
    return DiagnosticArray(
        header=header(time_ns),
        status=[
            DiagnosticStatus(
                level=bytes([status.level]),
                name=f"{node}: {status.name}",
                message=status.message,
                hardware_id="",
                values=[
                    KeyValue(key=key, value=str(value)) for key, value in status.values.items()
                ],
            )
            for status in statuses
        ],
    )
