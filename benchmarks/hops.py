"""What the bridge adds to a hop between Cyber RT and ROS 2.

From the writing of a chassis message on Cyber to the Signals that carry it in ROS, and from the
publishing of an Intervention in ROS to its pad message on Cyber; in turns with the least that could
stand in the place of the bridge (`benchmarks._cyber_relay`): one process that reads and writes both
and does nothing else. All times are by the clock on the wall. ``--executor events`` serves that
process with rclpy's EventsExecutor, as the bridge is, in place of `rclpy.spin`'s.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from benchmarks._harness import Table, Target, quantile, run
from benchmarks.bridge import RATES, RESUME, STOP, load, new_world, no_cyber

TARGET = Target(20.0)
WARM_UP = 1.0
"""Seconds of messages that are not counted."""


def relay(world: Any, bare: str, **parameters: Any) -> Any:
    """Return the bridge, or the least that could stand in its place, served by an executor."""
    if not bare:
        return world.bridge(diagnostics_period=0.5, **parameters)
    process = world.start("relay", "-m", "benchmarks._cyber_relay", bare)
    process.wait_for(lambda line: "relaying" in line)
    return process


def to_ros(world: Any, listener: Any, rate: float, count: int, bare: str) -> list[float]:
    """Return milliseconds from the writing on Cyber to the receiving in ROS."""
    from forewarn_msgs.msg import Signals

    apollo = world.apollo(rate)
    bridge = relay(world, bare, max_rate=500.0)
    apollo.tell(counting=True)
    arrived: dict[float, int] = {}

    def take(message: Any) -> None:
        now = time.time_ns()
        if message.values:
            arrived.setdefault(message.values[0], now)

    subscription = listener.node.create_subscription(Signals, "/monitor/input/signals", take, 100)
    # A subscriber that was just found may get the messages of 0.3 s at once, from any publisher.
    cold = round(WARM_UP * rate)
    wanted = cold + count
    listener.wait_for_any(lambda _: len(arrived) >= wanted, limit=240.0 + 2 * wanted / rate)
    listener.node.destroy_subscription(subscription)
    apollo.tell(counting=False)
    found = []
    while not apollo.lines.empty():
        line = apollo.lines.get()
        if line is not None and line.get("wrote") in arrived:
            found.append((arrived[line["wrote"]] - line["time"]) / 1e6)
    bridge.stop()
    apollo.stop()
    return found[cold:]


def to_cyber(world: Any, listener: Any, rate: float, count: int, bare: str) -> list[float]:
    """Return milliseconds from the publishing of an Intervention to its pad on Cyber."""
    from forewarn_msgs.msg import Intervention
    from rclpy.qos import DurabilityPolicy, QoSProfile

    apollo = world.apollo(10)
    bridge = relay(world, bare, monitor="/bench")
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = listener.node.create_publisher(Intervention, "/bench/output/intervention", latched)
    stop = Intervention(id=1, action=Intervention.EMERGENCY_STOP, active=True)
    while apollo.lines.empty():  # until all have found each other
        publisher.publish(stop)
        time.sleep(0.2)
    found = []
    for number in range(count):
        time.sleep(1.0 / rate)
        message, answer = (Intervention(id=1), RESUME) if number % 2 == 0 else (stop, STOP)
        sent = time.time_ns()
        publisher.publish(message)
        pad = apollo.wait_for(lambda line, answer=answer: line.get("pad") == answer)
        found.append((pad["time"] - sent) / 1e6)
    listener.node.destroy_publisher(publisher)
    bridge.stop()
    apollo.stop()
    return found


def hops(world: Any, listener: Any, count: int, turns: int, executor: str) -> Table:
    """Measure both hops at both rates, the bridge and the bare relay taking turns."""
    rows: list[tuple[Any, ...]] = []
    for rate in RATES:
        for name, hop in (
            ("from the writing on Cyber to the Signals in ROS", to_ros),
            ("from the Intervention in ROS to the pad on Cyber", to_cyber),
        ):
            found: dict[str, list[float]] = {"": [], executor: []}
            for _ in range(turns):
                for bare, times in found.items():
                    times += hop(world, listener, rate, max(1, count // turns), bare)
            figures = [quantile(times, level) for times in found.values() for level in (0.5, 0.99)]
            added = 100 * (figures[0] / figures[2] - 1)
            rows.append((f"{name}, {rate:g} Hz", *figures, added, TARGET))
    columns = (
        "Hop",
        "bridge: p50, ms",
        "p99, ms",
        "pycyber and rclpy alone: p50, ms",
        "p99, ms",
        "added at p50, %",
        "Target",
    )
    return Table(columns, rows)


def measure(count: int = 300, turns: int = 5, executor: str = "single") -> list[Table]:
    """Time so many messages of each hop in so many turns."""
    if no_cyber():
        return []
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    with new_world() as world:
        listener = load("conftest").Listener(world.domain)
        table = hops(world, listener, count, turns, executor)
        listener.close()
    return [table]


if __name__ == "__main__":
    sys.exit(run(measure))
