"""Record what an imperfect robot publishes while it drives through a SUMO town.

python -m evaluation.sumo.record --seed 7 --duration 120 --output /tmp/sumo-runs/7
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from evaluation.sumo.messages import publish, write_bag
from evaluation.sumo.network import Town, build_scenario
from evaluation.sumo.simulation import STEP, Frame, RunOptions, simulate


@dataclass
class Events:
    """What the simulator knows to have happened, in seconds since the recording began."""

    red_light: list[float] = field(default_factory=list)
    collision: list[float] = field(default_factory=list)
    distance: float = 0.0

    def watch(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Pass the frames on and note events on the way."""
        colliding = False
        for frame in frames:
            if frame.ran_red:
                self.red_light.append(round(frame.step * STEP, 2))
            if frame.collision and not colliding:
                self.collision.append(round(frame.step * STEP, 2))
            colliding = frame.collision
            self.distance += frame.speed * STEP
            yield frame


def record(
    seed: int, duration: float, output: Path, *, warm_up: float = 50.0, town: Town | None = None
) -> Events:
    """Simulate one run and write it as a bag folder; return its events.

    Parameters
    ----------
    seed
        Decides traffic, pedestrians, the ego's route, SUMO's drivers, and latencies.
    duration, warm_up
        Seconds to record, and to simulate before.
    output
        The bag's folder; must not exist.
    town
        The street network.

    Raises
    ------
    RuntimeError
        If one of SUMO's tools failed or the ego left the network.
    """
    town = town or Town()
    options = RunOptions(seed, warm_up, duration)
    events = Events()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        scenario = build_scenario(town, seed, warm_up + duration, work, work)
        write_bag(output, publish(events.watch(simulate(scenario, options)), seed))
    return events


def main() -> None:
    """Record one run and print its events as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument(
        "--duration", type=float, default=120.0, help="seconds to record (default: 120)"
    )
    parser.add_argument(
        "--warm-up", type=float, default=50.0, help="seconds to simulate before (default: 50)"
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="bag folder to write; must not exist"
    )
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    events = record(arguments.seed, arguments.duration, arguments.output, warm_up=arguments.warm_up)
    print(json.dumps({"seed": arguments.seed, "duration": arguments.duration, **asdict(events)}))


if __name__ == "__main__":
    main()
