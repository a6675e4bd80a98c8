"""Processor time of a black box at 50 MB/s, against bare raw subscriptions to the same topics.

A camera publishes 1 MB at 50 Hz. The monitor of the latency benchmark runs without a black box and
with one that keeps the camera's topic; a node that takes the same messages raw at the monitor's
rate, and lets go of them, is the floor.
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

CAMERA = "/robot/camera"
BOX = """\
black_box: {{folder: {folder}/incidents, topics: [{topic}], memory: 6 GB, before: 10}}
"""


def shares(seconds: float, turns: int) -> dict[str, list[float]]:
    """Return the shares of a core of each node, in percent; they take turns."""
    domain = 20 + os.getpid() % 80
    found: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folders = {kind: Path(name) / kind for kind in ("plain", "boxed")}
        for kind, folder in folders.items():
            folder.mkdir()
            write_monitor(folder, 10.0)
            if kind == "boxed":
                file = folder / "monitor.yaml"
                file.write_text(file.read_text() + BOX.format(folder=folder, topic=CAMERA))
        with process("robot", "--camera", "1000000", domain=domain):
            for _ in range(turns):
                with process("taker", domain=domain) as pid:
                    time.sleep(4.0)  # start-up and discovery are not what is measured
                    found["taker"].append(share(pid, seconds))
                for kind, folder in folders.items():
                    with monitor(folder, domain, "single") as pid:
                        receiver = Receiver(domain)
                        receiver.collect("monitor", 120)  # the ring is full
                        found[kind].append(share(pid, seconds))
                        receiver.close()
    return found


def measure(seconds: float = 10.0, turns: int = 3) -> list[Table]:
    """Measure in turns of so many seconds."""
    found = shares(seconds, turns)
    bare, plain, boxed = (quantile(found[name], 0.5) for name in ("taker", "plain", "boxed"))
    columns = (
        "Camera",
        "raw subscription, % of a core",
        "monitor without, %",
        "monitor with black box, %",
        "above both, points",
        "Target",
    )
    return [Table(columns, [("50 MB/s", bare, plain, boxed, boxed - plain - bare, Target(2.0))])]


if __name__ == "__main__":
    sys.exit(run(measure))
