"""A monitor of 20 topics at half of what an empty node bears, for minutes.

First an empty node with raw subscriptions of the same executor is offered more and more, which
tells what it bears here. Then the monitor gets half of that, spread over 20 topics, and ticks at
10 Hz with one signal from each topic. Reported are messages lost, ticks left out, ticks at which a
signal was stale, lateness of ticks as another process sees it, and the growth of memory.

``make soak`` runs ten minutes, and kills the monitor a hundred times (tests/actuators). The exit
code is 1 if a message or a tick is lost, a signal grows stale, or memory grows by over 5 %.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from forewarn_msgs.msg import RiskArray
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from benchmarks._live import monitor, process, processor_seconds
from evaluation.soak.load import TOPICS

RATE = 10.0
FLOOD = 3.0
OFFERED = (2_000, 4_000, 6_000, 8_000, 10_000, 12_000, 16_000)
WARM_UP = 10.0
GROWTH = 5.0
LOAD = "evaluation.soak.load"


class Sample(NamedTuple):
    """One verdict: its tick, how late it came in ms, and whether a signal was stale."""

    tick: int
    late: float
    stale: bool


def monitor_file() -> str:
    """Return a monitor of all topics with a predicate from each and two properties."""
    lines = ["version: 1", f"rate: {RATE:g}", "signals:"]
    for i, topic in enumerate(TOPICS):
        source = f"topic: {topic}, type: std_msgs/msg/Float64, value: data, timeout: 0.5"
        lines.append(f"  s{i}: {{{source}}}")
    lines.append("predicates:")
    lines += [f"  p{i}: s{i} > 0.5" for i in range(len(TOPICS))]
    lines += [
        "properties:",
        '  answered: {formula: "always(p0 implies eventually[0:5](not p1))", horizon: 2.0}',
        "  bounded: {formula: always(not (p2 and not p3)), horizon: 2.0}",
    ]
    return "\n".join(lines) + "\n"


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def capacity(executor: str, domain: int, folder: Path) -> float:
    """Return the most messages per second that an empty node receives, of several rates offered.

    A node that is offered far more than it bears receives less than it could.
    """
    found = []
    for offered in OFFERED:
        result = folder / f"capacity-{offered}.json"
        with (
            process("listen", "--seconds", str(FLOOD), "--executor", executor,
                    "--result", str(result), domain=domain, module=LOAD),
            process("publish", "--seconds", "3600", "--rate", str(offered),
                    "--result", str(folder / "flood.json"), domain=domain, module=LOAD),
        ):  # fmt: skip
            wait_for(result, 60.0)
        found.append(float(json.loads(result.read_text())["rate"]))
    return max(found)


def wait_for(path: Path, seconds: float) -> None:
    """Wait for a file."""
    end = time.monotonic() + seconds
    while not path.exists() or not path.stat().st_size:
        if time.monotonic() > end:
            raise SystemExit(f"{path.name} did not come in {seconds:g} s")
        time.sleep(0.05)


class Witness:
    """Another process's view of the monitor."""

    def __init__(self, domain: int) -> None:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self.samples: list[Sample] = []
        self.received = 0
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        node = Node("witness", context=self._context)
        self._node = node
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(node)
        node.create_subscription(
            RiskArray, "/monitor/output/risk", self._on_risk, QoSProfile(depth=100)
        )
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_risk(self, message: Any) -> None:
        stamp = message.header.stamp
        late = (time.time_ns() - stamp.sec * 10**9 - stamp.nanosec) / 1e6
        risks = message.risks
        stale = any(risk.stale_signals for risk in risks)
        self.samples.append(Sample(risks[0].tick, late, stale))

    def _on_diagnostics(self, message: Any) -> None:
        counts = [
            int(pair.value)
            for status in message.status
            if ": input " in status.name
            for pair in status.values
            if pair.key == "messages"
        ]
        if counts:
            self.received = sum(counts)

    def watch(self, seconds: float) -> None:
        """Take in what the monitor says for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def close(self) -> None:
        """Leave the domain."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)


def quantile(values: list[float], level: float) -> float:
    """Return the smallest value that `level` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(level * len(ordered)), len(ordered) - 1)]


def soak(seconds: float, executor: str) -> dict[str, Any]:
    """Run the monitor under load and return what was seen."""
    domain = 20 + os.getpid() % 80
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "monitor.yaml").write_text(monitor_file())
        bears = capacity(executor, domain, folder)
        rate = bears / 2
        depth = max(50, round(4 * rate / len(TOPICS) / RATE))
        result = folder / "sent.json"
        witness = Witness(domain)
        memory: list[float] = []
        with (
            monitor(folder, domain, executor, queue_depth=depth) as pid,
            process("publish", "--rate", str(rate), "--seconds", str(seconds + WARM_UP),
                    "--result", str(result), domain=domain, module=LOAD),
        ):  # fmt: skip
            while not witness.samples:
                witness.watch(0.5)
            witness.watch(WARM_UP)
            first, used = len(witness.samples), processor_seconds(pid)
            begun = time.monotonic()
            while not result.exists() and time.monotonic() - begun < 2 * seconds + 60:
                witness.watch(1.0)
                memory.append(resident(pid))
            last = len(witness.samples)
            share = 100 * (processor_seconds(pid) - used) / (time.monotonic() - begun)
            witness.watch(3.0)  # the last messages, and a report on them
        witness.close()
        sent = json.loads(result.read_text())
    samples = witness.samples[first:last]
    ticks = [each.tick for each in samples]
    late = [each.late for each in samples]
    part = max(len(memory) // 10, 1)
    before, after = statistics.median(memory[:part]), statistics.median(memory[-part:])
    return {
        "executor": executor,
        "an empty node bears (messages/s)": round(bears),
        "sent (messages/s)": round(sent["sent"] / sent["seconds"]),
        "seconds": round(seconds),
        "messages sent": sent["sent"],
        "messages lost": sent["sent"] - witness.received,
        "ticks": len(ticks),
        "ticks left out": ticks[-1] - ticks[0] + 1 - len(ticks),
        "ticks with a stale signal": sum(each.stale for each in samples),
        "tick to another process, p50 (ms)": round(quantile(late, 0.5), 2),
        "tick to another process, p99 (ms)": round(quantile(late, 0.99), 2),
        "tick to another process, p99.9 (ms)": round(quantile(late, 0.999), 2),
        "memory at the start (MB)": round(before, 1),
        "growth of memory (MB)": round(after - before, 2),
        "processor (% of a core)": round(share, 1),
    }


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--executor", choices=("single", "events"), default="single")
    options = parser.parse_args()
    found = soak(options.minutes * 60, options.executor)
    for name, value in found.items():
        print(f"{name:38} {value}")
    grown = 100 * found["growth of memory (MB)"] / found["memory at the start (MB)"]
    lost = ("messages lost", "ticks left out", "ticks with a stale signal")
    return int(any(found[name] for name in lost) or grown > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
