"""From the core's values to ROS messages and back: the only module that knows message types."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from forewarn_msgs.msg import (
    ActionRisk,
    Alert,
    AlertArray,
    Anomaly,
    Risk,
    RiskArray,
    RiskDetails,
    Signals,
    Source,
    Surprise,
)
from forewarn_msgs.msg import Intervention as InterventionMessage
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from forewarn.config.actions import ACTIONS
from forewarn.config.actuators import Ways
from forewarn.monitoring import alerts, sources
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.risk_rows import RiskRow
from forewarn.monitoring.run_anomaly import AnomalyRow, SurprisingStep
from forewarn.monitoring.session_events import Event, encode
from forewarn_ros.messages import header, seconds_since, to_time
from monitor_node.explaining import RiskExplanation
from monitor_node.statements import ACT, OBSERVE, Statement

MODES = {InterventionMessage.OBSERVE: OBSERVE, InterventionMessage.ACT: ACT}
DETAILS = frozenset(RiskDetails.get_fields_and_field_types())
"""Fields of a row that stand in the details of its message."""
ACTION_NAMES = {getattr(InterventionMessage, name): name for name in ACTIONS}


class Signature:
    """What signs the messages of one life of a monitor: session, mode and a number that rises."""

    def __init__(self, mode: str) -> None:
        self.session = secrets.token_hex(8)
        self.mode = InterventionMessage.ACT if mode == ACT else InterventionMessage.OBSERVE
        self._numbers = itertools.count(1)

    def sign(self, message: Any) -> None:
        """Sign an InterventionMessage or a RiskArray."""
        message.session, message.mode = self.session, self.mode
        message.sequence = next(self._numbers)


def risk(row: RiskRow) -> Risk:
    """Return one property's risk."""
    message = Risk()
    for field, value in zip(RiskRow._fields, row, strict=True):
        _set(message, field, value)
    return message


def _set(message: Risk, field: str, value: Any) -> None:
    setattr(message.details if field in DETAILS else message, field, value)


def anomaly(time_ns: int, row: AnomalyRow) -> Anomaly:
    """Return the message about the present run."""
    return _filled(Anomaly(header=header(time_ns)), row)


def _filled(message: Any, row: Any) -> Any:
    """Fill in the fields that a row of the same names holds."""
    for field, value in zip(row._fields, row, strict=True):
        field_value = _filled(Surprise(), value) if isinstance(value, SurprisingStep) else value
        setattr(message, field, field_value)
    return message


class RiskMessages:
    """One RiskArray that is filled again at every tick: most fields stay as they were."""

    def __init__(self) -> None:
        self._message = RiskArray()
        self._rows: tuple[RiskRow, ...] = ()

    def fill(
        self,
        time_ns: int,
        digest: str,
        rows: tuple[RiskRow, ...],
        signature: Signature,
        request: Intervention,
    ) -> RiskArray:
        """Return the risk of all properties at one tick; valid until the next call."""
        message = self._message
        message.header = header(time_ns)
        message.model_digest = digest
        signature.sign(message)
        message.intervention_id, message.active = request.id, request.active
        message.action = getattr(InterventionMessage, request.action)
        message.speed_limit = request.speed_limit
        message.escape_reverse, message.escape_turn = request.escape
        if len(rows) != len(self._rows):
            message.risks = [risk(row) for row in rows]
        else:
            for target, row, before in zip(message.risks, rows, self._rows, strict=True):
                for field, new, old in zip(RiskRow._fields, row, before, strict=True):
                    if new is not old:
                        _set(target, field, new)
        self._rows = rows
        return message


class Rationale(NamedTuple):
    """What an intervention rests on: the rule, signals, what would help, all in one sentence."""

    formula: str
    sources: tuple[sources.Source, ...]
    would_lower: str
    account: str


NO_RATIONALE = Rationale("", (), "", "")


def source(found: sources.Source) -> Source:
    """Return one signal that an intervention rests on."""
    *same, stamp_ns, since_ns = found
    message = Source(stamp=to_time(max(stamp_ns, 0)), unknown_since=to_time(max(since_ns, 0)))
    for field, value in zip(sources.Source._fields, same, strict=False):
        setattr(message, field, value)
    return message


def intervention(
    time_ns: int,
    request: Intervention,
    signature: Signature | None = None,
    grounds: Rationale = NO_RATIONALE,
) -> InterventionMessage:
    """Return what the planner is asked to do."""
    message = InterventionMessage(
        header=header(time_ns),
        id=request.id,
        action=getattr(InterventionMessage, request.action),
        active=request.active,
        property=request.property,
        properties=list(request.properties),
        risk=request.risk,
        speed_limit=request.speed_limit,
        escape_reverse=request.escape.reverse,
        escape_turn=request.escape.turn,
        reason=request.reason,
        evidence=list(request.evidence),
        formula=grounds.formula,
        sources=[source(found) for found in grounds.sources],
        would_lower=grounds.would_lower,
        account=grounds.account,
        recommendation=request.recommendation,
        recommendation_reason=request.recommendation_reason,
        alternatives=[_filled(ActionRisk(), one) for one in request.alternatives],
    )
    if signature is not None:
        signature.sign(message)
    return message


def alert(found: alerts.Alert) -> Alert:
    """Return one alert."""
    state = next(name for name, holds in alerts.states_of(found).items() if holds)
    return Alert(
        id=found.id,
        property=found.name,
        state=getattr(Alert, state),
        warned=to_time(found.warned_ns),
        acted=to_time(found.acted_ns),
        ended=to_time(found.ended_ns),
        intervention=found.intervention,
        risk=found.risk,
        violations=found.violations,
        reason=found.reason,
        end_reason=found.end_reason,
        acknowledged_by=found.acknowledged_by,
        acknowledged=to_time(found.acknowledged_ns),
        note=found.note,
        incident=found.incident,
    )


def alert_array(time_ns: int, kept: alerts.Alerts, session: str) -> AlertArray:
    """Return all alerts that are kept."""
    return AlertArray(
        header=header(time_ns),
        session=session,
        forgotten=kept.forgotten,
        alerts=[alert(found) for found in kept.all.values()],
    )


def stated(message: InterventionMessage, writer: bytes, now_ns: int) -> Statement:
    """Return an intervention as a statement of `writer`, heard at `now_ns`."""
    return _statement(message, message.id, 1, writer, now_ns)


def repeated(message: RiskArray, writer: bytes, now_ns: int) -> Statement:
    """Return what a risk array repeats of the intervention in force."""
    return _statement(message, message.intervention_id, len(message.risks), writer, now_ns)


def _statement(message: Any, number: int, verdicts: int, writer: bytes, now_ns: int) -> Statement:
    return Statement(
        session=message.session,
        sequence=message.sequence,
        mode=MODES.get(message.mode, ""),
        id=number,
        action=ACTION_NAMES.get(message.action, ""),
        active=message.active,
        speed_limit=message.speed_limit,
        escape=Ways(reverse=message.escape_reverse, turn=message.escape_turn),
        verdicts=verdicts,
        writer=writer,
        age=seconds_since(message.header.stamp, now_ns),
    )


def applied(time_ns: int, demand: Intervention, reason: str) -> InterventionMessage:
    """Return what an actuator says that it does."""
    return intervention(time_ns, demand._replace(active=demand.moves, reason=reason))


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
    """Return a scalar as a float, and NaN for everything else."""
    return float(value) if isinstance(value, (bool, int, float)) else math.nan


def event(happened: Event) -> String:
    """Return an event as the JSON text that records hold, too."""
    return String(data=encode(happened))


def serialized(message: Any) -> bytes:
    """Return a message in CDR, as it goes over the wire."""
    return bytes(serialize_message(message))


def explanation(response: Any, explained: RiskExplanation) -> Any:
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
