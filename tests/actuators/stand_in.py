"""A stand-in planner: python stand_in.py KIND NAME SETTINGS.

Keeps what the real one keeps, with its traps, and tells on NAME/heard, field by field, what it
received. Settings, also by NAME/control: ``deaf`` (limits are received and not taken up), ``keeps``
(limits are not cleared), ``latched`` (the state of manoeuvres is kept, and told when it changes),
``manoeuvre`` (one is under way already),
``refuse`` (requests are refused), ``failing`` (manoeuvres fail, goals are not cancelled).
"""

from __future__ import annotations

import json
import math
import signal
import sys
from contextlib import suppress
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

LATCHED = DurabilityPolicy.TRANSIENT_LOCAL


def plain(value: Any) -> Any:
    """Return a message as plain values, all fields of it."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    return [plain(item) for item in value]


class StandIn(Node):
    """What both kinds share."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        super().__init__(name.lstrip("/"))
        self.settings = settings
        latched = QoSProfile(depth=1000, durability=LATCHED)
        self._heard = self.create_publisher(String, f"{name}/heard", latched)
        self.create_subscription(String, f"{name}/control", self._obey, latched)

    def tell(self, what: str, message: Any = None, **more: Any) -> None:
        fields = {} if message is None else plain(message)
        self._heard.publish(String(data=json.dumps({"what": what, **fields, **more})))

    def _obey(self, message: Any) -> None:
        self.settings.update(json.loads(message.data))
        self.obeyed()
        self.tell("settings", **self.settings)

    def obeyed(self) -> None:
        pass


class Autoware(StandIn):
    """The selector of velocity limits, and the handler of minimal-risk manoeuvres."""

    FASTEST = 15.0

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        super().__init__(name, settings)
        from autoware_adapi_v1_msgs.msg import MrmRequest, MrmState
        from autoware_adapi_v1_msgs.srv import SendMrmRequest
        from autoware_internal_planning_msgs.msg import VelocityLimit, VelocityLimitClearCommand

        self.limit_class, self.state_class, self.request_class = VelocityLimit, MrmState, MrmRequest
        self.table: dict[str, Any] = {}
        self.requests = {"someone"} if settings.get("manoeuvre") else set[str]()
        scenario = "/planning/scenario_planning"
        # As the real one subscribes: a volatile publisher never matches.
        latched = QoSProfile(depth=10, durability=LATCHED)
        self.create_subscription(
            VelocityLimit, f"{scenario}/max_velocity_candidates", self.on_limit, latched
        )
        self.create_subscription(
            VelocityLimitClearCommand, f"{scenario}/clear_velocity_limit", self.on_clear, latched
        )
        self.readback = self.create_publisher(VelocityLimit, f"{scenario}/max_velocity", 1)
        quality = latched if settings.get("latched") else 1
        self.states = self.create_publisher(MrmState, "/api/fail_safe/mrm_state", quality)
        self.last = -1
        self.publish_state()
        self.create_timer(0.1, self.publish_state)
        if not settings.get("without_service"):
            self.create_service(SendMrmRequest, "/api/fail_safe/mrm_request/send", self.on_request)

    def on_limit(self, message: Any) -> None:
        self.tell("limit", message)
        if not self.settings.get("deaf"):
            self.table[message.sender] = message
        self.publish_limit()

    def on_clear(self, message: Any) -> None:
        known = message.sender in self.table
        self.tell("clear", message, known=known)
        if not message.command:
            return
        if not self.settings.get("keeps"):
            self.table.pop(message.sender, None)
        if known:
            self.publish_limit()
        else:
            # What became of clearing an unknown sender once: a limit nobody has set.
            self.readback.publish(self.limit_class())

    def obeyed(self) -> None:
        for sender, speed in self.settings.pop("others", {}).items():
            self.table[sender] = self.limit_class(max_velocity=speed, sender=sender)
            self.publish_limit()

    def publish_limit(self) -> None:
        hardest = self.limit_class(max_velocity=self.FASTEST)
        for limit in self.table.values():
            speed = limit.max_velocity if math.isfinite(limit.max_velocity) else self.FASTEST
            if speed < hardest.max_velocity:
                hardest = limit
        self.readback.publish(hardest)
        self.tell("in force", hardest)

    def on_request(self, request: Any, response: Any) -> Any:
        self.tell("request", request.request)
        refused = bool(self.settings.get("refuse"))
        response.status.success = not refused
        response.status.code = 40000 if refused else 0
        response.status.message = "not now" if refused else ""
        if not refused:
            if request.request.strategy == self.request_class.DELEGATE:
                self.requests.add(request.request.sender)
            else:
                self.requests.discard(request.request.sender)
        return response

    def publish_state(self) -> None:
        kind = self.state_class
        state = kind.NORMAL
        if self.requests:
            state = kind.MRM_FAILED if self.settings.get("failing") else kind.MRM_OPERATING
        if not self.settings.get("latched") or state != self.last:
            self.last = state
            self.states.publish(kind(stamp=self.get_clock().now().to_msg(), state=state))


class Nav2(StandIn):
    """A controller server, one action with goals, and a twist_mux with a lock."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        super().__init__(name, settings)
        from action_msgs.msg import GoalStatus, GoalStatusArray
        from action_msgs.srv import CancelGoal
        from nav2_msgs.msg import SpeedLimit
        from std_msgs.msg import Bool

        self.goal_class, self.array_class, self.cancel_class = (
            GoalStatus,
            GoalStatusArray,
            CancelGoal,
        )
        self.speed_class = SpeedLimit
        self.goals = 0
        self.cancelled = 0
        if not settings.get("without_server"):
            self.create_subscription(
                SpeedLimit, "/speed_limit", lambda m: self.tell("speed", m), 10
            )
        self.others = self.create_publisher(SpeedLimit, "/speed_limit", 10)
        self.create_subscription(Bool, "/lock", lambda m: self.tell("lock", m), 10)
        self.statuses = self.create_publisher(
            GoalStatusArray,
            "/navigate_to_pose/_action/status",
            QoSProfile(depth=1, durability=LATCHED),
        )
        self.create_service(CancelGoal, "/navigate_to_pose/_action/cancel_goal", self.on_cancel)
        self.obeyed()

    def obeyed(self) -> None:
        self.goals += self.settings.pop("goals", 0)
        other = self.settings.pop("other", None)
        if other is not None:
            self.others.publish(self.speed_class(**other))
        self.publish_status()

    def publish_status(self) -> None:
        kind = self.goal_class
        states = [kind.STATUS_EXECUTING] * self.goals + [kind.STATUS_CANCELED] * self.cancelled
        self.statuses.publish(self.array_class(status_list=[kind(status=s) for s in states]))

    def on_cancel(self, request: Any, response: Any) -> Any:
        self.tell("cancel", request, goals=self.goals)
        if self.settings.get("refuse"):
            response.return_code = response.ERROR_REJECTED
        elif not self.settings.get("failing"):
            self.cancelled += self.goals
            self.goals = 0
        self.publish_status()
        return response


def main() -> None:
    kind, name, settings = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rclpy.init()
    node = {"autoware": Autoware, "nav2": Nav2}[kind](name, json.loads(settings))
    node.tell("ready")
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
