"""Simulate the runs of a scenario straight into the library: signals at every tick, no bags.

    python -m evaluation.study.record --scenario s2 --part train --runs 100 --folder out/study

What is kept of a run is the snapshot of every tick, as a trace that `forewarn learn` and `forewarn
replay` read like any recording. Needs SUMO and nothing of forewarn. Runs that are there already are
kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.study.direct import Translator
from evaluation.sumo.scenarios import SETTINGS, frames, kind_of
from evaluation.sumo.simulation import Frame

# Runs are numbered from 0; the seeds of the two parts never meet.
# Test runs from 50001 to 50030 were looked at while the monitor files were made.
FIRST_SEED = {"train": 1, "test": 50_031}


class RunName(NamedTuple):
    """One run of the study."""

    scenario: str
    part: str
    number: int

    @property
    def seed(self) -> int:
        """Return its seed."""
        return FIRST_SEED[self.part] + self.number

    def trace(self, folder: Path) -> Path:
        """Return where its trace lies."""
        return folder / self.scenario / self.part / f"{self.seed:05d}.jsonl.gz"

    def summary(self, folder: Path) -> Path:
        """Return where it says what the simulator knows."""
        return folder / self.scenario / self.part / f"{self.seed:05d}.json"


@dataclass
class Witness:
    """What the simulator knows to have happened."""

    red_light: int = 0
    collisions: int = 0
    distance: float = 0.0

    def watch(self, run: Iterable[Frame]) -> Iterator[Frame]:
        """Pass the frames on and count on the way."""
        colliding = False
        for frame in run:
            self.red_light += frame.ran_red
            self.collisions += frame.collision and not colliding
            colliding = frame.collision
            self.distance += frame.speed * 0.1
            yield frame


def write_trace(path: Path, run: Iterable[Frame]) -> int:
    """Write the signals of a run, a line a tick; return the number of ticks."""
    translator = Translator()
    count = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=4) as file:
        for frame in run:
            file.write(json.dumps(translator.line(frame)) + "\n")
            count += 1
    return count


def record(run: RunName, folder: Path) -> dict[str, Any]:
    """Simulate one run unless it is there; return what its summary says.

    A run whose ego could not enter the network is kept as a summary with the reason under `failed`.
    """
    summary = run.summary(folder)
    if not summary.exists():
        summary.parent.mkdir(parents=True, exist_ok=True)
        known: dict[str, Any] = {"seed": run.seed, "kind": kind_of(run.scenario, run.seed)}
        try:
            witness = Witness()
            seen = frames(run.scenario, run.seed, folder / "networks")
            known["ticks"] = write_trace(run.trace(folder), witness.watch(seen))
            known.update(vars(witness))
        except RuntimeError as error:
            known["failed"] = str(error)
        summary.write_text(json.dumps(known), encoding="utf-8")
    return json.loads(summary.read_text(encoding="utf-8"))


def main() -> None:
    """Simulate the runs of one part of one scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scenario", choices=sorted(SETTINGS), required=True)
    parser.add_argument("--part", choices=sorted(FIRST_SEED), required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    for number in range(arguments.runs):
        run = RunName(arguments.scenario, arguments.part, number)
        known = record(run, arguments.folder)
        print(json.dumps(known), flush=True)


if __name__ == "__main__":
    main()
