"""What every way to a robot keeps to, whatever is at its other end; a test inherits it.

Each has a robot at its end that does what is asked of it, with the traps of the real one, and it is
judged by what that robot does then. `NodeActuatorContract` is for actuators of the monitor's node.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from builtin_interfaces.msg import Time
from rclpy.qos import DurabilityPolicy

from forewarn.config.actions import ACTIONS, NO_ACTION, Action
from forewarn.monitoring.intervention import Intervention
from forewarn_ros.status import Severity
from monitor_node.actuators.interface import Actuator

FREE, STOPPED, HARD, ASIDE = "free", "stopped", "stopped hard", "pulled over"
LIMIT = 0.5
STOPS = tuple(name for name, action in ACTIONS.items() if action.stops)
every_action = pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)


def limited(speed: float) -> str:
    return f"at most {speed:g} m/s"


def _is_latched(qos: Any) -> bool:
    return getattr(qos, "durability", None) == DurabilityPolicy.TRANSIENT_LOCAL


class Switchboard:
    """The topics and services of one domain; stands for the node of an actuator as well.

    Who subscribes late gets what publishers keep for it, with `deliver`. A service that returns
    None does not answer.
    """

    def __init__(self) -> None:
        self.hearers: dict[str, list[Callable[[Any], None]]] = {}
        self.speakers: dict[str, list[Any]] = {}
        self.services: dict[str, Callable[[Any], Any]] = {}
        self._late: list[tuple[str, Callable[[Any], None], Any]] = []

    def create_publisher(self, kind: Any, topic: str, qos: Any) -> Any:
        kept: deque[Any] = deque(maxlen=qos.depth if _is_latched(qos) else 0)

        def publish(message: Any) -> None:
            kept.append(message)
            self.publish(topic, message)

        publisher = SimpleNamespace(
            topic=topic,
            kept=kept,
            publish=publish,
            get_subscription_count=lambda: len(self.hearers.get(topic, [])),
        )
        self.speakers.setdefault(topic, []).append(publisher)
        return publisher

    def create_subscription(
        self, kind: Any, topic: str, hear: Callable[[Any], None], qos: Any, **_: Any
    ) -> Any:
        self.hearers.setdefault(topic, []).append(hear)
        if _is_latched(qos):
            kept = (publisher.kept for publisher in self.speakers.get(topic, []))
            self._late += [(topic, hear, message) for said in kept for message in said]
        return SimpleNamespace(
            topic=topic, hear=hear, get_publisher_count=lambda: len(self.speakers.get(topic, []))
        )

    def create_client(self, kind: Any, name: str) -> Any:
        def call(request: Any) -> Future[Any]:
            answer: Future[Any] = Future()
            if (said := self.services[name](request)) is not None:
                answer.set_result(said)
            return answer

        return SimpleNamespace(
            service_is_ready=lambda: name in self.services,
            call_async=call,
            remove_pending_request=lambda answer: None,
        )

    def destroy_publisher(self, publisher: Any) -> None:
        self.speakers[publisher.topic].remove(publisher)

    def destroy_subscription(self, subscription: Any) -> None:
        self.hearers[subscription.topic].remove(subscription.hear)

    def destroy_client(self, client: Any) -> None:
        pass

    def get_clock(self) -> Any:
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time))

    def deliver(self) -> None:
        """Let those that subscribed late hear what was kept for them."""
        late, self._late = self._late, []
        for topic, hear, message in late:
            if hear in self.hearers.get(topic, []):
                hear(message)

    def publish(self, topic: str, message: Any) -> None:
        for hear in list(self.hearers.get(topic, [])):
            hear(message)


class ActuatorContract:
    """What a user may rely on, whatever carries out what the monitor asks for.

    `not_carried_out`: actions that it does not do, and where the documentation says so.
    `forgotten`: actions whose effect ends with a death, of which the monitor warns when it starts.
    `pages`: where the documentation lies, to look that up.
    """

    pages: ClassVar[Path | None] = None

    forgotten: ClassVar[tuple[str, ...]] = ()

    not_carried_out: ClassVar[dict[str, str]] = dict.fromkeys(
        ("WARN", "ASK", "REPLACE", "REPLAN"), "howto/interventions.md"
    )

    @pytest.fixture(autouse=True)
    def _begin(self, tmp_path: Path) -> None:
        self.begin(tmp_path)

    def begin(self, folder: Path) -> None:
        """Begin with another robot, and nothing that is remembered of a former one."""
        self.folder = folder
        self.now = 100.0
        self.session = 0
        self.set_up()
        self.live()

    @abstractmethod
    def set_up(self) -> None:
        """Make the robot."""

    @abstractmethod
    def live(self) -> None:
        """Begin a life of what commands it, which may know of the former one."""

    @abstractmethod
    def told(self, action: str, active: bool, limit: float) -> None:
        """Let the monitor say at a tick what it asks for."""

    @abstractmethod
    def effect(self) -> str:
        """Return what the robot does now."""

    @property
    @abstractmethod
    def orders(self) -> int:
        """How many orders have reached the robot that changed something."""

    def lose(self) -> None:
        """Let what commands the robot die."""

    def ask(self, action: str, *, active: bool = True, limit: float | None = None) -> str:
        """Ask for an action at a tick; return what the robot does then."""
        if limit is None:
            limit = LIMIT if ACTIONS[action].limits else float("nan")
        self.now += 0.1
        self.told(action, active and action != NO_ACTION, limit)
        return self.effect()

    def expected(self, action: Action) -> str:
        if action.limits:
            return limited(LIMIT)
        if action.stops:
            return HARD if action.hard else STOPPED
        return FREE

    # The contract

    @every_action
    def test_it_is_carried_out_or_named_as_not_supported(self, action: Action) -> None:
        effect = self.ask(action.name)
        if action.name in self.not_carried_out:
            assert effect == FREE
            if self.pages is not None:
                assert action.name in (self.pages / self.not_carried_out[action.name]).read_text()
        else:
            assert effect == self.expected(action)
            assert action.effect not in ("tell", "plan"), "it has no effect"

    @every_action
    def test_the_end_gives_everything_back(self, action: Action) -> None:
        self.ask(action.name)
        assert self.ask(NO_ACTION) == FREE
        before = self.orders
        assert self.ask(NO_ACTION) == FREE
        assert self.orders == before

    @every_action
    def test_it_leaves_nothing_of_what_was_asked_for_before(
        self, action: Action, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        for before in ACTIONS:
            self.begin(tmp_path_factory.mktemp(before))
            self.ask(before)
            effect = self.ask(action.name)
            idle = action.name in self.not_carried_out
            assert effect == (FREE if idle else self.expected(action)), before

    @every_action
    def test_a_monitor_that_observes_changes_nothing(self, action: Action) -> None:
        assert self.ask(action.name, active=False) == FREE
        assert not self.orders

    @every_action
    def test_what_is_asked_for_twice_is_ordered_once(self, action: Action) -> None:
        effect = self.ask(action.name)
        before = self.orders
        assert self.ask(action.name) == effect
        assert self.orders == before

    @every_action
    def test_a_death_frees_nobody_and_the_next_life_gives_back(self, action: Action) -> None:
        effect = self.ask(action.name)
        self.lose()
        after = self.effect()
        if action.name not in self.forgotten:
            assert after == effect or (effect != HARD and after in (STOPPED, HARD))
        self.live()
        assert self.ask(NO_ACTION) == FREE

    @pytest.mark.parametrize("limit", [0.0, -1.0])
    def test_a_limit_that_leaves_no_speed_is_a_stop(self, limit: float) -> None:
        if "LIMIT_SPEED" not in self.not_carried_out:
            assert self.ask("LIMIT_SPEED", limit=limit) == STOPPED

    @pytest.mark.parametrize("limit", [math.nan, math.inf])
    def test_a_limit_that_is_no_number_frees_nobody(self, limit: float) -> None:
        if "LIMIT_SPEED" in self.not_carried_out:
            return
        self.ask("COMFORTABLE_STOP")
        with suppress(ValueError):  # which the node reports
            self.ask("LIMIT_SPEED", limit=limit)
        assert self.effect() == STOPPED


class NodeActuatorContract(ActuatorContract):
    """An actuator that lives in the monitor's node."""

    actuator: Actuator
    alive = owing = refuses = False

    def set_up(self) -> None:
        self.board = Switchboard()
        self.count = 0
        self.connect()

    @abstractmethod
    def connect(self) -> None:
        """Let the robot listen."""

    @abstractmethod
    def make(self) -> Actuator:
        """Return the actuator."""

    @property
    def orders(self) -> int:
        return self.count

    def live(self) -> None:
        self.actuator, self.alive = self.make(), True
        if self.owing:
            self.actuator.resume()  # as the journal says

    def lose(self) -> None:
        self.owing, self.alive = self.actuator.owes(), False
        self.board.hearers = {
            topic: [hear for hear in hearers if getattr(hear, "__self__", None) is self]
            for topic, hearers in self.board.hearers.items()
        }

    def told(self, action: str, active: bool, limit: float) -> None:
        request = Intervention(action, limit, 1, active)
        self.actuator.demand(request.demanded, self.now)

    @pytest.mark.parametrize("action", ["LIMIT_SPEED", *STOPS])
    def test_what_nobody_takes_up_becomes_an_error(self, action: str) -> None:
        self.lose()
        self.board.hearers, self.board.services = {}, {}
        self.live()
        self.told(action, True, LIMIT)
        assert self.actuator.status(self.now).level == Severity.OK
        self.now += 10.0
        self.actuator.poll(self.now)
        status = self.actuator.status(self.now)
        assert (status.level, "not taken up" in status.message) == (Severity.ERROR, True)

    @pytest.mark.parametrize("action", ["LIMIT_SPEED", *STOPS])
    def test_what_is_taken_up_is_no_error(self, action: str) -> None:
        self.ask(action)
        self.now += 10.0
        self.actuator.poll(self.now)
        assert self.actuator.status(self.now).level == Severity.OK

    @pytest.mark.parametrize("action", STOPS)
    def test_a_stop_that_is_refused_leaves_the_limit_before_it(self, action: str) -> None:
        self.ask("LIMIT_SPEED")
        self.refuses = True
        assert self.ask(action) in (limited(LIMIT), STOPPED, HARD)
        self.refuses = False
        assert self.ask(NO_ACTION) == FREE
