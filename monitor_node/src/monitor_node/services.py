"""The node's services: what an operator, or another program, may ask of a running monitor."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from forewarn_msgs.srv import (
    Acknowledge,
    Explain,
    ListAlerts,
    LoadModel,
    Mute,
    Release,
    Reset,
    SaveIncident,
)
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.task import Future

from forewarn.config.actions import NO_ACTION
from forewarn.errors import ForewarnError
from forewarn.models.counts import CountModel
from forewarn.monitoring import session_events
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.reasons import in_words
from forewarn.monitoring.record import Packed
from forewarn.monitoring.risk_rows import compared
from forewarn.monitoring.step import Monitor
from forewarn.threads import in_background
from monitor_node import conversions
from monitor_node.composing import ages_at
from monitor_node.explaining import explain, reasons
from monitor_node.model_subprocess import MEGABYTE, load_in_subprocess

if TYPE_CHECKING:
    from monitor_node.node import MonitorNode

Result = TypeVar("Result")
Built = tuple[CountModel, Monitor, Packed | None]
LONGEST_TEXT, MOST_NAMES = 1000, 1000
"""Characters of a text, and names in a list, that a request may have."""


class Services:
    """Reset, release, mute, acknowledge, load_model, explain and save_incident."""

    def __init__(self, node: MonitorNode) -> None:
        self._node = node
        self._closed = False
        self._services = [
            self._create(kind, name, command)
            for kind, name, command in (
                (Reset, "reset", self._reset),
                (Release, "release", self._release),
                (Mute, "mute", self._mute),
                (Acknowledge, "acknowledge", self._acknowledge),
                (LoadModel, "load_model", self._load_model),
                (Explain, "explain", self._explain),
                (ListAlerts, "list_alerts", self._list_alerts),
                (SaveIncident, "save_incident", self._save_incident),
            )
        ]

    def _create(self, kind: Any, name: str, command: Callable[..., Any]) -> Any:
        # Of a group only one callback runs at a time, and one that awaits something runs: in the
        # node's own group it would hold up the ticks.
        group = MutuallyExclusiveCallbackGroup()

        async def answer(request: Any, response: Any) -> Any:
            return await self._answer(request, response, command)

        service: Any = self._node.create_service(kind, f"~/{name}", answer, callback_group=group)
        service.send_response = functools.partial(self._send, service.send_response)
        return service

    def _send(self, send: Callable[..., None], *answer: Any) -> None:
        """Send an answer, unless the service was destroyed while that was being worked out."""
        if not self._closed:
            send(*answer)

    def close(self) -> None:
        """Destroy the services."""
        self._closed = True
        for service in self._services:
            self._node.destroy_service(service)

    async def _answer(self, request: Any, response: Any, command: Callable[..., Any]) -> Any:
        """Carry out a command, which may fill in the response, and say what came of it."""
        try:
            _check_texts(request)
            if self._node.watch is None:
                raise ForewarnError("the monitor is not configured")
            said = command(request, response, self._node.watch)
            response.message = await said if inspect.isawaitable(said) else said
            response.success = True
        except ForewarnError as error:
            response.success, response.message = False, str(error)
        if response.message:
            self._log(response)
        return response

    def _log(self, response: Any) -> None:
        logger = self._node.get_logger()
        text = _printable(response.message)
        if response.success:
            logger.info(text)
        else:
            logger.error(text)

    def _note(self, event: session_events.Event) -> None:
        if self._node.runtime is not None:
            self._node.runtime.note(event)

    def _reset(self, request: Any, response: Any, watch: LiveSession) -> str:
        names = watch.reset(request.properties)
        self._note(session_events.Reset(names))
        return f"reset: {', '.join(names)}"

    def _release(self, request: Any, response: Any, watch: LiveSession) -> str:
        response.released = list(watch.release(request.properties))
        self._note(session_events.Release(tuple(response.released), **_asker(request)))
        return f"released: {', '.join(response.released) or 'nothing alerted'}{_by(request)}"

    def _mute(self, request: Any, response: Any, watch: LiveSession) -> str:
        duration = min(request.duration, watch.spec.mute_limit)
        if duration < request.duration and not request.reason.strip():
            raise ForewarnError(
                f"a mute for {request.duration:g} s needs a reason "
                f"(accepted: a reason, or at most {duration:g} s: mute_limit)"
            )
        if math.isinf(duration) and not request.reason.strip():
            raise ForewarnError("a mute without end needs a reason (accepted: any)")
        names = watch.mute(request.properties, duration, _by(request).strip(" ()"))
        self._note(session_events.Mute(names, duration, **_asker(request)))
        if duration == 0:
            return f"no longer muted: {', '.join(names)}{_by(request)}"
        span = "until further notice"
        if not math.isinf(duration):
            span = f"for {duration:g} s"
        if duration < request.duration:
            span += ", which is mute_limit"
        return f"muted {span}: {', '.join(names)}{_by(request)}"

    def _acknowledge(self, request: Any, response: Any, watch: LiveSession) -> str:
        runtime = self._node.runtime
        if runtime is None:
            raise ForewarnError("there is nothing to acknowledge: the monitor is not active")
        now_ns = int(self._node.get_clock().now().nanoseconds)
        who = request.requester or "no name given"
        numbers = tuple(request.alerts)
        heard = runtime.alerts.acknowledge(numbers, who, request.reason, now_ns)
        journal = runtime.journal
        lost = "" if numbers or journal is None else journal.acknowledge()
        if not heard and not lost:
            raise ForewarnError("there is nothing to acknowledge")
        event = session_events.Acknowledge(lost, **_asker(request), alerts=heard or None)
        self._note(event)
        if heard:
            runtime.publish_alerts(now_ns)
        listed = [f"alert {number}" for number in heard] + ([lost] if lost else [])
        return f"acknowledged{_by(request)}: {', '.join(listed)}"

    def _list_alerts(self, request: Any, response: Any, watch: LiveSession) -> str:
        runtime = self._node.runtime
        for name in request.properties:
            if name not in watch.names:
                listed = ", ".join(watch.names)
                raise ForewarnError(f"{name!r} is no property (accepted: {listed})")
        kept = [] if runtime is None else [*runtime.alerts.all.values()]
        wanted = set(request.properties) or set(watch.names)
        response.alerts = [
            conversions.alert(alert)
            for alert in kept
            if alert.name in wanted and not (request.unacknowledged and alert.acknowledged)
        ]
        response.forgotten = 0 if runtime is None else runtime.alerts.forgotten
        return f"{len(response.alerts)} alerts"

    def _save_incident(self, request: Any, response: Any, watch: LiveSession) -> str:
        runtime = self._node.runtime
        if runtime is None or runtime.black_box is None or runtime.latest is None:
            raise ForewarnError(
                "no incident can be written (accepted: an active monitor that has ticked, "
                "with a section black_box in its monitor file)"
            )
        time_ns = runtime.latest.verdict.time_ns
        asked = request.requester, request.reason
        response.path = runtime.black_box.request(time_ns, *asked)
        return f"an incident is written to {response.path}{_by(request)}"

    async def _load_model(self, request: Any, response: Any, watch: LiveSession) -> str:
        try:
            model, monitor, packed = await self._build(watch, request.path)
            if watch is not self._node.watch:
                raise ForewarnError("the monitor was configured again while the model was built")
            self._use(watch, model, monitor, packed)
        finally:
            if watch.monitor.model is not None:
                response.model_digest = watch.monitor.model.digest
                response.states = len(watch.monitor.model.states)
        return f"loaded {request.path}"

    async def _build(self, watch: LiveSession, path: str) -> Built:
        """Read in another process, solve and pack in another thread: ticks go on meanwhile."""
        most = self._node.get_parameter("model_limit").value * MEGABYTE

        def build() -> Built:
            model = load_in_subprocess(path, most)
            try:
                monitor = watch.build(model)
            except ForewarnError as error:
                raise ForewarnError(f"{path}: {error}") from error
            runtime = self._node.runtime
            packed = None if runtime is None else runtime.recording.pack(model, monitor)
            return model, monitor, packed

        return await self._work(build)

    async def _work(self, task: Callable[[], Result]) -> Result:
        """Do something that takes long in another thread."""
        future: Future = Future(executor=self._node.executor)

        def tell(done: Any) -> None:
            with suppress(InvalidHandle):  # the executor is being shut down
                future.set_result(done)

        in_background("service", task).add_done_callback(tell)
        done: Any = await future
        found: Result = done.result()
        return found

    def _use(
        self, watch: LiveSession, model: CountModel, monitor: Monitor, packed: Packed | None
    ) -> None:
        runtime = self._node.runtime
        self._node.model_loaded(model)
        if runtime is None:
            watch.use(monitor)
            return
        runtime.use_model(model, monitor, packed)
        if runtime.learning is not None:
            runtime.learning.restart(model)

    async def _explain(self, request: Any, response: Any, watch: LiveSession) -> str:
        runtime = self._node.runtime
        if runtime is None or runtime.latest is None:
            raise ForewarnError("no tick has been evaluated yet")
        rows = {row.property: row for row in runtime.latest.rows}
        if request.property and request.property not in rows:
            raise ForewarnError(
                f"{request.property!r} is no property (accepted: {', '.join(rows)})"
            )
        row = rows[request.property or max(rows, key=lambda name: _figure(rows[name]))]
        monitor, (verdict, _, asked) = watch.monitor, runtime.latest
        action = NO_ACTION if asked is None else asked.action
        ages, past = ages_at(watch, verdict), watch.memory.state.past
        conversions.explanation(response, explain(monitor, verdict, ages, row, action, past))
        try:
            found = await self._work(lambda: reasons(monitor, verdict, row))
        except ForewarnError as error:
            return f"the likeliest ways are missing: {error}"
        if found is not None:
            response.text = " ".join([response.text, *in_words(found, monitor.clock)])
        return ""


def _figure(row: Any) -> float:
    figure = compared(row)
    return math.inf if figure != figure else figure


def _check_texts(request: Any) -> None:
    """Refuse texts that are too long, and spell out the control characters of who asks and why.

    They are logged, published, recorded and kept.
    """
    for name in request.get_fields_and_field_types():
        value = getattr(request, name)
        texts = value if isinstance(value, list) else [value]
        if len(texts) > MOST_NAMES:
            raise ForewarnError(f"{name}: {len(texts)} names (accepted: {MOST_NAMES} at most)")
        longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
        if longest > LONGEST_TEXT:
            raise ForewarnError(f"{name}: {longest} characters (accepted: {LONGEST_TEXT} at most)")
        if name in ("requester", "reason"):
            setattr(request, name, _printable(value))


def _printable(text: str) -> str:
    """Return a text in which control characters are spelled out: none reaches a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _asker(request: Any) -> dict[str, str]:
    return {"requester": request.requester, "reason": request.reason}


def _by(request: Any) -> str:
    return f" (by {request.requester or 'no name given'}: {request.reason or 'no reason given'})"
