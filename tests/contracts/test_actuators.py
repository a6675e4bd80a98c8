"""Every way to a robot keeps to one contract."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from switchboard import installed, known

from apollo_bridge.commander import Commander
from apollo_bridge.commands import PAD, PLANNING, way_of, why_not
from apollo_bridge.layouts import own_class
from apollo_bridge.relay import Memory, Relay
from forewarn.config.actions import ACTIONS, NO_ACTION, Action
from forewarn.config.actuators import ActuatorsSpec, AutowareSpec, Nav2Spec, TwistSpec
from forewarn.monitoring.intervention import Intervention
from forewarn_ros.status import Severity
from monitor_node.actuators.autoware import Autoware
from monitor_node.actuators.interface import Actuator
from monitor_node.actuators.loading import unwatched
from monitor_node.actuators.nav2 import Nav2
from monitor_node.motion import Velocity
from monitor_node.statements import Statement
from monitor_node.testing import (
    ASIDE,
    FREE,
    HARD,
    LIMIT,
    STOPPED,
    STOPS,
    ActuatorContract,
    NodeActuatorContract,
    limited,
)
from monitor_node.twist_gate import GateRules, GateState, receive, step
from monitor_node.watchdog import Watchdog

__all__ = ["installed"]


def other(limit: float, percentage: bool) -> Any:
    """Return a limit of somebody else for Nav2."""
    return known("nav2_msgs", "SpeedLimit")(percentage=percentage, speed_limit=limit)


ActuatorContract.pages = Path(__file__).parents[2] / "docs"


class TestAutoware(NodeActuatorContract):
    """The selector of velocity limits and the handler of manoeuvres; see tests/actuators."""

    mrm_for: ClassVar[tuple[str, ...]] = ("EMERGENCY_STOP", "PULL_OVER")

    def connect(self) -> None:
        self.spec = AutowareSpec(mrm_for=self.mrm_for)
        self.table: dict[str, Any] = {}
        self.requests: set[str] = set()
        self.board.create_subscription(None, self.spec.limit_topic, self.on_limit, 1)
        self.board.create_subscription(None, self.spec.clear_topic, self.on_clear, 1)
        self.board.services[self.spec.mrm_service] = self.on_request

    def make(self) -> Actuator:
        return Autoware(self.board, self.spec)  # type: ignore[arg-type]

    def on_limit(self, message: Any) -> None:
        self.count += 1
        self.table[message.sender] = message
        self.board.publish(self.spec.readback_topic, message)

    def on_clear(self, message: Any) -> None:
        self.count += 1
        # To clear a sender that it does not know sets a limit that nobody has asked for.
        assert self.session or self.owing or message.sender in self.table
        self.table.pop(message.sender, None)
        none = SimpleNamespace(sender="", max_velocity=15.0)
        self.board.publish(self.spec.readback_topic, none)

    def on_request(self, request: Any) -> Any:
        self.count += 1
        if self.refuses:
            return SimpleNamespace(status=SimpleNamespace(success=False, code=1, message="no"))
        wanted = request.request.strategy == request.request.DELEGATE
        (self.requests.add if wanted else self.requests.discard)(request.request.sender)
        state = 2 if self.requests else 1
        self.board.publish(self.spec.mrm_state_topic, SimpleNamespace(state=state))
        return SimpleNamespace(status=SimpleNamespace(success=True, code=0, message=""))

    def effect(self) -> str:
        (limit,) = self.table.values() or [None]
        if limit is not None and not limit.max_velocity > 0:
            hard = limit.constraints.min_acceleration == -self.spec.emergency.deceleration
            return HARD if hard else STOPPED
        if self.requests:
            return STOPPED
        # What is no number is no limit to the selector.
        return limited(limit.max_velocity) if limit and limit.max_velocity < math.inf else FREE

    @pytest.mark.parametrize("action", ["EMERGENCY_STOP", "PULL_OVER"])
    def test_a_manoeuvre_that_was_accepted_and_forgotten_is_asked_for_again(
        self, action: str
    ) -> None:
        self.ask(action)
        self.requests.clear()  # the handler of manoeuvres has started anew
        for _ in range(20):
            self.board.publish(self.spec.mrm_state_topic, SimpleNamespace(state=1))
            if self.requests:
                break
            self.now += 0.1
            self.actuator.poll(self.now)
        assert self.requests == {"forewarn"}
        self.ask(action)
        assert self.actuator.status(self.now).level == Severity.OK
        assert self.ask(NO_ACTION) == FREE

    def test_who_was_let_go_to_pull_over_stands_again_if_that_fails(self) -> None:
        self.ask("COMFORTABLE_STOP")
        self.ask("PULL_OVER")
        assert not self.table, "pulling over needs to move"
        self.board.publish(self.spec.mrm_state_topic, SimpleNamespace(state=4))
        self.ask("PULL_OVER")
        assert self.table["forewarn"].max_velocity == 0.0
        self.board.publish(self.spec.mrm_state_topic, SimpleNamespace(state=2))
        self.ask("PULL_OVER")
        assert not self.table
        self.requests.clear()  # the handler of manoeuvres has started anew, and refuses
        self.refuses = True
        for _ in range(20):
            self.board.publish(self.spec.mrm_state_topic, SimpleNamespace(state=1))
            self.now += 0.1
            self.actuator.poll(self.now)
        self.ask("PULL_OVER")
        assert self.table["forewarn"].max_velocity == 0.0
        self.refuses = False
        assert self.ask(NO_ACTION) == FREE


class TestAutowareByManoeuvres(TestAutoware):
    mrm_for = STOPS


class TestNav2(NodeActuatorContract):
    """A controller server and a server of goals; a lock as well, if it is named."""

    means: ClassVar[dict[str, Any]] = {}
    forgotten = STOPS  # whoever sends a goal afterwards is obeyed

    def test_the_monitor_warns_of_what_ends_with_it(self) -> None:
        warned = unwatched(ActuatorsSpec(nav2=self.spec), bond=False)
        assert bool(warned) == bool(self.forgotten)

    def connect(self) -> None:
        self.spec = Nav2Spec(**self.means)
        self.speed, self.goals, self.locked = 0.0, 1, False
        self.board.create_subscription(None, self.spec.speed_limit_topic, self.on_speed, 1)
        self.board.create_subscription(None, "/lock", self.on_lock, 1)
        self.board.services[f"{self.spec.actions[0]}/_action/cancel_goal"] = self.on_cancel

    def make(self) -> Actuator:
        return Nav2(self.board, self.spec)  # type: ignore[arg-type]

    def on_speed(self, message: Any) -> None:
        self.count += 1
        self.speed = message.speed_limit

    def on_lock(self, message: Any) -> None:
        self.count += message.data != self.locked
        self.locked = message.data

    def on_cancel(self, request: Any) -> Any:
        self.count += 1
        if self.refuses:
            return SimpleNamespace(return_code=1)
        self.goals = 0
        self.publish_goals()
        return SimpleNamespace(return_code=0)

    def publish_goals(self) -> None:
        goals = [SimpleNamespace(status=2)] * self.goals  # STATUS_EXECUTING
        topic = f"{self.spec.actions[0]}/_action/status"
        self.board.publish(topic, SimpleNamespace(status_list=goals))

    def effect(self) -> str:
        if self.locked or not self.goals:
            # Somebody sends a goal: does it drive?
            self.goals, before = 1, self.count
            self.publish_goals()
            self.now += 1.0
            if self.alive:
                self.actuator.poll(self.now)
            stopped, self.count = self.locked or not self.goals, before
            if stopped:
                return STOPPED
        return limited(self.speed) if self.speed > 0 else FREE

    def expected(self, action: Action) -> str:
        # A goal is cancelled, or a lock locks: Nav2 knows no harder stop.
        return STOPPED if action.stops else super().expected(action)

    @pytest.mark.parametrize(("theirs", "percentage"), [(0.2, False), (10.0, True)])
    def test_a_limit_raises_no_lower_one_of_somebody_else(
        self, theirs: float, percentage: bool
    ) -> None:
        self.spec = Nav2Spec(max_speed=2.0, **self.means)
        self.live()
        self.board.publish(self.spec.speed_limit_topic, other(theirs, percentage))
        assert self.ask("LIMIT_SPEED") == limited(0.2)
        self.now += 2.0
        assert self.actuator.status(self.now).level == Severity.OK
        self.board.publish(self.spec.speed_limit_topic, other(5.0 * theirs, percentage))
        self.actuator.poll(self.now)
        assert self.effect() == limited(LIMIT), "theirs is higher now"

    def test_a_limit_in_percent_of_nobody_knows_what_is_an_error(self) -> None:
        self.board.publish(self.spec.speed_limit_topic, other(10.0, True))
        assert self.ask("LIMIT_SPEED") == limited(LIMIT)
        self.now += 2.0
        status = self.actuator.status(self.now)
        assert status.level == Severity.ERROR
        assert "10 % on /speed_limit; set actuators.nav2.max_speed" in status.message
        self.board.publish(self.spec.speed_limit_topic, other(0.0, True))  # that is no limit
        self.actuator.poll(self.now)
        assert self.actuator.status(self.now).level == Severity.OK


class TestNav2ByLock(TestNav2):
    means: ClassVar[dict[str, Any]] = {
        "lock_topic": "/lock",
        "comfortable_stop": ["lock"],
        "emergency_stop": ["lock", "cancel"],
    }
    forgotten = ()

    def effect(self) -> str:
        # Its timeout locks when nobody speaks any more.
        return super().effect() if self.alive else STOPPED


class TestTwistGate(ActuatorContract):
    """The gate, which hears the monitor and outlives it."""

    def set_up(self) -> None:
        self.rules = GateRules.of(
            TwistSpec(input="/in", output="/out", max_speed=2.0, max_turn=2.0)
        )
        self.watchdog = Watchdog(0.5, 0.1, 0.5)
        self.state = GateState()
        self.number = self.count = 0
        self.at = self.now

    @property
    def orders(self) -> int:
        return self.count

    def live(self) -> None:
        self.session += 1
        for _ in range(10):  # a full verdict, once the former life is known to be dead
            self.now += 0.1
            self.told(NO_ACTION, False, math.nan)
        self.drive()
        self.count = 0

    def lose(self) -> None:
        self.now += 1.0

    def told(self, action: str, active: bool, limit: float) -> None:
        self.number += 1
        before, _ = self.watchdog.demand(self.now)
        mode = "act" if active or action == NO_ACTION else "observe"
        said = Statement(
            f"life {self.session}", self.number, mode, 1, action, active, speed_limit=limit
        )
        self.watchdog.intervene(said, self.now)
        self.watchdog.verdict(said, self.now)
        self.count += self.watchdog.demand(self.now)[0].action != before.action

    def drive(self) -> None:
        """Let the planner command 1 m/s until nothing changes."""
        demand, _ = self.watchdog.demand(self.now)
        for _ in range(1000):
            self.at += 0.02
            self.state = receive(self.rules, self.state, Velocity(1.0), self.at)
            self.state = step(self.rules, self.state, demand, self.at)

    def effect(self) -> str:
        self.drive()
        speed = self.state.output.x
        if speed == pytest.approx(1.0):
            return FREE
        if speed:
            return limited(speed)
        demand, _ = self.watchdog.demand(self.now)
        return HARD if self.rules.stop(demand) is self.rules.emergency else STOPPED


class TestApolloPads(ActuatorContract):
    """Planning, which is told by pads, and by its own route with a lower speed."""

    version, way = 9, "pad"
    not_carried_out: ClassVar[dict[str, str]] = {
        "WARN": "howto/apollo.md",
        "ASK": "howto/apollo.md",
        "REPLACE": "howto/apollo.md",
        "REPLAN": "howto/apollo.md",
    }

    def set_up(self) -> None:
        self.count, self.stop, self.target = 0, FREE, math.inf
        self.means = way_of(self.version, self.way)
        self.effects = {"STOP": STOPPED, "PULL_OVER": ASIDE, self.means.resume: FREE}

    def live(self) -> None:
        commander = Commander(self.means, limits=self.version >= 9)
        log = SimpleNamespace(info=lambda text: None, warning=lambda text, **_: None)
        self.relay = Relay(commander, Memory(self.folder / "journal"), True, log)
        self.relay.start(self.write)
        if commander.limits is not None:
            route = own_class(PLANNING[1])(lane_follow_command=b"a route", is_motion_command=True)
            commander.limits.heard(route.SerializeToString())

    def write(self, target: str, data: bytes) -> bool:
        self.count += 1
        if target == PLANNING[0]:
            message = own_class(PLANNING[1]).FromString(data)
            self.target = message.target_speed or math.inf
        else:
            message = own_class(self.means.message).FromString(data)
            number = message.action if target == PAD[0] else message.command
            (name,) = (name for name, known in self.means.numbers.items() if known == number)
            self.stop = self.effects[name]
        return True

    @property
    def orders(self) -> int:
        return self.count

    def told(self, action: str, active: bool, limit: float) -> None:
        self.relay.intervene(Intervention(action, limit, 1, active), round(self.now * 1e9))

    def effect(self) -> str:
        if self.stop == FREE and self.target < math.inf:
            return limited(self.target)
        return self.stop

    def expected(self, action: Action) -> str:
        if action.stops:
            return ASIDE if action.drives_on else STOPPED
        return super().expected(action)

    def test_what_is_not_carried_out_is_refused_in_a_monitor_file(self) -> None:
        refused = {name for name in ACTIONS if why_not(name, self.version)}
        assert refused == self.not_carried_out.keys() - {"WARN"}


class TestApolloActions(TestApolloPads):
    way = "action"


class TestApolloBeforeLimits(TestApolloPads):
    version = 7
    not_carried_out: ClassVar[dict[str, str]] = {
        **TestApolloPads.not_carried_out,
        "LIMIT_SPEED": "howto/apollo.md",
    }
