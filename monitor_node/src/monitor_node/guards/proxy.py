"""An action that passes goals on to another one once they were checked.

Feedback, results and requests to cancel go through in both directions. Nothing here awaits for
long: an executor of rclpy takes a coroutine that waits up again and again, which costs a core.
So only what has a time limit is awaited, and goals that are carried out are kept by callbacks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from action_msgs.msg import GoalInfo, GoalStatus
from action_msgs.srv import CancelGoal
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import GoalEvent
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.task import Future
from unique_identifier_msgs.msg import UUID

from forewarn.errors import ConfigError
from forewarn.wings.agents.section import GuardSpec
from monitor_node.message_types import interface_class

POLL_PERIOD = 0.1
MOST_EARLY = 100
"""Feedbacks that are kept until the client knows that its goal was accepted."""


def action_class(name: str, spec: GuardSpec) -> Any:
    """Return the class of a guard's action."""
    kind = interface_class(spec.type, where=f"guards.{name}.type")
    fields = kind.Result.get_fields_and_field_types()
    texts = [field_name for field_name, type_name in fields.items() if type_name == "string"]
    if spec.reason is not None and spec.reason not in texts:
        raise ConfigError(
            f"{spec.reason!r} is no text field of the result of {spec.type}",
            key=f"guards.{name}.reason",
            accepted=", ".join(texts) or "no key reason: the result has no text",
        )
    return kind


class Verdict(NamedTuple):
    """Whether a goal may pass, and if not, why: words for the client."""

    passes: bool
    reason: str


@dataclass
class Running:
    """A goal that the server has accepted."""

    goal: Any
    server: frozenset[bytes]  # Who served it, by the identifiers of the publishers of its status
    remote: Any = None
    handle: Any = None  # The goal for its client; None until the client has its answer
    # When the server accepted it, in s of the steady clock
    since: float = field(default_factory=time.monotonic)
    asking: int = 0  # Requests to cancel that the server has not answered: it may not end before
    outcome: tuple[int, Any] | None = None
    early: list[Any] = field(default_factory=list)
    closed: bool = False


class ActionProxy:
    """Stands between the clients of an action and its server.

    `judge`: takes a serialized goal and a future for its `Verdict`; a future that is done needs
    none.
    """

    def __init__(
        self,
        node: Node,
        kind: Any,
        spec: GuardSpec,
        judge: Callable[[bytes, Future], None],
        say: Callable[[str], None],
    ) -> None:
        self._type = kind
        self._node, self._spec, self._judge, self._say = node, spec, judge, say
        # What is wrong at the server since a goal passed last; empty if nothing is
        self.problem = ""
        self._running: dict[int, Running] = {}
        self._refused: dict[int, tuple[Any, str]] = {}
        self._waiting: list[tuple[float, Any]] = []
        # Callbacks that await something must not hold up the ticks, nor each other.
        group = ReentrantCallbackGroup()
        self._client: Any = ActionClient(node, self._type, spec.server, callback_group=group)
        self._canceller: Any = node.create_client(
            CancelGoal, f"{spec.server}/_action/cancel_goal", callback_group=group
        )
        self._server: Any = ActionServer(
            node,
            self._type,
            spec.action,
            execute_callback=lambda handle: self._type.Result(),  # goals are never executed here
            callback_group=group,
            goal_callback=self._asked,  # type: ignore[arg-type]
            handle_accepted_callback=self._accepted,
            cancel_callback=self._cancel,  # type: ignore[arg-type]
        )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(POLL_PERIOD, self._poll, clock=steady)

    @property
    def running(self) -> int:
        """How many goals are carried out."""
        return len(self._running)

    def servers(self) -> frozenset[bytes]:
        """Return who offers the server's action, by identifiers of the middleware."""
        found = self._node.get_publishers_info_by_topic(f"{self._spec.server}/_action/status")
        return frozenset(bytes(info.endpoint_gid) for info in found)

    def strangers(self) -> int:
        """Return how many clients other than the guard can send goals to the server."""
        if not hasattr(self._node, "count_clients"):  # Humble
            return 0
        return int(self._node.count_clients(f"{self._spec.server}/_action/send_goal")) - 1

    def trouble(self) -> str:
        """Return why no goal can be passed on; empty if nothing speaks against it."""
        count = len(self.servers())
        if count > 1:
            return f"{count} servers are called {self._spec.server}"
        if not self._client.server_is_ready():
            return f"there is no server {self._spec.server}"
        return ""

    def cancel_all(self, reason: str) -> None:
        """Ask the server to cancel all goals; its clients get the results that follow."""
        for running in self._running.values():
            running.remote.cancel_goal_async()
        if self._running:
            self._say(f"{len(self._running)} goals are cancelled: {reason}")

    def close(self) -> None:
        """Leave the graph."""
        self._node.destroy_timer(self._timer)
        self._server.destroy()
        self._client.destroy()
        self._node.destroy_client(self._canceller)

    async def _asked(self, goal: Any) -> GoalResponse:
        try:
            return await self._answer(goal)
        except Exception as error:  # it would end the process, and with it all other guards
            self._fail(f"a goal is refused: {type(error).__name__}: {error}")
            return GoalResponse.REJECT

    async def _answer(self, goal: Any) -> GoalResponse:
        verdict = Verdict(False, self.trouble())
        if not verdict.reason:
            verdict = await self._judged(goal)
        if verdict.passes:
            running, refused = await self._sent(goal)
            if running is not None:
                self.problem = ""
                self._running[id(goal)] = running
                return GoalResponse.ACCEPT
            verdict = Verdict(False, refused)
            self._fail(refused)
        elif self.trouble():
            self._fail(verdict.reason)
        if self._spec.reason is None:
            return GoalResponse.REJECT
        self._refused[id(goal)] = goal, verdict.reason
        return GoalResponse.ACCEPT

    async def _judged(self, goal: Any) -> Verdict:
        future = self._future()
        self._judge(bytes(serialize_message(goal)), future)
        found: Verdict | None = await self._within(future)
        if found is not None:
            return found
        passes = self._spec.on_failure == "pass"
        text = f"the guard could not judge the goal within {self._spec.timeout:g} s"
        self._fail(f"{text}: it {'passes unchecked' if passes else 'is refused'}")
        return Verdict(passes, text)

    async def _sent(self, goal: Any) -> tuple[Running | None, str]:
        """Pass a goal on; return it once the server has accepted it, or why it has not."""
        running = Running(goal, self.servers())

        def feedback(message: Any) -> None:
            if running.handle is None:
                del running.early[: 1 - MOST_EARLY]
                running.early.append(message.feedback)
            elif running.outcome is None:
                running.handle.publish_feedback(message.feedback)

        name = UUID(uuid=list(uuid4().bytes))
        sent = self._client.send_goal_async(goal, feedback_callback=feedback, goal_uuid=name)
        future = self._future()
        sent.add_done_callback(lambda done: settle(future, _found(done)))
        remote = await self._within(future)
        if remote is None:
            # It may have been accepted, its answer being lost, or be accepted later.
            self._canceller.call_async(CancelGoal.Request(goal_info=GoalInfo(goal_id=name)))
            sent.add_done_callback(_too_late)
            waited = f"within {self._spec.timeout:g} s"
            return None, f"the server {self._spec.server} did not answer {waited}"
        if not remote.accepted:
            return None, f"the server {self._spec.server} rejected the goal"
        running.remote = remote
        return running, ""

    def _accepted(self, handle: Any) -> None:
        key = id(handle.request)
        handle._update_state(GoalEvent.EXECUTE)
        if key in self._refused:
            _, reason = self._refused.pop(key)
            self._end(handle, GoalStatus.STATUS_ABORTED, self._result(reason))
            return
        running = self._running[key]
        running.handle = handle
        for message in running.early:
            handle.publish_feedback(message)
        result = running.remote.get_result_async()
        result.add_done_callback(lambda done: self._ended(running, done))

    def _ended(self, running: Running, done: Any) -> None:
        response = _found(done)
        if response is not None:
            self._finish(running, response.status, response.result)

    def _finish(self, running: Running, status: int, result: Any) -> None:
        if running.outcome is None:
            running.outcome = status, result
        self._tell(running)

    def _tell(self, running: Running) -> None:
        """Tell the client how its goal has ended, once no request to cancel is under way."""
        if running.outcome is None or running.asking or running.closed or running.handle is None:
            return
        running.closed = True
        self._running.pop(id(running.goal), None)
        self._end(running.handle, *running.outcome)

    def _end(self, handle: Any, status: int, result: Any) -> None:
        def finish(ended: Any) -> Any:
            if status == GoalStatus.STATUS_SUCCEEDED:
                ended.succeed()
            elif status == GoalStatus.STATUS_CANCELED and ended.is_cancel_requested:
                ended.canceled()
            else:  # also after a cancellation at the server
                ended.abort()
            return result

        self._server.notify_execute(handle, finish)

    def _result(self, reason: str) -> Any:
        result = self._type.Result()
        if self._spec.reason is not None:
            setattr(result, self._spec.reason, reason)
        return result

    async def _cancel(self, handle: Any) -> CancelResponse:
        running = self._running.get(id(handle.request))
        if running is None or running.outcome is not None:
            return CancelResponse.REJECT
        future = self._future()
        asked = running.remote.cancel_goal_async()
        asked.add_done_callback(lambda done: settle(future, _found(done)))
        running.asking += 1
        try:
            response = await self._within(future)
        finally:
            running.asking -= 1
            # Not before this request is answered, or the goal could not end as cancelled.
            self._node.executor.create_task(self._tell, running)  # type: ignore[union-attr]
        if response is None:
            self._fail(f"the server {self._spec.server} did not answer a request to cancel")
        canceled = response is not None and bool(response.goals_canceling)
        return CancelResponse.ACCEPT if canceled else CancelResponse.REJECT

    def _poll(self) -> None:
        now = time.monotonic()
        for _, future in [entry for entry in self._waiting if entry[0] <= now]:
            settle(future, None)
        self._waiting = [entry for entry in self._waiting if not entry[1].done()]
        if not self._running:
            return
        servers = self.servers()
        for key, running in list(self._running.items()):
            if not running.server & servers and running.outcome is None:
                text = f"the server {self._spec.server} died while it carried out a goal"
                self._fail(text)
                self._finish(running, GoalStatus.STATUS_ABORTED, self._result(text))
            elif running.handle is None and now - running.since > self._spec.timeout:
                self._fail("a client has gone before it heard that its goal was accepted")
                running.remote.cancel_goal_async()
                del self._running[key]

    def _fail(self, problem: str) -> None:
        self.problem = problem
        self._say(problem)

    def _future(self) -> Any:
        return Future(executor=self._node.executor)

    async def _within(self, future: Any) -> Any:
        """Await what comes within the time limit; None if it does not."""
        self._waiting.append((time.monotonic() + self._spec.timeout, future))
        return await future


def settle(future: Any, found: Any) -> None:
    """Give a future its value, unless it has one."""
    if not future.done():
        future.set_result(found)


def _found(done: Any) -> Any:
    """Return what a future holds; None if that is an exception."""
    return None if done.exception() is not None else done.result()


def _too_late(sent: Any) -> None:
    """Cancel a goal that the server accepts after its client got a refusal."""
    remote = _found(sent)
    if remote is not None and remote.accepted:
        remote.cancel_goal_async()
