"""When moments are evaluated: a timer wakes the node, or simulated time moves."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from forewarn.signals.clock import NANOSECONDS
from forewarn_ros.clock import is_simulated
from monitor_node.runtime import Runtime

EARLY, EARLY_SHARE = 2.5e-3, 0.2
"""The timer fires so many seconds, and this share of a period at most, before a tick: the time that
rclpy takes to call back, and a processor to warm up, is over when the tick is due."""


class Ticker:
    """Has a runtime evaluate the ticks that are due."""

    def __init__(
        self, node: Node, runtime: Runtime, warn: Callable[[str], None], after: Callable[[], None]
    ) -> None:
        self.failure = ""  # What went wrong at the last attempt; empty if nothing did
        self._node = node
        self._runtime = runtime
        self._warn = warn
        self._after = after
        period = runtime.pacer.clock.period
        self._period_ns = round(period * NANOSECONDS)
        self._early_ns = round(min(EARLY, EARLY_SHARE * period) * NANOSECONDS)
        # By the system's clock a timer would wait for an hour if that clock is set back by one.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(period, self._wake, clock=steady)

    def close(self) -> None:
        """Let no more ticks come."""
        self._node.destroy_timer(self._timer)

    def _wake(self) -> None:
        if not self._runtime.pacer.simulated:  # else time moves by `clock_moved` alone
            self.pump()

    def clock_moved(self) -> None:
        """Follow a clock that jumps, as simulated time does at every step."""
        pacer = self._runtime.pacer
        simulated = is_simulated(self._node)
        if simulated != pacer.simulated:
            pacer.switch(simulated)
        if simulated:
            self.pump()

    def pump(self) -> None:
        """Evaluate what is due, and have the timer wake us for the next tick."""
        pacer, now_ns = self._runtime.pacer, self._now_ns()
        if pacer.simulated and now_ns == 0:
            return  # /clock has not spoken yet
        try:
            if not pacer.simulated and pacer.started and pacer.clock.regular:
                now_ns = self._await_tick(now_ns)
            self._runtime.pump(now_ns, time.time_ns())
        except Exception as error:
            self.failure = f"a tick failed: {type(error).__name__}: {error}"
            self._node.get_logger().debug(traceback.format_exc())
            self._warn(self.failure)
            return
        self.failure = ""
        self._after()
        due_ns = pacer.due_ns(pacer.next)
        if not pacer.simulated and due_ns is not None:
            wake_ns = due_ns - self._early_ns
            # No longer than a period: the clock may have been set back just now.
            self._timer.timer_period_ns = min(max(1, wake_ns - self._now_ns()), self._period_ns)
            self._timer.reset()

    def _await_tick(self, now_ns: int) -> int:
        """Take messages while the next tick is about to come; return the time once it has."""
        due_ns = self._runtime.pacer.due_ns(self._runtime.pacer.next)
        if due_ns is None:
            return now_ns
        if 0 < due_ns - now_ns <= 2 * self._early_ns:
            self._runtime.prepare(now_ns, time.time_ns())
            now_ns = self._now_ns()
            if 0 < due_ns - now_ns <= 2 * self._early_ns:
                time.sleep((due_ns - now_ns) / NANOSECONDS)
            now_ns = self._now_ns()
        return now_ns

    def _now_ns(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)
