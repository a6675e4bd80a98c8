"""A monitor of 20 topics at half of what an empty node bears, for minutes.

First an empty node with raw subscriptions of the same executor is offered more and more, which
tells what it bears here and now. Then the monitor gets half of that, spread over 20 topics, and
ticks at 10 Hz with one signal from each topic. A tick needs the newest sample of each topic:
signals time out after one period, so that a tick which got nothing new from a topic counts as
stale. What a full queue drops before a tick is older than what the tick needs; it is counted and
no failure.

The monitor asks for best effort: a reliable reader gets nothing more of a topic from a lost message
on until that one is sent again, which Fast DDS's writers offer every 3 s only.

``make soak`` runs ten minutes for each executor, and kills the monitor a hundred times
(tests/actuators). The exit code is 1 if a tick is left out, a signal is stale though sender and
monitor ran, or memory grows by over 5 %.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from forewarn_msgs.msg import RiskArray
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from benchmarks._harness import Usage, processor_seconds, quantile
from benchmarks._live import monitor, process
from evaluation.harness.command import command
from evaluation.soak.load import TOPICS

RATE = 10.0
FLOOD = 3.0
OFFERED = (2_000, 4_000, 6_000, 8_000, 10_000, 12_000, 16_000, 24_000)
GROWTH = 5.0
LOAD = "evaluation.soak.load"


STARVED = "of these while the sender sent"
PUNCTUAL = "of these within a period of their time"
REPORTED = {
    "overruns": "ticks that waited for another",
    "messages too late for their tick": "messages too late for their tick",
    "clock jumps": "clock jumps",
}
"""What the monitor's own diagnostics count, and how the report calls it."""


class Sample(NamedTuple):
    """One verdict: its tick, how late it came in ms, whether a signal was stale, and its time."""

    tick: int
    late: float
    stale: bool
    time: float


def monitor_file() -> str:
    """Return a monitor of all topics with a predicate from each and two properties."""
    lines = ["version: 1", f"rate: {RATE:g}", "signals:"]
    for i, topic in enumerate(TOPICS):
        source = f"topic: {topic}, type: std_msgs/msg/Float64, value: data, timeout: {1 / RATE}"
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
            process("--role", "listen", "--seconds", str(FLOOD), "--executor", executor,
                    "--result", str(result), domain=domain, module=LOAD),
            process("--role", "publish", "--seconds", "3600", "--rate", str(offered),
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
        self.reported: dict[str, str] = {}
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
        self.samples.append(Sample(risks[0].tick, late, stale, stamp.sec + stamp.nanosec / 1e9))

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
        for status in message.status:
            if status.name.endswith(": timing"):
                self.reported = {p.key: p.value for p in status.values if p.key in REPORTED}

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


class Load(NamedTuple):
    """How the monitor is loaded: messages a second, for how long, and what it asks for."""

    minutes: float
    rate: float
    reliability: str
    warm_up: float  # seconds before all counts
    depth: int


class Course(NamedTuple):
    """What was seen of a run, the warm-up left out."""

    samples: list[Sample]
    memory: list[float]
    share: float
    others: float
    received: int
    reported: dict[str, str]
    sent: dict[str, Any]


def run(folder: Path, domain: int, executor: str, load: Load) -> Course:
    """Run the monitor under load."""
    seconds, whole = 60 * load.minutes, load.warm_up + 60 * load.minutes
    quality = {
        f"qos_overrides.{topic}.subscription.reliability": load.reliability for topic in TOPICS
    }
    result = folder / "sent.json"
    witness = Witness(domain)
    memory: list[float] = []
    with (
        monitor(folder, domain, executor, queue_depth=load.depth, **quality) as pid,
        process("--role", "publish", "--rate", str(load.rate), "--seconds", str(whole),
                "--result", str(result), domain=domain, module=LOAD) as publisher,
    ):  # fmt: skip

        def used() -> tuple[float, float]:
            """Return the processor time of the monitor, and that of all others on the machine."""
            ours = processor_seconds(pid)
            others = ours + processor_seconds(publisher) + time.process_time()
            return ours, Usage.now().used - others

        while not witness.received:
            witness.watch(0.5)
        witness.watch(load.warm_up)
        first, before, begun = len(witness.samples), used(), time.monotonic()
        while not result.exists() and time.monotonic() - begun < 2 * seconds + 60:
            witness.watch(0.1)
            memory.append(resident(pid))
        after, took = used(), time.monotonic() - begun
        last = len(witness.samples) - round(RATE)  # the sender has stopped since
        witness.watch(3.0)  # the last messages, and a report on them
    witness.close()
    share, others = (100 * (b - a) / took for a, b in zip(before, after, strict=True))
    return Course(
        witness.samples[first:last],
        memory,
        share,
        others,
        witness.received,
        witness.reported,
        json.loads(result.read_text()),
    )


def soak(
    executor: str,
    domain: int,
    *,
    minutes: float,
    rate: float | None = None,
    reliability: str = "best_effort",
    warm_up: float = 10.0,
) -> dict[str, Any]:
    """Run the monitor under load and return what was seen.

    Half of what an empty node bears is sent unless a rate is given. The sender is reliable; the
    monitor asks for `reliability`, and ``auto`` follows the sender.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "monitor.yaml").write_text(monitor_file())
        bears = math.nan if rate else capacity(executor, domain, folder)
        rate = rate or bears / 2
        depth = max(50, round(4 * rate / len(TOPICS) / RATE))
        load = Load(minutes, rate, reliability, warm_up, depth)
        course = run(folder, domain, executor, load)
    sent = course.sent
    pauses = [1e3 * (b - a) for a, b in sent["pauses"]]
    return {
        "executor": executor,
        "an empty node bears (messages/s)": f"{bears:.0f}",
        "sent (messages/s)": round(sent["sent"] / sent["seconds"]),
        "seconds": round(60 * minutes),
        "reliability": reliability,
        "queue_depth": depth,
        "messages sent": sent["sent"],
        "messages lost": sent["sent"] - course.received,
        "pauses of the sender": len(pauses),
        "longest (ms)": round(max(pauses, default=0.0)),
        **figures(course),
    }


def paused(sample: Sample, sent: dict[str, Any]) -> bool:
    """Tell whether the sender did not run during the two periods before a tick."""
    return any(a < sample.time and b > sample.time - 2 / RATE for a, b in sent["pauses"])


def figures(course: Course) -> dict[str, Any]:
    """Return what the ticks and the processes say."""
    ticks = [sample.tick for sample in course.samples]
    late = [sample.late for sample in course.samples]
    starved = [
        sample for sample in course.samples if sample.stale and not paused(sample, course.sent)
    ]
    part = max(len(course.memory) // 10, 1)
    before = statistics.median(course.memory[:part])
    after = statistics.median(course.memory[-part:])
    return {
        "ticks": len(ticks),
        "ticks left out": ticks[-1] - ticks[0] + 1 - len(ticks),
        "ticks with a stale signal": sum(sample.stale for sample in course.samples),
        STARVED: len(starved),
        PUNCTUAL: sum(item.late < 1e3 / RATE for item in starved),
        **{REPORTED[key]: value for key, value in course.reported.items()},
        "tick to another process, p50 (ms)": round(quantile(late, 0.5), 2),
        "tick to another process, p99 (ms)": round(quantile(late, 0.99), 2),
        "tick to another process, p99.9 (ms)": round(quantile(late, 0.999), 2),
        "memory at the start (MB)": round(before, 1),
        "growth of memory (MB)": round(after - before, 2),
        "processor (% of a core)": round(course.share, 1),
        "other work on the machine (% of a core)": round(course.others, 1),
    }


def versions() -> str:
    """Return what was measured with, and on what."""
    return (
        f"Python {platform.python_version()}, rclpy {version('rclpy')}, "
        f"{rclpy.get_rmw_implementation_identifier()}, {os.cpu_count()} cores, "
        f"load average {', '.join(f'{load:.1f}' for load in os.getloadavg())}"
    )


def verdict(found: dict[str, Any]) -> list[str]:
    """Return what must not be."""
    grown = 100 * found["growth of memory (MB)"] / found["memory at the start (MB)"]
    problems = [f"memory grew by {grown:.1f} %"] if grown > GROWTH else []
    if found["ticks left out"]:
        problems.append("ticks were left out")
    if found[PUNCTUAL]:
        problems.append("a tick missed the newest sample of a topic")
    return problems


def main(
    minutes: float = 10.0,
    executor: Sequence[str] = ("single", "events"),
    rate: float | None = None,
    reliability: str = "best_effort",
    warm_up: float = 10.0,
) -> None:
    """Run and print."""
    problems, options = [], {"rate": rate, "reliability": reliability, "warm_up": warm_up}
    for kind in executor:
        # The tests take theirs from 91 on.
        found = soak(kind, 20 + os.getpid() % 70, minutes=minutes, **options)
        for name, value in found.items():
            print(f"{name:42} {value}", flush=True)
        print(versions(), flush=True)
        problems += [f"{kind}: {item}" for item in verdict(found)]
    print("\n".join(problems), file=sys.stderr)
    sys.exit(int(bool(problems)))


if __name__ == "__main__":
    command(main)
