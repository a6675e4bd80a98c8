"""Record what an imperfect robot publishes while it drives through a SUMO town.

    python -m evaluation.sumo.record --folder /tmp/sumo-runs --seeds 1:301
    python -m evaluation.sumo.record --folder /tmp/sumo-samples --samples

Runs that are already there are kept, so that an interrupted recording goes on where it stopped.
With `--samples` the sample recordings of this repository are made again, and what happened in them:
their seeds are apart from those of the runs that `config/demo.model.json.gz` was learned from (1 to
200), and the held-out one is apart from both.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.harness.command import Seeds, command
from evaluation.harness.messages import write_bag
from evaluation.sumo.messages import TOPICS, publish
from evaluation.sumo.network import Town, build_scenario
from evaluation.sumo.simulation import STEP, Frame, RunOptions, simulate


@dataclass
class Events:
    """What the simulator knows to have happened, in seconds since the recording began."""

    red_light: list[float] = field(default_factory=list)
    collision: list[float] = field(default_factory=list)
    distance: float = 0.0

    def watch(self, frames: Iterable[Frame], period: float = STEP) -> Iterator[Frame]:
        """Pass the frames on, which come every `period` seconds, and note events on the way."""
        colliding = False
        for frame in frames:
            if frame.ran_red:
                self.red_light.append(round(frame.step * STEP, 2))
            if frame.collision and not colliding:
                self.collision.append(round(frame.step * STEP, 2))
            colliding = frame.collision
            self.distance += frame.speed * period
            yield frame


class Sample(NamedTuple):
    """A sample recording: its name, its seed, and the seconds before and during it."""

    name: str
    seed: int
    warm_up: float
    duration: float


SAMPLES = (
    Sample("train_1", 402, 50.0, 125.0),
    Sample("train_2", 404, 50.0, 125.0),
    Sample("train_3", 405, 50.0, 125.0),
    # Taken from seeds 501 to 524 because it holds both kinds of violation.
    Sample("held_out", 507, 75.0, 50.0),
)


def record(seed: int, duration: float, output: Path, *, warm_up: float = 50.0) -> Events:
    """Simulate one run and write it as a bag folder, which must not exist; return its events.

    The seed decides traffic, pedestrians, the ego's route, SUMO's drivers, and latencies.
    """
    options, events = RunOptions(seed, warm_up, duration), Events()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        scenario = build_scenario(Town(), seed, warm_up + duration, work, work)
        write_bag(output, TOPICS, publish(events.watch(simulate(scenario, options)), seed))
    return events


def record_run(seed: int, duration: float, folder: Path) -> dict[str, Any]:
    """Record a run unless it is there, and return its events.

    A run whose ego could not enter the network, because its street was jammed, has the reason
    under `failed` and leaves no bag.
    """
    bag = folder / f"town_{seed:04d}"
    summary = bag.with_suffix(".json")
    if not summary.exists():
        shutil.rmtree(bag, ignore_errors=True)
        try:
            events = asdict(record(seed, duration, bag))
        except RuntimeError as error:
            shutil.rmtree(bag, ignore_errors=True)
            events = {"failed": str(error)}
        told = {"seed": seed, "duration": duration, **events}
        summary.write_text(json.dumps(told), encoding="utf-8")
    return json.loads(summary.read_text(encoding="utf-8"))


def main(
    folder: Path, seeds: Seeds = range(1, 301), duration: float = 200.0, samples: bool = False
) -> None:
    """Record the runs that are missing, and print the events of each as a JSON line."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in () if samples else seeds:
        print(json.dumps(record_run(seed, duration, folder)), flush=True)
    if samples:
        events = {
            s.name: s._asdict()
            | asdict(record(s.seed, s.duration, folder / s.name, warm_up=s.warm_up))
            for s in SAMPLES
        }
        text = json.dumps(events, indent=2) + "\n"
        (folder / "events.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    command(main)
