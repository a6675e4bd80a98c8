"""Real ROS 2 in tests: a monitor in a process of its own, and a probe that talks to it.

Nothing here sleeps: whatever is waited for is waited for as an event, with a generous limit.
Not a conftest, for tests/node and tests/replay both take their fixtures from it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from forewarn_msgs.msg import Arrivals, Intervention, Risk, RiskArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from live_process import LIMIT, Process, environment, free_domain, standstill
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from small_world import DISTANCE, MONITOR, TYPES, serialized, write_bag, write_world
from std_msgs.msg import String

from forewarn.cli import main
from forewarn.signals.clock_kinds import Grid
from forewarn_ros.messages import from_time, to_time
from monitor_node.message_types import message_class

PATIENCE = 10.0
"""Seconds after which a service is asked again."""
GOALS = {
    "configure": "inactive",
    "activate": "active",
    "deactivate": "inactive",
    "cleanup": "unconfigured",
}
KEPT = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LEVELS = {DiagnosticStatus.OK: "OK", DiagnosticStatus.WARN: "WARN", DiagnosticStatus.ERROR: "ERROR"}


class Probe:
    """A node that listens to all that a monitor publishes, and asks it for things."""

    def __init__(self, domain: int, monitor: str = "/monitor") -> None:
        self.domain = domain
        self.monitor = monitor
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = Node("probe", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.risks: list[RiskArray] = []
        self.interventions: list[Intervention] = []
        self.events: list[dict[str, Any]] = []
        self.diagnostics: dict[str, DiagnosticStatus] = {}
        self.reports = self.reported_ns = 0
        self._clients: dict[str, Any] = {}
        self._publishers: dict[str, Any] = {}
        create = self.node.create_subscription
        risks = create(RiskArray, f"{monitor}/output/risk", self.risks.append, 1000)
        self._publishers_of_risk = risks.get_publisher_count
        create(Intervention, f"{monitor}/output/intervention", self.interventions.append, 1000)
        create(String, f"{monitor}/debug/events", self._on_event, KEPT)
        create(DiagnosticArray, "/diagnostics", self._on_diagnostics, 100)

    def close(self) -> None:
        """Leave the domain."""
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def _on_event(self, message: Any) -> None:
        self.events.append(json.loads(message.data))

    def _on_diagnostics(self, message: Any) -> None:
        self.reports += 1
        self.reported_ns = from_time(message.header.stamp)
        self.diagnostics = {status.name: status for status in message.status}

    def wait(
        self, condition: Callable[[], Any], what: str | Callable[[], str] = "", limit: float = LIMIT
    ) -> Any:
        """Serve callbacks until `condition` is true, and return what it gave."""
        end = time.monotonic() + limit
        while not (found := condition()):
            told = what if isinstance(what, str) else what()
            assert time.monotonic() < end, f"in vain: {told or condition}{standstill()}"
            self.executor.spin_once(timeout_sec=0.05)
        return found

    def meet(self) -> None:
        """Wait until no verdict of the monitor can be missed."""
        self.wait(self._publishers_of_risk, "a publisher of risk")

    # Services

    def call(self, kind: Any, name: str, **fields: Any) -> Any:
        """Call a service of the monitor and return the response.

        A server that has not discovered the reader of its client yet waits 100 ms for it and then
        drops the response (rmw_fastrtps), which a busy machine outlasts: so it is asked again.
        """
        found, _ = self._ask(kind, name, fields)
        return found

    def _ask(self, kind: Any, name: str, fields: dict[str, Any]) -> tuple[Any, int]:
        """Return the response, and how often it took to ask for it."""
        full = name if name.startswith("/") else f"{self.monitor}/{name}"
        if full not in self._clients:
            self._clients[full] = self.node.create_client(kind, full)
        client = self._clients[full]
        self.wait(client.service_is_ready, f"service {full}")
        futures: list[Any] = []
        asked = -math.inf

        def answered() -> Any:
            nonlocal asked
            if time.monotonic() - asked > PATIENCE:
                futures.append(client.call_async(kind.Request(**fields)))
                asked = time.monotonic()
            return next((future for future in futures if future.done()), None)

        future = self.wait(answered, f"response of {full}")
        return future.result(), len(futures)

    def change(self, transition: str) -> bool:
        """Ask for a transition of the life cycle; tell whether it succeeded."""
        number = getattr(Transition, f"TRANSITION_{transition.upper()}")
        fields = {"transition": Transition(id=number)}
        response, times = self._ask(ChangeState, "change_state", fields)
        # Asked again, a transition that has succeeded is refused: it is where it was to go.
        return bool(response.success) or (times > 1 and self.state == GOALS[transition])

    @property
    def state(self) -> str:
        """State of the life cycle."""
        return str(self.call(GetState, "get_state").current_state.label)

    def get(self, name: str) -> Any:
        """Return the value of a parameter."""
        response = self.call(GetParameters, "get_parameters", names=[name])
        return parameter_value_to_python(response.values[0])

    def describe(self, name: str) -> Any:
        """Return the descriptor of a parameter."""
        return self.call(DescribeParameters, "describe_parameters", names=[name]).descriptors[0]

    def set(self, **values: Any) -> Any:
        """Set parameters at once; ``__`` stands for a dot. Return the result."""
        messages: list[ParameterMessage] = [
            Parameter(name.replace("__", "."), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        service = "set_parameters_atomically"
        return self.call(SetParametersAtomically, service, parameters=messages).result

    # Diagnostics

    def level(self, name: str, node: str = "monitor") -> str:
        """Return the level of a subcomponent in the newest report; empty if it has none."""
        status = self.diagnostics.get(f"{node}: {name}")
        return LEVELS[status.level] if status else ""

    def text(self, name: str, node: str = "monitor") -> str:
        """Return the message of a subcomponent in the newest report."""
        status = self.diagnostics.get(f"{node}: {name}")
        return str(status.message) if status else ""

    def values(self, name: str) -> dict[str, str]:
        """Return the values of a subcomponent in the newest report."""
        return {value.key: value.value for value in self.diagnostics[f"monitor: {name}"].values}

    def wait_for_status(self, name: str, level: str, text: str = "", node: str = "monitor") -> None:
        """Wait until a report says so."""

        def found() -> tuple[str, str]:
            return self.level(name, node), self.text(name, node)

        self.wait(
            lambda: found()[0] == level and text in found()[1],
            lambda: f"{name} {level} {text!r} (now {found()})",
        )

    # Topics

    def publisher(self, topic: str, kind: str = "", **policies: Any) -> Any:
        """Return a publisher, made when it is first asked for; reliable unless told otherwise."""
        if topic not in self._publishers:
            policies = {"depth": 100, "reliability": ReliabilityPolicy.RELIABLE, **policies}
            self._publishers[topic] = self.node.create_publisher(
                message_class(kind or TYPES[topic]), topic, QoSProfile(**policies)
            )
        return self._publishers[topic]

    def connected(self, topic: str, kind: str = "") -> Any:
        """Return the publisher of an input once the monitor is connected to it."""
        publisher = self.publisher(topic, kind)
        self.wait(publisher.get_subscription_count, f"a subscription to {topic}")
        return publisher

    def deliver(self, message: Any, topic: str, kind: str = "") -> Any:
        """Publish a message, wait until the monitor has it, and return the publisher."""
        publisher = self.connected(topic, kind)
        publisher.publish(message)
        assert publisher.wait_for_all_acked(Duration(seconds=LIMIT))
        return publisher

    def say(self, topic: str, value: float) -> None:
        """Deliver a message of the small world."""
        self.deliver(serialized(topic, value), topic)

    def step(self, distance: float) -> None:
        """Deliver what is a step where distances are steps, and wait for its verdict."""
        known = len(self.risks)
        self.say(DISTANCE, distance)
        self.wait(lambda: len(self.risks) > known, "a verdict of the step")

    def wait_for_start(self, count: int = 1) -> dict[str, Any]:
        """Wait until ticks have begun `count` times, and return the last such event."""
        self.wait(lambda: len(self.starts) >= count, f"start number {count}: {self.events}")
        return self.starts[-1]

    @property
    def starts(self) -> list[dict[str, Any]]:
        """All starts so far."""
        return [event for event in self.events if event["event"] == "start"]


class Stepper:
    """Drives a monitor under simulated time, tick by tick, as a lock-step player does.

    Attributes
    ----------
    tells : bool
        Tell that messages arrive at the very tick, and not while the clock stands before it.
    """

    def __init__(self, probe: Probe, *, rate: float = 10.0, start: int = 17_000_000_000) -> None:
        self.probe = probe
        self.tells = True
        self.grid = Grid(rate)
        self.tick = start
        self._clock = probe.node.create_publisher(Clock, "/clock", 10)

    def begin(self, tick: int | None = None) -> None:
        """Let ticks begin (anew) at `tick`."""
        self.probe.meet()
        self.tick = self.tick if tick is None else tick
        self.probe.wait(self._clock.get_subscription_count, "a subscription to /clock")
        known = len(self.probe.starts)
        self.tell(self.tick - 1, lambda: len(self.probe.starts) > known, later_ns=1)
        assert self.probe.starts[-1]["tick"] == self.tick

    def step(self, **values: float | bytes) -> RiskArray:
        """Publish messages (``speed=...``, ``distance=...``) and return the verdict of the tick."""
        told = Arrivals()
        for name, value in values.items():
            topic = {"speed": "/world/odometry", "distance": "/world/distance"}[name]
            message = value if isinstance(value, bytes) else serialized(topic, value)
            publisher = self.probe.deliver(message, topic)
            told.topics.append(publisher.topic_name)
            told.times_ns.append(self.grid.time_ns(self.tick))
        if values and self.tells:
            self.tell_arrivals(told)
        self.tell(self.tick, self.verdict)
        found = self.verdict()
        self.tick += 1
        return found

    def tell_arrivals(self, told: Arrivals) -> None:
        """Say when messages have arrived."""
        topic = f"{self.probe.monitor}/input/arrivals"
        self.probe.deliver(told, topic, "forewarn_msgs/msg/Arrivals")

    def steps(self, number: int, **values: float | bytes) -> list[RiskArray]:
        """Do the same for several ticks."""
        return [self.step(**values) for _ in range(number)]

    def report(self) -> None:
        """Wait for a report of the present moment: older ones may still wait to be read."""
        now_ns = self.grid.time_ns(self.tick - 1)
        self.probe.wait(lambda: 0 <= self.probe.reported_ns - now_ns <= 1, "a report of now")

    def verdict(self) -> Any:
        """Return the verdict of the present tick once there is one."""
        time_ns, risks = self.grid.time_ns(self.tick), self.probe.risks
        return risks[-1] if risks and from_time(risks[-1].header.stamp) == time_ns else None

    def tell(self, tick: int, heard: Callable[[], Any], later_ns: int = 0) -> None:
        """Say what time it is until it was heard: that of a tick, or a little later."""
        self.say(to_time(self.grid.time_ns(tick) + later_ns), heard)

    def say(self, moment: Time, heard: Callable[[], Any]) -> None:
        """Say a time until it was heard."""
        # /clock is best effort on the receiving side: say it again until it has an effect.
        end = time.monotonic() + LIMIT
        while not heard():
            assert time.monotonic() < end, f"in vain: /clock {moment}{standstill()}"
            self._clock.publish(Clock(clock=moment))
            again = time.monotonic() + 0.5
            while not heard() and time.monotonic() < again:
                self.probe.executor.spin_once(timeout_sec=0.05)


def of(message: RiskArray, name: str) -> Risk:
    """Return the risk of one property."""
    return next(risk for risk in message.risks if risk.property == name)


def alert(stepper: Stepper) -> Risk:
    """Drive towards something until the rule `brake` alerts."""
    for _ in range(10):
        risk = of(stepper.step(speed=3.0, distance=5.0), "brake")
        if risk.level == Risk.LEVEL_ACT:
            return risk
    raise AssertionError(f"no alert: {risk}")


def calm(stepper: Stepper) -> None:
    """Stop, which is what the rule asks for, and then drive where nothing is near."""
    stepper.step(speed=0.0, distance=5.0)
    stepper.steps(15, speed=3.0, distance=30.0)


@pytest.fixture
def by_steps(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return a function that learns a monitor file of steps and gives a node's parameters."""

    def learned(text: str, seeds: tuple[int, ...] = (1, 2, 3), seconds: float = 60.0) -> Any:
        names = {"config": "steps.yaml", "model": "model.json", "record": "record.mcap"}
        files = {name: str(tmp_path / file) for name, file in names.items()}
        Path(files["config"]).write_text(text)
        bags = [str(write_bag(tmp_path / f"{seed}.mcap", seed, seconds)) for seed in seeds]
        assert main(["learn", *bags, "-c", files["config"], "-o", files["model"], "-q"]) == 0
        return files

    return learned


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with monitor.yaml, model.json and bag.mcap of the small world."""
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def domain() -> Iterator[int]:
    """Return a domain id of the test's own."""
    with free_domain() as number:
        yield number


@pytest.fixture
def probe(domain: int) -> Iterator[Probe]:
    """Return a probe on the test's domain."""
    found = Probe(domain)
    yield found
    found.close()


@pytest.fixture
def start(domain: int, world: Path) -> Iterator[Callable[..., Process]]:
    """Return a function that starts a monitor of the small world; it is stopped at the end."""
    processes: list[Process] = []

    def monitor(*more: str, **parameters: Any) -> Process:
        process = Process("main", domain, monitor_parameters(world, **parameters), *more)
        processes.append(process)
        return process

    yield monitor
    for process in processes:
        process.__exit__()


@contextmanager
def stepped(world: Path, **changes: Any) -> Iterator[tuple[Process, Probe, Stepper]]:
    """Run a monitor under simulated time, for one test or for all of a file."""
    with free_domain() as domain:
        probe = Probe(domain)
        parameters = monitor_parameters(world, use_sim_time=True, **changes)
        with Process("main", domain, parameters) as process:
            yield process, probe, Stepper(probe)
        probe.close()


def monitor_parameters(world: Path, **changes: Any) -> dict[str, Any]:
    """Return the parameters of a monitor of the small world, active at once unless changed."""
    return {
        "config": str(world / "monitor.yaml"),
        "model": str(world / "model.json"),
        "autostart": True,
        "diagnostics_period": 0.1,
        **changes,
    }


__all__ = ["MONITOR", "Probe", "Process", "Stepper", "environment", "free_domain", "of"]
