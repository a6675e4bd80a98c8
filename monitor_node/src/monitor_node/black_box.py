"""The black box of one activation: what it is fed with, and what it says of itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from rcl_interfaces.msg import Log

from forewarn.config.fields import size_text
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.record import ANOMALY_TYPE, RISK_TYPE, Names
from forewarn.monitoring.session_events import Event
from forewarn.signals.clock import NANOSECONDS, Clock
from forewarn.wings.black_box.box import (
    ACT,
    ANOMALY,
    OVERHEAD,
    REQUEST,
    VIOLATION,
    WARN,
    BlackBox,
    Kept,
    LogEntry,
    Observer,
)
from forewarn.wings.black_box.incident_file import IncidentFolder
from forewarn.wings.black_box.section import BlackBoxSpec
from forewarn_ros.messages import to_time
from forewarn_ros.status import Severity, Status
from monitor_node import conversions
from monitor_node.composing import Seen
from monitor_node.incident_writer import IncidentWriter
from monitor_node.inputs import Inputs
from monitor_node.pacing import Pacer

Arrival = tuple[int, str, bytes]
TEXT_TYPE = "std_msgs/msg/String"
LOG_TYPE = "rcl_interfaces/msg/Log"
SIGNALS_TYPE = "forewarn_msgs/msg/Signals"
INTERVENTION_TYPE = "forewarn_msgs/msg/Intervention"
PATIENCE = 10.0
"""Seconds that the end of an activation waits for what is still to be written."""


def log_message(moment: LogEntry, node: str) -> Log:
    """Return what happened as a line of a log: Foxglove and rqt show where it lies in time."""
    levels = {VIOLATION: Log.ERROR, ACT: Log.ERROR, WARN: Log.WARN, ANOMALY: Log.WARN}
    level = levels.get(moment.kind, Log.INFO)
    return Log(
        stamp=to_time(moment.time_ns),
        level=int.from_bytes(level, "little") if isinstance(level, bytes) else level,
        name=node,
        msg=f"{moment.kind}: {moment.text}",
        function=moment.kind,
    )


class BlackBoxRecorder:
    """Feeds a black box with all that the node takes in and publishes.

    `inputs`, `extra`: topics that the monitor reads, and those that only the black box wants.
    """

    def __init__(
        self,
        spec: BlackBoxSpec,
        names: Names,
        inputs: Inputs,
        extra: Inputs,
        writer: IncidentWriter,
        clock: Clock,
    ) -> None:
        self.spec = spec
        self.extra = extra
        self.writer = writer
        self._names = names
        self._inputs = inputs
        self._clock = clock
        self._box = BlackBox(spec, writer)
        self._observer = Observer()
        self._waiting: list[Arrival] = []
        self._newest_ns = 0

    @property
    def writing(self) -> bool:
        """Tell whether an incident is going on, and its file takes what comes."""
        return self._box.writing and not self.writer.over

    def take(self, pacer: Pacer) -> list[Arrival]:
        """Return what has come on topics that only the black box wants."""
        found = (
            (pacer.received_ns(received_ns, taken_ns), topic, payload)
            for topic, payload, received_ns, taken_ns, _ in self.extra.take()
        )
        return [(ns, topic, payload) for ns, topic, payload in found if ns is not None]

    def taken(self, arrivals: Iterable[Arrival]) -> None:
        """Take what has arrived; what comes after the next tick stays behind it."""
        self._waiting += arrivals
        self._waiting.sort(key=itemgetter(0))

    def _flush(self, until_ns: int | None = None) -> None:
        """Keep what arrived up to a moment."""
        count = len(self._waiting)
        if until_ns is not None:
            count = sum(arrival[0] <= until_ns for arrival in self._waiting)
        both = (*self._inputs.inputs, *self.extra.inputs)
        known = {topic_input.topic: topic_input for topic_input in both}
        for time_ns, topic, payload in self._waiting[:count]:
            if (source := known.get(topic)) is not None:
                self._keep(time_ns, topic, source.type, payload, latched=source.quality.latched)
        del self._waiting[:count]

    def _keep(
        self,
        time_ns: int,
        topic: str,
        kind: str,
        payload: bytes | Callable[[], bytes],
        *,
        latched: bool = False,
        moment: LogEntry | None = None,
    ) -> None:
        size = OVERHEAD + (len(payload) if isinstance(payload, bytes) else OVERHEAD)
        self._newest_ns = max(self._newest_ns, time_ns)
        kept = Kept(self._newest_ns, topic, kind, payload, size, moment)
        self._box.keep(kept, latched=latched)

    def tick(
        self,
        due_ns: int,
        result: TickResult,
        seen: Seen,
        risk: bytes,
        request: Any,
        anomaly: bytes | None,
    ) -> None:
        """Take what was decided and published at a tick, behind what it rests on."""
        self._flush(due_ns)
        names = self._names
        signals = functools.partial(conversions.signals, result.verdict.time_ns, *seen)
        self._keep(due_ns, names.state, SIGNALS_TYPE, lambda: conversions.serialized(signals()))
        if anomaly is not None:
            self._keep(due_ns, names.anomaly, ANOMALY_TYPE, anomaly)
        if request is not None:
            self.intervention(due_ns, request)
        self._keep(due_ns, names.risk, RISK_TYPE, risk)
        for moment in self._observer.moments(result, self._clock):
            self._mark(moment._replace(time_ns=due_ns))

    def intervention(self, time_ns: int, message: Any) -> None:
        """Take what the planner was asked to do."""
        serialize = functools.partial(conversions.serialized, message)
        self._keep(time_ns, self._names.intervention, INTERVENTION_TYPE, serialize)

    def event(self, event: Event, time_ns: int) -> None:
        """Take a command that was carried out."""
        payload = conversions.serialized(conversions.event(event))
        self._keep(max(time_ns, self._newest_ns), self._names.events, TEXT_TYPE, payload)

    def _mark(self, moment: LogEntry) -> None:
        log = functools.partial(log_message, moment, self._names.node)
        self._keep(
            moment.time_ns,
            self._names.moments,
            LOG_TYPE,
            lambda: conversions.serialized(log()),
            moment=moment,
        )

    def request(self, time_ns: int, requester: str, reason: str) -> str:
        """Write an incident on request, and return its name."""
        who, why = requester or "no name given", reason or "no reason given"
        self._flush(time_ns)
        said_of = f"asked for by {who}: {why}"
        self._mark(LogEntry(max(time_ns, self._newest_ns), REQUEST, "", float("nan"), said_of))
        return self.writer.path

    def advance(self, now_ns: int) -> None:
        """Follow the clock; where moments come when they come, nothing waits for the next one."""
        if not self._clock.regular:
            self._flush()
        self._box.advance(now_ns)

    def restart(self) -> None:
        """Forget everything: the clock has jumped, or ticks begin."""
        self._flush()
        self._box.restart()
        self._observer.restart()
        self._newest_ns = 0

    def close(self) -> bool:
        """Write what is left; tell whether there was time for all of it."""
        self._flush()
        self._box.close()
        self.extra.close()
        return self.writer.close(PATIENCE)

    def status(self) -> Status:
        """Report."""
        ring, writer = self._box.ring, self.writer
        finished = writer.folder.finished()
        values = {
            "folder": writer.folder.path,
            "incidents": len(finished),
            "newest": writer.newest or (finished[-1] if finished else "none"),
            "kept (s)": f"{ring.span_ns / NANOSECONDS:.1f} of {self.spec.before:g}",
            "kept": f"{size_text(ring.size)} of {size_text(self.spec.ring)}",
            "waits to be written": size_text(writer.waiting),
            "messages left out": writer.lost,
            "messages gone before their time": ring.squeezed,
        }
        silent = [i.name for i in self.extra.inputs if not i.publishers]
        troubles = [f"{i.name}: {p}" for i in self.extra.inputs for p in i.problems()]
        values |= {f"note {n}": note for n, note in enumerate(troubles, 1)}
        if silent:
            values["without publisher"] = ", ".join(silent)
        if writer.problem:
            return Status("black box", Severity.ERROR, writer.problem, values)
        text = f"writing {writer.path}" if self.writing else "waiting for a trigger"
        if ring.squeezed:
            text += "; memory is too small: it reaches back less far than before says"
        return Status("black box", Severity.OK, "; ".join((text, *troubles)), values)


def open_keeper(
    watch: LiveSession,
    names: Names,
    inputs: Inputs,
    extra: Callable[..., Inputs],
    files: Mapping[str, bytes],
    logger: Any,
) -> BlackBoxRecorder:
    """Open the black box of an activation, whose monitor file has one.

    `extra`: makes the inputs of topics that nothing else reads.
    """
    spec: BlackBoxSpec = watch.spec.black_box
    folder = IncidentFolder.of(spec, watch.spec.beside(spec.folder))
    for path in folder.recover():
        logger.warning(f"black box: {path} was not completed: it can be read as far as it goes")

    def about() -> dict[str, str]:
        model = watch.monitor.model
        return {"node": names.node, "model": "" if model is None else model.digest}

    most = spec.memory - spec.ring
    writer = IncidentWriter(folder, most, about, files, logger.info, logger.warning)
    known = own_topics(names) | {one.topic for one in inputs.inputs}
    topics = {topic: "" for topic in spec.topics if topic not in known}
    wanted = extra(topics=topics, player_times=False)
    wanted.open()
    logger.info(f"black box: {folder.path}: {spec.bound}")
    return BlackBoxRecorder(spec, names, inputs, wanted, writer, watch.clock)


def own_topics(names: Names) -> frozenset[str]:
    """Return the topics of the node that a black box keeps without subscribing to them."""
    return frozenset(
        (names.risk, names.intervention, names.anomaly, names.state, names.events, names.moments)
    )
