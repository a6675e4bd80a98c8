"""The seven scenarios of evaluation/study: a network, its traffic, the ego's route and its kind.

    python -m evaluation.sumo.scenarios --scenario s2 --seed 7 --output /tmp/s2_7

They follow ProbGuard's Table 1 (arXiv 2508.00500), whose scenarios ran in Apollo and LGSVL.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluation.harness.command import command
from evaluation.harness.messages import write_bag
from evaluation.sumo.crossing import (
    Crossing,
    build_crossing,
    ego_route,
    write_ego,
    write_traffic,
)
from evaluation.sumo.messages import ROAD_TOPICS, TOPICS, publish
from evaluation.sumo.network import Scenario, Town, build_scenario
from evaluation.sumo.simulation import Frame, RunOptions, simulate

STRIDE = 5
MOSTLY_CARELESS = {"careful": 1.0, "ordinary": 1.0, "hasty": 2.0, "reckless": 4.0}
BODY = {"vClass": "passenger", "length": "4.6", "width": "1.8", "speedDev": "0"}
FOE_SPEED = 20.0  # m/s: up to which an approaching vehicle may be overlooked at all
KINDS = ("careful", "ordinary", "hasty", "reckless")
RANGES = {
    "tau": ((1.2, 1.6), (0.9, 1.2), (0.7, 0.9), (0.5, 0.8)),
    "sigma": ((0.1, 0.3), (0.4, 0.6), (0.5, 0.8), (0.6, 0.9)),
    "speedFactor": ((0.8, 0.95), (0.95, 1.1), (1.1, 1.25), (1.2, 1.4)),
    "jmDriveAfterYellowTime": ((-1, -1), (0, 2), (2, 4), (4, 8)),
    "jmDriveAfterRedTime": ((-1, -1), (-1, -1), (0, 4), (4, 16)),
    "jmIgnoreFoeProb": ((0, 0), (0, 0.1), (0.1, 0.4), (0.4, 0.8)),
    "jmIgnoreJunctionFoeProb": ((0, 0), (0, 0.1), (0.1, 0.4), (0.4, 0.8)),
    "jmIgnoreKeepClearTime": ((-1, -1), (10, 40), (2, 10), (0, 2)),
    "impatience": ((0, 0), (0, 0.3), (0.3, 0.7), (0.7, 1)),
}
"""Where each kind's parameters are drawn from, uniformly, in the order of `KINDS`."""


@dataclass(frozen=True)
class Setting:
    """Where and among whom one scenario happens."""

    title: str
    place: Crossing | Town
    turns: str = "s"  # what the ego does at junctions, letters out of `slr`; not for the town
    period: float = 10.0  # mean seconds between two departures on one arm
    through: float = 0.6  # share of those going straight on
    others: str = "other"  # how they drive, a key of `crossing.OTHERS`; not for the town
    cycles: tuple[int, ...] = (26, 30, 34, 38)  # of the lights, in seconds: one of them is drawn
    kinds: dict[str, float] = field(default_factory=lambda: dict(MOSTLY_CARELESS))
    warm_up: float = 30.0  # seconds to simulate before the recording, and to record
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


def draw_ego(rng: random.Random, kinds: dict[str, float]) -> tuple[str, dict[str, str]]:
    """Draw a kind of ego with the given weights; return it, and the attributes of SUMO's vType.

    Its kind, and its own parameters within the kind, are hidden from the monitor.
    """
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    spans = {name: ranges[KINDS.index(kind)] for name, ranges in RANGES.items()}
    drawn = {name: f"{rng.uniform(*span):.3f}" for name, span in spans.items()}
    return kind, {"id": kind, **BODY, "jmIgnoreFoeSpeed": f"{FOE_SPEED:g}", **drawn}


def draw(name: str, seed: int, work: Path, networks: Path) -> tuple[Scenario, RunOptions]:
    """Generate the files of one run, and how to simulate it.

    The seed decides traffic, the ego's kind, parameters and route, and SUMO's drivers. Route files
    go into `work`; generated networks are kept in `networks`.
    """
    setting = SETTINGS[name]
    rng = random.Random(f"{name} {seed}")
    _, attributes = draw_ego(rng, setting.kinds)
    number = rng.randrange(1, 2**31)
    until = setting.warm_up + setting.duration
    options = RunOptions(number, setting.warm_up, setting.duration, STRIDE, surroundings=True)
    place = setting.place
    if isinstance(place, Town):
        return build_scenario(place, number, until, work, networks, attributes), options
    network = build_crossing(replace(place, cycle=rng.choice(setting.cycles)), networks)
    flows = setting.period, setting.through, until, work / "traffic.rou.xml", setting.others
    traffic = write_traffic(place, *flows)
    route = ego_route(place, setting.turns, rng)
    ego = write_ego(route, attributes, setting.warm_up - 15.0, work / "ego.rou.xml")
    return Scenario(network, (traffic, ego)), options


def kind_of(name: str, seed: int) -> str:
    """Return which kind of ego drives in a run."""
    return draw_ego(random.Random(f"{name} {seed}"), SETTINGS[name].kinds)[0]


def frames(name: str, seed: int, networks: Path) -> Iterator[Frame]:
    """Simulate one run and yield its frames; see `simulate` for the errors."""
    with tempfile.TemporaryDirectory() as folder:
        yield from simulate(*draw(name, seed, Path(folder), networks))


def main(scenario: str, seed: int, output: Path) -> None:
    """Record one run as a bag folder, which must not exist, as a robot would."""
    with tempfile.TemporaryDirectory() as networks:
        messages = publish(frames(scenario, seed, Path(networks)), seed)
        print(f"{output}: {write_bag(output, TOPICS + ROAD_TOPICS, messages)} messages")


if __name__ == "__main__":
    command(main)
