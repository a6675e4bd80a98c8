"""The processes of the soak test: ``python -m evaluation.soak.load --role ROLE ...`` runs one."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64

from benchmarks._live import make_executor
from evaluation.harness.command import command

TOPICS = tuple(f"/soak/s{i:02}" for i in range(20))
BURST = 0.002
"""Seconds between two bursts of the publisher."""
SETTLING = 4.0
"""Seconds from discovery to the first message, so that whatever is lost is lost to the load: the
monitor subscribes anew once it has seen which quality of service its publishers offer.
"""
LONGEST_BURST = 0.05
"""Seconds whose messages are sent at once at the most, after the publisher itself was held up."""


def payloads() -> list[bytes]:
    """Return a hundred messages to be sent in turn."""
    return [bytes(serialize_message(Float64(data=i / 100))) for i in range(100)]


def publish(rate: float, seconds: float, result: Path, **_: Any) -> None:
    """Send so many messages per second on all topics together, in turn; then write how many."""
    node = Node("load")
    # Reliable with a history deep enough that whatever is lost was lost by the reader.
    publishers = [node.create_publisher(Float64, t, QoSProfile(depth=1000)) for t in TOPICS]
    while any(publisher.get_subscription_count() < 1 for publisher in publishers):
        rclpy.spin_once(node, timeout_sec=0.05)
    time.sleep(SETTLING)
    messages, sent = payloads(), 0
    pauses: list[tuple[float, float]] = []
    begun = before = time.monotonic()
    shift = 0.0
    while (now := time.monotonic()) - begun < seconds:
        if now - before > LONGEST_BURST:  # what was held up is left out, not sent all at once
            shift += now - before - LONGEST_BURST
            pauses.append((time.time() - (now - before), time.time()))
        before = now
        while sent < (now - begun - shift) * rate:
            publishers[sent % len(TOPICS)].publish(messages[sent // len(TOPICS) % 100])
            sent += 1
        time.sleep(BURST)
    told = {"sent": sent, "seconds": time.monotonic() - begun, "pauses": pauses}
    draft = result.with_suffix(".draft")
    draft.write_text(json.dumps(told))
    draft.replace(result)
    while True:  # leaving would take what is still on its way along
        time.sleep(1.0)


def listen(seconds: float, executor: str, result: Path, **_: Any) -> None:
    """Receive on all topics, raw, do nothing, and write how many came in a while."""
    node = Node("listener")
    received = 0

    def count(_: bytes) -> None:
        nonlocal received
        received += 1

    for topic in TOPICS:
        node.create_subscription(Float64, topic, count, 50, raw=True)
    server = make_executor(executor)
    server.add_node(node)
    while received < 200:
        server.spin_once(timeout_sec=0.5)
    begun, first = time.monotonic(), received
    while time.monotonic() - begun < seconds:
        server.spin_once(timeout_sec=0.5)
    rate = (received - first) / (time.monotonic() - begun)
    result.write_text(json.dumps({"rate": rate}))
    os._exit(0)


def main(
    role: str, seconds: float, result: Path, rate: float = 1e9, executor: str = "single"
) -> None:
    """Run one role."""
    rclpy.init()
    run = {"publish": publish, "listen": listen}[role]
    run(seconds=seconds, result=result, rate=rate, executor=executor)


if __name__ == "__main__":
    command(main)
