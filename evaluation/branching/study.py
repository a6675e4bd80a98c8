"""Ground truth for a probability: branch many futures from moments of the town.

    python -m evaluation.branching.study --folder /tmp/branches --seeds 601:621

Each run that is done lies in the folder and is not repeated; `results.json`, the table and the
plot are made from what is there (`--only-summary`), and published with `--write`. README.md says
how many moments and futures.
"""

from __future__ import annotations

import json
import os
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.branching.futures import Future, futures
from evaluation.branching.generators import Generators
from evaluation.branching.states import chances, choose, open_states, predictions_of
from evaluation.branching.summary import write_results
from evaluation.branching.visits import load_visits
from evaluation.closed_loop.arms import CONFIG, load_acting
from evaluation.closed_loop.town import Run, town_scenario
from evaluation.harness.command import Seeds, command
from evaluation.harness.control import installed_types
from evaluation.harness.messages import Message
from evaluation.sumo.simulation import Frame, NoEgoError
from forewarn.models import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session
from forewarn.monitoring.step import Monitor

PROPERTIES = ("red_light", "collision")
VIOLATIONS = ("ran_red",)
DURATION = 200.0  # s a run
SEED_STEP = 100  # each future takes a generator for each lane group from there


@dataclass(frozen=True)
class Plan:
    """How much to do: seeds of runs, moments of each state over all runs, futures of a moment.

    For the `open_states` most visited states of each property in `many_for` every moment has `many`
    futures.
    """

    seeds: Seeds
    moments: int
    futures: int
    open_states: int
    many: int
    many_for: Sequence[str]


class Study:
    """Moments and their futures, run by run, kept in a folder."""

    def __init__(self, monitor: Monitor, model: CountModel, folder: Path, plan: Plan) -> None:
        self.monitor, self.model, self.folder, self.plan = monitor, model, folder, plan
        self.states = choose(monitor, model, PROPERTIES, VIOLATIONS)
        ticks = len(plan.seeds) * DURATION * monitor.spec.rate
        self.chances = chances(model, self.states, ticks, plan.moments)
        self.open_states = open_states(monitor, model, self.states, plan.many_for, plan.open_states)
        self._horizons = {name: item.horizon for name, item in predictions_of(monitor, 0).items()}

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
        session = Session(self.monitor, installed_types(self.monitor.spec))
        generators = Generators()
        rng = random.Random(zlib.crc32(f"moments {seed}".encode()))
        moments: list[dict[str, Any]] = []

        def accept(message: Message) -> None:
            if message.topic.name in self.monitor.spec.topics:
                session.accept(message.topic.name, message.time_ns, message.data)

        def tick(number: int, frame: Frame) -> bool:
            state = session.tick(number).observation.state
            if state is not None and rng.random() < self.chances.get(state, 0.0):
                first = zlib.crc32(f"{seed} {number}".encode()) % 1_000_000_000
                # Collisions are cheap to look for everywhere.
                lights = self._horizons["red_light"] if "red_light" in self.states[state] else 0
                horizons = Future(lights, self._horizons["collision"])
                count = self.plan.many if state in self.open_states else self.plan.futures
                seeds = range(first, first + count * SEED_STEP, SEED_STEP)
                lived = futures(libsumo, generators, run.observer, frame, seeds, horizons)
                told = {"state": self.model.vocabulary.key(state), "tick": number}
                moments.append({**told, "first_seed": first, "futures": list(map(list, lived))})
            return True

        failed = ""
        try:
            run.play(accept, tick)
        except NoEgoError as error:
            failed = str(error)
        cpu = round(sum(os.times()[:4]) - sum(begun[:4]), 1)
        told = {"seed": seed, "model": self.model.fingerprint, "failed": failed, "cpu": cpu}
        return {**told, "moments": moments}


def main(
    folder: Path,
    config: Path = CONFIG,
    seeds: Seeds = range(601, 621),
    moments: int = 16,
    futures: int = 16,
    open_states: int = 2,
    many: int = 200,
    many_for: Sequence[str] = PROPERTIES,
    only_summary: bool = False,
    write: bool = False,
) -> None:
    """Branch what is not yet there, and sum up."""
    (folder / "scenarios").mkdir(parents=True, exist_ok=True)
    compiled, model = load_acting(config)
    plan = Plan(seeds, moments, futures, open_states, many, many_for)
    study = Study(build_monitor(compiled, model), model, folder, plan)
    done = {run["seed"] for run in study.runs()}
    for seed in () if only_summary else seeds:
        if seed not in done:
            run = study.do(seed)
            (folder / f"run_{seed:04d}.json").write_text(json.dumps(run), encoding="utf-8")
            lived = sum(len(m["futures"]) for m in run["moments"])
            print(f"seed {seed}: {len(run['moments'])} moments, {lived} futures", flush=True)
    visits = load_visits(folder, model)
    write_results(study.runs(), visits, study.monitor, model, study.states, write=write)


if __name__ == "__main__":
    command(main)
