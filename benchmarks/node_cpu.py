"""Processor time of the node, against a node that receives the same and does nothing with it.

A robot publishes odometry at 50 Hz, seven numbers at 10 Hz, and 200 markers with 580 points each
at 10 Hz (2.8 MB a message, as a real object list with predicted paths has). The monitor ticks at
10 Hz and reads speed, numbers, and four fields of each marker. The floor is a node with empty raw
callbacks, under either executor of rclpy.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks._harness import Table, Target, quantile, run
from benchmarks._live import monitor, process, share
from benchmarks.latency import Receiver, write_monitor

ROBOT = ("robot", "--markers", "200", "--points", "580")
EXECUTORS = ("single", "events")
OBJECTS = """\
  near_x: {topic: /robot/objects, type: visualization_msgs/msg/MarkerArray, timeout: 1.0,
           value: "[m.pose.position.x for m in markers]"}
  near_y: {topic: /robot/objects, type: visualization_msgs/msg/MarkerArray, timeout: 1.0,
           value: "[m.pose.position.y for m in markers]"}
  length: {topic: /robot/objects, type: visualization_msgs/msg/MarkerArray, timeout: 1.0,
           value: "[m.scale.x for m in markers]"}
  kind: {topic: /robot/objects, type: visualization_msgs/msg/MarkerArray, timeout: 1.0,
         value: "[m.type for m in markers]"}
  gap: {value: "min(where(kind >= 0, hypot(near_x, near_y) - length, inf), default=inf)"}
"""


def write_crowded_monitor(folder: Path) -> None:
    """Write the monitor of the latency benchmark with a predicate over the markers."""
    write_monitor(folder, 10.0)
    file = folder / "monitor.yaml"
    text = file.read_text().replace(
        "predicates:\n", OBJECTS + "predicates:\n  gap_is_small: gap < 2\n"
    )
    file.write_text(text.replace("model: model.json\n", ""))


def shares(seconds: float, turns: int) -> dict[tuple[str, str], list[float]]:
    """Return the shares of a core of each node and executor, in percent; they take turns."""
    domain = 20 + os.getpid() % 80
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_crowded_monitor(folder)
        with process(*ROBOT, domain=domain):
            for _ in range(turns):
                for executor in EXECUTORS:
                    with process("listener", "--executor", executor, domain=domain) as pid:
                        time.sleep(4.0)  # start-up and discovery are not what is measured
                        found["floor", executor].append(share(pid, seconds))
                    with monitor(folder, domain, executor) as pid:
                        receiver = Receiver(domain)
                        receiver.collect("monitor", 20)
                        found["monitor", executor].append(share(pid, seconds))
                        receiver.close()
    return found


def measure(seconds: float = 10.0, turns: int = 3) -> list[Table]:
    """Measure both executors in turns of so many seconds."""
    found = shares(seconds, turns)
    rows = []
    for executor in EXECUTORS:
        floor, ours = (quantile(found[node, executor], 0.5) for node in ("floor", "monitor"))
        rows.append((executor, floor, ours, ours - floor, Target(3.0)))
    columns = ("Executor", "floor, % of a core", "monitor, %", "above the floor, points", "Target")
    return [Table(columns, rows)]


if __name__ == "__main__":
    sys.exit(run(measure))
