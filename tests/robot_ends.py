"""What stands at the other end of actuators, on a switchboard: it does what it is told, and may go.

Each tells how fast the robot may be by what it was told: a limit in m/s, infinite for none.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from rclpy.qos import DurabilityPolicy, QoSProfile
from switchboard import known

from apollo_bridge.commander import Commander
from apollo_bridge.commands import PAD, PLANNING, Way
from apollo_bridge.layouts import own_class
from apollo_bridge.node import NAMES
from apollo_bridge.relay import Memory, Relay
from forewarn.config.actuators import AutowareSpec, Nav2Spec, TwistSpec
from forewarn.monitoring.intervention import Intervention
from forewarn_ros.messages import from_time
from monitor_node import conversions
from monitor_node.actuators.twist import APPLIED, LATCHED
from monitor_node.motion import Velocity
from monitor_node.testing import Switchboard
from monitor_node.twist_gate import GateRules, GateState, receive, step
from monitor_node.watchdog import Watchdog

KEPT = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NORMAL, OPERATING, FAILED = 1, 2, 4
ACCEPTED, REJECTED = 0, 1
EXECUTING = 2
LOCK_TIMEOUT = 0.5
STEP = 0.02


class End(Protocol):
    """A way to a robot, as far as the robot is concerned."""

    name: str

    def come(self) -> None:
        """Start, be it anew: nothing is known of before."""

    def go(self) -> None:
        """End."""

    @property
    def well(self) -> bool:
        """Tell whether it is there, and does what it is told."""

    @property
    def allowed(self) -> float:
        """Return the greatest speed, in m/s."""


class AutowareEnd:
    """The selector of velocity limits and the handler of manoeuvres, each for itself."""

    name = "autoware"

    def __init__(self, board: Switchboard, spec: AutowareSpec) -> None:
        self.board, self.spec = board, spec
        self.manner = "accept"
        self.freed, self.clears = 0, list[Any]()
        self.handles = self.selects = False
        self.come()

    def come(self) -> None:
        self.go()
        self.table: dict[str, Any] = {}
        self.unknown = 0
        self.selects = True
        self._readback = self.board.create_publisher(None, self.spec.readback_topic, 1)
        create = self.board.create_subscription
        self._ears = [
            create(None, self.spec.limit_topic, self._limit, KEPT),
            create(None, self.spec.clear_topic, self._clear, KEPT),
        ]
        self.start_handler()

    def go(self) -> None:
        if self.selects:
            self.board.destroy_publisher(self._readback)
            for ear in self._ears:
                self.board.destroy_subscription(ear)
        self.selects, self.table = False, {}
        self.stop_handler()

    def start_handler(self) -> None:
        self.stop_handler()
        self.handles, self.requests, self.state = True, set[str](), 0
        self._states = self.board.create_publisher(None, self.spec.mrm_state_topic, LATCHED)
        self.board.services[self.spec.mrm_service] = self._request
        self._tell(NORMAL)

    def stop_handler(self) -> None:
        if self.handles:
            self.board.destroy_publisher(self._states)
            del self.board.services[self.spec.mrm_service]
        self.handles, self.requests, self.state = False, set(), 0

    def _limit(self, message: Any) -> None:
        self.table[message.sender] = message
        self._read()

    def _clear(self, message: Any) -> None:
        # To clear a sender that it does not know sets a limit that nobody has asked for.
        self.unknown += message.sender not in self.table
        if not any(message is old for old in self.clears):  # an old one is heard at each start
            self.clears.append(message)
            self.freed += not self.requests
        self.table.pop(message.sender, None)
        self._read()

    def _read(self) -> None:
        none = known("autoware_internal_planning_msgs", "VelocityLimit")(max_velocity=15.0)
        lowest = min(self.table.values(), key=lambda limit: limit.max_velocity, default=none)
        self._readback.publish(lowest)

    def _request(self, request: Any) -> Any:
        if self.manner == "silent":
            return None
        success = self.manner == "accept"
        if success:
            wanted = request.request.strategy == request.request.DELEGATE
            (self.requests.add if wanted else self.requests.discard)(request.request.sender)
            self._tell(OPERATING if self.requests else NORMAL)
        return SimpleNamespace(status=SimpleNamespace(success=success, code=1, message="no"))

    def _tell(self, state: int) -> None:
        if state != self.state:
            self.state = state
            self._states.publish(known("autoware_adapi_v1_msgs", "MrmState")(state=state))

    def fail(self) -> None:
        """Have the manoeuvre fail, if there is one."""
        if self.requests:
            self._tell(FAILED)

    @property
    def well(self) -> bool:
        return self.selects and self.handles and self.manner == "accept" and self.state != FAILED

    @property
    def allowed(self) -> float:
        limits = [limit.max_velocity for limit in self.table.values()]
        return 0.0 if self.state == OPERATING else min(limits, default=math.inf)


class Nav2End:
    """A controller, a server of goals, and a twist_mux with a lock if one is named."""

    name = "nav2"

    def __init__(self, board: Switchboard, spec: Nav2Spec) -> None:
        self.board, self.spec = board, spec
        self.now, self.manner, self.there = 0.0, "accept", False
        self.freed, self.raised, self.theirs = 0, False, 0.0
        self.come()

    def come(self) -> None:
        self.go()
        self.there, self.speed, self.goals = True, 0.0, 1
        self.locked, self.told = False, -math.inf
        create = self.board.create_subscription
        self._ears = [create(None, self.spec.speed_limit_topic, self._limit, 10)]
        if self.spec.lock_topic is not None:
            self._ears.append(create(None, self.spec.lock_topic, self._lock, 10))
        action = self.spec.actions[0]
        self._status = self.board.create_publisher(None, f"{action}/_action/status", LATCHED)
        self.board.services[f"{action}/_action/cancel_goal"] = self._cancel
        self._tell()

    def go(self) -> None:
        if self.there:
            for ear in self._ears:
                self.board.destroy_subscription(ear)
            self.board.destroy_publisher(self._status)
            del self.board.services[f"{self.spec.actions[0]}/_action/cancel_goal"]
        self.there, self.goals = False, 0

    def limit(self, limit: float) -> None:
        """Have somebody else set a limit; 0 means none."""
        message = known("nav2_msgs", "SpeedLimit")(percentage=False, speed_limit=limit)
        message.header.stamp.nanosec = 1
        self.theirs, self.freed = limit, self.freed - (limit == 0.0 and self.there)
        self.board.publish(self.spec.speed_limit_topic, message)

    def send(self) -> None:
        """Have somebody send a goal."""
        if self.there:
            self.goals += 1
            self._tell()

    def _limit(self, message: Any) -> None:
        self.speed = message.speed_limit
        self.freed += not self.speed
        self.raised |= self.theirs > 0.0 and not 0.0 < self.speed <= self.theirs

    def _lock(self, message: Any) -> None:
        self.locked, self.told = message.data, self.now

    def _cancel(self, request: Any) -> Any:
        if self.manner == "silent":
            return None
        if self.manner == "accept":
            self.goals = 0
            self._tell()
        return SimpleNamespace(return_code=ACCEPTED if self.manner == "accept" else REJECTED)

    def _tell(self) -> None:
        goals = [SimpleNamespace(status=EXECUTING)] * self.goals
        self._status.publish(SimpleNamespace(status_list=goals))

    @property
    def well(self) -> bool:
        return self.there and self.manner == "accept"

    @property
    def allowed(self) -> float:
        locks = self.spec.lock_topic is not None
        if not self.goals or (locks and (self.locked or self.now - self.told > LOCK_TIMEOUT)):
            return 0.0
        return self.speed or math.inf


class GateEnd:
    """The gate, its planner that always commands 1 m/s, and the base."""

    name = "twist"

    def __init__(self, board: Switchboard, spec: TwistSpec, period: float, lease: float) -> None:
        self.board, self.spec = board, spec
        self._times = lease, period, lease
        self.rules = GateRules.of(spec)
        self.now, self.there = 0.0, False
        self.come()

    def come(self) -> None:
        self.go()
        self.there = True
        self.watchdog, self.state = Watchdog(*self._times), GateState()
        self._echo = self.board.create_publisher(None, f"{self.spec.gate}/{APPLIED}", LATCHED)
        self._said: Any = None
        create, monitor = self.board.create_subscription, self.spec.monitor
        self._ears = [
            create(None, f"{monitor}/output/risk", self._judge, 1),
            create(None, f"{monitor}/output/intervention", self._intervene, KEPT),
        ]

    def go(self) -> None:
        if self.there:
            self.board.destroy_publisher(self._echo)
            for ear in self._ears:
                self.board.destroy_subscription(ear)
        self.there = False

    def _intervene(self, message: Any) -> None:
        said = conversions.stated(
            message, message.session.encode(), from_time(message.header.stamp)
        )
        self.watchdog.intervene(said, self.now)
        self._apply()

    def _judge(self, message: Any) -> None:
        said = conversions.repeated(
            message, message.session.encode(), from_time(message.header.stamp)
        )
        self.watchdog.verdict(said, self.now)
        self._apply()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            if self.there:
                self.state = receive(self.rules, self.state, Velocity(1.0), self.now)
                self._apply()
        if self.there and self._said is not None:  # it repeats itself, lest it count as dead
            self._echo.publish(conversions.applied(1, *self._said))

    def _apply(self) -> None:
        demand, reason = self.watchdog.demand(self.now)
        self.state = step(self.rules, self.state, demand, self.now)
        if (demand, reason) != self._said:
            self._said = demand, reason
            self._echo.publish(conversions.applied(1, demand, reason))

    @property
    def well(self) -> bool:
        return self.there

    @property
    def allowed(self) -> float:
        """What passes now; the planner commands 1 m/s."""
        if not self.there:
            return 0.0  # the base's own time-out
        speed = self.state.output.speed
        return math.inf if speed > 0.999 else speed


class ApolloEnd:
    """Planning behind the bridge: it is told by pads, and by its own route with a lower speed."""

    name = "apollo"

    def __init__(self, board: Switchboard, way: Way, journal: Path) -> None:
        self.board, self.way, self.journal = board, way, journal
        self.stopped, self.target = False, math.inf
        self.now, self.connected, self.there = 0.0, True, False
        self.come()

    def come(self) -> None:
        """Start the bridge, be it anew."""
        self.go()
        self.there, self.routed = True, False
        self.commander = Commander(self.way, limits=True)
        log = SimpleNamespace(info=lambda text: None, warning=lambda text, **_: None)
        self.relay = Relay(self.commander, Memory(self.journal), True, log)
        self.relay.start(self._write)
        topic = "/monitor/output/intervention"
        self._ear = self.board.create_subscription(None, topic, self._intervene, KEPT)

    def go(self) -> None:
        if self.there:
            self.board.destroy_subscription(self._ear)
        self.there = False

    def _intervene(self, message: Any) -> None:
        name, limit = NAMES.get(message.action, ""), message.speed_limit
        wish = Intervention(name, limit, message.id, message.active, reason=message.reason)
        alone = self._ear.get_publisher_count() <= 1
        self.relay.intervene(wish, self._now_ns, message.session, alone=alone)

    @property
    def _now_ns(self) -> int:
        return round(self.now * 1e9)

    def poll(self) -> None:
        """Let the bridge do what it does several times a second."""
        if self.there:
            self.relay.update(self._now_ns, alone=self._ear.get_publisher_count() <= 1)

    def _write(self, target: str, data: bytes) -> bool:
        if not self.connected:
            return False
        if target == PLANNING[0]:
            self.target = own_class(PLANNING[1]).FromString(data).target_speed or math.inf
        else:
            message = own_class(self.way.message).FromString(data)
            number = message.action if target == PAD[0] else message.command
            self.stopped = number != self.way.numbers[self.way.resume]
        return True

    def route(self) -> None:
        """Give planning another route; a bridge that is there hears it."""
        self.target = math.inf
        if self.there and self.commander.limits is not None:
            route = own_class(PLANNING[1])(lane_follow_command=b"a route", is_motion_command=True)
            self.commander.limits.heard(route.SerializeToString())
            self.routed = True

    @property
    def well(self) -> bool:
        return self.connected and self.there and self.routed

    @property
    def allowed(self) -> float:
        return 0.0 if self.stopped else self.target
