"""The seven scenarios of evaluation/study: a network, its traffic, the ego's route and its kind.

    python -m evaluation.sumo.scenarios --scenario s2 --seed 7 --output /tmp/s2_7

They follow ProbGuard's Table 1 (arXiv 2508.00500), whose scenarios ran in Apollo and LGSVL.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluation.sumo.crossing import (
    Crossing,
    build_crossing,
    ego_route,
    write_ego,
    write_traffic,
)
from evaluation.sumo.egos import draw_ego
from evaluation.sumo.messages import ROAD_TOPICS, TOPICS, publish, write_bag
from evaluation.sumo.network import Scenario, Town, build_scenario
from evaluation.sumo.simulation import Frame, RunOptions, simulate

STRIDE = 5
MOSTLY_CARELESS = {"careful": 1.0, "ordinary": 1.0, "hasty": 2.0, "reckless": 4.0}


@dataclass(frozen=True)
class Setting:
    """Where and among whom one scenario happens.

    Attributes
    ----------
    title
        What it is, in a few words.
    place
        The network.
    turns
        What the ego does at junctions: letters out of `slr`; not for the town.
    period, through
        Mean seconds between two departures on one arm; share of those going straight on.
    others
        How the others drive: a key of `crossing.OTHERS`; not for the town.
    cycles
        Seconds that the lights' cycle may have; one of them is drawn.
    kinds
        Weights of the kinds of ego.
    warm_up, duration
        Seconds to simulate before the recording, and to record.
    """

    title: str
    place: Crossing | Town
    turns: str = "s"
    period: float = 10.0
    through: float = 0.6
    others: str = "other"
    cycles: tuple[int, ...] = (26, 30, 34, 38)
    kinds: dict[str, float] = field(default_factory=lambda: dict(MOSTLY_CARELESS))
    warm_up: float = 30.0
    duration: float = 90.0


LIGHTS = Crossing()
SETTINGS = {
    "s1": Setting(
        "yellow, straight on, little traffic",
        Crossing(yellow=5),
        period=20,
        cycles=(24, 26, 28, 30),
    ),
    "s2": Setting("red, straight on, little traffic", LIGHTS, "s", period=20),
    "s3": Setting("red, behind others", LIGHTS, "s", period=8, through=0.8, others="late"),
    "s4": Setting("red, turning left and right", LIGHTS, "lr", period=10),
    "s5": Setting(
        "a jam beyond the junction",
        Crossing(link=55.0),
        period=3,
        through=0.7,
        others="pushing",
        cycles=(50, 60, 70),
        warm_up=60.0,
    ),
    "s6": Setting("a town with pedestrians", Town(), warm_up=50.0),
    "s7": Setting("unprotected left turns", LIGHTS, "l", period=5, through=0.8),
}


@dataclass(frozen=True)
class Drawn:
    """One run of a scenario: SUMO's files, and how to simulate."""

    files: Scenario
    options: RunOptions


def draw(name: str, seed: int, work: Path, networks: Path) -> Drawn:
    """Generate the files of one run.

    Parameters
    ----------
    name
        A key of `SETTINGS`.
    seed
        Decides traffic, the ego's kind, parameters and route, and SUMO's drivers.
    work, networks
        Where route files go; where generated networks are kept.
    """
    setting = SETTINGS[name]
    rng = random.Random(f"{name} {seed}")
    _, attributes = draw_ego(rng, setting.kinds)
    number = rng.randrange(1, 2**31)
    until = setting.warm_up + setting.duration
    options = RunOptions(number, setting.warm_up, setting.duration, STRIDE, surroundings=True)
    if isinstance(setting.place, Town):
        files = build_scenario(setting.place, number, until, work, networks, attributes)
        return Drawn(files, options)
    network = build_crossing(replace(setting.place, cycle=rng.choice(setting.cycles)), networks)
    traffic = write_traffic(
        setting.place,
        setting.period,
        setting.through,
        until,
        work / "traffic.rou.xml",
        setting.others,
    )
    route = ego_route(setting.place, setting.turns, rng)
    ego = write_ego(route, attributes, setting.warm_up - 15.0, work / "ego.rou.xml")
    return Drawn(Scenario(network, (traffic, ego)), options)


def kind_of(name: str, seed: int) -> str:
    """Return which kind of ego drives in a run."""
    return draw_ego(random.Random(f"{name} {seed}"), SETTINGS[name].kinds)[0]


def frames(name: str, seed: int, networks: Path) -> Iterator[Frame]:
    """Simulate one run and yield its frames; see `simulate` for the errors."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = draw(name, seed, Path(folder), networks)
        yield from simulate(drawn.files, drawn.options)


def record_bag(name: str, seed: int, networks: Path, output: Path) -> int:
    """Record one run as a bag folder, as a robot would; return the number of messages."""
    messages = publish(frames(name, seed, networks), seed)
    return write_bag(output, messages, TOPICS + ROAD_TOPICS)


def main() -> None:
    """Record one run of one scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scenario", choices=sorted(SETTINGS), required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True, help="bag folder; must not exist")
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as networks:
        count = record_bag(arguments.scenario, arguments.seed, Path(networks), arguments.output)
    print(f"{arguments.output}: {count} messages")


if __name__ == "__main__":
    main()
