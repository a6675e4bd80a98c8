"""From a Cyber channel over the bridge and the monitor to a pad message, and what a burst costs.

A small Apollo publishes chassis messages at 100 Hz. Its speed jumps between a safe and a risky
value at random; each time the first message of the new speed and the pad message that answers it
(STOP or RESUME_CRUISE) are timed in that one process. Bridge, Cyber RT, monitor and Apollo are
processes of their own. The hops are timed without a monitor: from the writing of a chassis message
to the Signals that carry it, and from the publishing of an Intervention to its pad message; beside
them, the same with the least that could stand in the place of the bridge. Bursts are counted by the
numbers in the headers.

Run it with ``python -m benchmarks.bridge``; ``--json`` prints the figures for machines. The exit
code is 1 if the way without the wait for a tick takes more than 10 ms at the median.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BRIDGE_TESTS = Path(__file__).resolve().parents[1] / "tests" / "bridge"
RATES = (10.0, 100.0)
SAFE, RISKY = 0.5, 4.5
RESUME, STOP = 5, 4
TARGET_MS = 10.0


def load(name: str) -> Any:
    """Import a helper of the tests, whose folder is no package."""
    spec = importlib.util.spec_from_file_location(f"bridge_{name}", BRIDGE_TESTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def percentiles(values: list[float]) -> dict[str, float]:
    """Return median, 99th percentile and maximum."""
    ordered = sorted(values)
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))],
        "max": ordered[-1],
        "samples": len(ordered),
    }


def round_trips(world: Any, rate: float, count: int) -> dict[str, float]:
    """Return milliseconds from channel to pad, the monitor ticking at `rate` Hz."""
    apollo = world.apollo(100)
    world.monitor()
    world.bridge(max_rate=500.0)
    apollo.tell(speed=RISKY)
    apollo.wait_for(lambda line: line.get("pad") == STOP)
    rng = random.Random(7)
    found = []
    for number in range(count):
        time.sleep(rng.uniform(0.0, 0.1))
        speed, answer = (SAFE, RESUME) if number % 2 == 0 else (RISKY, STOP)
        apollo.tell(speed=speed)
        wrote = apollo.wait_for(lambda line, speed=speed: line.get("wrote") == speed)
        pad = apollo.wait_for(lambda line, answer=answer: line.get("pad") == answer)
        found.append((pad["time"] - wrote["time"]) / 1e6)
    return percentiles(found)


def relay(world: Any, bare: bool, **parameters: Any) -> Any:
    """Return the bridge, or the least that could stand in its place."""
    if not bare:
        return world.bridge(**parameters)
    process = world.start("relay", "-m", "benchmarks._cyber_relay")
    process.wait_for(lambda line: "relaying" in line)
    return process


def to_ros(world: Any, listener: Any, rate: float, count: int, bare: bool) -> dict[str, float]:
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
    listener.wait_for_any(lambda _: len(arrived) >= count, limit=60.0 + 2 * count / rate)
    listener.node.destroy_subscription(subscription)
    apollo.tell(counting=False)
    found = []
    while not apollo.lines.empty():
        line = apollo.lines.get()
        if line is not None and line.get("wrote") in arrived:
            found.append((arrived[line["wrote"]] - line["time"]) / 1e6)
    bridge.stop()
    apollo.stop()
    # The first ones find caches cold and readers half connected.
    return percentiles(found[len(found) // 10 :])


def to_cyber(world: Any, listener: Any, rate: float, count: int, bare: bool) -> dict[str, float]:
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
    return percentiles(found)


def bursts(world: Any, listener: Any) -> dict[str, dict[str, int]]:
    """Return what a burst of 1000 messages loses at 1 kHz and back to back."""
    apollo = world.apollo(100)
    world.bridge()
    channel = "/apollo/canbus/chassis"
    listener.diagnostic(channel, lambda level, text, values: level == 0)
    result = {}
    for name, gap in (("1 kHz", 0.001), ("back to back", 0.0)):
        apollo.tell(pause=True)
        _, _, before = listener.diagnostic(
            channel, lambda level, text, values: text.startswith("nothing")
        )
        apollo.tell(burst=1000, gap=gap)
        apollo.wait_for(lambda line: "burst" in line)
        apollo.tell(pause=False)
        _, _, after = listener.diagnostic(
            channel,
            lambda level, text, values, before=before: (
                level == 0
                and int(values["received"]) + int(values["lost"])
                >= int(before["received"]) + int(before["lost"]) + 1000
            ),
        )
        result[name] = {key: int(after[key]) - int(before[key]) for key in ("lost", "late")}
    return result


@contextmanager
def new_world(rate: float = 10.0) -> Iterator[Any]:
    """Yield processes whose monitor ticks at `rate` Hz."""
    live, helpers = load("live"), load("conftest")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        record = path / "learn.record"
        record.write_bytes(helpers.record_bytes([helpers.sawtooth()]))
        live.write_monitor(path, record, rate)
        with helpers.new_world(path, None) as world:
            yield world


def measure(count: int) -> dict[str, Any]:
    """Run everything."""
    figures: dict[str, Any] = {}
    for rate in RATES:
        with new_world(rate) as world:
            figures[f"{rate:g} Hz"] = round_trips(world, rate, count)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    with new_world() as world:
        listener = load("conftest").Listener(world.domain)
        for rate in RATES:
            for name, bare in (("", False), (", bare", True)):
                figures[f"to ROS, {rate:g} Hz{name}"] = to_ros(world, listener, rate, count, bare)
                figures[f"to Cyber, {rate:g} Hz{name}"] = to_cyber(
                    world, listener, rate, count, bare
                )
        figures["bursts"] = bursts(world, listener)
        listener.close()
    return figures


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--count", type=int, default=200, help="answers to wait for at each rate")
    options = parser.parse_args()
    if importlib.util.find_spec("pycyber") is None:
        print("skipped: pycyber, Cyber RT's wheel, exists for Python 3.10 only")
        return 0
    figures = measure(options.count)
    if options.json:
        print(json.dumps(figures))
    else:
        for rate in RATES:
            row = figures[f"{rate:g} Hz"]
            print(
                f"channel to pad, monitor at {rate:g} Hz: p50 {row['p50']:.1f} ms, "
                f"p99 {row['p99']:.1f} ms, max {row['max']:.1f} ms ({row['samples']} answers)"
            )
        for rate in RATES:
            for way in ("to ROS", "to Cyber"):
                row, bare = (figures[f"{way}, {rate:g} Hz{name}"] for name in ("", ", bare"))
                print(
                    f"hop {way} at {rate:g} Hz: p50 {row['p50']:.2f} ms, p99 {row['p99']:.2f} ms; "
                    f"pycyber and rclpy alone: p50 {bare['p50']:.2f} ms, p99 {bare['p99']:.2f} ms "
                    f"({row['samples']} messages)"
                )
        for name, row in figures["bursts"].items():
            print(f"burst of 1000, {name}: {row['lost']} lost, {row['late']} late")
    # On average half a tick passes before the monitor looks.
    return 1 if figures["100 Hz"]["p50"] - 5.0 > TARGET_MS else 0


if __name__ == "__main__":
    sys.exit(main())
