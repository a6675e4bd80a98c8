"""From the tick to the risk in another process, against a bare rclpy timer.

The monitor reads odometry at 50 Hz and seven numbers at 10 Hz (16 predicates, 8 properties, a
learned chain). The bare node has a timer, publishes the monitor's own message (8 risks) and does
nothing else. Latency runs from the time of the tick (of the timer's due call) to the callback in
this process, by the clock on the wall; the nodes take turns.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from benchmarks._harness import Cell, Table, Target, quantile, run
from benchmarks._live import KEPT, SCALARS, RiskArray, monitor, process
from benchmarks.core import tick_yaml, walk
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models.file import save_model
from forewarn.monitoring.loading import load_bare

RATES = (10.0, 50.0, 100.0)


def write_monitor(folder: Path, rate: float) -> None:
    """Write monitor.yaml and model.json: the tick benchmark's, with signals from topics."""
    text = tick_yaml().replace("rate: 10\n", f"rate: {rate:g}\n", 1)
    topics = [("/robot/odometry", "nav_msgs/msg/Odometry", "twist.twist.linear.x")]
    topics += [(topic, "std_msgs/msg/Float64", "data") for topic in SCALARS]
    for i, (topic, kind, value) in enumerate(topics):
        source = f"{{topic: {topic}, type: {kind}, value: {value}, timeout: 1.0}}"
        text = text.replace(f"  s{i}: {{timeout: 1.0}}", f"  s{i}: {source}")
    (folder / "monitor.yaml").write_text(text + "model: model.json\nbounds: {kind: none}\n")
    abstraction = load_bare(folder / "monitor.yaml").abstraction
    counter = TransitionCounter(abstraction.vocabulary)
    for tick, values in enumerate(walk(5_000)):
        complete, *_ = abstraction.complete([values[s.name] for s in abstraction.sources])
        counter.add(tick, abstraction.evaluate(complete).state)
    counter.end_recording()
    model = build_model(counter, rate=rate, digest=abstraction.digest)
    save_model(model, folder / "model.json")


class Receiver:
    """Takes down when messages arrive."""

    def __init__(self, domain: int) -> None:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = Node("receiver", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._latencies: dict[str, list[float]] = {"bare": [], "monitor": []}
        for name in self._latencies:
            self._node.create_subscription(
                RiskArray, f"/{name}/output/risk", self._callback(name), KEPT
            )

    def _callback(self, name: str) -> Any:
        taken = self._latencies[name]

        def received(message: Any) -> None:
            now = time.time_ns()
            stamp = message.header.stamp
            taken.append((now - stamp.sec * 10**9 - stamp.nanosec) / 1e6)

        return received

    def collect(self, name: str, number: int) -> list[float]:
        """Return the latencies of so many messages, without the first few."""
        taken = self._latencies[name]
        taken.clear()
        end = time.monotonic() + 60.0
        while len(taken) < number + 5:
            if time.monotonic() > end:
                raise SystemExit(f"only {len(taken)} messages of {name} came in a minute")
            self._executor.spin_once(timeout_sec=1.0)
        return taken[5:]

    def close(self) -> None:
        """Leave the domain."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)


def compare(rate: float, executor: str, turns: int, messages: int) -> tuple[Cell, ...]:
    """Measure both nodes at one rate, in turns of so many messages."""
    domain = 20 + os.getpid() % 80
    taken: dict[str, list[float]] = {"bare": [], "monitor": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_monitor(folder, rate)
        receiver = Receiver(domain)
        try:
            with process("robot", domain=domain), monitor(folder, domain, executor):
                arguments = ("bare", "--rate", str(rate), "--executor", executor)
                with process(*arguments, domain=domain):
                    for _ in range(turns):
                        for item, latencies in taken.items():
                            latencies += receiver.collect(item, messages)
        finally:
            receiver.close()
    figures = [quantile(found, level) for found in taken.values() for level in (0.5, 0.99)]
    return f"{executor}, {rate:g} Hz", *figures, figures[2] - figures[0], Target(0.5)


def measure(turns: int = 3, messages: int = 200) -> list[Table]:
    """Measure both executors at all rates."""
    rows = [compare(rate, item, turns, messages) for item in ("single", "events") for rate in RATES]
    columns = (
        "Executor and rate",
        "bare timer: p50, ms",
        "p99, ms",
        "monitor: p50, ms",
        "p99, ms",
        "added at p50, ms",
        "Target",
    )
    return [Table(columns, rows)]


if __name__ == "__main__":
    sys.exit(run(measure))
