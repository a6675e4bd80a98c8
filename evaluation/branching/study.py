"""Ground truth for a probability: branch many futures from moments of the town.

    python -m evaluation.branching.study --folder /tmp/branches --seeds 601:621

Each run that is done lies in the folder and is not repeated; `results.json`, the table and the
plot are made from what is there (`--only-summary`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.branching.futures import Future, futures
from evaluation.branching.generators import Generators
from evaluation.branching.states import chances, choose, open_states, predictions_of
from evaluation.branching.summary import write_results
from evaluation.branching.visits import load_visits
from evaluation.closed_loop.loading import CONFIG, load_monitor, open_session
from evaluation.closed_loop.town import NoEgoError, Run, town_scenario
from evaluation.sumo.messages import Published
from evaluation.sumo.simulation import Frame
from forewarn.models import CountModel
from forewarn.monitoring.step import Monitor

PROPERTIES = ("red_light", "collision")
VIOLATIONS = ("ran_red",)
DURATION = 200.0  # s a run
SEED_STEP = 100  # each future takes a generator for each lane group from there


class Plan(NamedTuple):
    """How much to do.

    Attributes
    ----------
    seeds : range
        Runs.
    moments : int
        Wanted of each state, over all runs.
    futures : int
        Of each moment.
    open_states : int
        For how many states of each property in `many_for` every moment has `many` futures.
    many : int
        Futures of a moment of those.
    many_for : tuple of str
        Properties.
    """

    seeds: range
    moments: int
    futures: int
    open_states: int
    many: int
    many_for: tuple[str, ...]


class Study:
    """Moments and their futures, run by run.

    Parameters
    ----------
    monitor, model
        The monitor, and the counts behind it.
    folder : Path
        Where runs are kept.
    plan : Plan
        How much to do.
    """

    def __init__(self, monitor: Monitor, model: CountModel, folder: Path, plan: Plan) -> None:
        self.monitor, self.model, self.folder, self.plan = monitor, model, folder, plan
        self.states = choose(monitor, model, PROPERTIES, VIOLATIONS)
        ticks = len(plan.seeds) * DURATION * monitor.spec.rate
        self.chances = chances(model, self.states, ticks, plan.moments)
        self.open_states = open_states(monitor, model, self.states, plan.many_for, plan.open_states)
        self._horizons = {name: item.horizon for name, item in predictions_of(monitor, 0).items()}

    def path(self, seed: int) -> Path:
        """Return where a run's results lie."""
        return self.folder / f"run_{seed:04d}.json"

    def horizons(self, state: int) -> Future:
        """Return how far ahead to look; collisions are cheap to look for everywhere."""
        lights = "red_light" in self.states[state]
        return Future(self._horizons["red_light"] if lights else 0, self._horizons["collision"])

    def done(self, seed: int) -> bool:
        """Tell whether a run is there, made with this model."""
        return any(run["seed"] == seed for run in self.runs())

    def runs(self) -> list[dict[str, Any]]:
        """Return what has been done so far, with this model."""
        found = [json.loads(p.read_text("utf-8")) for p in sorted(self.folder.glob("run_*.json"))]
        return [item for item in found if item["model"] == self.model.fingerprint]

    def do(self, seed: int) -> dict[str, Any]:
        """Run one seed, and the futures of its moments on the way."""
        import libsumo

        begun = os.times()
        scenario = town_scenario(seed, DURATION, self.folder / "scenarios")
        run = Run(libsumo, scenario, seed, DURATION)
        session = open_session(self.monitor)
        generators = Generators()
        rng = random.Random(zlib.crc32(f"moments {seed}".encode()))
        moments: list[dict[str, Any]] = []

        topics = frozenset(self.monitor.spec.topics)

        def accept(message: Published) -> None:
            if message.topic.name in topics:
                session.accept(message.topic.name, message.arrival_ns, message.data)

        def tick(number: int, frame: Frame) -> bool:
            state = session.tick(number).observation.state
            if state is not None and rng.random() < self.chances.get(state, 0.0):
                first = zlib.crc32(f"{seed} {number}".encode()) % 1_000_000_000
                horizons = self.horizons(state)
                count = self.plan.many if state in self.open_states else self.plan.futures
                seeds = range(first, first + count * SEED_STEP, SEED_STEP)
                lived = futures(libsumo, generators, run.observer, frame, seeds, horizons)
                moments.append(
                    {
                        "state": self.model.vocabulary.key(state),
                        "tick": number,
                        "first_seed": first,
                        "futures": [list(life) for life in lived],
                    }
                )
            return True

        failed = ""
        try:
            run.play(accept, tick)
        except NoEgoError as error:
            failed = str(error)
        return {
            "seed": seed,
            "model": self.model.fingerprint,
            "failed": failed,
            "cpu": round(sum(os.times()[:4]) - sum(begun[:4]), 1),
            "moments": moments,
        }


def main() -> None:
    """Branch what is not yet there, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True, help="where runs are kept")
    parser.add_argument("--config", type=Path, default=CONFIG, help="monitor file")
    parser.add_argument("--seeds", default="601:621", help="first:end (default: 601:621)")
    parser.add_argument("--moments", type=int, default=16, help="of each state (default: 16)")
    parser.add_argument("--futures", type=int, default=16, help="of each moment (default: 16)")
    parser.add_argument(
        "--open-states", type=int, default=2, help="of each rule, with --many futures (default: 2)"
    )
    parser.add_argument("--many", type=int, default=200, help="(default: 200)")
    parser.add_argument(
        "--many-for", nargs="+", choices=PROPERTIES, default=PROPERTIES, help="(default: all)"
    )
    parser.add_argument("--only-summary", action="store_true", help="simulate nothing")
    arguments = parser.parse_args()
    (arguments.folder / "scenarios").mkdir(parents=True, exist_ok=True)
    monitor, model = load_monitor(arguments.config)
    if model is None:
        parser.error(f"{arguments.config} names no model")
    first, end = (int(part) for part in arguments.seeds.split(":"))
    plan = Plan(
        range(first, end),
        arguments.moments,
        arguments.futures,
        arguments.open_states,
        arguments.many,
        tuple(arguments.many_for),
    )
    study = Study(monitor, model, arguments.folder, plan)
    for seed in () if arguments.only_summary else plan.seeds:
        if study.done(seed):
            continue
        run = study.do(seed)
        study.path(seed).write_text(json.dumps(run), encoding="utf-8")
        futures_done = sum(len(m["futures"]) for m in run["moments"])
        print(
            f"seed {seed}: {len(run['moments'])} moments, {futures_done} futures, {run['cpu']:g} s",
            flush=True,
        )
    recordings = load_visits(arguments.folder, model)
    write_results(study.runs(), recordings, monitor, model, study.states)


if __name__ == "__main__":
    main()
