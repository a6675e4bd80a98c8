"""From a Cyber channel over the bridge and the monitor to a pad message, and what a burst costs.

A small Apollo publishes chassis messages at 100 Hz. Its speed jumps between a safe and a risky
value at random; each time the first message of the new speed and the pad message that answers it
(STOP or RESUME_CRUISE) are timed in that one process. Bridge, Cyber RT, monitor and Apollo are
processes of their own. The hops are timed without a monitor: from the writing of a chassis message
to the Signals that carry it, and from the publishing of an Intervention to its pad message; beside
them, in turns, the same with the least that could stand in the place of the bridge. All times are
by the clock on the wall. Bursts are counted by the numbers in the headers.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks._harness import Table, Target, quantile, run

BRIDGE_TESTS = Path(__file__).resolve().parents[1] / "tests" / "bridge"
RATES = (10.0, 100.0)
SAFE, RISKY = 0.5, 4.5
RESUME, STOP = 5, 4
TARGET_MS = 15.0  # at 100 Hz; on average half a tick passes before the monitor looks


def load(name: str) -> Any:
    """Import a helper of the tests, whose folder is no package."""
    spec = importlib.util.spec_from_file_location(f"bridge_{name}", BRIDGE_TESTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def round_trips(world: Any, rate: float, count: int) -> list[float]:
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
    return found


def relay(world: Any, bare: bool, **parameters: Any) -> Any:
    """Return the bridge, or the least that could stand in its place."""
    if not bare:
        return world.bridge(**parameters)
    process = world.start("relay", "-m", "benchmarks._cyber_relay")
    process.wait_for(lambda line: "relaying" in line)
    return process


def to_ros(world: Any, listener: Any, rate: float, count: int, bare: bool) -> list[float]:
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
    return found[len(found) // 10 :]


def to_cyber(world: Any, listener: Any, rate: float, count: int, bare: bool) -> list[float]:
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


def hops(world: Any, listener: Any, count: int, turns: int) -> Table:
    """Measure both hops at both rates, the bridge and the bare relay taking turns."""
    rows: list[tuple[Any, ...]] = []
    for rate in RATES:
        for name, hop in (
            ("from the writing on Cyber to the Signals in ROS", to_ros),
            ("from the Intervention in ROS to the pad on Cyber", to_cyber),
        ):
            found: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(turns):
                for bare, times in found.items():
                    times += hop(world, listener, rate, max(1, count // turns), bare)
            figures = [quantile(times, level) for times in found.values() for level in (0.5, 0.99)]
            rows.append((f"{name}, {rate:g} Hz", *figures))
    columns = (
        "Hop",
        "bridge: p50, ms",
        "p99, ms",
        "pycyber and rclpy alone: p50, ms",
        "p99, ms",
    )
    return Table(columns, rows)


def measure(count: int = 200, turns: int = 2) -> list[Table]:
    """Wait for so many answers, and as many messages in each hop."""
    if importlib.util.find_spec("pycyber") is None:
        print("skipped: pycyber, Cyber RT's wheel, exists for Python 3.10 only", file=sys.stderr)
        return []
    ways = []
    for rate, target in zip(RATES, (None, Target(TARGET_MS)), strict=True):
        with new_world(rate) as world:
            found = round_trips(world, rate, count)
            name = f"monitor at {rate:g} Hz"
            ways.append((name, quantile(found, 0.99), quantile(found, 0.5), target))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    with new_world() as world:
        listener = load("conftest").Listener(world.domain)
        table = hops(world, listener, count, turns)
        lost = [(name, row["lost"], row["late"]) for name, row in bursts(world, listener).items()]
        listener.close()
    return [
        Table(("From channel to pad", "p99, ms", "p50, ms", "Target"), ways),
        table,
        Table(("Burst of 1000 messages", "lost", "late, not used"), lost),
    ]


if __name__ == "__main__":
    sys.exit(run(measure))
