"""The bridge as a lifecycle node: signals from Apollo to the monitor, interventions back."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forewarn_msgs.msg import Intervention as InterventionMessage
from forewarn_msgs.msg import RiskArray, Signals
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from apollo_bridge import commands
from apollo_bridge.commander import Commander
from apollo_bridge.cyber import CyberTransport
from apollo_bridge.derivation import Derivation, SentSignal
from apollo_bridge.records import layouts_in
from apollo_bridge.relay import Memory, Relay
from apollo_bridge.tcp import TcpTransport
from apollo_bridge.transport import Channels, Transport
from apollo_bridge.worker import Worker
from forewarn.config.actions import ACTIONS
from forewarn.config.file import load_spec
from forewarn.errors import ConfigError
from forewarn.monitoring.bridging import timeout_of
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.record import Names
from forewarn.signals.clock_kinds import clock_of
from forewarn_ros.events import qos_mismatches
from forewarn_ros.lifecycle import ReportingNode, reported
from forewarn_ros.messages import header, seconds_since, to_time
from forewarn_ros.overrides import tell_ignored, tell_unaddressed
from forewarn_ros.status import Severity, Status

PARAMETERS: tuple[tuple[str, Any, str], ...] = (
    ("config", "", "Monitor file (YAML), the same as the monitor's."),
    ("monitor", "/monitor", "Full name of the monitor node."),
    ("transport", "cyber", "'cyber' (Cyber RT itself) or 'tcp' (Apollo's cyber_bridge)."),
    ("version", 9, "Version of Apollo, 7 to 11."),
    ("way", "pad", "Commands to planning: 'pad', or 'action' from Apollo 9 on."),
    ("host", "127.0.0.1", "Where cyber_bridge listens, for the transport 'tcp'."),
    ("port", 9090, "TCP port of cyber_bridge."),
    ("layouts", "", "A .record file of this Apollo; layouts for the transport 'tcp'."),
    ("python", "", "Interpreter that has Cyber's package; empty: the one that runs the bridge."),
    ("max_rate", 0.0, "Hz at which signals are sent at the most; 0: five times the monitor's."),
    ("repeat", 1.0, "Seconds after which a command in force is written again."),
    (
        "deadline",
        0.0,
        "Seconds for which a verdict of the monitor counts, from the moment that it is about: an "
        "older one takes nothing back; 0: two periods of the monitor, and `settle`.",
    ),
    ("journal", "", "File that tells the bridge's next life what is in force; empty: none."),
    ("diagnostics_period", 0.5, "Seconds between two messages on /diagnostics."),
    (
        "executor",
        "events",
        "'events' (rclpy's EventsExecutor; 'single' stands in where there is none, as on Humble) "
        "or 'single'; set at the start only.",
    ),
    ("autostart", False, "Configure and activate at once, without a lifecycle manager."),
)
PERIODS_TO_DEADLINE = 2
NAMES = {getattr(InterventionMessage, name): name for name in ACTIONS}
HEARD = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


class BridgeNode(ReportingNode):
    """The bridge; parameters and topics are described in docs/howto/apollo.md."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("apollo_bridge", **arguments)
        for name, default, text in PARAMETERS:
            self.declare_parameter(name, default, ParameterDescriptor(description=text))
        tell_unaddressed(self)
        tell_ignored(self)
        self.worker: Worker | None = None
        self._derivation: Derivation | None = None
        self._relay: Relay | None = None
        self._connections = 0
        self._publisher: Any = None
        self._subscription: Any = None
        self._verdicts: Any = None
        self._about, self._oldest = -math.inf, math.inf
        self._timer: Any = None
        self._report_every(self._value("diagnostics_period"))

    @reported
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load and check; nothing is connected yet."""
        config = self._value("config")
        if not config:
            raise ConfigError("is not set", key="parameter config", accepted="a monitor file")
        if self._value("transport") not in ("cyber", "tcp"):
            raise ConfigError(
                f"{self._value('transport')!r}", key="parameter transport", accepted="cyber, tcp"
            )
        spec = load_spec(config)
        way = commands.way_of(self._value("version"), self._value("way"), self._value("transport"))
        for note in commands.check(spec, self._value("version")):
            self.get_logger().warning(note)
        derivation = Derivation(spec)
        if not derivation.bridging.sent:
            raise ConfigError(
                "no signal comes from a channel", file=spec.file, key="signals", accepted="channel:"
            )
        if self._value("layouts"):
            for offer in layouts_in(Path(self._value("layouts"))):
                derivation.offer(offer)
        self._derivation = derivation
        clock = clock_of(spec.rate)
        periods = PERIODS_TO_DEADLINE * clock.period if clock.regular else math.inf
        self._oldest = self._value("deadline") or periods + spec.settle
        commander = Commander(
            way, limits=commands.asks_for_limits(spec), repeat_ns=round(self._value("repeat") * 1e9)
        )
        journal = self._value("journal")
        memory = Memory(Path(journal) if journal else None)
        self._relay = Relay(commander, memory, spec.mode == "act", self.get_logger())
        self._publisher = self.create_publisher(
            Signals, Names.of(self._value("monitor")).external, 10
        )
        sent = ", ".join(derivation.bridging.sent)
        self.get_logger().info(f"configured: {len(derivation.channels)} channels -> {sent}")
        return super().on_configure(state)

    def _transport(self) -> Transport:
        if self._value("transport") == "tcp":
            return TcpTransport(self._value("host"), self._value("port"))
        return CyberTransport(f"forewarn_{self.get_name()}", self._value("python"))

    @reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Connect to Apollo and to the monitor."""
        assert self._derivation is not None and self._relay is not None
        transport = self._transport()
        limits = self._relay.commander.limits
        transport.open(_channels(self._derivation, self._relay.commander))
        rate = self._value("max_rate") or 5 * self._derivation.rate
        listeners = {} if limits is None else {k[0]: v for k, v in limits.listeners.items()}
        self.worker = Worker(transport, self._derivation, self._publish, rate, listeners)
        self._connections = 0
        self._relay.start(transport.write)
        self.worker.start()
        topic = f"{self._value('monitor')}/output/intervention"
        self._subscription = self.create_subscription(
            InterventionMessage, topic, self._intervene, HEARD
        )
        verdicts = f"{self._value('monitor')}/output/risk"
        self._verdicts = self.create_subscription(RiskArray, verdicts, self._judge, 1)
        period = min(0.25, self._value("repeat"))
        self._timer = self.create_timer(period, self._command, clock=self._steady)
        return super().on_activate(state)

    def finish(self) -> None:
        """End what runs: the process ends. A command in force stays in force."""
        self._stop("ends")

    def _stop(self, reason: str) -> None:
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self.destroy_subscription(self._subscription)
            self.destroy_subscription(self._verdicts)
        self._timer = self._subscription = self._verdicts = None
        if self.worker is not None:
            assert self._relay is not None
            self._relay.stop()
            self.worker.stop()
            self.worker = None

    def _clear(self) -> None:
        if self._publisher is not None:
            self.destroy_publisher(self._publisher)
        self._publisher = self._derivation = self._relay = None

    # Signals

    def _publish(self, now_ns: int, signals: Sequence[SentSignal]) -> None:
        sent_ns = time.time_ns()
        self._publisher.publish(
            Signals(
                header=header(sent_ns),
                names=[signal.name for signal in signals],
                values=[signal.value for signal in signals],
                stamps=[to_time(max(sent_ns - now_ns + s.stamp_ns, 0)) for s in signals],
            )
        )

    # Interventions

    def _intervene(self, message: InterventionMessage) -> None:
        if self._relay is not None:
            name = NAMES.get(message.action, "")
            wish = Intervention(
                name, message.speed_limit, message.id, message.active, reason=message.reason
            )
            alone, fresh = self._alone(), self._fresh()
            now_ns, session = time.time_ns(), message.session
            self._relay.intervene(wish, now_ns, session, alone=alone, fresh=fresh)

    def _judge(self, message: RiskArray) -> None:
        age = seconds_since(message.header.stamp, self.get_clock().now().nanoseconds)
        self._about = time.monotonic() - age

    def _fresh(self) -> bool:
        """Tell whether the newest verdict is about a time that is not too long ago."""
        return abs(time.monotonic() - self._about) <= self._oldest

    def _alone(self) -> bool:
        """Tell whether the graph knows one monitor at most; it keeps a dead one for a while."""
        return self._subscription is None or self._subscription.get_publisher_count() <= 1

    def _command(self) -> None:
        if self._relay is None or self.worker is None:
            return
        self._relay.log_changes()
        if self.worker.connections != self._connections:
            self._connections = self.worker.connections
            self._relay.connected(time.time_ns())
        for service in list(self.worker.answers):
            self._relay.answered(service, self.worker.answers.pop(service))
        self._relay.update(time.time_ns(), alone=self._alone(), fresh=self._fresh())

    # Reports

    def _statuses(self) -> list[Status]:
        if self.problem:
            return [Status("node", Severity.ERROR, self.problem, {})]
        if self.worker is None:
            return [Status("node", Severity.WARN, "not active", {})]
        assert self._relay is not None
        mismatches = "; ".join(
            qos_mismatches(self, [self._publisher], [self._subscription, self._verdicts])
        )
        active = Status(
            "node", Severity.WARN if mismatches else Severity.OK, mismatches or "active", {}
        )
        return [active, *statuses(self.worker, self._relay, time.monotonic_ns())]


def _channels(derivation: Derivation, commander: Commander) -> Channels:
    """Return what is read, written and called for a monitor file."""
    readers = dict(derivation.channels)
    writers: dict[str, str] = {}
    stops = {commander.way.target: commander.way.message}
    if commander.limits is not None:
        for channel, message in commander.limits.listeners:
            readers.setdefault(channel, message)
        writers |= dict([commands.PLANNING])
    if commander.way.service:
        return Channels(readers, writers, stops)
    return Channels(readers, {**stops, **writers})


DOMAIN, ADDRESS = ("CYBER_DOMAIN_ID", "80"), ("CYBER_IP", "127.0.0.1")


def statuses(worker: Worker, relay: Relay, now_ns: int) -> Iterator[Status]:
    """Yield the state of the connection, of each channel and of the commands."""
    yield _connection(worker)
    for channel in worker.derivation.channels:
        yield _channel(worker, channel, now_ns)
    held = relay.commander.described
    problem = Severity.ERROR if relay.lost else Severity.WARN
    yield Status(
        "commands",
        problem if relay.lost or relay.remark else Severity.OK,
        relay.remark or (f"{held} is in force" if held else "none in force"),
        {"stops go to": relay.commander.way.target},
    )


def _connection(worker: Worker) -> Status:
    values = {
        "transport": worker.transport.name,
        "connections": worker.connections,
        "published": worker.published,
    }
    problem = worker.error or worker.problem or elsewhere(worker)
    level = Severity.WARN if problem else Severity.OK
    if worker.error or worker.problem:
        level = Severity.ERROR
    for name, reason in worker.derivation.failures.items():
        values[f"unknown: {name}"] = reason
    return Status("connection", level, problem or "connected", values)


def elsewhere(worker: Worker) -> str:
    """Return where to look if no channel is published by anyone, else nothing."""
    if worker.topology is None or any(
        worker.topology.get(channel) for channel in worker.derivation.channels
    ):
        return ""
    domain, address = (os.environ.get(*variable) for variable in (DOMAIN, ADDRESS))
    seen = ", ".join(sorted(c for c, types in worker.topology.items() if types)[:5])
    return (
        f"no node publishes any of the channels in domain {domain} at {address}"
        + (f" (there is {seen})" if seen else " (nor any other channel)")
        + f": is Apollo running, and are {DOMAIN[0]} and {ADDRESS[0]} the same there?"
    )


def _channel(worker: Worker, channel: str, now_ns: int) -> Status:
    derivation = worker.derivation
    traffic = derivation.traffic[channel]
    age = (now_ns - traffic.newest_ns) / 1e9 if traffic.newest_ns else math.inf
    timeout = min(
        timeout_of(signal)
        for signal in derivation.spec.signals.values()
        if signal.channel == channel
    )
    values = {
        "message": derivation.channels[channel],
        "received": traffic.received,
        "late": traffic.late,
        "lost": traffic.lost,
        "restarts": traffic.restarts,
        "age": f"{age:.3f}",
    }
    problem = derivation.problems.get(channel, "")
    if problem:
        return Status(channel, Severity.ERROR, problem, values)
    if age > timeout and not math.isinf(timeout):
        text = "nothing came yet" if math.isinf(age) else f"nothing came for {age:.1f} s"
        unpublished = worker.topology is not None and not worker.topology.get(channel)
        return Status(
            channel, Severity.WARN, text + (": no node publishes it" if unpublished else ""), values
        )
    if unread := derivation.unread(channel):
        return Status(channel, Severity.WARN, f"its messages cannot be read: {unread}", values)
    return Status(channel, Severity.OK, "messages arrive", values)
