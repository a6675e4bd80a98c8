"""An agent that reads and writes files, normal and with injected anomalies (TriCEGAR, section 5).

    python -m evaluation.agents.file_agent --folder out/agents/files

Traces are JSON lines of the typed variables before each step and the action that is taken then:
files written, last file read, iteration (theirs), reads and errors so far. The last line of a run
says that it is done. Everything is drawn from a seed, and nothing of it was chosen by its results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evaluation.harness.command import command

LENGTHS = (10, 40)
"""Steps of a normal run, any number equally likely."""

READS = 8.0
"""The share of reads of a normal run has a beta distribution with this twice: 0.5, +-0.12."""

TRANSIENT = 0.01
"""Chance that a step fails for no reason, in every run."""

EFFECTS = (0.25, 0.5, 0.75, 1.0)
KINDS = ("length", "ratio", "malformed")
MALFORMED = ("", "../../etc/passwd", "out//", "C:\\temp\\x", "notes .txt\n")

BASELINE, ANOMALOUS = 1_000, 1_000


class Nature(NamedTuple):
    """What a run is like: its steps, its share of reads, its share of malformed paths."""

    steps: int
    reads: float
    malformed: float


def normal(rng: np.random.Generator) -> Nature:
    """Draw what a normal run is like."""
    low, high = LENGTHS
    return Nature(int(rng.integers(low, high + 1)), float(rng.beta(READS, READS)), 0.0)


def with_anomaly(nature: Nature, kind: str, effect: float, *, upward: bool) -> Nature:
    """Return the nature with an anomaly of a size: 1 is extreme, 0 is none.

    ``length``: up to five times as long, or as short. ``ratio``: the share of reads goes that part
    of the way to 0.99 or 0.01. ``malformed``: up to three of ten paths are malformed, at least one.
    """
    if kind == "length":
        factor = 1 + 4 * effect
        steps = nature.steps * factor if upward else nature.steps / factor
        return nature._replace(steps=max(round(steps), 1))
    if kind == "ratio":
        goal = 0.99 if upward else 0.01
        return nature._replace(reads=nature.reads + effect * (goal - nature.reads))
    return nature._replace(malformed=0.3 * effect)


def run_lines(name: str, nature: Nature, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the lines of a run."""
    written, reads, errors, last = 0, 0, 0, "inbox/task.txt"
    sure = int(rng.integers(nature.steps)) if nature.malformed else -1
    for step in range(nature.steps):
        reading = bool(rng.random() < nature.reads)
        wrong = step == sure or bool(rng.random() < nature.malformed)
        path = _path(written, reading, rng)
        if wrong:
            path = str(rng.choice(MALFORMED))
        yield {
            **_state(name, step, written, reads, last, errors),
            "done": False,
            "action": "read_file" if reading else "write_file",
        }
        failed = wrong or bool(rng.random() < TRANSIENT)
        errors += failed
        if reading:
            last, reads = path, reads + 1
        elif not failed:
            written += 1
    state = _state(name, nature.steps, written, reads, last, errors)
    yield {**state, "done": True, "action": None}


def _state(
    name: str, step: int, written: int, reads: int, last: str, errors: int
) -> dict[str, Any]:
    return {
        "run": name,
        "iteration": step,
        "files_written": written,
        "files_read": reads,
        "last_file_read": last,
        "errors": errors,
    }


def _path(written: int, reading: bool, rng: np.random.Generator) -> str:
    if not reading:
        return f"out/part_{written}.txt"
    if written and rng.random() < 0.5:
        return f"out/part_{int(rng.integers(written))}.txt"
    return f"inbox/source_{int(rng.integers(20))}.txt"


def anomaly_of(number: int) -> tuple[str, float, bool]:
    """Return kind, effect and direction of an anomalous run: all combinations in turn."""
    kind, rest = KINDS[number % len(KINDS)], number // len(KINDS)
    return kind, EFFECTS[rest % len(EFFECTS)], (rest // len(EFFECTS)) % 2 == 0


def write_runs(path: Path, runs: int, seed: int, *, anomalous: bool = False) -> None:
    """Write runs, each from a generator of its own."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(runs):
            rng = np.random.default_rng([seed, number])
            nature, name = normal(rng), f"normal-{number}"
            if anomalous:
                kind, effect, upward = anomaly_of(number)
                nature = with_anomaly(nature, kind, effect, upward=upward)
                name = f"{kind}-{effect:g}-{'more' if upward else 'less'}-{number}"
            for line in run_lines(name, nature, rng):
                file.write(json.dumps(line) + "\n")


def write_all(folder: Path) -> dict[str, Path]:
    """Write all runs: 1,000 normal ones to learn and calibrate, 1,000 to judge, 1,000 anomalous."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.jsonl" for name in ("learned", "calibrated", "fresh", "odd")}
    write_runs(paths["learned"], BASELINE * 3 // 5, 1)
    write_runs(paths["calibrated"], BASELINE * 2 // 5, 2)
    write_runs(paths["fresh"], BASELINE, 3)
    write_runs(paths["odd"], ANOMALOUS, 4, anomalous=True)
    return paths


def main(folder: Path = Path("out/agents/files")) -> None:
    """Write the runs."""
    print(*write_all(folder).values(), sep="\n")


if __name__ == "__main__":
    command(main)
