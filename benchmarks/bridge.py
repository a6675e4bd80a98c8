"""From a Cyber channel over the bridge and the monitor to a pad message, and what a burst costs.

A small Apollo publishes chassis messages at 100 Hz. Its speed jumps between a safe and a risky
value at random; each time the first message of the new speed and the pad message that answers it
(STOP or RESUME_CRUISE) are timed in that one process. Bridge, Cyber RT, monitor and Apollo are
processes of their own. All times are by the clock on the wall. Bursts are counted by the numbers in
the headers. The hops alone: `benchmarks.hops`.
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

TESTS = Path(__file__).resolve().parents[1] / "tests"
RATES = (10.0, 100.0)
SAFE, RISKY = 0.5, 4.5
RESUME, STOP = 5, 4
TARGET_MS = 15.0  # at 100 Hz; on average half a tick passes before the monitor looks


def load(name: str) -> Any:
    """Import a helper of the bridge's tests, whose folder is no package."""
    if str(TESTS) not in sys.path:  # what several folders of tests share
        sys.path.insert(0, str(TESTS))
    path = TESTS / "bridge" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"bridge_{name}", path)
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


def no_cyber() -> bool:
    """Tell, and say so, whether there is no Cyber RT to measure with."""
    missing = importlib.util.find_spec("pycyber") is None
    if missing:
        print("skipped: pycyber, Cyber RT's wheel, exists for Python 3.10 only", file=sys.stderr)
    return missing


def measure(count: int = 200) -> list[Table]:
    """Wait for so many answers."""
    if no_cyber():
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
        lost = [(name, row["lost"], row["late"]) for name, row in bursts(world, listener).items()]
        listener.close()
    return [
        Table(("From channel to pad", "p99, ms", "p50, ms", "Target"), ways),
        Table(("Burst of 1000 messages", "lost", "late, not used"), lost),
    ]


if __name__ == "__main__":
    sys.exit(run(measure))
