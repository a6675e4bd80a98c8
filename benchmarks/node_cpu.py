"""Processor time of the node, against a node that receives the same and does nothing with it.

A robot publishes odometry at 50 Hz, seven numbers at 10 Hz, and 200 markers with 580 points each
at 10 Hz (2.8 MB a message, as a real object list with predicted paths has). The monitor ticks at
10 Hz and reads speed, numbers, and four fields of each marker. The floor is a node with empty raw
callbacks, under either executor of rclpy.

Run it with ``python -m benchmarks.node_cpu``; ``--json`` prints the figures for machines. The exit
code is 1 if the monitor uses more than three points of a core above the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._live import monitor, process, share
from benchmarks.latency import Receiver, write_monitor

ROBOT = ("robot", "--markers", "200", "--points", "580")
TARGET = 3.0
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


def measure(seconds: float, turns: int) -> dict[str, float]:
    """Return the share of a core of each node, in percent; they take turns."""
    domain = 20 + os.getpid() % 80
    shares: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_crowded_monitor(folder)
        with process(*ROBOT, domain=domain):
            for _ in range(turns):
                for executor in ("single", "events"):
                    with process("listener", "--executor", executor, domain=domain) as pid:
                        time.sleep(4.0)  # start-up and discovery are not what is measured
                        shares.setdefault(f"floor, {executor}", []).append(share(pid, seconds))
                    with monitor(folder, domain, executor) as pid:
                        receiver = Receiver(domain)
                        receiver.collect("monitor", 20)
                        shares.setdefault(f"monitor, {executor}", []).append(share(pid, seconds))
                        receiver.close()
    return {name: sorted(found)[len(found) // 2] for name, found in shares.items()}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn of each node")
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    found = measure(options.seconds, options.turns)
    above = {
        executor: found[f"monitor, {executor}"] - found[f"floor, {executor}"]
        for executor in ("single", "events")
    }
    if options.json:
        print(json.dumps({**found, **{f"above floor, {k}": v for k, v in above.items()}}))
    else:
        for name, value in found.items():
            print(f"{name:18} {value:5.1f} % of a core")
        for executor, value in above.items():
            print(f"above the floor, {executor}: {value:.1f} points (at most {TARGET:g})")
    return int(max(above.values()) > TARGET)


if __name__ == "__main__":
    sys.exit(main())
