"""From the core's values to ROS messages and back: the only module that knows message types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from forewarn_msgs.msg import Intervention, Risk, RiskArray, Signals
from forewarn_msgs.srv import Acknowledge, Explain, LoadModel, Mute, Release, Reset
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import Header, String

from forewarn.monitoring.intervention import Request
from forewarn.monitoring.record import encode
from forewarn.monitoring.rows import RiskRow
from monitor_node.actuators.interface import Demand
from monitor_node.explaining import Explanation
from monitor_node.status import Status

__all__ = [
    "Acknowledge",
    "ClockMessage",
    "DiagnosticArray",
    "Explain",
    "Intervention",
    "LoadModel",
    "Mute",
    "Release",
    "Reset",
    "RiskArray",
    "Signals",
    "String",
]

NANOSECONDS = 1_000_000_000


def to_time(time_ns: int) -> Time:
    """Return nanoseconds as a Time message."""
    seconds, rest = divmod(time_ns, NANOSECONDS)
    return Time(sec=seconds, nanosec=rest)


def from_time(time: Time) -> int:
    """Return a Time message in nanoseconds."""
    return int(time.sec) * NANOSECONDS + int(time.nanosec)


def header(time_ns: int) -> Header:
    """Return a header without a frame."""
    return Header(stamp=to_time(time_ns))


def risk(row: RiskRow) -> Risk:
    """Return one property's risk."""
    message = Risk()
    for field, value in zip(RiskRow._fields, row, strict=True):
        setattr(message, field, value)
    return message


class RiskMessages:
    """One RiskArray that is filled anew at every tick: most fields stay as they were."""

    def __init__(self) -> None:
        self._message = RiskArray()
        self._rows: tuple[RiskRow, ...] = ()

    def fill(self, time_ns: int, digest: str, rows: tuple[RiskRow, ...]) -> RiskArray:
        """Return the risk of all properties at one tick; valid until the next call."""
        message = self._message
        message.header = header(time_ns)
        message.model_digest = digest
        if len(rows) != len(self._rows):
            message.risks = [risk(row) for row in rows]
        else:
            for target, row, before in zip(message.risks, rows, self._rows, strict=True):
                for field, new, old in zip(RiskRow._fields, row, before, strict=True):
                    if new is not old:
                        setattr(target, field, new)
        self._rows = rows
        return message


def intervention(time_ns: int, request: Request) -> Intervention:
    """Return what the planner is asked to do."""
    return Intervention(
        header=header(time_ns),
        id=request.id,
        action=getattr(Intervention, request.action),
        active=request.active,
        property=request.property,
        properties=list(request.properties),
        risk=request.risk,
        speed_limit=request.speed_limit,
        reason=request.reason,
        evidence=list(request.evidence),
    )


def applied(time_ns: int, demand: Demand, reason: str) -> Intervention:
    """Return what an actuator says that it does."""
    return Intervention(
        header=header(time_ns),
        id=demand.id,
        action=getattr(Intervention, demand.action),
        active=demand.moves,
        risk=math.nan,
        speed_limit=demand.speed_limit,
        reason=reason,
    )


def signals(
    time_ns: int, names: Sequence[str], values: Iterable[Any], stamps_ns: Iterable[int]
) -> Signals:
    """Return named values; what is unknown or no number becomes NaN."""
    return Signals(
        header=header(time_ns),
        names=list(names),
        values=[number(value) for value in values],
        stamps=[to_time(max(stamp, 0)) for stamp in stamps_ns],
    )


def number(value: Any) -> float:
    """Return a scalar as a float, and NaN for whatever is none."""
    return float(value) if isinstance(value, (bool, int, float)) else math.nan


def event(details: Mapping[str, Any]) -> String:
    """Return an event as the JSON text that records hold, too."""
    return String(data=encode(details))


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


def serialized(message: Any) -> bytes:
    """Return a message in CDR, as it goes over the wire."""
    return bytes(serialize_message(message))


def explanation(response: Any, explained: Explanation) -> Any:
    """Fill in the response of the service explain."""
    response.success = True
    response.stamp = to_time(explained.time_ns)
    response.risk = risk(explained.row)
    response.text = explained.text
    response.predicates = list(explained.predicates)
    response.predicate_values = [-1 if v is None else int(v) for v in explained.truths]
    response.signals = list(explained.signals)
    response.signal_values = [number(value) for value in explained.values]
    response.signal_ages = list(explained.ages)
    response.step_probabilities = list(explained.shares)
    return response
