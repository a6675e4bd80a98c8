"""Lifecycle nodes: transitions that never end in a traceback, and the life of their process."""

from __future__ import annotations

import functools
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidParameterValueException
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node

from forewarn.errors import ForewarnError
from forewarn_ros.clock import SimulatedTime
from forewarn_ros.events import SENDING_NONE, TAKING_NONE
from forewarn_ros.messages import diagnostics
from forewarn_ros.process import Interrupt, spin
from forewarn_ros.status import Status

Transition = Callable[..., TransitionCallbackReturn]
DONE = {"on_activate": "activated", "on_deactivate": "deactivated", "on_cleanup": "cleaned up"}
NEXT = {"unconfigured": "configure", "inactive": "activate"}
EXECUTORS = ("single", "events")


def reported(transition: Transition) -> Transition:
    """Turn errors of a transition into one line of log, a diagnostic and a return code."""

    @functools.wraps(transition)
    def guarded(node: ReportingNode, state: LifecycleState) -> TransitionCallbackReturn:
        node.problem = ""
        try:
            code = transition(node, state)
            if code is TransitionCallbackReturn.SUCCESS and transition.__name__ in DONE:
                node.get_logger().info(DONE[transition.__name__])
            return code
        except (ForewarnError, InvalidParameterValueException) as error:
            node.problem = " | ".join(str(error).splitlines())
            code = TransitionCallbackReturn.FAILURE
        except Exception as error:
            node.problem = f"{transition.__name__}: {type(error).__name__}: {error}"
            node.get_logger().debug(traceback.format_exc())
            code = TransitionCallbackReturn.ERROR
        node.get_logger().error(node.problem)
        node.undo(transition.__name__)
        return code

    return guarded


class ReportingNode(SimulatedTime, LifecycleNode):
    """A lifecycle node that tells on /diagnostics how it is, whatever its state.

    Its topics have no events, not even rclpy's own. One that waits for its executor makes it spin
    while data waits too, and ends the process if the topic is destroyed meanwhile and the executor
    is EventsExecutor (ros2/rclpy#1644). `qos_mismatches` does what events would do.
    """

    def __init__(self, name: str, **arguments: Any) -> None:
        super().__init__(name, **arguments)
        self.problem = ""  # Why the last transition failed; empty if it did not
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)

    def create_publisher(self, *arguments: Any, **options: Any) -> Any:
        """Publish without events; see `Node.create_publisher`."""
        return super().create_publisher(*arguments, event_callbacks=SENDING_NONE, **options)

    def create_lifecycle_publisher(self, *arguments: Any, **options: Any) -> Any:
        """Publish without events; see `LifecycleNode.create_lifecycle_publisher`."""
        return super().create_lifecycle_publisher(
            *arguments, event_callbacks=SENDING_NONE, **options
        )

    def create_subscription(self, *arguments: Any, **options: Any) -> Any:
        """Subscribe without events; see `Node.create_subscription`."""
        return super().create_subscription(*arguments, event_callbacks=TAKING_NONE, **options)

    def create_timer(
        self, timer_period_sec: float, callback: Any, *arguments: Any, **options: Any
    ) -> Any:
        """Call back in time; see `Node.create_timer`. Once destroyed, a timer calls no more.

        EventsExecutor does call a timer that was due when it was destroyed.
        """

        def call() -> None:
            if timer in self.timers:
                callback()

        timer = super().create_timer(timer_period_sec, call, *arguments, **options)
        return timer

    @property
    def state(self) -> str:
        """Present state of the life cycle: ``unconfigured``, ``inactive``, ``active``, ..."""
        return str(self._state_machine.current_state[1])

    @property
    def next_step(self) -> str:
        """What brings it closer to being active; empty if nothing does or it is."""
        if self.state not in NEXT:
            return ""
        return f"next: ros2 lifecycle set {self.get_fully_qualified_name()} {NEXT[self.state]}"

    def _value(self, name: str) -> Any:
        return self.get_parameter(name).value

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _report_every(self, period: float) -> None:
        """Report from now on, every so many seconds, and whatever simulated time does."""
        self._reporter = self.create_timer(period, self._report, clock=self._steady)

    def _report(self) -> None:
        self._diagnostics.publish(diagnostics(self._now_ns(), self.get_name(), self._statuses()))

    @abstractmethod
    def _statuses(self) -> Iterable[Status]:
        """Return what there is to report."""

    @abstractmethod
    def _stop(self, reason: str) -> None:
        """End what runs while active; `reason` ends the sentence "the monitor ..."."""

    @abstractmethod
    def _clear(self) -> None:
        """Forget what was configured."""

    @reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End what runs while active."""
        self._stop("was deactivated")
        return super().on_deactivate(state)

    @reported
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget what was configured."""
        self._clear()
        return super().on_cleanup(state)

    @reported
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop from whatever state."""
        self._stop("was shut down")
        self._clear()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go back to unconfigured after something failed that should not."""
        self._stop("failed")
        self._clear()
        return TransitionCallbackReturn.SUCCESS

    def undo(self, transition: str) -> None:
        """Take back what a transition that failed has left behind."""
        if transition in ("on_configure", "on_activate"):
            self._stop("could not be activated")
        if transition == "on_configure":
            self._clear()


def make_executor(kind: str, node: Node) -> Any:
    """Return an executor that serves `node`: ``events`` where rclpy has it, else ``single``."""
    executor: Any = None
    if kind not in EXECUTORS:
        accepted = ", ".join(EXECUTORS)
        node.get_logger().error(f"executor: {kind!r} (accepted: {accepted}); 'single' stands in")
    if kind == "events":
        try:
            from rclpy.experimental import EventsExecutor

            executor = EventsExecutor(context=node.context)
        except ImportError:
            node.get_logger().warning("this rclpy has no EventsExecutor; 'single' stands in")
    executor = executor or SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    return executor


def serve(node: Any, interrupt: Interrupt) -> None:
    """Serve a node until there is a signal, then let it `finish` and destroy it.

    The executor is the one that its parameter `executor` names. It is configured and activated
    first if its parameter `autostart` says so.
    """
    executor = make_executor(node.get_parameter("executor").value, node)
    try:
        autostart = node.get_parameter("autostart").value
        if autostart:
            with interrupt.raising():  # what a file asks for may take long to compute
                configured = node.trigger_configure() == TransitionCallbackReturn.SUCCESS
            if configured and not interrupt.signalled:
                node.trigger_activate()
        if next_step := node.next_step:
            or_so = "" if autostart else ", or start the node with -p autostart:=true"
            node.get_logger().info(f"{node.state}; {next_step}{or_so}")
        spin(executor, interrupt)
    finally:
        node.finish()
        # A service that still awaits its thread would be waited for on Humble, for ever.
        executor.shutdown(timeout_sec=0)
        node.destroy_node()
