"""The processes of the soak test: ``python -m evaluation.soak.load ROLE ...`` runs one of them."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64

from benchmarks._live import make_executor

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


def publish(options: argparse.Namespace) -> None:
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
    while (now := time.monotonic()) - begun < options.seconds:
        if now - before > LONGEST_BURST:  # what was held up is left out, not sent all at once
            shift += now - before - LONGEST_BURST
            pauses.append((time.time() - (now - before), time.time()))
        before = now
        while sent < (now - begun - shift) * options.rate:
            publishers[sent % len(TOPICS)].publish(messages[sent // len(TOPICS) % 100])
            sent += 1
        time.sleep(BURST)
    result = {"sent": sent, "seconds": time.monotonic() - begun, "pauses": pauses}
    draft = Path(f"{options.result}.draft")
    draft.write_text(json.dumps(result))
    draft.replace(options.result)
    while True:  # leaving would take what is still on its way along
        time.sleep(1.0)


def listen(options: argparse.Namespace) -> None:
    """Receive on all topics, raw, do nothing, and write how many came in a while."""
    node = Node("listener")
    received = 0

    def count(_: bytes) -> None:
        nonlocal received
        received += 1

    for topic in TOPICS:
        node.create_subscription(Float64, topic, count, 50, raw=True)
    executor = make_executor(options.executor)
    executor.add_node(node)
    while received < 200:
        executor.spin_once(timeout_sec=0.5)
    begun, first = time.monotonic(), received
    while time.monotonic() - begun < options.seconds:
        executor.spin_once(timeout_sec=0.5)
    rate = (received - first) / (time.monotonic() - begun)
    Path(options.result).write_text(json.dumps({"rate": rate}))
    os._exit(0)


def main() -> None:
    """Run one role."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("publish", "listen"))
    parser.add_argument("--rate", type=float, default=1e9)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--executor", default="single")
    parser.add_argument("--result", required=True)
    options = parser.parse_args()
    rclpy.init()
    {"publish": publish, "listen": listen}[options.role](options)


if __name__ == "__main__":
    main()
