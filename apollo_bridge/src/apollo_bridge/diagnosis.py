"""What the bridge says about itself on /diagnostics."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from apollo_bridge.relay import Relay
from apollo_bridge.worker import Worker
from forewarn.monitoring.bridging import timeout_of
from forewarn_ros.status import Severity, Status

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
