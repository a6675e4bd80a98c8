"""Nav2: a speed limit, cancelled goals, a lock of twist_mux.

A speed limit of 0.0 means no limit here, where Autoware would stop. The last writer wins.
Nothing reports back, so what can be seen counts: subscribers, the answer to the
cancellation, and the state of the goals. A lock of twist_mux with a timeout locks when its
topic falls silent, so that it is published at every tick.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool

from forewarn.config.actions import COMFORTABLE_STOP
from forewarn.config.actuators import Nav2Spec
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn_ros.status import Status
from monitor_node.actuators.interface import PATIENCE, Confirmation
from monitor_node.message_types import interface_class

SPEED_LIMIT = "nav2_msgs/msg/SpeedLimit"
INTERFACES = (SPEED_LIMIT,)
NO_LIMIT = 0.0
REPEAT = 1.0
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
ACTIVE = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)
REFUSALS = {CancelGoal.Response.ERROR_REJECTED: "the cancellation was rejected"}


class Nav2:
    """Limits the speed; stops by cancelling goals, by a lock, or by both."""

    name = "nav2"

    def __init__(self, node: Node, spec: Nav2Spec) -> None:
        self._spec = spec
        self._speed = _Speed(node, spec.speed_limit_topic, spec.max_speed)
        self._goals = [_Goals(node, action, spec.confirm_timeout) for action in spec.actions]
        self._lock = None if spec.lock_topic is None else _Lock(node, spec.lock_topic)
        self._confirmation = Confirmation(spec.confirm_timeout)
        self._wanted: Intervention = NOTHING
        self._means: tuple[str, ...] = ()

    def demand(self, demand: Intervention, now: float) -> None:
        """Set or take back the limit; stop, or cease to."""
        if demand.limits and not math.isfinite(demand.speed_limit):
            raise ValueError(f"speed limit {demand.speed_limit} m/s")
        if demand.limits and demand.speed_limit <= 0.0:
            # To Nav2 that would mean to go as fast as it likes.
            demand = demand._replace(action=COMFORTABLE_STOP)
        self._wanted = demand if demand.moves else NOTHING
        self._means = self._means_of(self._wanted)
        what = f"{demand.action}: {demand.speed_limit:g} m/s" if demand.limits else ""
        if self._means:
            what = f"{demand.action} by {' and '.join(self._means)}"
        self._confirmation.ask(what, now)
        if not self._means:  # A limit stays while a stop is asked for: that may be refused.
            self._speed.want(demand.speed_limit if demand.limits else None, now)
        for goals in self._goals:
            goals.want("cancel" in self._means, now)
        if self._lock is not None:
            self._lock.want("lock" in self._means)
        self._judge(now)

    def _means_of(self, demand: Intervention) -> tuple[str, ...]:
        if not demand.stops:
            return ()
        return self._spec.emergency_stop if demand.hard else self._spec.comfortable_stop

    def poll(self, now: float) -> None:
        """Repeat the limit, cancel goals that were sent meanwhile."""
        self._speed.poll(now)
        for goals in self._goals:
            goals.poll(now)
        self._judge(now)

    def _judge(self, now: float) -> None:
        self._confirmation.observe(not self._problems(), now)

    def _problems(self) -> list[str]:
        found: list[str] = []
        if self._wanted.limits:
            found += self._speed.problems()
        if "cancel" in self._means:
            found += [problem for goals in self._goals for problem in goals.problems()]
        if "lock" in self._means and self._lock is not None:
            found += self._lock.problems()
        return found

    def status(self, now: float) -> Status:
        """Report."""
        others = self._speed.of_others or "none"
        problem = "; ".join(self._problems())
        return self._confirmation.status("nav2", now, problem, **{"limit of others": others})

    def owes(self) -> bool:
        """Tell whether a limit of ours is in force."""
        return self._speed.ours is not None

    def resume(self) -> None:
        """Have the limit taken back, unless it is asked for again."""
        self._speed.ours = math.nan

    def close(self) -> None:
        """Leave all topics and services."""
        self._speed.close()
        for goals in self._goals:
            goals.close()
        if self._lock is not None:
            self._lock.close()


ACTUATOR = Nav2


class _Speed:
    """The speed limit; the last one of others is given back when ours ends."""

    def __init__(self, node: Node, topic: str, fastest: float | None) -> None:
        self._node, self._topic, self._fastest = node, topic, fastest
        self._class = interface_class(SPEED_LIMIT)
        self._publisher = node.create_publisher(self._class, topic, QoSProfile(depth=10))
        self._subscription = node.create_subscription(
            self._class, topic, self._heard, QoSProfile(depth=10)
        )
        self._sent: deque[tuple[int, int, float]] = deque(maxlen=20)
        self._foreign: Any = None
        self._overruled = False
        self._published_at = 0.0
        self.ours: float | None = None

    def want(self, limit: float | None, now: float) -> None:
        """Set the limit in m/s; None: ours ends."""
        if limit is None:
            if self.ours is not None:
                self.ours = None
                self._give_back()
        elif limit != self.ours:
            self.ours = limit
            self._publish_limit(now)

    def poll(self, now: float) -> None:
        """Publish it again: for a server that has come since, or after another node set one."""
        if (
            self.ours is not None
            and math.isfinite(self.ours)
            and (self._overruled or now - self._published_at >= REPEAT)
        ):
            self._publish_limit(now)

    def _publish_limit(self, now: float) -> None:
        self._published_at, self._overruled = now, False
        self._publish(self._class(percentage=False, speed_limit=self._lowest))

    @property
    def _lowest(self) -> float | None:
        """Return our limit, or a lower one of another node, which ours must not raise."""
        theirs = self._theirs
        return self.ours if self.ours is None or theirs is None else min(self.ours, theirs)

    @property
    def _theirs(self) -> float | None:
        """Return the limit of another node in m/s; None if there is none or it is not known."""
        found = self._foreign
        if found is None or not found.speed_limit > NO_LIMIT:
            return None
        if not found.percentage:
            return float(found.speed_limit)
        return None if self._fastest is None else found.speed_limit / 100.0 * self._fastest

    def _give_back(self) -> None:
        self._overruled = False
        foreign = self._foreign
        message = self._class(percentage=False, speed_limit=NO_LIMIT)
        if foreign is not None:
            message.percentage, message.speed_limit = foreign.percentage, foreign.speed_limit
        self._publish(message)

    def _publish(self, message: Any) -> None:
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._sent.append(_mark(message))
        self._publisher.publish(message)

    def _heard(self, message: Any) -> None:
        if _mark(message) in self._sent:
            return
        self._foreign = message
        if self.ours is None or not math.isfinite(self.ours):
            return
        theirs = self._theirs
        self._overruled = theirs is None or theirs > self.ours

    @property
    def of_others(self) -> str:
        """The last limit of another node; empty without one."""
        message = self._foreign
        unit = "%" if message is not None and message.percentage else "m/s"
        return "" if message is None else f"{message.speed_limit:g} {unit}"

    def problems(self) -> list[str]:
        """Return why the limit may have no effect."""
        # Our own subscription is one of them.
        if self._publisher.get_subscription_count() < 2:
            return [f"no node subscribes to {self._topic}"]
        if self._overruled:
            return [f"another node set {self.of_others} on {self._topic}"]
        theirs = self._foreign
        limited = theirs is not None and theirs.speed_limit > NO_LIMIT
        if limited and theirs.percentage and self._fastest is None:
            note = f"another node had set {self.of_others} on {self._topic}"
            return [f"{note}; set actuators.nav2.max_speed, so that it can be compared"]
        return []

    def close(self) -> None:
        self._node.destroy_publisher(self._publisher)
        self._node.destroy_subscription(self._subscription)


def _mark(message: Any) -> tuple[int, int, float]:
    stamp = message.header.stamp
    return stamp.sec, stamp.nanosec, message.speed_limit


class _Goals:
    """All goals of one action: cancelled while a stop is asked for, new ones as well."""

    def __init__(self, node: Node, action: str, timeout: float) -> None:
        self._node, self._action, self._timeout = node, action, timeout
        self._client: Any = node.create_client(CancelGoal, f"{action}/_action/cancel_goal")
        self._subscription = node.create_subscription(
            GoalStatusArray, f"{action}/_action/status", self._heard, LATCHED
        )
        self._wanted = False
        self._answered = False
        self._active = 0
        self._call: Any = None
        self._called = -math.inf
        self._problem = ""

    def want(self, wanted: bool, now: float) -> None:
        if wanted != self._wanted:
            self._wanted, self._answered = wanted, False
            self._called, self._problem = -math.inf, ""
        self.poll(now)

    def poll(self, now: float) -> None:
        if self._call is not None and now - self._called >= PATIENCE:
            self._client.remove_pending_request(self._call)
            self._call, self._problem = None, f"{self._action}: no answer"
        if not self._wanted or self._call is not None or (self._answered and not self._active):
            return
        if now - self._called < self._timeout / 4 or not self._client.service_is_ready():
            return
        self._called = now
        # No id and no time: all goals of all clients.
        self._call = self._client.call_async(CancelGoal.Request())
        self._call.add_done_callback(self._done)

    def _done(self, future: Any) -> None:
        if future is not self._call:
            return
        self._call = None
        error = future.exception()
        if error is not None or future.result() is None:
            self._problem = f"{self._action}: {error or 'no answer'}"
            return
        self._problem = REFUSALS.get(future.result().return_code, "")
        self._answered = not self._problem

    def _heard(self, message: Any) -> None:
        self._active = sum(goal.status in ACTIVE for goal in message.status_list)

    def problems(self) -> list[str]:
        """Return why goals may still be active."""
        if self._answered and not self._active:
            return []
        if self._problem:
            return [f"{self._action}: {self._problem}"]
        if not self._client.service_is_ready():
            return [f"there is no action {self._action}"]
        if self._active:
            return [f"{self._action}: {self._active} goals are active"]
        return [f"{self._action}: the cancellation is not answered"]

    def close(self) -> None:
        self._node.destroy_client(self._client)
        self._node.destroy_subscription(self._subscription)


class _Lock:
    """A lock of twist_mux: its timeout makes it a dead man's switch, so silence locks, too."""

    def __init__(self, node: Node, topic: str) -> None:
        self._node, self._topic = node, topic
        self._publisher = node.create_publisher(Bool, topic, QoSProfile(depth=10))

    def want(self, locked: bool) -> None:
        self._publisher.publish(Bool(data=locked))

    def problems(self) -> list[str]:
        """Return why the lock may have no effect."""
        if not self._publisher.get_subscription_count():
            return [f"no node subscribes to {self._topic}"]
        return []

    def close(self) -> None:
        self._node.destroy_publisher(self._publisher)
