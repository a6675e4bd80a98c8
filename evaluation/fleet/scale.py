"""How a fleet's learning scales: 10,000 recordings, two Dask workers, a million shards.

    python -m evaluation.fleet.scale make FOLDER --recordings 10000
    python -m evaluation.fleet.scale memory FOLDER --sizes 100,1000,10000
    python -m evaluation.fleet.scale workers FOLDER --recordings 200 --turns 5
    python -m evaluation.fleet.scale shards --number 1000000

Recordings are cut from the sample ones, with other times. Run by hand: it takes hours of processor
time in full. Figures are processor seconds and resident memory, which what else the machine does
disturbs least.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks._harness import processor_seconds, resident
from forewarn.assessment.outcome_counts import watch_for
from forewarn.learning.pipeline import Sum, learn
from forewarn.models import save_model
from forewarn.monitoring.loading import load_bare
from forewarn.recordings import RecordingWriter, open_recording
from scripts.own_environment import variables

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "evaluation" / "sumo" / "predicates.yaml"
SAMPLES = ROOT / "evaluation" / "sumo" / "recordings"
STEP_NS = 100_000_000
"""Between the last message of a sample and the first one of the next, in ns."""
T_975 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}


def make(folder: Path, number: int, seconds: float) -> None:
    """Write so many recordings, each from where the last one ended, and at a day of its own.

    They are cut from the samples, one after another and again from the beginning.
    """
    folder.mkdir(parents=True, exist_ok=True)
    forms: dict[str, tuple[str, str]] = {}
    tape: list[tuple[int, str, bytes]] = []
    end, length = 0, round(seconds * 1e9)
    for bag in sorted(path for path in SAMPLES.iterdir() if path.is_dir()):
        with open_recording(bag) as recording:
            forms |= {
                name: (info.msgtype, info.message_type.typestore.generate_msgdef(
                    info.message_type.name, ros_version=2)[0])
                for name, info in recording.topics.items() if info.message_type is not None
            }  # fmt: skip
            tape += [
                (end + sample.time_ns - recording.start_ns, sample.topic, bytes(sample.data))
                for sample in recording.read()
                if sample.topic in forms
            ]
        end = tape[-1][0] + STEP_NS
    times = [time_ns for time_ns, _, _ in tape]
    for index in range(number):
        day, began = (index + 1) * 86_400 * 10**9, index * length % end
        rest = itertools.chain(tape[bisect.bisect_left(times, began) :], itertools.cycle(tape))
        last = began
        with RecordingWriter(folder / f"{index:06}.mcap", flush_period=1e9) as writer:
            for time_ns, topic, data in rest:
                last += (time_ns - last) % end
                if last - began >= length:
                    break
                writer.write(topic, *forms[topic], day + last - began, data)


class Cost(NamedTuple):
    """Processor seconds of client and workers, the client's greatest memory in MB, wall seconds."""

    client: float
    workers: float
    memory: float
    wall: float

    @property
    def total(self) -> float:
        """Processor seconds of all."""
        return self.client + self.workers


def learned(folder: Path, model: Path, *options: str, others: tuple[int, ...] = ()) -> Cost:
    """Learn from a folder in a process of its own, and return what it cost."""
    command = [sys.executable, "-m", "forewarn", "learn", str(folder), "-c", str(CONFIG)]
    before, began = sum(map(processor_seconds, others)), time.monotonic()
    process = subprocess.Popen(
        [*command, "-o", str(model), *options],
        env=variables("fleet"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"exit status {status}"
    wall, after = time.monotonic() - began, sum(map(processor_seconds, others))
    return Cost(usage.ru_utime + usage.ru_stime, after - before, usage.ru_maxrss / 1024, wall)


class Cluster(NamedTuple):
    """A scheduler and its workers on this machine."""

    address: str
    scheduler: int
    workers: tuple[int, ...]


@contextmanager
def cluster(workers: int = 2) -> Iterator[Cluster]:
    """Start a cluster of real processes, and end it."""
    started = []

    def start(module: str, arguments: list[str], pattern: str) -> str:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"],
            env=variables("fleet"), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(pattern, line):
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return found[1]
        raise RuntimeError(f"{module} did not start")

    with tempfile.TemporaryDirectory() as folder:
        try:
            listening = ["--host", "127.0.0.1", "--port", "0"]
            address = start("dask_scheduler", listening, r"Scheduler at:\s+(tcp://\S+)")
            one = ["--nthreads", "1", "--no-nanny", "--local-directory", folder]
            for _ in range(workers):
                start("dask_worker", [address, *one], r"Start worker at:\s+(tcp://\S+)")
            yield Cluster(address, started[0].pid, tuple(one.pid for one in started[1:]))
        finally:
            for process in started:
                process.kill()
                process.wait()


def part(folder: Path, number: int, first: int = 0) -> Path:
    """Return a folder of links to so many recordings."""
    found = folder.with_name(f"{folder.name}-{first}-{number}")
    if not found.exists():
        found.mkdir()
        for path in sorted(folder.iterdir())[first : first + number]:
            (found / path.name).symlink_to(path)
    return found


def peak(pid: int) -> float:
    """Return the greatest memory that a running process has had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else math.nan


def memory(folder: Path, sizes: list[int]) -> None:
    """Print the greatest memory of client and scheduler by the number of recordings."""
    print("| Recordings | client, MB | scheduler, MB | model file, kB | CPU s | wall s |")
    print("|---|---|---|---|---|---|", flush=True)
    for size in sizes:
        with cluster() as found, tempfile.TemporaryDirectory() as out:
            model = Path(out) / "model.json"
            everyone = (found.scheduler, *found.workers)
            cost = learned(part(folder, size), model, "--on", found.address, others=everyone)
            row = (cost.memory, peak(found.scheduler), model.stat().st_size / 1e3, cost.total)
            cells = " | ".join(f"{value:.0f}" for value in (*row, cost.wall))
            print(f"| {size:,} | {cells} |", flush=True)


def workers(folder: Path, number: int, turns: int) -> None:
    """Print the processor time of two workers over that of one process, turn by turn.

    Where cores share caches or more, two processes at once take longer than one after the other,
    whatever starts them. So two that know nothing of each other, with half of the recordings each,
    are measured as well.
    """
    given, ratios = part(folder, number), []
    halves = [part(folder, number // 2), part(folder, number - number // 2, number // 2)]
    with tempfile.TemporaryDirectory() as out:
        model, other = Path(out) / "one.json", Path(out) / "two.json"
        for turn in range(turns):
            one = learned(given, model, "-j1")
            with ThreadPoolExecutor(2) as pool:
                models = (Path(out) / f"half{i}.json" for i in range(2))
                costs = pool.map(learned, halves, models, ("-j1", "-j1"))
                apart = sum(cost.total for cost in costs)
            with cluster() as found:
                everyone = (found.scheduler, *found.workers)
                began = sum(map(processor_seconds, everyone))
                two = learned(given, other, "--on", found.address, others=everyone)
            assert model.read_bytes() == other.read_bytes()
            ratios.append((two.total / one.total, two.total / apart))
            print(f"turn {turn + 1}: one process {one.total:.1f} s, two at once {apart:.1f} s, two "
                  f"workers {two.total:.1f} s (client {two.client:.1f}), before that {began:.1f} s "
                  f"to start; ratios {ratios[-1][0]:.3f} and {ratios[-1][1]:.3f}; wall "
                  f"{one.wall:.0f} s and {two.wall:.0f} s",
                  flush=True)  # fmt: skip
    for name, column in zip(("one process", "two at once"), zip(*ratios, strict=True), strict=True):
        mean, spread = statistics.mean(column), statistics.stdev(column)
        half = T_975[turns] * spread / math.sqrt(turns)
        print(f"to {name}: {mean:.3f}, 95 % interval {mean - half:.3f} to {mean + half:.3f}, "
              f"{turns} turns")  # fmt: skip


def shards(number: int) -> None:
    """Add up so many shards: those of the samples, each under addresses of its own."""
    compiled = load_bare(CONFIG)
    spec, abstraction = compiled.spec, compiled.abstraction
    bags = sorted(path for path in SAMPLES.iterdir() if path.is_dir())
    reports = learn(bags, spec, abstraction, watch=watch_for(compiled)).reports
    total = Sum(spec, abstraction, abstraction.validity(spec))
    before, began = resident(), time.process_time()
    for index in range(number):
        report = reports[index % len(reports)]
        name = f"{index}.mcap"
        source = replace(report.provenance, digest=f"{index:064x}", recording=name)
        total.add(replace(report, provenance=source), apart=False)
    added, held = time.process_time(), resident()
    model = total.learned().model
    built = time.process_time()
    print(f"{number:,} shards: {1e6 * (added - began) / number:.0f} us each to add, "
          f"{1e6 * (held - before) / number:.0f} bytes each in memory; the model in "
          f"{built - added:.1f} s")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        save_model(model, path)
        size = path.stat().st_size
    print(f"model file: {size / 1e6:.1f} MB, {size / number:.0f} bytes a recording")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=("make", "memory", "workers", "shards"))
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "out" / "fleet")
    parser.add_argument("--recordings", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--number", type=int, default=1_000_000)
    given = parser.parse_args()
    if given.study == "make":
        make(given.folder, given.recordings, given.seconds)
    elif given.study == "memory":
        memory(given.folder, [int(size) for size in given.sizes.split(",")])
    elif given.study == "workers":
        workers(given.folder, given.recordings, given.turns)
    else:
        shards(given.number)


if __name__ == "__main__":
    main()
